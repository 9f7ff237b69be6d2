//! `tidelock diff`: every rule by a change of its own, folders, revisions, exit codes.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Run, folder, run};
use serde_json::Value;

const SCALE: &str = "\
kernels:
  scale:
    doc: Scales.
    gpu: kernels/scale.py:scale_kernel
    grid: [n]
    types:
      T: [f32, f64]
    params:
      out: {tensor: T, shape: [n, m], access: write, doc: Products.}
      x: {tensor: T, shape: [n, m], doc: Numbers.}
      bias: {tensor: f32, shape: [m], optional: true, doc: Bias.}
      state: {tensor: f32, shape: [n], access: update, doc: State.}
      ids: {tensor: i32, shape: [n], domain: 0..m, doc: Ids.}
      m: {scalar: i32, from: dim, max: 4096, doc: Columns.}
      x_stride: {scalar: i64, from: stride(x), doc: From row to row.}
      factor: {scalar: f32, doc: A factor.}
      power: {scalar: i32, default: 2, doc: A power.}
    divisible_by_16: [x]
    constants:
      BLOCK: {type: i32, value: 128, tuning: true, doc: Columns in one step.}
      MODE: {type: i32, value: 1, doc: A mode.}
      HAS_BIAS: {type: bool, from: present(bias)}
";

const OTHER: &str = "
  other:
    doc: Copies.
    gpu: kernels/scale.py:other_kernel
    grid: [n]
    params:
      out: {tensor: f32, shape: [n], access: write, doc: Numbers.}
";

/// A change of [`SCALE`]: its rules, what is replaced, and by what.
const CASES: [(&[&str], &str, &str); 47] = [
    (&["gpu-changed"], ":scale_kernel", ":scale_all_kernel"),
    (&["cpu-changed"], "    grid: [n]", "    cpu: cpu/scale.cpp:scale\n    grid: [n]"),
    (&["grid-changed"], "grid: [n]", "grid: [n, 2]"),
    (&["num-warps-changed"], "grid: [n]", "grid: [n]\n    num_warps: 8"),
    (
        &["gpu-changed", "shared-memory-changed"],
        "scale.py:scale_kernel\n",
        "scale.cu:scale_kernel\n    shared_memory: 4 * m\n",
    ),
    (&["promise-changed"], "[x]", "[x, out]"),
    (
        &["order-changed"],
        "      m: {scalar: i32, from: dim, max: 4096, doc: Columns.}\n      x_stride: {scalar: i64, from: stride(x), doc: From row to row.}\n",
        "      x_stride: {scalar: i64, from: stride(x), doc: From row to row.}\n      m: {scalar: i32, from: dim, max: 4096, doc: Columns.}\n",
    ),
    (&["required-added"], "      power:", "      extra: {scalar: f32, doc: E.}\n      power:"),
    (
        &["required-added"],
        "      power:",
        "      extra: {tensor: f32, shape: [n], optional: true, doc: E.}\n      power:",
    ),
    (&["default-added"], "      power:", "      extra: {scalar: f32, default: 0.5, doc: E.}\n      power:"),
    (&["derived-added"], "      power:", "      n: {scalar: i32, from: dim, doc: Rows.}\n      power:"),
    (&["derived-added"], "      power:", "      out_stride: {scalar: i64, from: stride(out), doc: E.}\n      power:"),
    (
        &["cpu-only-added"],
        "      power:",
        "      extra: {scalar: f32, default: 0.5, only: {cpu: It sums.}, doc: E.}\n      power:",
    ),
    (&["passed-removed"], "      factor: {scalar: f32, doc: A factor.}\n", ""),
    (&["passed-removed"], "      power: {scalar: i32, default: 2, doc: A power.}\n", ""),
    (&["size-removed"], "      m: {scalar: i32, from: dim, max: 4096, doc: Columns.}\n", ""),
    (&["stride-removed"], "      x_stride: {scalar: i64, from: stride(x), doc: From row to row.}\n", ""),
    (&["kernel-name-changed"], "doc: A factor.", "as: scale_by, doc: A factor."),
    (&["kernel-name-changed"], "value: 1,", "value: 1, as: mode,"),
    (&["kind-changed"], "factor: {scalar: f32,", "factor: {tensor: f32, shape: [n],"),
    (&["kind-changed"], "factor: {scalar: f32,", "factor: {struct: kernels/scale.h:Factor,"),
    (&["type-changed"], "state: {tensor: f32", "state: {tensor: f16"),
    (&["type-changed"], "factor: {scalar: f32", "factor: {scalar: T"),
    (&["choice-added"], "[f32, f64]", "[f32, f64, f16]"),
    (&["choice-added", "choice-removed"], "[f32, f64]", "[f32, bf16]"),
    (&["choice-removed"], "[f32, f64, bf16]", "[f32, f64]"),
    (&["shape-changed"], "state: {tensor: f32, shape: [n]", "state: {tensor: f32, shape: [n + 1]"),
    (&["access-changed"], "ids: {tensor: i32, shape: [n],", "ids: {tensor: i32, shape: [n], access: update,"),
    (&["write-to-update"], "access: write", "access: update"),
    (&["update-to-write"], "access: update", "access: write"),
    (&["presence-changed"], "state: {tensor: f32,", "state: {tensor: f32, optional: true,"),
    (&["presence-changed"], "state: {tensor: f32,", "state: {tensor: f32, optional: {with: bias},"),
    (&["source-changed"], "factor: {scalar: f32,", "factor: {scalar: f32, default: 1.0,"),
    (&["source-changed"], "power: {scalar: i32, default: 2,", "power: {scalar: i32,"),
    (&["default-changed"], "default: 2", "default: 3"),
    (&["limit-lowered"], "max: 4096", "max: 4095"),
    (&["limit-lowered"], "default: 2", "default: 2, max: 9"),
    (&["limit-raised"], "max: 4096", "max: 8192"),
    (&["limit-raised"], " max: 4096,", ""),
    (&["domain-narrowed"], "domain: 0..m", "domain: 0..n"),
    (&["domain-widened"], " domain: 0..m,", ""),
    (&["arm-changed"], "doc: A factor.", "only: {gpu: It is 1.}, doc: A factor."),
    (&["constant-added"], "      MODE:", "      STEP: {type: i32, value: 4, doc: S.}\n      MODE:"),
    (&["constant-removed"], "      MODE: {type: i32, value: 1, doc: A mode.}\n", ""),
    (&["constant-value-changed"], "value: 128", "value: 256"),
    (&["constant-value-changed"], "present(bias)", "absent(bias)"),
    (&["constant-kind-changed"], "value: 128, tuning: true", "value: 128"),
];

fn registry(files: &[(&str, &str)]) -> tempfile::TempDir {
    let files: Vec<_> = files.iter().map(|(name, text)| (format!("signatures/{name}"), *text)).collect();
    folder(&files.iter().map(|(name, text)| (name.as_str(), *text)).collect::<Vec<_>>())
}

fn diff(old: &Path, new: &Path, flags: &[&str]) -> Run {
    run(old, &[&["diff", old.to_str().unwrap(), new.to_str().unwrap()], flags].concat())
}

fn rules(run: &Run) -> Vec<String> {
    let json: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    json["changes"].as_array().unwrap().iter().map(|change| change["rule"].as_str().unwrap().to_string()).collect()
}

#[test]
fn every_rule() {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut check = |expected: &[&str], old: &[(&str, &str)], new: &[(&str, &str)]| {
        let (old, new) = (registry(old), registry(new));
        let run = diff(old.path(), new.path(), &["--json"]);
        assert_eq!(rules(&run), expected, "{}{}", run.stdout, run.stderr);
        seen.extend(rules(&run));
        assert_eq!(run.code, i32::from(expected != ["domain-widened"]), "{}", run.stdout);
    };
    for (expected, from, to) in CASES {
        let base =
            if from.contains("bf16") { SCALE.replace("[f32, f64]", "[f32, f64, bf16]") } else { SCALE.to_string() };
        assert_eq!(base.matches(from).count(), 1, "{from}");
        check(expected, &[("scale.yaml", &base)], &[("scale.yaml", &base.replace(from, to))]);
    }
    let both = format!("{SCALE}{OTHER}");
    check(&["kernel-added"], &[("scale.yaml", SCALE)], &[("scale.yaml", &both)]);
    check(&["kernel-removed"], &[("scale.yaml", &both)], &[("scale.yaml", SCALE)]);
    check(&["family-changed"], &[("scale.yaml", SCALE)], &[("rows.yaml", SCALE)]);
    let renamed = SCALE.replace("T: [", "Number: [").replace("tensor: T", "tensor: Number");
    check(&["variable-renamed"], &[("scale.yaml", SCALE)], &[("scale.yaml", &renamed)]);

    let by_value = SCALE.replace("factor: {scalar: f32,", "factor: {struct: kernels/scale.h:Factor,");
    let other = by_value.replace("scale.h:Factor", "scale.h:Factors");
    check(&["type-changed"], &[("scale.yaml", &by_value)], &[("scale.yaml", &other)]);

    let table = run(Path::new("."), &["diff", "--rules"]).ok();
    let all: BTreeSet<String> = table.lines().skip(2).map(|line| line.split('`').nth(1).unwrap().to_string()).collect();
    assert_eq!(seen, all, "every rule has a case");
}

#[test]
fn what_is_no_change() {
    let old = registry(&[("scale.yaml", SCALE)]);
    let moved = SCALE
        .replace("Products.", "The products.")
        .replace("[x]", "[ x ]")
        .replace("doc: Scales.", "doc: >\n      Scales.\n");
    let new = registry(&[("scale.yaml", &moved)]);
    assert_eq!(diff(old.path(), new.path(), &[]).ok(), "nothing changed\n");
    // The folder of the files themselves will do.
    assert_eq!(diff(&old.path().join("signatures"), new.path(), &[]).ok(), "nothing changed\n");
}

#[test]
fn in_words_and_for_one_side() {
    let old = registry(&[("scale.yaml", &format!("{SCALE}{OTHER}"))]);
    let changed =
        SCALE.replace("default: 2", "default: 3").replace("value: 128", "value: 256").replace(" domain: 0..m,", "");
    let new = registry(&[("scale.yaml", &changed)]);
    let all = diff(old.path(), new.path(), &[]);
    assert_eq!((all.code, all.stderr.as_str()), (1, ""));
    insta::assert_snapshot!("diff_words", all.stdout);
    let tuned = registry(&[("scale.yaml", &format!("{}{OTHER}", SCALE.replace("value: 128", "value: 256")))]);
    assert_eq!(diff(old.path(), tuned.path(), &["--only", "callers,arms"]).code, 0);
    assert_eq!(diff(old.path(), tuned.path(), &["--only", "ptx"]).code, 1);
    let json: Value = serde_json::from_str(&diff(old.path(), tuned.path(), &["--json"]).stdout).unwrap();
    assert_eq!(
        (&json["compatible"], &json["changes"][0]["breaks"]),
        (&Value::Bool(false), &serde_json::json!(["ptx"]))
    );
    assert_eq!(
        (json["changes"][0]["line"].as_u64(), &json["changes"][0]["file"]),
        (Some(20), &"signatures/scale.yaml".into())
    );
}

#[test]
fn revisions() {
    let folder = registry(&[("scale.yaml", SCALE)]);
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
        let done = Command::new("git").arg("-C").arg(folder.path()).args(identity).args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "one"]);
    git(&["tag", "v1"]);
    let path = folder.path().join("signatures/scale.yaml");
    fs::write(&path, SCALE.replace("default: 2", "default: 3")).unwrap();
    let changed = run(folder.path(), &["diff", "v1", "--json"]);
    assert_eq!((changed.code, rules(&changed)), (1, vec!["default-changed".to_string()]));
    git(&["commit", "-q", "-a", "-m", "two"]);
    fs::write(&path, SCALE).unwrap();
    assert_eq!(rules(&run(folder.path(), &["diff", "v1", "HEAD", "--json"])), ["default-changed"]);
    assert_eq!(run(folder.path(), &["diff", "HEAD~1", "."]).ok(), "nothing changed\n");
    let unknown = run(folder.path(), &["diff", "v2"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (2, ""));
    assert_eq!(unknown.stderr, "error: v2: expected a folder or a git revision, and it is neither\n");
}

#[test]
fn what_cannot_be_compared() {
    let (good, empty) = (registry(&[("scale.yaml", SCALE)]), folder(&[]));
    let broken = registry(&[("scale.yaml", "kernels:\n  scale: {}\n")]);
    let none = diff(good.path(), empty.path(), &[]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.ends_with("expected a registry (signatures/*.yaml), found no YAML file\n"), "{}", none.stderr);
    let wrong = diff(broken.path(), good.path(), &[]);
    assert_eq!((wrong.code, wrong.stdout.as_str()), (2, ""));
    assert!(wrong.stderr.contains("has errors\n\nerror[TL0104]"), "{}", wrong.stderr);
    assert_eq!(run(good.path(), &["diff"]).code, 2);
}
