//! `tidelock compile --watch` and `tidelock completions`.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{root, tidelock, tidelock_in};

/// A copy of the registry that the drift checks are tested with, which is compiled and has no drift.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let fixture = root().join("crates/tidelock-codegen/tests/fixtures/pick/.");
    assert!(Command::new("cp").arg("-r").arg(fixture).arg(folder.path()).status().unwrap().success());
    folder
}

fn start(at: &Path, python: Option<&str>) -> (Child, impl FnMut() -> String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidelock"));
    command.args(["compile", "--watch"]).current_dir(at).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(python) = python {
        command.env("TIDELOCK_PYTHON", python);
    }
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, move || lines.next().map_or("the end".into(), Result::unwrap))
}

fn edit(at: &Path, name: &str, from: &str, to: &str) {
    let text = fs::read_to_string(at.join(name)).unwrap();
    assert!(text.contains(from));
    fs::write(at.join(name), text.replace(from, to)).unwrap();
}

/// Stops it as Ctrl-C does, and gives what it wrote to the standard error.
fn stop(mut child: Child, line: &mut impl FnMut() -> String) -> String {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(line(), "stopped");
    assert!(child.wait().unwrap().success());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    said
}

const WATCHING: &str = "watching signatures/ and kernels/; Ctrl-C stops";

#[cfg(unix)]
#[test]
fn mistakes_do_not_end_it() {
    let folder = project();
    let (child, mut line) = start(folder.path(), Some("/nowhere/python"));
    assert_eq!(line(), WATCHING, "nothing is out of date");
    edit(folder.path(), "kernels/pick.py", "-1.0", "-2.0");
    assert_eq!(line(), WATCHING);
    edit(folder.path(), "signatures/pick.yaml", "grid: [num_rows]", "grid: [num_rwos]");
    assert_eq!(line(), WATCHING);
    let said = stop(child, &mut line);
    assert!(said.contains("/nowhere/python") && said.contains("error[TL0131]"), "{said}");
}

/// `TIDELOCK_PYTHON=… cargo test -p tidelock-cli --test watch -- --ignored`.
#[cfg(unix)]
#[test]
#[ignore = "needs Triton"]
fn what_changed_is_compiled() {
    let folder = project();
    let (child, mut line) = start(folder.path(), None);
    assert_eq!(line(), WATCHING);
    edit(folder.path(), "kernels/pick.py", "-1.0", "-2.0");
    let mut lines = vec![];
    while lines.last().is_none_or(|last| last != WATCHING) {
        lines.push(line());
    }
    assert!(lines.contains(&"wrote  ptx/pick.json".to_string()), "{lines:?}");
    stop(child, &mut line);
    assert_eq!(tidelock_in(folder.path(), "check").code, 0);
}

#[test]
fn completions_know_every_command() {
    let script = tidelock("completions bash").ok();
    for command in ["add-param", "compile", "completions", "diff", "import", "new", "prove-precision"] {
        assert!(
            script.contains(&format!("tidelock__subcmd__{}", command.replace('-', "__"))) || script.contains(command),
            "{command}"
        );
    }
    assert!(tidelock("completions zsh").ok().starts_with("#compdef tidelock"));
    assert_eq!(tidelock("completions dos").code, 2);
}
