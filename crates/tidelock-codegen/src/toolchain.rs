//! Runs the kernel compiler: Python with pinned Triton and nvcc, none of which needs a GPU.
//!
//! The compiler itself, `toolchain/compile.py`, reads what to compile and answers with what it saw, both as JSON; every file
//! is read and written here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt, fs, thread};

use crate::check::Artifacts;
use crate::diagnostic::Diagnostics;
use crate::facts::{self, Changes, Hash};
use crate::header;
use crate::model::Registry;
use crate::plan::{KernelPlan, Plan, VariantPlan, plan};
use crate::project::Project;
use crate::source::Sources;

const COMPILER: &str = include_str!("../toolchain/compile.py");
const REQUIREMENTS: &str = include_str!("../toolchain/requirements.txt");

/// Names a Python that has the requirements already; without it a virtual environment is made.
const PYTHON: &str = "TIDELOCK_PYTHON";

/// Why nothing was compiled. Nothing was written then.
#[derive(Debug)]
pub enum Error {
    /// The registry has errors, or the compiler's answer does not fit it.
    Diagnostics(Diagnostics, Sources),
    /// Anything else, in words.
    Other(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Diagnostics(diagnostics, sources) => f.write_str(&diagnostics.render(sources, false)),
            Error::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

/// Compiles the kernels that `selectors` name (kernels, families or source files; none means all) and says what that changes
/// under `ptx/`, without writing it. `progress` is told each line of the compiler's own report.
///
/// # Errors
/// Where the registry is wrong, Python or a package is missing, or a kernel does not compile.
pub fn compile(root: &Path, selectors: &[String], progress: &mut dyn FnMut(&str)) -> Result<Changes, Error> {
    let project = Project::read(root).map_err(Error::Other)?;
    let fail = |diagnostics| Error::Diagnostics(diagnostics, project.sources());
    let registry = project.registry().map_err(fail)?;
    let mut plan = plan(&registry, selectors).map_err(|error| Error::Other(error.to_string()))?;
    // Python finds the sources from the compiler's own folder, which is not this one.
    let absolute = fs::canonicalize(root).map_err(|error| Error::Other(format!("{}: {error}", root.display())))?;
    plan.headers = header::emit_all(&registry, project.artifacts());
    plan.root = absolute.to_string_lossy().into_owned();
    changes(&registry, &plan, &absolute, project.artifacts(), progress).map_err(|error| match error {
        Error::Diagnostics(diagnostics, _) => fail(diagnostics),
        other => other,
    })
}

/// Compiles the kernels whose sources changed since they were compiled, and writes what that changes.
///
/// # Errors
/// As [`compile`], and where a file cannot be written.
pub fn compile_stale(root: &Path, progress: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let project = Project::read(root).map_err(Error::Other)?;
    let registry = project.registry().map_err(|errors| Error::Diagnostics(errors, project.sources()))?;
    let stale = stale(&registry, project.artifacts());
    if stale.is_empty() {
        return Ok(());
    }
    let changes = compile(root, &stale, progress)?;
    write(root, &changes)
}

/// Writes and removes files under `ptx/`.
///
/// # Errors
/// Where a file cannot be written or removed.
pub fn write(root: &Path, changes: &Changes) -> Result<(), Error> {
    let fail = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| Error::Other(format!("{path}: {error}"))
    };
    for (name, content) in &changes.write {
        let path = root.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(fail(folder))?;
        }
        fs::write(&path, content).map_err(fail(&path))?;
    }
    for name in &changes.remove {
        let path = root.join(name);
        fs::remove_file(&path).map_err(fail(&path))?;
    }
    Ok(())
}

/// The assembler of the toolchain, which makes machine code of PTX.
///
/// # Errors
/// Where Python or the package is missing.
pub fn ptxas(root: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    const WHERE: &str =
        "import nvidia.cu13, pathlib; print(pathlib.Path(list(nvidia.cu13.__path__)[0], 'bin', 'ptxas'))";
    let python = python(root, progress)?;
    Ok(step(python.into(), &["-c".into(), WHERE.into()])?.into())
}

/// A committed PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// Its variant's name.
    pub variant: String,
    /// Its path, relative to the crate.
    pub path: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// The committed PTX of each variant of the kernels that `selectors` name, as for [`compile`].
///
/// # Errors
/// Where the registry is wrong, or a variant has not been compiled.
pub fn compiled(root: &Path, selectors: &[String]) -> Result<Vec<Compiled>, Error> {
    let project = Project::read(root).map_err(Error::Other)?;
    let registry = project.registry().map_err(|errors| Error::Diagnostics(errors, project.sources()))?;
    let plan = plan(&registry, selectors).map_err(|error| Error::Other(error.to_string()))?;
    let variants = plan.kernels.iter().flat_map(|kernel| kernel.variants.iter().map(move |variant| (kernel, variant)));
    let compiled = |(kernel, variant): (&KernelPlan, &VariantPlan)| {
        let (variant, path) = (variant.name.clone(), facts::ptx_path(&kernel.family, &variant.name));
        match project.artifacts().ptx.get(&path) {
            Some(content) => Ok(Compiled { variant, sha256: Hash::of(content).as_str().into(), path }),
            None => Err(Error::Other(format!("{path} is missing; run `tidelock compile {}` first", kernel.name))),
        }
    };
    variants.map(compiled).collect()
}

/// Kernels that have no facts, or facts of other sources or another C header than those at hand.
fn stale(registry: &Registry, artifacts: &Artifacts) -> Vec<String> {
    let headers = header::emit_all(registry, artifacts);
    let mut stale = BTreeSet::new();
    for family in &registry.families {
        let declared = headers.get(&family.name).map(String::as_bytes);
        let declares = artifacts.headers.get(&header::path(&family.name)).map(Vec::as_slice) == declared;
        let path = facts::manifest_path(&family.name);
        let manifest = artifacts.manifests.get(&path).and_then(|content| facts::read_manifest(&path, content).ok());
        for kernel in &family.kernels {
            let facts = manifest.as_ref().and_then(|manifest| manifest.kernels.get(&kernel.name.value));
            let current = facts.is_some_and(|facts| {
                let unchanged = |(path, hash): (&String, &Hash)| {
                    artifacts.kernels.get(path).is_some_and(|content| Hash::of(content) == *hash)
                };
                facts.sources.iter().all(unchanged)
            });
            if !current || header::is_cuda(kernel) && !declares {
                stale.insert(kernel.name.value.clone());
            }
        }
    }
    stale.into_iter().collect()
}

fn changes(
    registry: &Registry,
    plan: &Plan,
    root: &Path,
    artifacts: &Artifacts,
    progress: &mut dyn FnMut(&str),
) -> Result<Changes, Error> {
    let python = python(root, progress)?;
    let request = serde_json::to_string(plan).map_err(|error| Error::Other(error.to_string()))?;
    let answer = run(&python, &request, progress)?;
    let errors = |errors| Error::Diagnostics(errors, Sources::new());
    let answer = facts::read_answer(&answer).map_err(|error| errors(Diagnostics(vec![error])))?;
    facts::changes(registry, answer, artifacts).map_err(errors)
}

/// Runs the compiler: `request` goes to its standard input, its report to `progress`, its answer is returned.
fn run(python: &Path, request: &str, progress: &mut dyn FnMut(&str)) -> Result<Vec<u8>, Error> {
    let from = if env::var_os(PYTHON).is_some() { format!(", which {PYTHON} names") } else { String::new() };
    let fail = |error: std::io::Error| Error::Other(format!("the Python {}{from}: {error}", python.display()));
    let mut command = Command::new(python);
    command.args(["-c", COMPILER]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(fail)?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(mut stdout), Some(stderr)) = pipes else {
        return Err(Error::Other("the compiler's pipes are missing".into()));
    };
    let request = request.to_string();
    // Both ends of a pipe can be full, so each has its own thread.
    let writer = thread::spawn(move || stdin.write_all(request.as_bytes()));
    let reader = thread::spawn(move || {
        let mut answer = Vec::new();
        stdout.read_to_end(&mut answer).map(|_| answer)
    });
    let mut report = Vec::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        progress(&line);
        report.push(line);
    }
    let status = child.wait().map_err(fail)?;
    let gone = || Error::Other("a thread that served the compiler's pipes panicked".into());
    let answer = reader.join().map_err(|_| gone())?.map_err(fail)?;
    let _ = writer.join();
    if status.success() { Ok(answer) } else { Err(refusal(&answer, &report)) }
}

/// What the compiler says when it fails: an error in its answer, or the end of its report.
fn refusal(answer: &[u8], report: &[String]) -> Error {
    let value: serde_json::Value = serde_json::from_slice(answer).unwrap_or_default();
    let error = &value["error"];
    let part = |name: &str| error[name].as_str();
    match (part("message"), part("kernel"), part("variant")) {
        (Some(message), Some(kernel), Some(variant)) => {
            Error::Other(format!("kernel `{kernel}`, variant `{variant}` does not compile: {message}"))
        }
        (Some(message), Some(kernel), None) => Error::Other(format!("kernel `{kernel}` does not compile: {message}")),
        (Some(message), ..) => Error::Other(format!("the kernel compiler failed: {message}")),
        (None, ..) => {
            let end = report[report.len().saturating_sub(20)..].join("\n");
            Error::Other(format!("the kernel compiler failed without an answer:\n{end}"))
        }
    }
}

/// A Python that has the pinned packages: the one that the environment names, or one of a virtual environment under
/// `target/`, made on the first use.
fn python(root: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    if let Some(python) = env::var_os(PYTHON) {
        return Ok(python.into());
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let digest = Hash::of(REQUIREMENTS.as_bytes());
    let folder = target.join(format!("tidelock-toolchain-{}", &digest.as_str()[..12]));
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let ready = folder.join("ready");
    if ready.exists() {
        return Ok(python);
    }
    let packages: Vec<_> = REQUIREMENTS.lines().filter(|line| !line.starts_with('#')).collect();
    progress(&format!("installing {} into {}", packages.join(", "), folder.display()));
    let other = |error: std::io::Error| Error::Other(format!("{}: {error}", folder.display()));
    fs::create_dir_all(&folder).map_err(other)?;
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS).map_err(other)?;
    step("python3".into(), &["-m".into(), "venv".into(), folder.clone().into()])?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"].map(OsString::from);
    step(python.clone().into(), &[&install[..], &[requirements.into()]].concat())?;
    fs::write(&ready, "").map_err(other)?;
    Ok(python)
}

/// Runs a program to its end, and returns the line that it prints.
fn step(program: OsString, arguments: &[OsString]) -> Result<String, Error> {
    let shown = || format!("{} {}", program.display(), arguments.join(" ".as_ref()).display());
    let output = Command::new(&program).args(arguments).output();
    let output = output.map_err(|error| Error::Other(format!("`{}` cannot be run: {error}", shown())))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_string());
    }
    let report = String::from_utf8_lossy(&output.stderr);
    Err(Error::Other(format!("`{}` failed ({}):\n{}", shown(), output.status, report.trim())))
}
