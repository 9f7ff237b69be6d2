//! `tidelock add-param`: the text it writes, and the places it lists.

mod common;

use std::fs;
use std::path::Path;

use common::{Run, root, tidelock_in};
use serde_json::Value;

const YAML: &str = "signatures/pick.yaml";

/// A copy of the registry that the drift checks are tested with, and a caller of each of its kernels.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let fixture = root().join("crates/tidelock-codegen/tests/fixtures/pick/.");
    let copied = std::process::Command::new("cp").arg("-r").arg(fixture).arg(folder.path()).status();
    assert!(copied.unwrap().success());
    fs::write(folder.path().join("src/lib.rs"), "fn f() {\n    Pick { output };\n    Fill { output, value };\n}\n")
        .unwrap();
    folder
}

fn read(folder: &Path) -> String {
    fs::read_to_string(folder.join(YAML)).unwrap()
}

fn run(folder: &Path, words: &[&str]) -> Run {
    common::run(folder, &[&["add-param"], words].concat())
}

#[test]
fn a_scalar_with_a_default() {
    let folder = project();
    let before = read(folder.path());
    let text = run(folder.path(), &["pick", "top_k:i32=0", "--doc", "Candidates: 0 means all."]).ok();
    insta::assert_snapshot!("add_param_scalar", text);
    let line = "      top_k: {scalar: i32, default: 0, doc: \"Candidates: 0 means all.\"}\n";
    let after = read(folder.path());
    assert_eq!(after.matches(line).count(), 1, "{after}");
    assert_eq!(after.replace(line, ""), before, "all else is as it was");
    // What it listed is what is wrong now, and nothing is wrong with the registry by itself.
    let check = tidelock_in(folder.path(), "check --format json");
    let json: Value = serde_json::from_str(&check.stdout).unwrap();
    let codes: Vec<_> = json["diagnostics"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert_eq!(codes, ["TL0210", "TL0405"]);
}

#[test]
fn a_dry_run_shows_the_difference() {
    let folder = project();
    let before = read(folder.path());
    let words = [
        "pick",
        "bias:tensor<f16>[num_rows,size]",
        "--after",
        "weights",
        "--as",
        "bias_ptr",
        "--access",
        "update",
        "--dry-run",
    ];
    insta::assert_snapshot!("add_param_tensor", run(folder.path(), &words).ok());
    assert_eq!(read(folder.path()), before);
}

#[test]
fn a_constant_without_a_value() {
    let folder = project();
    let text = run(folder.path(), &["fill", "USE_FP64_GUMBEL:bool"]).ok();
    insta::assert_snapshot!("add_param_constant", text);
    let refused = tidelock_in(folder.path(), "check");
    assert_eq!(refused.code, 1);
    assert_eq!(refused.stdout.matches("error[TL0150]").count(), 2, "{}", refused.stdout);
    let derived = project();
    let text = run(
        derived.path(),
        &["pick", "NO_WEIGHTS:bool", "--from", "absent(weights)", "--doc", "None.", "--after", "BLOCK_SIZE"],
    )
    .ok();
    assert!(
        text.contains("after `BLOCK_SIZE`") && text.contains("error[TL0215]") && !text.contains("TL0405"),
        "{text}"
    );
    assert!(
        read(derived.path())
            .contains("      NO_WEIGHTS: {type: bool, from: absent(weights), doc: None.}\n      HAS_WEIGHTS")
    );
}

#[test]
fn styles_comments_and_line_ends_are_kept() {
    let yaml = "# head\nkernels:\n  fill:   # a kernel\n    doc: Fills.\n    gpu: kernels/pick.py:fill_kernel\n    grid: [size]\n    params:\n\n      # where to\n      output:\n        tensor: f32\n        # how long\n        shape: [size]\n        access: write\n        doc: >\n          Places,\n\n          many.\n\n      # below\n    num_warps: 1  # few\n\n  # the next\n  other:\n    doc: Fills.\n    gpu: kernels/pick.py:pick_kernel\n    grid: [size]\n    params:\n      output: {tensor: f32, shape: [size], access: write, doc: Places.}";
    for ending in ["\n", "\r\n"] {
        let folder = project();
        let before = yaml.replace('\n', ending);
        fs::write(folder.path().join(YAML), &before).unwrap();
        run(folder.path(), &["fill", "value:f32=1.5", "--doc", "V."]).ok();
        run(folder.path(), &["fill", "N_MORE:i32=2", "--doc", "N.", "--tuning"]).ok();
        run(folder.path(), &["other", "text:i32=2", "--doc", "Long ".repeat(30).trim_end()]).ok();
        let expected = yaml
            .replace("          many.\n", "          many.\n      value: {scalar: f32, default: 1.5, doc: V.}\n")
            .replace(
                "num_warps: 1  # few\n",
                "num_warps: 1  # few\n    constants:\n      N_MORE: {type: i32, value: 2, tuning: true, doc: N.}\n",
            );
        let long = "Long ".repeat(30);
        let expected = format!(
            "{expected}\n      text:\n        scalar: i32\n        default: 2\n        doc: {}\n",
            long.trim_end()
        );
        assert_eq!(read(folder.path()), expected.replace('\n', ending));
    }
}

#[test]
fn bad_input_changes_nothing() {
    let folder = project();
    let before = read(folder.path());
    let error = |words: &[&str]| run(folder.path(), words).error();
    let forms = "expected `NAME:TYPE[=DEFAULT]`, `NAME:tensor<TYPE>[SHAPE]` or `CONSTANT:TYPE[=VALUE]`";
    assert_eq!(error(&["pick", "top_k"]), format!("error: top_k: {forms}, got no `:`"));
    assert_eq!(error(&["pic", "top_k:i32"]), "error: the registry has no kernel `pic`; did you mean `pick`?");
    assert_eq!(
        error(&["pick", "top_k:i32", "--optional"]),
        "error: top_k:i32: --optional: only a tensor has this; a scalar can have a default"
    );
    assert_eq!(
        error(&["pick", "k:i32", "--after", "nois"]),
        "error: --after: kernel `pick` has no `nois`; did you mean `noise`?"
    );
    let refused = |words: &[&str], code: &str| {
        let text = error(words);
        assert!(text.contains(&format!("error[{code}]")), "{text}");
    };
    refused(&["pick", "top_k:int32"], "TL0118");
    refused(&["pick", "topK:i32"], "TL0107");
    refused(&["pick", "noise:i32"], "TL0102");
    refused(&["pick", "x:tensor<f32>[a, b, c]"], "TL0116");
    refused(&["pick", "x:i8=1000"], "TL0143");
    assert_eq!(read(folder.path()), before);
    let flow = "kernels: {fill: {doc: F., gpu: 'kernels/pick.py:fill_kernel', grid: [n], params: {x: {tensor: f32, shape: [n], doc: X.}}}}\n";
    fs::write(folder.path().join(YAML), flow).unwrap();
    assert_eq!(
        error(&["fill", "k:i32=0"]),
        "error: signatures/pick.yaml: expected `params` of kernel `fill` with one entry a line, got `{…}`; put each on a line of its own"
    );
    fs::write(folder.path().join(YAML), "kernels:\n  fill: [\n").unwrap();
    refused(&["fill", "k:i32=0"], "TL0101");
}
