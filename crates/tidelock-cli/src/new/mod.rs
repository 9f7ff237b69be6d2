//! `tidelock new`: a family with one kernel that multiplies rows by a number, in both arms, as a beginning.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use tidelock_codegen::Project;
use tidelock_codegen::names::{camel, is_keyword, is_snake};

use crate::import::create;

const SIGNATURE: &str = include_str!("templates/signature.yaml");
const TRITON: &str = include_str!("templates/kernel.py");
const CUDA: &str = include_str!("templates/kernel.cu");
const ARM: &str = include_str!("templates/arm.rs");
const ARMS: &str = "//! The CPU arms, one file a family.\n\n";

/// Start a family of kernels: registry entry, kernel, CPU arm
///
/// Writes signatures/FAMILY.yaml, kernels/FAMILY.py (or .cu) and src/cpu/FAMILY.rs with its `mod` line. They fit each other and
/// build once `tidelock compile FAMILY` has run; what they compute is there to be replaced. No file is overwritten.
#[derive(Args)]
pub struct Arguments {
    /// Name of the family, in snake case
    family: String,
    /// Name of its first kernel; without it, that of the family
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Write the kernel in CUDA C++ instead of Triton
    #[arg(long)]
    cuda: bool,
    /// Folder with signatures/, kernels/ and src/cpu/
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

impl Arguments {
    /// Writes the files, or none of them.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let kernel = self.kernel.as_deref().unwrap_or(&self.family);
        for (what, name) in [("FAMILY", self.family.as_str()), ("--kernel", kernel)] {
            if !is_snake(name) || is_keyword(name) {
                bail!(
                    "{what}: expected a name in snake case that is no keyword of Rust, such as `scale_rows`, got `{name}`"
                );
            }
        }
        let family = &self.family;
        let signature = format!("signatures/{family}.yaml");
        let source = format!("kernels/{family}.{}", if self.cuda { "cu" } else { "py" });
        let arm = format!("src/cpu/{family}.rs");
        for path in [&signature, &source, &arm] {
            if self.root.join(path).exists() {
                bail!("{path}: expected no such file, and it is there; nothing was written");
            }
        }
        self.taken(kernel)?;
        let (crate_path, is_tidelock) = if is_tidelock(&self.root) { ("crate", true) } else { ("tidelock", false) };
        let fill = |template: &str| {
            let filled = template.replace("{family}", family).replace("{kernel}", kernel).replace("{source}", &source);
            filled.replace("{Kernel}", &camel(kernel)).replace("{tidelock}", crate_path)
        };
        let modules = self.modules(family)?;
        let files = [
            (signature.as_str(), fill(SIGNATURE)),
            (source.as_str(), fill(if self.cuda { CUDA } else { TRITON })),
            (arm.as_str(), fill(ARM)),
        ];
        for (path, text) in files {
            create(&self.root.join(path), &text)?;
            writeln!(out, "wrote  {path}")?;
        }
        let path = self.root.join("src/cpu/mod.rs");
        fs::write(&path, modules).with_context(|| path.display().to_string())?;
        writeln!(out, "wrote  src/cpu/mod.rs: `mod {family};`")?;
        writeln!(out, "\nnext:")?;
        if !is_tidelock && !has_module(&self.root, "cpu") {
            writeln!(out, "  add `mod cpu;` to src/lib.rs")?;
        }
        writeln!(out, "  tidelock compile {family}    makes its PTX; needs no GPU")?;
        writeln!(out, "  cargo build                  generates {} and checks all of it", camel(kernel))?;
        writeln!(out, "  tidelock parity {kernel}     both arms on generated cases, on a machine with a GPU")?;
        writeln!(out, "  tidelock record {kernel}     keeps what the GPU gave, which `cargo test` asks for")?;
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses a kernel's name that the registry has already.
    fn taken(&self, kernel: &str) -> anyhow::Result<()> {
        if !self.root.join("signatures").is_dir() {
            return Ok(());
        }
        let project = Project::read(&self.root).map_err(|error| anyhow!(error))?;
        let Ok(registry) = project.registry() else { return Ok(()) }; // what is wrong with it, `check` says
        let taken = registry.families.iter().find(|it| it.kernels.iter().any(|other| other.name.value == kernel));
        match taken {
            Some(family) => {
                bail!("the registry has a kernel `{kernel}` already, in {}; say another --kernel", family.path)
            }
            None => Ok(()),
        }
    }

    /// The text of src/cpu/mod.rs with the new module, at its place in the order of the alphabet.
    fn modules(&self, family: &str) -> anyhow::Result<String> {
        let path = self.root.join("src/cpu/mod.rs");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => ARMS.to_string(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        let line = format!("mod {family};\n");
        let mut at = text.len();
        let mut start = 0;
        for known in text.split_inclusive('\n') {
            if known.starts_with("mod ") && known.trim_end().ends_with(';') {
                if *known > *line {
                    at = start;
                    break;
                }
                at = start + known.len();
            }
            start += known.len();
        }
        let separator = if text[..at].ends_with('\n') || at == 0 { "" } else { "\n" };
        Ok(format!("{}{separator}{line}{}", &text[..at], &text[at..]))
    }
}

/// Whether the crate at `root` is tidelock itself, whose arms name things by `crate::`.
fn is_tidelock(root: &Path) -> bool {
    fs::read_to_string(root.join("Cargo.toml"))
        .is_ok_and(|text| text.lines().any(|line| line.trim() == "name = \"tidelock\""))
}

fn has_module(root: &Path, module: &str) -> bool {
    let declared = format!("mod {module};");
    fs::read_to_string(root.join("src/lib.rs")).is_ok_and(|text| text.contains(&declared))
}
