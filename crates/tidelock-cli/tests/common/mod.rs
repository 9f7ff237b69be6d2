//! Runs the built binary, as a user does from the root of the checkout.
#![allow(dead_code)] // each test file uses its own part

use std::path::Path;
use std::process::{Command, Output};

/// What a run of the binary gave.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The root of the checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Runs `tidelock` with the words of `arguments`.
pub fn tidelock(arguments: &str) -> Run {
    tidelock_with(arguments, &[])
}

/// Runs `tidelock` with the words of `arguments` and then `paths`, in which spaces are kept.
pub fn tidelock_with(arguments: &str, paths: &[&Path]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidelock"));
    command.args(arguments.split_whitespace()).args(paths).current_dir(root()).env("NO_COLOR", "1");
    Run::of(command.output().unwrap())
}

/// Runs `tidelock` with the words of `arguments` in the folder `at`.
pub fn tidelock_in(at: &Path, arguments: &str) -> Run {
    run(at, &arguments.split_whitespace().collect::<Vec<_>>())
}

/// Runs `tidelock` with `arguments` in the folder `at`.
pub fn run(at: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidelock"));
    command.args(arguments).current_dir(at).env("NO_COLOR", "1");
    Run::of(command.output().unwrap())
}

/// A folder with files in it.
pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

impl Run {
    fn of(output: Output) -> Run {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The standard output of a run that went well.
    pub fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// The same as JSON.
    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// The standard error of a run that failed without any other output.
    pub fn error(self) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (1, ""), "{}", self.stderr);
        self.stderr.trim_end().to_string()
    }
}
