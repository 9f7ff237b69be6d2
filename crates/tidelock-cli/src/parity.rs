//! `tidelock parity`: random cases on two devices, which must agree in every bit.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use tidelock::{Device, Kernel};
use tidelock_parity::{Summary, sweep};

use crate::progress::Progress;
use crate::{kernels, output};

/// Compare two devices on random cases of kernels, bit by bit
#[derive(Args)]
pub struct Arguments {
    /// Kernels to compare; all when none is named
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,
    /// One of the devices
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device_a: String,
    /// The other
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    device_b: String,
    /// Rows to compare of each kernel, at least
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    rows: u64,
    /// Seed of the cases
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl Arguments {
    /// Runs the cases, and prints a line a kernel and the smallest case in which the devices differ.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let kernels = kernels::find_all(&self.kernels)?;
        let (left, right): (Device, Device) = (self.device_a.parse()?, self.device_b.parse()?);
        let summary = compare(&kernels, &left, &right, self.rows, self.seed)?;
        writeln!(out, "{left} and {right}, seed {}", self.seed)?;
        print(out, &kernels, &summary)?;
        Ok(if summary.mismatches() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Runs the cases on both devices, saying on the standard error how far it is.
pub fn compare(
    kernels: &[&'static Kernel],
    left: &Device,
    right: &Device,
    rows: u64,
    seed: u64,
) -> anyhow::Result<Summary> {
    let progress = Progress::new();
    let tell =
        |at: tidelock_parity::Progress| progress.say_done(&format!("{}, rows compared", at.kernel), at.done, at.total);
    Ok(sweep(kernels, left, right, rows, seed, &tell)?)
}

/// Prints what was found of each kernel.
pub fn print(out: &mut impl Write, kernels: &[&'static Kernel], summary: &Summary) -> io::Result<()> {
    let mut table = output::table(["kernel", "rows", "cases", "variants", "mismatches"], &[1, 2, 3, 4]);
    for kernel in kernels {
        let Some(found) = summary.kernels.get(kernel.name) else { continue };
        let variants = format!("{} of {}", found.variants.len(), kernel.variants.len());
        let [rows, cases, mismatches] = [found.rows, found.cases, found.mismatches].map(|count| count.to_string());
        table.add_row([kernel.name.into(), rows, cases, variants, mismatches]);
    }
    output::print(out, &table, "")?;
    let smallest = summary.kernels.values().filter_map(|found| found.smallest.as_ref());
    smallest.into_iter().try_for_each(|difference| writeln!(out, "\nsmallest case that differs: {difference}"))
}
