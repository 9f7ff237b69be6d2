//! The whole text of what a wrong registry gives, one case a rule.
//!
//! A case is `tests/diagnostics/NAME.yaml`, or a folder of such files where several belong together, and `NAME.stderr`.
//! `UPDATE=1 cargo test -p tidelock-codegen --test diagnostics` rewrites the latter; review them like code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tidelock_codegen::explain;
use tidelock_codegen::lower;
use tidelock_codegen::source::Sources;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/diagnostics");

/// The registry files of a case, as if they stood in `signatures/`.
fn files(root: &Path, path: &Path) -> Vec<(String, String)> {
    if path.is_dir() {
        return entries(path).iter().flat_map(|entry| files(root, entry)).collect();
    }
    let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
    vec![(format!("signatures/{name}"), fs::read_to_string(path).unwrap().replace("\r\n", "\n"))]
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

fn cases() -> Vec<PathBuf> {
    entries(Path::new(CASES)).into_iter().filter(|path| path.extension().is_none_or(|ext| ext != "stderr")).collect()
}

#[test]
fn messages() {
    let mut wrong = Vec::new();
    for case in cases() {
        let root = if case.is_dir() { case.as_path() } else { Path::new(CASES) };
        let files = files(root, &case);
        let sources: Sources = files.iter().cloned().collect();
        let Err(errors) = lower::read(&files) else { panic!("{} has no error", case.display()) };
        let text = errors.render(&sources, false);
        let expected = case.with_extension("stderr");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&expected, &text).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default().replace("\r\n", "\n") != text {
            wrong.push(format!("{}\n{text}", expected.display()));
        }
        let json = errors.to_json(&sources);
        assert_eq!(json.as_array().map(Vec::len), Some(errors.0.len()));
    }
    assert!(wrong.is_empty(), "these differ; UPDATE=1 rewrites them:\n\n{}", wrong.join("\n"));
}

#[test]
fn every_case_shows_its_code_and_every_code_has_a_case() {
    let mut shown = BTreeSet::new();
    for case in cases() {
        let name = case.file_stem().unwrap().to_str().unwrap();
        let code = name.split('_').next().unwrap().to_uppercase();
        let text = fs::read_to_string(case.with_extension("stderr")).unwrap();
        assert!(text.contains(&format!("error[{code}]")), "{name} does not show {code}");
        for other in text.split("error[").skip(1).map(|rest| &rest[..6]) {
            assert!(explain::explain(other).is_some(), "{other} is not explained");
        }
        shown.insert(code);
    }
    let explained = explain::codes().filter(|code| code.starts_with("TL01")).map(str::to_string);
    assert_eq!(explained.collect::<BTreeSet<String>>(), shown);
}

#[test]
fn the_codes_in_the_sources_are_those_explained() {
    let mut folders =
        ["src", "../tidelock-cli/src"].map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).to_vec();
    let mut used = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]").next().unwrap();
                for code in text.split("\"TL").skip(1).filter_map(|rest| rest.get(..5)?.strip_suffix('"')) {
                    let code = format!("TL{code}");
                    assert!(explain::explain(&code).is_some(), "{}: {code}", path.display());
                    used.insert(code);
                }
            }
        }
    }
    let unused: Vec<&str> = explain::codes().filter(|code| !used.contains(*code)).collect();
    assert!(unused.is_empty(), "explained and never said: {unused:?}");
}

#[test]
fn a_stderr_file_belongs_to_a_case() {
    let expected = cases().iter().map(|case| case.with_extension("stderr")).collect::<BTreeSet<PathBuf>>();
    let found =
        entries(Path::new(CASES)).into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "stderr"));
    assert_eq!(found.collect::<BTreeSet<PathBuf>>(), expected);
}

#[test]
fn json_has_places() {
    let text = "kernels:\n  scale: {dok: Scales.}\n".to_string();
    let files = [("signatures/scale.yaml".to_string(), text)];
    let json = lower::read(&files).unwrap_err().to_json(&files.iter().cloned().collect());
    let error = json.as_array().unwrap().iter().find(|error| error["code"] == "TL0103").unwrap();
    assert_eq!((error["file"].as_str(), error["line"].as_u64()), (Some("signatures/scale.yaml"), Some(2)));
    assert_eq!((error["column"].as_u64(), error["end_column"].as_u64()), (Some(11), Some(14)));
    assert_eq!(error["message"], "unknown key `dok` in kernel `scale`");
    assert!(error["help"].as_str().unwrap().starts_with("did you mean `doc`?"));
}
