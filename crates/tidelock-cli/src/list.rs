//! `tidelock list`: every kernel that this binary was built with, one a line.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use tidelock::{Kernel, REGISTRY};

use crate::describe;
use crate::output::{self, Format};

/// List the kernels of the registry
#[derive(Args)]
pub struct Arguments {
    /// How the list is printed
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    family: &'static str,
    params: usize,
    constants: usize,
    variants: usize,
    ptx_bytes: usize,
    doc: &'static str,
}

impl Entry {
    fn new(kernel: &Kernel) -> Entry {
        Entry {
            name: kernel.name,
            family: kernel.family,
            params: kernel.params.len(),
            constants: kernel.constants.len(),
            variants: kernel.variants.len(),
            ptx_bytes: kernel.variants.iter().map(|variant| variant.ptx.len()).sum(),
            doc: describe::first_sentence(kernel.doc),
        }
    }
}

impl Arguments {
    /// Prints the list.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let entries: Vec<_> = REGISTRY.iter().map(|kernel| Entry::new(kernel)).collect();
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
            let (name, family, doc) = (entry.name.into(), entry.family.into(), clause(entry.doc).into());
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
