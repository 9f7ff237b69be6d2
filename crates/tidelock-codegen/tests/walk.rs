//! CONTRIBUTING's walk, done: each `diff` is applied to a small crate, and each `console` shows what its command says then.
//!
//! `cargo build` runs the checks of a build script, and `tidelock compile` brings what Triton made of the kernels at that
//! step. `UPDATE=1 TIDELOCK_PYTHON=… cargo test -p tidelock-codegen --test walk` compiles anew and rewrites what the page shows.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tidelock_codegen::{Project, toolchain};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../CONTRIBUTING.md");
const WALK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/walk");

/// A fenced block: its language, and its lines.
struct Block<'a> {
    language: &'a str,
    lines: Vec<&'a str>,
}

/// The page in order: text, or a block.
fn parts(page: &str) -> Vec<Result<&str, Block<'_>>> {
    let mut parts = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        parts.push(match line.strip_prefix("```") {
            Some(language) => {
                Err(Block { language, lines: lines.by_ref().take_while(|line| *line != "```").collect() })
            }
            None => Ok(line),
        });
    }
    parts
}

/// The crate of the walk, in a folder of its own.
struct Walk {
    root: PathBuf,
    compiled: usize,
    update: bool,
}

impl Walk {
    /// Changes one file as a unified diff says; what it takes away and leaves must stand there exactly once.
    fn apply(&self, diff: &[&str]) {
        let path = diff.iter().find_map(|line| line.strip_prefix("+++ ")).expect("a diff names its file");
        let path = self.root.join(path);
        let mut text = fs::read_to_string(&path).unwrap_or_default();
        for hunk in diff.split(|line| line.starts_with("@@")).skip(1) {
            let side = |other: char| -> String {
                let lines = hunk.iter().filter(|line| !line.starts_with(other));
                lines.map(|line| line.get(1..).unwrap_or_default().to_string() + "\n").collect()
            };
            let (old, new) = (side('+'), side('-'));
            match old.is_empty() {
                true => text += &new,
                false => {
                    assert_eq!(
                        text.matches(&old).count(),
                        1,
                        "in {}:\n{text}\nthis is not once:\n{old}",
                        path.display()
                    );
                    text = text.replace(&old, &new);
                }
            }
        }
        fs::write(path, text).unwrap();
    }

    /// What a command says.
    fn run(&mut self, command: &str) -> String {
        match command.split_once(' ') {
            Some(("cargo", "build")) => {
                let project = Project::read(&self.root).unwrap();
                project.generate().err().map_or(String::new(), |found| found.render(&project.sources(), false))
            }
            Some(("tidelock", arguments)) => {
                let kernel = arguments.strip_prefix("compile ").expect("the walk only compiles");
                self.compile(kernel);
                String::new()
            }
            _ => panic!("the walk does not know `{command}`"),
        }
    }

    fn compile(&mut self, kernel: &str) {
        self.compiled += 1;
        let kept = Path::new(WALK).join(format!("compiled_{}", self.compiled));
        let ptx = self.root.join("ptx");
        if self.update {
            let changes = toolchain::compile(&self.root, &[kernel.to_string()], &mut |_| ()).unwrap();
            toolchain::write(&self.root, &changes).unwrap();
            let _ = fs::remove_dir_all(&kept);
            copy(&ptx, &kept.join("ptx"));
        }
        let _ = fs::remove_dir_all(&ptx);
        copy(&kept.join("ptx"), &ptx);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, to) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).unwrap();
        match entry.is_dir() {
            true => copy(&entry, &to),
            false => drop(fs::copy(&entry, &to).unwrap()),
        }
    }
}

#[test]
fn the_page_shows_what_happens() {
    let folder = tempfile::tempdir().unwrap();
    copy(&Path::new(WALK).join("start"), folder.path());
    let mut walk = Walk { root: folder.path().into(), compiled: 0, update: std::env::var_os("UPDATE").is_some() };
    // What the walk begins with is compiled, too.
    walk.run("tidelock compile draw");
    assert_eq!(walk.run("cargo build"), "");

    let page = fs::read_to_string(PAGE).unwrap().replace("\r\n", "\n");
    let (mut text, mut steps) = (String::new(), 0);
    for part in parts(&page) {
        let block = match part {
            Ok(line) => {
                text += line;
                text.push('\n');
                continue;
            }
            Err(block) => block,
        };
        let Block { language, mut lines } = block;
        if language == "diff" {
            walk.apply(&lines);
        }
        let mut said = String::new();
        if language == "console" {
            let commands: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("$ ")).collect();
            for command in commands {
                let _ = writeln!(said, "$ {command}");
                said += &walk.run(command);
                steps += 1;
            }
            lines = said.lines().map(str::trim_end).collect();
        }
        let _ = writeln!(text, "```{language}\n{}\n```", lines.join("\n"));
    }
    assert!(steps > 6, "{PAGE} has only {steps} commands");
    assert_eq!(walk.run("cargo build"), "", "the walk ends well");
    if walk.update {
        fs::write(PAGE, text).unwrap();
    } else {
        assert_eq!(page, text, "{PAGE} shows something else; UPDATE=1 rewrites it");
    }
}
