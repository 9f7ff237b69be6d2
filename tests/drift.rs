//! Each way of changing one place alone fails `cargo build`, with the parameter's name and the places to look at.
//!
//! A copy of the crate is edited and checked with cargo itself, so what is pinned is what an author sees.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of the crate, with a caller of its wrappers beside it.
struct Copy {
    root: PathBuf,
    target: PathBuf,
}

/// A caller in another crate: the struct literal of a kernel whose parameters are all required, and of one with defaults.
const CALLER: &str = r#"
use tidelock::kernels::{Argmax, Expand};
use tidelock::{AsView, AsViewMut, Device, Result};

pub fn argmax(logits: &[f32], tokens: &mut [i64]) -> Result<()> {
    let columns = logits.len() / tokens.len();
    let logits = logits.view().matrix(tokens.len(), columns)?;
    Argmax { output_token_ids: tokens.view_mut(), logits }.launch(&Device::Cpu)
}

pub fn expand(input: &[f32], cu: &[i32], output: &mut [f32]) -> Result<()> {
    Expand { output: output.view_mut(), input: input.view(), cu_num_tokens: cu.view() }.replace_to(1.0).launch(&Device::Cpu)
}
"#;

impl Copy {
    fn new() -> Copy {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = source.join("target/tests/drift");
        let root = folder.join("crate");
        let _ = fs::remove_dir_all(&root);
        for part in
            ["build.rs", "Cargo.toml", "Cargo.lock", "signatures", "kernels", "ptx", "src", "crates/tidelock-codegen"]
        {
            copy(&source.join(part), &root.join(part));
        }
        let copy = Copy { root, target: folder.join("target") };
        // The copy is a workspace of what it needs, so that nothing else has to be resolved or built.
        copy.edit("Cargo.toml", |text| {
            let tests = text.find("[dev-dependencies]").expect("the manifest has tests");
            let lints = text.find("[lints]\n").expect("the manifest has lints");
            let text = text[..tests].to_string() + &text[lints..];
            text.lines().filter(|line| !line.starts_with("default-members")).collect::<Vec<_>>().join("\n")
        });
        let manifest =
            "[package]\nname = \"caller\"\nedition = \"2024\"\n[dependencies]\ntidelock = { path = \"../..\" }\n";
        copy.write("crates/caller/Cargo.toml", manifest);
        copy.write("crates/caller/src/lib.rs", CALLER);
        copy
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("the copy can be written");
        fs::write(path, text).expect("the copy can be written");
    }

    fn edit(&self, path: &str, edit: impl FnOnce(&str) -> String) {
        let text = fs::read_to_string(self.root.join(path)).expect("the copy can be read");
        let edited = edit(&text);
        assert_ne!(edited, text, "the edit of {path} changes something");
        self.write(path, &edited);
    }

    /// Builds the caller and with it the crate; what cargo says, or nothing where it builds.
    fn build(&self) -> Option<String> {
        let output = Command::new(env!("CARGO"))
            .args(["check", "--offline", "--quiet", "--color=never", "-p", "caller"])
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env_remove("RUSTFLAGS")
            .env_remove("TIDELOCK_COMPILE")
            .output()
            .expect("cargo runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (!output.status.success()).then(|| said(&text, &self.root))
    }

    /// What building says with this one edit, which is taken back afterwards.
    fn with(&self, path: &str, edit: impl FnOnce(&str) -> String) -> String {
        let before = fs::read_to_string(self.root.join(path)).expect("the copy can be read");
        self.edit(path, edit);
        let said = self.build();
        self.write(path, &before);
        said.unwrap_or_else(|| panic!("the edit of {path} does not fail the build"))
    }
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().expect("a file has a folder")).expect("the copy can be written");
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        return;
    }
    for entry in fs::read_dir(from).expect("the crate can be read") {
        let entry = entry.expect("the crate can be read");
        if entry.file_name() != "target" && entry.file_name() != "tests" {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    }
}

/// The part of cargo's output that is about the edit: the build script's own words, or rustc's errors.
fn said(text: &str, root: &Path) -> String {
    let text = text.replace(&root.display().to_string(), "");
    // Cargo moves what a build script says to the right.
    let text = match text.split_once("--- stderr\n") {
        Some((_, script)) => {
            script.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
        }
        None => text,
    };
    // Cargo's own last words name versions and paths; they differ from machine to machine.
    let cargo = ["error: could not compile", "For more information", "Some errors have", "warning: build failed"];
    let lines = text.lines().map(str::trim_end).filter(|line| !cargo.iter().any(|start| line.starts_with(start)));
    lines.collect::<Vec<_>>().join("\n").trim().to_string()
}

/// `text` with the one place that reads `from` reading `to`.
fn replace(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "`{from}` stands once");
    text.replacen(from, to, 1)
}

/// As [`replace`], within the entry of the kernel `kernel`.
fn in_kernel(text: &str, kernel: &str, from: &str, to: &str) -> String {
    let start = text.find(&format!("\n  {kernel}:\n")).expect("the kernel stands in the registry") + 1;
    let next = |line: &&str| line.starts_with("  ") && !line.starts_with("   ") && line.ends_with(':');
    let length: usize =
        text[start..].split_inclusive('\n').skip(1).take_while(|line| !next(&line.trim_end())).map(str::len).sum();
    let end = start + text[start..].find('\n').expect("the entry has lines") + 1 + length;
    text[..start].to_string() + &replace(&text[start..end], from, to) + &text[end..]
}

#[test]
fn one_edit_alone_fails_the_build_and_names_the_place() {
    const RACE: &str = "signatures/race.yaml";
    const REJECTION: &str = "signatures/rejection.yaml";
    let copy = Copy::new();
    assert_eq!(copy.build(), None, "the copy builds as it is");

    let vocab_size = "      vocab_size: {scalar: i32, from: dim, max: 1073741824, doc: Tokens in the vocabulary.}\n";
    let argmax = |from: &'static str, to: &'static str| move |text: &str| in_kernel(text, "argmax", from, to);
    let recovered =
        |from: &'static str, to: &'static str| move |text: &str| in_kernel(text, "sample_recovered_tokens", from, to);

    let added = "      vocab_size: {scalar: i32, from: dim, max: 1073741824, doc: Tokens in the vocabulary.}\n      \
                 top_k: {scalar: i32, default: 0, doc: How many are kept.}\n";
    insta::assert_snapshot!("added", copy.with(RACE, argmax(vocab_size, added)));
    insta::assert_snapshot!(
        "renamed",
        copy.with(REJECTION, recovered("\n      draft_token_ids:\n", "\n      drafted:\n"))
    );
    let reordered = |text: &str| {
        let text = in_kernel(text, "sample_recovered_tokens", "\n      draft_token_ids:\n", "\n      \u{1}:\n");
        let text =
            in_kernel(&text, "sample_recovered_tokens", "\n      cu_num_draft_tokens:\n", "\n      draft_token_ids:\n");
        let text = in_kernel(&text, "sample_recovered_tokens", "\n      \u{1}:\n", "\n      cu_num_draft_tokens:\n");
        // Each name keeps its own declaration; only the order has changed.
        let text = in_kernel(
            &text,
            "sample_recovered_tokens",
            "draft_token_ids:\n        tensor: i32\n        shape: [batch_size]\n        domain: inclusive_cumsum(num_tokens)\n",
            "draft_token_ids:\n        tensor: i32\n        shape: [num_tokens]\n        domain: -1..vocab_size\n",
        );
        in_kernel(
            &text,
            "sample_recovered_tokens",
            "cu_num_draft_tokens:\n        tensor: i32\n        shape: [num_tokens]\n        domain: -1..vocab_size\n",
            "cu_num_draft_tokens:\n        tensor: i32\n        shape: [batch_size]\n        domain: inclusive_cumsum(num_tokens)\n",
        )
    };
    insta::assert_snapshot!("reordered", copy.with(REJECTION, reordered));
    insta::assert_snapshot!(
        "integer_type",
        copy.with(RACE, argmax("vocab_size: {scalar: i32", "vocab_size: {scalar: i64"))
    );
    let target = "target_probs:\n        tensor: f32";
    let target64 = "target_probs:\n        tensor: f64";
    insta::assert_snapshot!("float_type", copy.with(REJECTION, recovered(target, target64)));
    let optional = "target_probs:\n        optional: true\n        tensor: f32";
    insta::assert_snapshot!("optional", copy.with(REJECTION, recovered(target, optional)));
    let constant = "      NO_DRAFT_PROBS: {type: bool, from: absent(draft_probs)}\n";
    insta::assert_snapshot!("constant_removed", copy.with(REJECTION, recovered(constant, "")));
    insta::assert_snapshot!(
        "kernel_changed",
        copy.with("kernels/race.py", |text| format!("{text}\n# one more line\n"))
    );
    let ptx = "ptx/race/argmax-f32-i64-generic.ptx";
    let without_slot = |text: &str| {
        let slot =
            text.lines().find(|line| line.contains("_param_1") && line.contains(".param")).expect("a second slot");
        replace(text, &format!("{slot}\n"), "")
    };
    insta::assert_snapshot!("ptx_slot_removed", copy.with(ptx, without_slot));
    insta::assert_snapshot!("ptx_truncated", copy.with(ptx, |text| text[..text.len() / 2].to_string()));
    insta::assert_snapshot!(
        "cpu_arm_not_reading",
        copy.with("src/cpu/race.rs", |text| {
            replace(
                text,
                "let Self { output_token_ids, logits, vocab_size } = self;",
                "let Self { output_token_ids, logits } = self;",
            )
        })
    );

    // A parameter that only the CPU arm uses needs no new PTX, so what it does to callers can be seen without a compiler.
    let only = |default: &str| {
        format!(
            "{vocab_size}      bias: {{scalar: f32, {default}only: {{cpu: a test of defaults}}, doc: Added to each logit.}}\n"
        )
    };
    let arm = |text: &str| {
        let text = replace(
            text,
            "let Self { output_token_ids, logits, vocab_size }",
            "let Self { output_token_ids, logits, vocab_size, bias }",
        );
        replace(
            &text,
            "let Self { output_token_ids, logits, vocab_size, bias } = self;",
            "let Self { output_token_ids, logits, vocab_size, bias } = self;\n        let _: f32 = bias;",
        )
    };
    let before = fs::read_to_string(copy.root.join(RACE)).expect("the copy can be read");
    copy.edit("src/cpu/race.rs", arm);
    copy.edit(RACE, |text| in_kernel(text, "argmax", vocab_size, &only("default: 0.0, ")));
    assert_eq!(copy.build(), None, "a parameter with a default breaks no caller");
    copy.write(RACE, &before);
    insta::assert_snapshot!(
        "required_at_caller",
        copy.with(RACE, |text| in_kernel(text, "argmax", vocab_size, &only("")))
    );
}
