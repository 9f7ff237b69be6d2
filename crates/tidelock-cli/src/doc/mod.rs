//! `tidelock doc`: the registry as a static site, by the files of a checkout: what each kernel takes, both arms with their
//! sources, what was compiled, and how the checks stand. It needs no JavaScript and no network.

mod index;
mod kernel;
mod page;
mod source;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use tidelock_codegen::Project;
use tidelock_codegen::check::Status;
use tidelock_codegen::facts::{self, Hash, KernelFacts, Manifest};
use tidelock_codegen::model::{Family, Kernel};

use crate::check::records::Records;
use crate::output;

/// Write the registry as a site of web pages
#[derive(Args)]
pub struct Arguments {
    /// Folder with signatures/, kernels/, ptx/ and src/cpu/
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Folder that the pages are written to
    #[arg(long, value_name = "DIR", default_value = "target/tidelock-doc")]
    out: PathBuf,
}

/// A kernel and what was found of it.
struct Entry<'a> {
    family: &'a Family,
    kernel: &'a Kernel,
    facts: Option<&'a KernelFacts<Hash>>,
    /// The architecture that its PTX was compiled for.
    target: &'a str,
    status: &'a Status,
    /// How its record stands.
    record: String,
}

impl Arguments {
    /// Writes the pages, also of a checkout that has drifted, and says how many.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let project = Project::read(&self.root).map_err(|error| anyhow!(error))?;
        let registry = match project.registry() {
            Ok(registry) => registry,
            Err(errors) => bail!(
                "the registry has errors, so there is nothing to show\n{}",
                errors.render(&project.sources(), false)
            ),
        };
        let (report, sources) = (project.check(), project.sources());
        let mut records = Records::new(&self.root, &project);
        let manifests: BTreeMap<&str, Manifest> = registry
            .families
            .iter()
            .filter_map(|family| {
                let path = facts::manifest_path(&family.name);
                let content = project.artifacts().manifests.get(&path)?;
                Some((family.name.as_str(), facts::read_manifest(&path, content).ok()?))
            })
            .collect();
        let kernels =
            registry.families.iter().flat_map(|family| family.kernels.iter().map(move |kernel| (family, kernel)));
        let entries: Vec<Entry> = kernels
            .zip(&report.kernels)
            .map(|((family, kernel), status)| {
                let manifest = manifests.get(family.name.as_str());
                Entry {
                    family,
                    kernel,
                    facts: manifest.and_then(|manifest| manifest.kernels.get(&kernel.name.value)),
                    target: manifest.map_or("", |manifest| &manifest.toolchain.target),
                    status,
                    record: records.status(&family.name, &kernel.name.value),
                }
            })
            .collect();

        let mut pages = BTreeMap::from([("style.css".to_string(), page::STYLE.to_string())]);
        pages.insert("index.html".into(), index::page(&registry, &entries, &report.diagnostics));
        for entry in &entries {
            pages.insert(words::kernel_page(entry.kernel), kernel::page(entry, &project, &sources));
        }
        for path in source::shown(&registry) {
            if let Some(text) = sources.get(&path) {
                pages.insert(source::page_of(&path), source::page(&path, text));
            }
        }
        for (name, text) in &pages {
            write(&self.out.join(name), text)?;
        }
        let drift = match report.diagnostics.0.len() {
            0 => "no drift".to_string(),
            count => format!("{} of drift", output::plural(count, "error")),
        };
        writeln!(
            out,
            "{} with {}, {drift}: {}",
            output::plural(pages.len() - 1, "page"),
            output::plural(entries.len(), "kernel"),
            self.out.join("index.html").display()
        )?;
        Ok(ExitCode::SUCCESS)
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::write(path, text).with_context(|| path.display().to_string())
}
