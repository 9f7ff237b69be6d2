//! What is C on one side and Rust on the other cannot drift: each edit of one place alone fails the build of a copy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of this crate.
fn copy() -> PathBuf {
    let (source, copy) = (Path::new(env!("CARGO_MANIFEST_DIR")), Path::new(env!("CARGO_TARGET_TMPDIR")).join("drift"));
    _ = fs::remove_dir_all(&copy);
    for part in ["signatures", "kernels", "ptx", "cpu", "src", "bindings.rs", "build.rs", "Cargo.lock"] {
        copy_all(&source.join(part), &copy.join(part));
    }
    let checkout = source.ancestors().nth(2).expect("the crate is in a checkout").display();
    let manifest = fs::read_to_string(source.join("Cargo.toml")).expect("the crate has a manifest");
    let manifest = manifest.replace("path = \"../..", &format!("path = \"{checkout}"));
    fs::write(copy.join("Cargo.toml"), manifest).expect("the copy can be written");
    copy
}

fn copy_all(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().expect("a file has a folder")).expect("the copy can be written");
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        return;
    }
    for entry in fs::read_dir(from).expect("the crate can be read") {
        let entry = entry.expect("the crate can be read");
        copy_all(&entry.path(), &to.join(entry.file_name()));
    }
}

/// What building the copy says; nothing where it builds.
fn build(copy: &Path) -> Option<String> {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--lib", "--offline", "--quiet", "--color=never"])
        .current_dir(copy)
        // What this crate depends on has been built there.
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder"))
        .env_remove("TIDELOCK_COMPILE")
        .output()
        .expect("cargo runs");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// What building says with `from`, which stands once in the file at `path`, replaced by `to`.
fn with(copy: &Path, path: &str, from: &str, to: &str) -> String {
    let path = copy.join(path);
    let text = fs::read_to_string(&path).expect("the copy can be read");
    assert_eq!(text.matches(from).count(), 1, "`{from}` in {}", path.display());
    fs::write(&path, text.replace(from, to)).expect("the copy can be written");
    let said = build(copy);
    fs::write(&path, text).expect("the copy can be written");
    said.unwrap_or_else(|| panic!("{} builds with `{to}`", path.display()))
}

fn contains(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "expected `{part}` in\n{said}");
    }
}

#[test]
fn one_edit_alone_fails_the_build() {
    let copy = copy();
    assert_eq!(build(&copy), None, "the copy builds as it is");

    // As if the header had been changed and bound, and the registry had not.
    let from = "pub fn dequantize_rows_f32(\n        output: *mut f32,\n        input: *const i8,";
    let to = "pub fn dequantize_rows_f32(\n        output: *mut f32,\n        input: *const u8,";
    let said = with(&copy, "bindings.rs", from, to);
    contains(
        &said,
        &["error[E0308]: mismatched types", "const ARM: DequantizeRowsF32InC = bindings::dequantize_rows_f32;"],
    );
    contains(&said, &["*const i8", "*const u8"]);

    let said = with(
        &copy,
        "cpu/quantize.h",
        "int64_t input_stride, const float *ceilings,\n                         struct Quantization quantization, int32_t width, int64_t num_rows);\nvoid dequantize_rows_f64",
        "int32_t input_stride, const float *ceilings,\n                         struct Quantization quantization, int32_t width, int64_t num_rows);\nvoid dequantize_rows_f64",
    );
    contains(&said, &["error[TL0602]: cpu/quantize.h changed since it was bound"]);

    // The C++ compiler holds the function to its header.
    let said = with(
        &copy,
        "cpu/quantize.cpp",
        "void dequantize_rows_f64(double *output, const int8_t *input, int64_t",
        "void dequantize_rows_f64(double *output, const int8_t *input, int32_t",
    );
    contains(&said, &["cpu/quantize.cpp", "dequantize_rows_f64", "error:"]);

    // A struct of another size in Rust does not fit the parameter slot of the PTX.
    let said = with(
        &copy,
        "bindings.rs",
        "pub rectify: bool,",
        "pub rectify: bool,\n    pub other: bool,\n    pub more: [f32; 8usize],",
    );
    contains(&said, &["error[TL0306]", "slot 4 (`quantization`): expected .align 8 .b8[56], found .align 8 .b8[24]"]);
}
