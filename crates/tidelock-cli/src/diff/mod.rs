//! `tidelock diff`: what a change of the registry breaks, as a semver check does for an interface.

mod compare;
mod describe;
mod load;
mod rules;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use tidelock_codegen::lower;
use tidelock_codegen::model::Registry;

use crate::output;
use compare::{Change, compare};
use load::{Files, load, sources};
use rules::{Rule, Side, markdown};

/// Say what changed between two registries, and what it breaks
///
/// For each change: does it break callers (Rust code that launches), arms (the sources of kernels and CPU arms), compiled PTX?
/// Exits with 0 where nothing breaks, 1 where something does, and 2 where that cannot be told. `--rules` prints the table.
#[derive(Args)]
pub struct Arguments {
    /// The registry before: a folder or a git revision
    #[arg(required_unless_present = "rules")]
    old: Option<String>,
    /// The registry after; without it, the working tree
    #[arg(default_value = ".")]
    new: String,
    /// Look only at what breaks these
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SIDE")]
    only: Vec<Side>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print what each kind of change breaks, and nothing else
    #[arg(long, conflicts_with_all = ["old", "json"])]
    rules: bool,
    /// Folder with signatures/, in the repository of the revisions
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

const SIDES: [(Side, &str); 3] = [(Side::Callers, "callers"), (Side::Arms, "arms"), (Side::Ptx, "PTX")];

#[derive(Serialize)]
struct Outcome {
    compatible: bool,
    changes: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    change: Change,
    file: String,
    line: usize,
    breaks: Vec<Side>,
}

impl Arguments {
    /// Compares and prints.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        if self.rules {
            write!(out, "{}", markdown())?;
            return Ok(ExitCode::SUCCESS);
        }
        let old = self.old.as_deref().unwrap_or_default();
        let read = |what: &str| -> Result<(Files, Registry), String> {
            let files = load(&self.root, what)?;
            let registry = lower::read(&files).map_err(|errors| {
                let text = errors.render(&sources(&files), output::colour(&io::stderr()));
                format!("the registry of {what} has errors\n\n{}", text.trim_end())
            })?;
            Ok((files, registry))
        };
        let ((old_files, before), (new_files, after)) = match (read(old), read(&self.new)) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(error), _) | (_, Err(error)) => {
                writeln!(io::stderr(), "error: {error}")?;
                return Ok(ExitCode::from(2));
            }
        };
        let looked_at = |side: Side| self.only.is_empty() || self.only.contains(&side);
        let texts = (sources(&old_files), sources(&new_files));
        let lines: Vec<Line> = compare(&before, &after)
            .into_iter()
            .map(|change| {
                let text = if change.gone { &texts.0 } else { &texts.1 }.get(&change.span.file);
                let rule = Rule::of(change.rule);
                let breaks =
                    SIDES.into_iter().map(|(side, _)| side).filter(|side| looked_at(*side) && rule.breaks(*side));
                Line {
                    file: change.span.file.clone(),
                    line: text.map_or(1, |text| change.span.line_column(text).0),
                    breaks: breaks.collect(),
                    change,
                }
            })
            .collect();
        let compatible = lines.iter().all(|line| line.breaks.is_empty());
        if self.json {
            output::json(out, &Outcome { compatible, changes: lines })?;
        } else {
            print(out, &lines, &looked_at)?;
        }
        Ok(if compatible { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}

fn print(out: &mut impl Write, lines: &[Line], looked_at: &impl Fn(Side) -> bool) -> io::Result<()> {
    for line in lines {
        let Line { change, file, line: number, breaks } = line;
        let of = change.item.as_ref().map_or(String::new(), |item| format!(" {item}"));
        let values = match (&change.old, &change.new) {
            (Some(old), Some(new)) => format!(": {old} -> {new}"),
            (Some(value), None) | (None, Some(value)) => format!(": {value}"),
            (None, None) => String::new(),
        };
        let names: Vec<&str> = SIDES.iter().filter(|(side, _)| breaks.contains(side)).map(|(_, name)| *name).collect();
        let verdict = if names.is_empty() { "compatible".to_string() } else { format!("breaks {}", names.join(", ")) };
        let was = if change.gone { ", before" } else { "" };
        writeln!(out, "{} {}{of}{values}\n    {verdict}  ({file}:{number}{was})", change.kernel, change.rule)?;
    }
    if lines.is_empty() {
        return writeln!(out, "nothing changed");
    }
    writeln!(out)?;
    for (side, name) in SIDES.into_iter().filter(|(side, _)| looked_at(*side)) {
        let count = lines.iter().filter(|line| line.breaks.contains(&side)).count();
        match count {
            0 => writeln!(out, "{name}: compatible")?,
            count => writeln!(out, "{name}: {} of {} break", count, output::plural(lines.len(), "change"))?,
        }
    }
    Ok(())
}
