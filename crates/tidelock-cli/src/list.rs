//! `tidelock list`: every kernel of a registry, one a line: that of a folder, or the one that this binary was built with.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::Args;
use serde::Serialize;
use tidelock::{Kernel, REGISTRY};
use tidelock_codegen::model::{self, Family};
use tidelock_codegen::variants::variants;
use tidelock_codegen::{Project, facts};

use crate::describe;
use crate::output::{self, Format};

/// List the kernels of the registry
#[derive(Args)]
pub struct Arguments {
    /// Folder with signatures/ and ptx/; without it, the kernels that this program was built with
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// How the list is printed
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    family: String,
    params: usize,
    constants: usize,
    variants: usize,
    ptx_bytes: usize,
    doc: String,
}

impl Entry {
    fn new(kernel: &Kernel) -> Entry {
        Entry {
            name: kernel.name.into(),
            family: kernel.family.into(),
            params: kernel.params.len(),
            constants: kernel.constants.len(),
            variants: kernel.variants.len(),
            ptx_bytes: kernel.variants.iter().map(|variant| variant.ptx.len()).sum(),
            doc: describe::first_sentence(kernel.doc).into(),
        }
    }

    /// The kernels of the folder at `root`, by its files.
    fn read(root: &Path) -> anyhow::Result<Vec<Entry>> {
        let project = Project::read(root).map_err(|error| anyhow!(error))?;
        let registry = match project.registry() {
            Ok(registry) => registry,
            Err(errors) => bail!("the registry has errors\n{}", errors.render(&project.sources(), false)),
        };
        let kernels =
            registry.families.iter().flat_map(|family| family.kernels.iter().map(move |kernel| (family, kernel)));
        let entry = |(family, kernel): (&Family, &model::Kernel)| {
            let variants = variants(kernel);
            let bytes =
                |name: &str| project.artifacts().ptx.get(&facts::ptx_path(&family.name, name)).map_or(0, Vec::len);
            Entry {
                name: kernel.name.value.clone(),
                family: family.name.clone(),
                params: kernel.params.len(),
                constants: kernel.constants.len(),
                variants: variants.len(),
                ptx_bytes: variants.iter().map(|variant| bytes(&variant.name)).sum(),
                doc: describe::first_sentence(&kernel.doc).into(),
            }
        };
        Ok(kernels.map(entry).collect())
    }
}

impl Arguments {
    /// Prints the list.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let entries = match &self.root {
            Some(root) => Entry::read(root)?,
            None => REGISTRY.iter().map(|kernel| Entry::new(kernel)).collect(),
        };
        if self.format == Format::Json {
            output::json(out, &entries)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = output::table(
            ["kernel", "family", "params", "constants", "variants", "PTX bytes", "what it does"],
            &[2, 3, 4, 5],
        );
        for entry in &entries {
            let counts =
                [entry.params, entry.constants, entry.variants, entry.ptx_bytes].map(|count| count.to_string());
            let [params, constants, variants, bytes] = counts;
            let (name, family, doc) = (entry.name.clone(), entry.family.clone(), clause(&entry.doc).into());
            table.add_row([name, family, params, constants, variants, bytes, doc] as [String; 7]);
        }
        output::print(out, &table, "")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A sentence up to its first colon or semicolon, so that a line stays short.
fn clause(sentence: &str) -> &str {
    sentence.split([':', ';']).next().unwrap_or(sentence)
}
