//! `tidelock compile`: makes PTX of the kernels, and says what that changes. Only a kernel's author needs it.

mod cubins;
mod watch;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tidelock_codegen::facts::Changes;
use tidelock_codegen::toolchain::{self, Error};

use crate::output;
use crate::progress::Progress;

/// Compile kernels to PTX
///
/// Needs Python 3 and, the first time, the network: Triton and nvcc are installed at pinned versions under target/, unless
/// TIDELOCK_PYTHON names a Python that has them. It needs no GPU.
#[derive(Args)]
pub struct Arguments {
    /// Kernels, families or source files; all when none is named
    #[arg(value_name = "KERNEL|FAMILY|FILE")]
    selectors: Vec<String>,
    /// Folder with signatures/, kernels/ and ptx/
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Write nothing, and fail where what is committed differs from what comes out
    #[arg(long)]
    check: bool,
    /// Make machine code of the committed PTX instead, for these targets: with it a process starts without the driver's compiler
    #[arg(long, value_name = "TARGET", value_delimiter = ',', conflicts_with = "check")]
    cubins: Vec<cubins::Target>,
    /// Folder that the machine code goes to
    #[arg(long, value_name = "DIR", default_value = "target/cubins", requires = "cubins")]
    out: PathBuf,
    /// Compile what is out of date, and again whenever a registry file or a kernel changes, until Ctrl-C
    #[arg(long, conflicts_with = "check")]
    watch: bool,
}

impl Arguments {
    /// Compiles, and prints each file that changes.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        if !self.cubins.is_empty() {
            cubins::run(out, &self.root, &self.selectors, &self.cubins, &self.out)?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.watch {
            return watch::watch(&self.root, &self.selectors, out);
        }
        let progress = Progress::new();
        let changes = toolchain::compile(&self.root, &self.selectors, &mut |line| progress.say(line));
        drop(progress);
        let changes = match changes {
            Ok(changes) => changes,
            Err(Error::Diagnostics(diagnostics, sources)) => {
                let stderr = std::io::stderr();
                let text = diagnostics.render(&sources, output::colour(&stderr));
                write!(stderr.lock(), "{text}")?;
                return Ok(ExitCode::FAILURE);
            }
            Err(error) => return Err(error.into()),
        };
        if !self.check {
            toolchain::write(&self.root, &changes)?;
        }
        print(out, &changes, self.check)?;
        let differs = !changes.write.is_empty() || !changes.remove.is_empty();
        Ok(if self.check && differs { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn print(out: &mut impl Write, changes: &Changes, check: bool) -> std::io::Result<()> {
    let (write, remove) = if check { ("differs", "surplus") } else { ("wrote", "removed") };
    changes.write.keys().try_for_each(|path| writeln!(out, "{write}  {path}"))?;
    changes.remove.iter().try_for_each(|path| writeln!(out, "{remove}  {path}"))?;
    match changes.write.len() + changes.remove.len() {
        0 => writeln!(out, "nothing changed: ptx/ is what the kernels compile to"),
        count if check => {
            writeln!(out, "{} under ptx/ differ from what the kernels compile to", output::plural(count, "file"))
        }
        count => writeln!(out, "{} changed under ptx/", output::plural(count, "file")),
    }
}
