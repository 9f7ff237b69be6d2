//! `tidelock new`: a scaffold whose parts fit each other, and that compiles.

mod common;

use std::fs;

use common::{folder, tidelock_in};
use serde_json::Value;

/// The codes of all that is wrong in a folder.
fn codes(at: &std::path::Path) -> Vec<String> {
    let check = tidelock_in(at, "check --format json");
    let json: Value = serde_json::from_str(&check.stdout).unwrap();
    json["diagnostics"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap().to_string()).collect()
}

#[test]
fn the_parts_fit_each_other() {
    for (flag, ending) in [("", "py"), ("--cuda", "cu")] {
        let folder = folder(&[("src/cpu/mod.rs", "//! Arms.\n\nmod alpha;\nmod zeta;\n\npub fn f() {}\n")]);
        let text = tidelock_in(folder.path(), &format!("new scale --kernel scale_rows {flag}")).ok();
        let files = ["signatures/scale.yaml", &format!("kernels/scale.{ending}"), "src/cpu/scale.rs"];
        for file in files {
            assert!(text.contains(&format!("wrote  {file}\n")), "{text}");
            let written = fs::read_to_string(folder.path().join(file)).unwrap();
            assert!(!written.contains("{kernel}") && !written.contains("{tidelock}"), "{written}");
        }
        let modules = fs::read_to_string(folder.path().join("src/cpu/mod.rs")).unwrap();
        assert_eq!(modules, "//! Arms.\n\nmod alpha;\nmod scale;\nmod zeta;\n\npub fn f() {}\n");
        assert!(text.contains("tidelock compile scale"), "{text}");
        assert_eq!(codes(folder.path()), ["TL0201"], "only that it was never compiled");
    }
}

#[test]
fn nothing_is_overwritten() {
    for taken in ["signatures/scale.yaml", "kernels/scale.py", "src/cpu/scale.rs"] {
        let folder = folder(&[(taken, "mine")]);
        let error = tidelock_in(folder.path(), "new scale").error();
        assert_eq!(error, format!("error: {taken}: expected no such file, and it is there; nothing was written"));
        let files = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!((files, fs::read_to_string(folder.path().join(taken)).unwrap().as_str()), (1, "mine"));
    }
}

#[test]
fn names_are_checked() {
    let folder = folder(&[]);
    let expected = "expected a name in snake case that is no keyword of Rust, such as `scale_rows`, got";
    assert_eq!(tidelock_in(folder.path(), "new Scale").error(), format!("error: FAMILY: {expected} `Scale`"));
    assert_eq!(
        tidelock_in(folder.path(), "new scale --kernel in").error(),
        format!("error: --kernel: {expected} `in`")
    );
    tidelock_in(folder.path(), "new scale").ok();
    let error = tidelock_in(folder.path(), "new other --kernel scale").error();
    assert_eq!(
        error,
        "error: the registry has a kernel `scale` already, in signatures/scale.yaml; say another --kernel"
    );
}

/// `TIDELOCK_PYTHON=… cargo test -p tidelock-cli --test new -- --ignored`.
#[test]
#[ignore = "needs Triton and nvcc"]
fn a_compiled_scaffold_has_no_drift() {
    for flag in ["", "--cuda"] {
        let folder = folder(&[]);
        tidelock_in(folder.path(), &format!("new scale {flag}")).ok();
        let compiled = tidelock_in(folder.path(), "compile scale");
        assert_eq!(compiled.code, 0, "{}{}", compiled.stdout, compiled.stderr);
        assert_eq!(codes(folder.path()), [""; 0]);
    }
}
