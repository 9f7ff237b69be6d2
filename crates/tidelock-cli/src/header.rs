//! `tidelock header`: the C declarations of CUDA C++ kernels, made from the registry. Needs neither nvcc nor Python.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::Args;
use tidelock_codegen::check::similar::did_you_mean;
use tidelock_codegen::facts::Changes;
use tidelock_codegen::{Project, header, toolchain};

/// Write the C headers that CUDA C++ kernels are held to
#[derive(Args)]
pub struct Arguments {
    /// Families; all that have CUDA C++ kernels when none is named
    #[arg(value_name = "FAMILY")]
    families: Vec<String>,
    /// Folder with signatures/, kernels/ and ptx/
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Print the headers instead of writing them
    #[arg(long)]
    print: bool,
}

impl Arguments {
    /// Makes the headers, and names each file that changes.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let project = Project::read(&self.root).map_err(|error| anyhow!(error))?;
        let registry = match project.registry() {
            Ok(registry) => registry,
            Err(errors) => bail!("{}", errors.render(&project.sources(), false)),
        };
        let mut headers = header::emit_all(&registry, project.artifacts());
        if let Some(name) = self.families.iter().find(|name| !headers.contains_key(*name)) {
            let help = did_you_mean(name, headers.keys().map(String::as_str));
            let help = help.map_or(String::new(), |help| format!("; {help}"));
            bail!("no family with CUDA C++ kernels is called `{name}`{help}");
        }
        headers.retain(|family, _| self.families.is_empty() || self.families.contains(family));
        if self.print {
            headers.values().try_for_each(|text| write!(out, "{text}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let present = |path: &str| project.artifacts().headers.get(path);
        let files = headers.into_iter().map(|(family, text)| (header::path(&family), text.into_bytes()));
        let write = files.filter(|(path, content)| present(path) != Some(content)).collect();
        let changes = Changes { write, ..Changes::default() };
        toolchain::write(&self.root, &changes)?;
        changes.write.keys().try_for_each(|path| writeln!(out, "wrote  {path}"))?;
        if changes.write.is_empty() {
            writeln!(out, "nothing changed: the headers are what the registry declares")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
