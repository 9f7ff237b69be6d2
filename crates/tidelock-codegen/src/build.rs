//! The build script of a crate with a registry: `tidelock_codegen::build()`.

use std::path::{Path, PathBuf};
use std::process::exit;
use std::{env, fs};

use crate::bindings;
use crate::project::Project;
use crate::toolchain;

/// When this variable is `1`, a build compiles kernels that changed before it checks them.
const COMPILE: &str = "TIDELOCK_COMPILE";

/// Generates `kernels.rs` in the build's output folder from the registry of the crate being built.
///
/// Reads `signatures/`, `kernels/`, `ptx/`, `src/cpu/`, and where there is C, `cpu/` and `bindings.rs`; when anything is wrong or has drifted, prints every diagnostic
/// and fails the build. With `TIDELOCK_COMPILE=1` it first compiles the kernels whose sources changed, for which it needs
/// Python; otherwise it needs nothing but the files.
pub fn build() {
    for path in ["signatures", "kernels", "ptx", "src/cpu"] {
        println!("cargo::rerun-if-changed={path}");
    }
    // Cargo takes what is not there for changed, and few crates have C.
    for path in ["cpu", bindings::PATH].into_iter().filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed={COMPILE}");
    if let Err(message) = run() {
        eprintln!("{message}");
        exit(1);
    }
}

fn run() -> Result<(), String> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from).ok_or(format!("{name} is not set by cargo"));
    let (root, out) = (variable("CARGO_MANIFEST_DIR")?, variable("OUT_DIR")?);
    if env::var_os(COMPILE).is_some_and(|value| value == "1") {
        toolchain::compile_stale(&root, &mut |line| eprintln!("{line}")).map_err(|error| error.to_string())?;
    }
    let text = generate(&root)?;
    let path = out.join("kernels.rs");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn generate(root: &Path) -> Result<String, String> {
    let project = Project::read(root)?;
    project.generate().map_err(|diagnostics| diagnostics.render(&project.sources(), false))
}
