//! Whatever the files hold, a check ends with diagnostics and never with a panic, and every span lies in its file.

mod fixture;

use std::sync::LazyLock;

use fixture::Fixture;
use proptest::prelude::*;
use tidelock_codegen::check::{Artifacts, report};
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

#[test]
fn deep_and_long_files_end() {
    let mut artifacts = BASE.artifacts.clone();
    *file(&mut artifacts, "ptx/pick.json") = "[".repeat(1_000_000).into_bytes();
    *file(&mut artifacts, "ptx/pick/fill-f32.ptx") = "{".repeat(1_000_000).into_bytes();
    *file(&mut artifacts, "kernels/pick.py") = "def f(".repeat(100_000).into_bytes();
    check(&artifacts);
    let mut artifacts = BASE.artifacts.clone();
    let slots = ".param .u64 .ptr .global .align 1 x,".repeat(100_000);
    let text = format!(".version 8.0 .target sm_80 .entry fill_kernel({slots}) {{}}");
    *file(&mut artifacts, "ptx/pick/fill-f32.ptx") = text.into_bytes();
    check(&artifacts);
    let manifest = String::from_utf8(artifacts.manifests["ptx/pick.json"].clone()).unwrap();
    let stars = format!("\"type\": \"{}", "*".repeat(1_000_000));
    *file(&mut artifacts, "ptx/pick.json") = manifest.replacen("\"type\": \"*", &stars, 1).into_bytes();
    check(&artifacts);
}
