//! Whatever the files hold, a check ends with diagnostics and never with a panic, and every span lies in its file.

mod fixture;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use fixture::Fixture;
use proptest::prelude::*;
use tidelock_codegen::check::{Artifacts, MAX_BYTES, report};
use tidelock_codegen::model::Registry;
use tidelock_codegen::{facts, ptx};

struct Base {
    registry: Registry,
    artifacts: Artifacts,
    yaml: String,
}

static BASE: LazyLock<Base> = LazyLock::new(|| {
    let fixture = Fixture::read();
    Base { registry: fixture.registry(), yaml: fixture.yaml, artifacts: fixture.artifacts }
});

const FILES: [&str; 5] = [
    "ptx/pick.json",
    "ptx/pick/fill-f32.ptx",
    "ptx/pick/pick-f64-weights-aligned.ptx",
    "kernels/pick.py",
    "src/cpu/pick.rs",
];

fn file<'a>(artifacts: &'a mut Artifacts, path: &str) -> &'a mut Vec<u8> {
    let Artifacts { manifests, ptx, kernels, cpu, .. } = artifacts;
    [manifests, ptx, kernels, cpu].into_iter().find_map(|files| files.get_mut(path)).unwrap()
}

/// One change of a file: the place as a fraction, how much goes, and what comes.
#[derive(Clone, Debug)]
struct Edit {
    at: f64,
    gone: usize,
    new: Vec<u8>,
}

fn edit() -> impl Strategy<Value = Edit> {
    let word = prop::sample::select(
        [
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            ",",
            ";",
            "\"",
            "'",
            "/*",
            "//",
            "\n",
            ".param ",
            ".entry ",
            ".align ",
            ".ptr ",
            "[18446744073709551615]",
            "-1",
            "1e999",
            "null",
            "\\u0000",
            "def ",
            "é",
            "\u{feff}",
            "..",
            "_",
            "#",
            ": ",
            "0",
        ]
        .map(|word| word.as_bytes().to_vec())
        .to_vec(),
    );
    let new = prop_oneof![Just(vec![]), word, prop::collection::vec(any::<u8>(), 0..4)];
    (0.0..1.0, prop_oneof![0..4usize, Just(40), Just(usize::MAX)], new).prop_map(|(at, gone, new)| Edit {
        at,
        gone,
        new,
    })
}

fn check(artifacts: &Artifacts) {
    let base = &*BASE;
    let mut texts = artifacts.texts();
    texts.insert("signatures/pick.yaml".to_string(), base.yaml.clone());
    let report = report(&base.registry, artifacts);
    for diagnostic in &report.diagnostics.0 {
        for label in std::iter::once(&diagnostic.primary).chain(&diagnostic.others) {
            let text = &texts[&label.span.file];
            assert!(text.get(label.span.start..label.span.end).is_some(), "{diagnostic:?}");
        }
    }
    report.diagnostics.render(&texts, false);
    assert!(report.kernels.len() == 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edited_files(path in prop::sample::select(FILES.to_vec()), edits in prop::collection::vec(edit(), 1..4)) {
        let mut artifacts = BASE.artifacts.clone();
        let content = file(&mut artifacts, path);
        for edit in edits {
            let start = (edit.at * content.len() as f64) as usize;
            let end = start.saturating_add(edit.gone).min(content.len());
            content.splice(start..end, edit.new);
        }
        check(&artifacts);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), path in prop::sample::select(FILES.to_vec())) {
        let mut artifacts = BASE.artifacts.clone();
        *file(&mut artifacts, path) = bytes;
        check(&artifacts);
    }

    #[test]
    fn any_text_as_ptx(text in "(\\.version 8\\.0 \\.target sm_80 )?([.a-z0-9_%$\"/*{}()\\[\\],;é \n-]|\\.entry |\\.param )*") {
        match ptx::read(&text) {
            Err(error) => prop_assert!(text.get(error.span).is_some()),
            Ok(module) => {
                for slot in module.entries.iter().flat_map(|entry| &entry.slots) {
                    prop_assert!(text.get(slot.span.clone()).is_some());
                }
            }
        }
    }
}

#[test]
fn every_prefix_of_a_ptx_and_of_a_manifest() {
    let ptx = String::from_utf8(BASE.artifacts.ptx["ptx/pick/fill-f32.ptx"].clone()).unwrap();
    for end in 0..ptx.len() {
        let cut = ptx::read(&ptx[..end]);
        let whole = cut.is_ok_and(|module| module.unclosed.is_none() && module.entries.len() == 1);
        let body_ends = ptx.rfind('}').unwrap();
        assert_eq!(whole, end > body_ends, "{end}");
    }
    let manifest = &BASE.artifacts.manifests["ptx/pick.json"];
    for end in (0..manifest.len() - 1).step_by(7) {
        assert!(facts::read_manifest("ptx/pick.json", &manifest[..end]).is_err(), "{end}");
    }
}

/// A check of the fixture with `content` at `path` ends in a few seconds, whatever it is.
fn ends_soon(path: &str, content: impl Into<Vec<u8>>) {
    let mut artifacts = BASE.artifacts.clone();
    *file(&mut artifacts, path) = content.into();
    let start = Instant::now();
    check(&artifacts);
    assert!(start.elapsed() < Duration::from_secs(20), "{path} took {:?}", start.elapsed());
}

const PTX: &str = "ptx/pick/fill-f32.ptx";
const MANIFEST: &str = "ptx/pick.json";

#[test]
fn hostile_ptx_ends_soon() {
    let header = ".version 8.0 .target sm_80 .address_size 64 ";
    let many = |text: &str, count: usize| format!("{header}{}", text.repeat(count));
    ends_soon(PTX, many("{", 1_000_000));
    ends_soon(PTX, many("/*", 500_000));
    ends_soon(PTX, many("// \n", 300_000));
    ends_soon(PTX, many("\"", 999_999));
    ends_soon(PTX, many(".extern .shared ", 100_000));
    ends_soon(PTX, many(".extern /* */ ", 100_000));
    ends_soon(PTX, many(".extern { } ", 100_000));
    ends_soon(PTX, many(".entry fill_kernel() { } ", 100_000));
    ends_soon(PTX, many(".entry f(.param .u64 .ptr .align 99999999999999999999 x)", 1));
    ends_soon(PTX, many(".entry f(.param .b8 x[18446744073709551615]) {}", 1));
    ends_soon(
        PTX,
        format!("{header}.entry fill_kernel({}) {{}}", ".param .b64 x[18446744073709551615],".repeat(30_000)),
    );
    ends_soon(PTX, format!("{header}.entry {} () {{}}", "f".repeat(1_000_000)));
    ends_soon(PTX, format!(".version {} .target {}", "9".repeat(500_000), "s".repeat(500_000)));
    ends_soon(PTX, [header.as_bytes(), &[0xff; 1_000_000]].concat());
    ends_soon(PTX, vec![0; 1_000_000]);
}

#[test]
fn hostile_facts_end_soon() {
    let committed = String::from_utf8(BASE.artifacts.manifests[MANIFEST].clone()).unwrap();
    let with = |from: &str, to: String| {
        assert!(committed.contains(from), "{from}");
        ends_soon(MANIFEST, committed.replacen(from, &to, 1));
    };
    ends_soon(MANIFEST, "[".repeat(1_000_000));
    ends_soon(MANIFEST, "{\"a\":".repeat(300_000));
    ends_soon(MANIFEST, format!("{{\"format\": {}}}", "9".repeat(1_000_000)));
    ends_soon(MANIFEST, [committed.as_bytes(), b"\xff"].concat());
    with("\"format\": 1", format!("\"format\": 1, \"{}\": 1", "x".repeat(1_000_000)));
    with("\"format\": 1", format!("\"format\": 1{}", ", \"format\": 1".repeat(30_000)));
    with("\"line\": 34", "\"line\": 18446744073709551615".into());
    with("\"shared\": ", "\"shared\": 1844674407370955161".into());
    with("\"num_warps\": ", "\"num_warps\": 429496729".into());
    with("\"value\"", format!("\"{}\"", "é".repeat(500_000)));
    let (nothing, start) = ("\"sources\": {}, \"variants\": {}", "\"kernels\": {");
    let kernels: String = (0..20_000)
        .map(|i| {
            format!("\"k{i}\": {{\"file\": \"k.py\", \"function\": \"k\", \"line\": 1, \"params\": [], {nothing}}},")
        })
        .collect();
    with(start, format!("{start}{kernels}"));
    let params = "{\"name\": \"x\", \"constexpr\": false, \"line\": 1, \"column\": 1},".repeat(30_000);
    with("\"params\": [", format!("\"params\": [{params}"));
    let sources: String = (0..20_000).map(|i| format!("\"kernels/{i}.py\": \"{}\",", "0".repeat(64))).collect();
    with("\"sources\": {", format!("\"sources\": {{{sources}"));
    let argument = "{\"name\": \"x\", \"type\": \"i32\", \"divisibility\": null},".repeat(30_000);
    with("\"arguments\": [", format!("\"arguments\": [{argument}"));
}

#[test]
fn hostile_kernel_sources_end_soon() {
    ends_soon("kernels/pick.py", "def f(".repeat(200_000));
    ends_soon("kernels/pick.py", "\ndef pick_kernel(".repeat(50_000));
    let mut artifacts = BASE.artifacts.clone();
    artifacts.insert("kernels/other.cu".into(), format!("{}(", "__global__ ".repeat(200_000)).into_bytes());
    let start = Instant::now();
    check(&artifacts);
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
}

#[test]
fn a_file_that_is_too_large_is_an_error_that_names_it() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("ptx");
    std::fs::create_dir(&folder).unwrap();
    let file = std::fs::File::create(folder.join("pick.json")).unwrap();
    file.set_len(MAX_BYTES + 1).unwrap();
    let error = Artifacts::read(root.path()).unwrap_err().to_string();
    assert!(error.ends_with("pick.json: expected at most 33554432 bytes, got more"), "{error}");
}

#[test]
fn deep_and_long_files_end() {
    let mut artifacts = BASE.artifacts.clone();
    *file(&mut artifacts, "ptx/pick.json") = "[".repeat(1_000_000).into_bytes();
    *file(&mut artifacts, "ptx/pick/fill-f32.ptx") = "{".repeat(1_000_000).into_bytes();
    *file(&mut artifacts, "kernels/pick.py") = "def f(".repeat(30_000).into_bytes();
    check(&artifacts);
    let mut artifacts = BASE.artifacts.clone();
    let slots = ".param .u64 .ptr .global .align 1 x,".repeat(30_000);
    let text = format!(".version 8.0 .target sm_80 .entry fill_kernel({slots}) {{}}");
    *file(&mut artifacts, "ptx/pick/fill-f32.ptx") = text.into_bytes();
    check(&artifacts);
    let manifest = String::from_utf8(artifacts.manifests["ptx/pick.json"].clone()).unwrap();
    let stars = format!("\"type\": \"{}", "*".repeat(1_000_000));
    *file(&mut artifacts, "ptx/pick.json") = manifest.replacen("\"type\": \"*", &stars, 1).into_bytes();
    check(&artifacts);
}
