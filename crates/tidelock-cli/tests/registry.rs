//! The commands that tell of the registry.

mod common;

use std::time::{Duration, Instant};

use common::{root, tidelock, tidelock_with};
use serde_json::Value;
use tidelock::REGISTRY;

#[test]
fn list_names_every_kernel() {
    let text = tidelock("list").ok();
    let kernels = tidelock("list --format json").json();
    assert_eq!(kernels.as_array().unwrap().len(), REGISTRY.len());
    assert_eq!(text.lines().count(), REGISTRY.len() + 1);
    for (kernel, entry) in REGISTRY.iter().zip(kernels.as_array().unwrap()) {
        assert_eq!((entry["name"].as_str(), entry["family"].as_str()), (Some(kernel.name), Some(kernel.family)));
        assert!(entry["ptx_bytes"].as_u64().unwrap() > 1000);
        assert!(text.contains(kernel.name));
    }
}

#[test]
fn show_says_the_whole_signature() {
    for kernel in REGISTRY {
        let json = tidelock(&format!("show {} --format json", kernel.name)).json();
        let names = |list: &Value| list.as_array().unwrap().iter().map(|row| row["name"].clone()).collect::<Vec<_>>();
        assert_eq!(names(&json["params"]), kernel.params.iter().map(|param| param.name).collect::<Vec<_>>());
        assert_eq!(names(&json["variants"]), kernel.variants.iter().map(|variant| variant.name).collect::<Vec<_>>());
        // Each place is where the thing is.
        let line = |place: &Value| {
            let (file, line) = place.as_str().unwrap().rsplit_once(':').unwrap();
            let text = std::fs::read_to_string(root().join(file)).unwrap();
            text.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap().to_string()
        };
        assert!(line(&json["signature"]).contains(kernel.name));
        assert!(line(&json["gpu"]).contains(kernel.gpu_function));
        assert!(line(&json["cpu"]).contains("Cpu<"), "{}", line(&json["cpu"]));
        for param in json["params"].as_array().unwrap() {
            assert!(line(&param["at"]).contains(param["name"].as_str().unwrap()));
        }
        for variant in json["variants"].as_array().unwrap() {
            assert!(root().join(variant["ptx"].as_str().unwrap()).is_file());
        }
        let text = tidelock(&format!("show {}", kernel.name)).ok();
        assert!(kernel.params.iter().all(|param| text.contains(param.name)));
    }
}

#[test]
fn show_in_text() {
    let text = tidelock("show rejection_greedy_sample").ok();
    // Bytes and hashes change with the compiler; lines with the sources.
    let (signature, _) = text.split_once("\n8 variants").unwrap();
    let signature: Vec<_> =
        signature.lines().filter(|line| !line.starts_with("GPU arm") && !line.starts_with("CPU arm")).collect();
    insta::assert_snapshot!("show", signature.join("\n"));
}

#[test]
fn a_misspelt_kernel_is_guessed() {
    assert_eq!(tidelock("show expnd").error(), "error: the registry has no kernel `expnd`; did you mean `expand`?");
    let error = tidelock("parity --device-b cpu zzzzzzzzzzzz").error();
    assert!(error.starts_with("error: the registry has no kernel `zzzzzzzzzzzz`; there are "), "{error}");
}

#[test]
fn check_is_quick_and_says_a_line_a_kernel() {
    let start = Instant::now();
    let text = tidelock("check").ok();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    for kernel in REGISTRY {
        let name = format!("{}/{} ", kernel.family, kernel.name);
        let line = text.lines().find(|line| line.contains(&name)).unwrap();
        assert!(line.starts_with("ok ") && line.contains(", 2 arms, record "), "{line}");
    }
    let json = tidelock("check --format json").json();
    assert_eq!((&json["ok"], &json["diagnostics"]), (&Value::Bool(true), &Value::Array(vec![])));
}

#[test]
fn check_fails_where_something_drifts() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        let output = std::process::Command::new("cp").arg("-r").arg(root().join(name)).arg(folder.path()).status();
        assert!(output.unwrap().success());
    };
    ["signatures", "kernels", "ptx", "src"].into_iter().for_each(copy);
    let clean = tidelock_with("check --root", &[folder.path()]);
    assert_eq!(clean.code, 0, "{}", clean.stdout);

    let kernel = folder.path().join("kernels/softmax.py");
    let text = std::fs::read_to_string(&kernel).unwrap();
    std::fs::write(&kernel, text + "\n# changed\n").unwrap();
    let run = tidelock_with("check --root", &[folder.path()]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("FAIL  softmax/widen_logits"), "{}", run.stdout);
    assert!(run.stdout.contains("kernels/softmax.py changed since its PTX was compiled"), "{}", run.stdout);
    let run = tidelock_with("check --format json --root", &[folder.path()]);
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &json["ok"]), (1, &Value::Bool(false)));
    assert_eq!(json["diagnostics"][0]["file"], "kernels/softmax.py");
}

#[test]
fn check_wants_a_registry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    assert_eq!(
        tidelock_with("check --root", &[folder.path()]).error(),
        format!("error: {path}/signatures: expected a folder with the registry's YAML files")
    );
}

#[test]
fn every_code_is_explained() {
    let error = tidelock("explain nonsense").error();
    let (start, codes) = error.split_once("; there are ").unwrap();
    assert_eq!(start, "error: there is no code `NONSENSE`");
    let code = codes.split(", ").next().unwrap();
    assert!(tidelock(&format!("explain {}", code.to_lowercase())).ok().starts_with(code));
}

#[test]
fn parity_of_a_device_with_itself() {
    let run = tidelock("parity --device-a cpu --device-b cpu --rows 500 expand argmax");
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let rows: Vec<Vec<_>> = run.stdout.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["expand", "argmax"]);
    assert!(rows.iter().all(|row| row[1].parse::<u64>().unwrap() >= 500 && row[row.len() - 1] == "0"), "{rows:?}");
}

#[test]
fn only_a_gpu_is_recorded() {
    assert_eq!(tidelock("record --device cpu").error(), "error: --device: expected a GPU to record, got cpu");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let binary = env!("CARGO_BIN_EXE_tidelock");
    let script = format!("for i in 1 2 3; do '{binary}' show expand --format json | true || exit 1; done 2>&1");
    let output = std::process::Command::new("bash").args(["-o", "pipefail", "-c", &script]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));
}
