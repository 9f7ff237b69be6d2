//! `tidelock check`: every drift check on a checkout, by its files and not by what this binary was built from.

pub mod records;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use tidelock_codegen::Project;
use tidelock_codegen::check::Status;

use crate::output::{self, Format};
use records::Records;

/// Check registry, kernels, PTX and CPU arms against each other
#[derive(Args)]
pub struct Arguments {
    /// Folder with signatures/, kernels/, ptx/ and src/cpu/
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Serialize)]
struct Outcome {
    ok: bool,
    kernels: Vec<Line>,
    diagnostics: serde_json::Value,
}

/// How a kernel stands.
#[derive(Serialize)]
struct Line {
    kernel: String,
    family: String,
    ok: bool,
    /// Codes of what is wrong.
    codes: Vec<&'static str>,
    variants: usize,
    /// What a GPU was last seen to compute of it.
    record: String,
}

impl Arguments {
    /// Checks, and prints a line a kernel and all that is wrong.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let project = Project::read(&self.root).map_err(|error| anyhow!(error))?;
        let report = project.check();
        let sources = project.sources();
        let mut records = Records::new(&self.root, &project);
        let kernels: Vec<_> = report.kernels.iter().map(|status| Line::new(status, &mut records)).collect();
        let ok = report.diagnostics.is_empty();
        match self.format {
            Format::Json => {
                let diagnostics = report.diagnostics.to_json(&sources);
                output::json(out, &Outcome { ok, kernels, diagnostics })?;
            }
            Format::Table => {
                print(out, &kernels)?;
                if ok {
                    writeln!(out, "{} checked, no drift", output::plural(kernels.len(), "kernel"))?;
                } else {
                    write!(out, "\n{}", report.diagnostics.render(&sources, output::colour(&io::stdout())))?;
                }
            }
        }
        Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Line {
    fn new(status: &Status, records: &mut Records<'_>) -> Line {
        Line {
            kernel: status.kernel.clone(),
            family: status.family.clone(),
            ok: status.failed.is_empty(),
            codes: status.failed.iter().copied().collect(),
            variants: status.variants,
            record: records.status(&status.family, &status.kernel),
        }
    }
}

fn print(out: &mut impl Write, kernels: &[Line]) -> io::Result<()> {
    let name = |line: &Line| format!("{}/{}", line.family, line.kernel);
    let width = kernels.iter().map(|line| name(line).len()).max().unwrap_or(0);
    for line in kernels {
        let (ok, name) = (if line.ok { "ok  " } else { "FAIL" }, name(line));
        let variants = output::plural(line.variants, "variant");
        let codes = if line.ok { String::new() } else { format!("  {}", line.codes.join(" ")) };
        writeln!(out, "{ok}  {name:width$}  {variants}, 2 arms, record {}{codes}", line.record)?;
    }
    Ok(())
}
