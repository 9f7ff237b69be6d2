//! The way from the registry through the compiler to `ptx/`: the plan, the answer, the files.

mod fixture;

use std::io::Write;
use std::process::{Command, Stdio};

use fixture::Fixture;
use serde_json::{Value, json};
use tidelock_codegen::facts::{self, Answer, Changes};
use tidelock_codegen::plan::plan;

/// Compiles the fixture anew: `TIDELOCK_PYTHON=… cargo test -p tidelock-codegen --test compile -- --ignored`.
#[test]
#[ignore = "needs Triton, and writes to the fixture"]
fn compile_the_fixture() {
    let fixture = Fixture::read();
    let root = fixture::root();
    let registry = fixture.registry();
    let mut plan = plan(&registry, &[]).unwrap();
    plan.root = root.display().to_string();
    let script = std::env::var("TIDELOCK_COMPILER")
        .unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/toolchain/compile.py").to_string());
    let mut child = Command::new(std::env::var("TIDELOCK_PYTHON").unwrap_or("python3".to_string()))
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(&plan).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let answer = facts::read_answer(&output.stdout).unwrap();
    let changes = facts::changes(&registry, answer, &fixture.artifacts).unwrap();
    for (path, content) in changes.write {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    for path in changes.remove {
        std::fs::remove_file(root.join(path)).unwrap();
    }
}

fn selected(only: &[&str]) -> Vec<String> {
    let only: Vec<String> = only.iter().map(|name| name.to_string()).collect();
    let plan = plan(&Fixture::read().registry(), &only).unwrap();
    plan.kernels.into_iter().map(|kernel| kernel.name).collect()
}

#[test]
fn what_the_compiler_is_asked() {
    let mut plan = plan(&Fixture::read().registry(), &[]).unwrap();
    let names: Vec<_> = plan.kernels[0].variants.iter().map(|variant| variant.name.clone()).collect();
    let expected = [
        "pick-f32-no_weights-generic",
        "pick-f32-no_weights-aligned",
        "pick-f32-weights-generic",
        "pick-f32-weights-aligned",
        "pick-f64-no_weights-generic",
        "pick-f64-no_weights-aligned",
        "pick-f64-weights-generic",
        "pick-f64-weights-aligned",
    ];
    assert_eq!(names, expected);
    plan.kernels[0].variants.retain(|variant| variant.name == "pick-f64-no_weights-aligned");
    plan.kernels[1].variants.truncate(1);
    let expected = json!({
        "format": 1,
        "root": "",
        "kernels": [
            {
                "name": "pick",
                "family": "pick",
                "file": "kernels/pick.py",
                "function": "pick_kernel",
                "num_warps": 4,
                "variants": [{
                    "name": "pick-f64-no_weights-aligned",
                    "signature": [
                        ["output_ptr", "*i32"],
                        ["scores_ptr", "*fp32"],
                        ["weights", null],
                        ["noise", "*fp64"],
                        ["size", "i32"],
                        ["scores_stride", "i64"],
                    ],
                    "constants": {"BLOCK_SIZE": 128, "HAS_WEIGHTS": false, "USE_FP64": true},
                    "divisible_by_16": ["scores_ptr", "size", "scores_stride"],
                }],
            },
            {
                "name": "fill",
                "family": "pick",
                "file": "kernels/pick.py",
                "function": "fill_kernel",
                "num_warps": 1,
                "variants": [{
                    "name": "fill-f32",
                    "signature": [
                        ["output", "*fp32"],
                        ["value", "fp32"],
                        ["doubled", "i1"],
                        ["extra", "fp16"],
                        ["size", "i32"],
                    ],
                    "constants": {"BLOCK_SIZE": 128, "MARK": 7},
                    "divisible_by_16": [],
                }],
            },
        ],
    });
    assert_eq!(serde_json::to_value(plan).unwrap(), expected);
}

#[test]
fn kernels_are_selected_by_kernel_family_or_file() {
    assert_eq!(selected(&[]), ["pick", "fill"]);
    assert_eq!(selected(&["fill"]), ["fill"]);
    for name in ["pick", "pick.py", "kernels/pick.py", "signatures/pick.yaml"] {
        assert_eq!(selected(&[name]), ["pick", "fill"], "{name}");
    }
    let error = plan(&Fixture::read().registry(), &["fill".to_string(), "kernels/pik.py".to_string()]).unwrap_err();
    let expected = "no kernel, family or kernel source is called `kernels/pik.py`; did you mean `kernels/pick.py`?";
    assert_eq!(error.to_string(), expected);
}

/// What the compiler would answer had it just compiled the fixture, edited before it is read.
fn answer(edit: impl FnOnce(&mut Value)) -> Answer {
    let fixture = Fixture::read();
    let mut answer: Value = serde_json::from_str(&fixture.text("ptx/pick.json")).unwrap();
    for kernel in answer["kernels"].as_object_mut().unwrap().values_mut() {
        for (name, variant) in kernel["variants"].as_object_mut().unwrap() {
            variant["ptx"] = json!(fixture.text(&facts::ptx_path("pick", name)));
        }
    }
    edit(&mut answer);
    facts::read_answer(&serde_json::to_vec(&answer).unwrap()).unwrap()
}

fn written(changes: &Changes) -> Vec<&str> {
    changes.write.keys().map(String::as_str).collect()
}

fn forget(answer: &mut Value, kernel: &str) {
    answer["kernels"].as_object_mut().unwrap().remove(kernel);
}

#[test]
fn what_is_the_same_is_not_written() {
    let fixture = Fixture::read();
    let changes = facts::changes(&fixture.registry(), answer(|_| ()), &fixture.artifacts).unwrap();
    assert_eq!(changes, Changes::default());
}

#[test]
fn kernels_that_were_not_compiled_are_kept() {
    let fixture = Fixture::read();
    let answer = answer(|answer| {
        forget(answer, "pick");
        answer["kernels"]["fill"]["variants"]["fill-f32"]["ptx"] = json!("// new");
    });
    let changes = facts::changes(&fixture.registry(), answer, &fixture.artifacts).unwrap();
    assert_eq!(written(&changes), ["ptx/pick.json", "ptx/pick/fill-f32.ptx"]);
    assert!(changes.remove.is_empty());
    let old = fixture.text("ptx/pick.json");
    let expected =
        old.replace(&fixture::hash(&fixture.artifacts.ptx["ptx/pick/fill-f32.ptx"]), &fixture::hash(b"// new"));
    assert_eq!(String::from_utf8(changes.write["ptx/pick.json"].clone()).unwrap(), expected);
}

#[test]
fn what_the_registry_no_longer_has_goes() {
    let text = Fixture::read().text("ptx/pick.json");
    let mut fixture = Fixture::read().add("ptx/old.json", &text).add("ptx/old/a.ptx", "");
    fixture.yaml.truncate(fixture.yaml.find("  fill:").unwrap());
    let answer = answer(|answer| forget(answer, "fill"));
    let changes = facts::changes(&fixture.registry(), answer, &fixture.artifacts).unwrap();
    assert_eq!(written(&changes), ["ptx/pick.json"]);
    let removed: Vec<_> = changes.remove.iter().map(String::as_str).collect();
    assert_eq!(removed, ["ptx/old.json", "ptx/old/a.ptx", "ptx/pick/fill-f32.ptx", "ptx/pick/fill-i32.ptx"]);
    for (path, content) in changes.write {
        fixture.set(&path, content);
    }
    for path in changes.remove {
        fixture = fixture.remove(&path);
    }
    assert_eq!(fixture.found(), "");
}

#[test]
fn a_damaged_manifest_is_replaced_as_a_whole_or_not_at_all() {
    let fixture = Fixture::read().add("ptx/pick.json", "{");
    let changes = facts::changes(&fixture.registry(), answer(|_| ()), &fixture.artifacts).unwrap();
    assert_eq!(written(&changes), ["ptx/pick.json"]);
    let part = answer(|answer| forget(answer, "pick"));
    let error = facts::changes(&fixture.registry(), part, &fixture.artifacts).unwrap_err();
    assert_eq!(error.0[0].code, "TL0202");
}

#[test]
fn an_answer_that_does_not_fit_is_refused() {
    let fixture = Fixture::read();
    let refused = |edit: fn(&mut Value)| {
        let error = facts::changes(&fixture.registry(), answer(edit), &fixture.artifacts).unwrap_err();
        error.0.into_iter().map(|error| (error.code, error.message)).collect::<Vec<_>>()
    };
    let two_toolchains = refused(|answer| {
        forget(answer, "pick");
        answer["toolchain"]["triton"] = json!("3.7.0");
    });
    let message = "kernel `pick` was compiled by another toolchain than the rest of its family now";
    assert_eq!(two_toolchains, [("TL0230", message.to_string())]);
    let unasked = refused(|answer| {
        let kernel = answer["kernels"]["fill"].clone();
        answer["kernels"]["../../fill"] = kernel;
    });
    let message = "the kernel compiler's answer has kernel `../../fill`, which was not asked for";
    assert_eq!(unasked, [("TL0203", message.to_string())]);
    let unasked = refused(|answer| {
        let variants = answer["kernels"]["fill"]["variants"].as_object_mut().unwrap();
        let variant = variants["fill-f32"].clone();
        variants.insert("../x".to_string(), variant);
    });
    let message = "the kernel compiler's answer has variant `../x` of kernel `fill`, which was not asked for";
    assert_eq!(unasked, [("TL0203", message.to_string())]);
    let error = facts::read_answer(b"{\"error\": {}}").unwrap_err();
    assert!(error.message.contains("unknown field `error`"), "{}", error.message);
}

#[test]
fn keys_must_not_stand_twice() {
    let text = Fixture::read().text("ptx/pick.json");
    let doubled = text.replacen("\"BLOCK_SIZE\": 128,", "\"BLOCK_SIZE\": 128, \"BLOCK_SIZE\": 128,", 1);
    let error = facts::read_manifest("ptx/pick.json", doubled.as_bytes()).unwrap_err();
    assert!(error.message.contains("key `BLOCK_SIZE` stands twice"), "{}", error.message);
    let without = text.replacen("\"divisibility\": null", "\"divisible\": null", 1);
    let error = facts::read_manifest("ptx/pick.json", without.as_bytes()).unwrap_err();
    assert!(error.message.contains("unknown field `divisible`"), "{}", error.message);
}

#[test]
fn hundreds_of_variants_take_no_time() {
    let fixture = Fixture::read();
    let registry = fixture.registry();
    let start = std::time::Instant::now();
    for _ in 0..50 {
        assert!(tidelock_codegen::check::check(&registry, &fixture.artifacts).is_empty());
    }
    let elapsed = start.elapsed();
    eprintln!("500 variants in {elapsed:?}");
    assert!(elapsed.as_secs() < 10, "{elapsed:?}"); // a bound for slow machines; it is far less
}
