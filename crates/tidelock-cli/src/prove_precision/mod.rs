//! `tidelock prove-precision`: rare tokens are drawn as often as they should be, and with 24-bit noise they are not.
//!
//! A token wins a race by small exponential noise. An f32 made of a 24-bit uniform has none below 2^-24, so a token that
//! needs less never wins; many such tokens together are a part of the distribution that is missing.

mod count;
mod device;
mod noise;
mod plot;
mod report;
mod scan;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::{Args, value_parser};
use tidelock::Device;

use crate::output::{self, Format};
use crate::progress::Progress;
use count::Counts;
use report::{Finding, Report};

/// How much less likely each tail token is than the head, as a difference of logits; the smallest first.
const GAPS: [f64; 3] = [18.0, 20.0, 20.5];
/// Below this, 24-bit noise has no value: 2^-24.
const SMALL: f64 = 1.0 / (1 << 24) as f64;

/// Count how often rare tokens are drawn, against how often they should be
#[derive(Args)]
pub struct Arguments {
    /// Races of each kind
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = value_parser!(u32).range(1..=100_000_000))]
    trials: u32,
    /// Tail tokens in each race
    #[arg(long, value_name = "N", default_value_t = 262_144, value_parser = value_parser!(u32).range(1..=4_000_000))]
    tail: u32,
    /// Seed of all noise
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    seed: i64,
    /// Where the races of this library's noise run: auto, cpu, cuda or cuda:N. A GPU runs the kernel gumbel_sample
    #[arg(long, default_value = "auto")]
    device: String,
    /// Also draw the result, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

impl Arguments {
    /// Counts, prints and draws. The exit code is 1 where this library's noise does not hold.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let device: Device = self.device.parse()?;
        let start = Instant::now();
        let counts = self.count(&device)?;
        let seconds = start.elapsed().as_secs_f64();
        let report = Report::new(device.to_string(), self.seed, self.trials, self.tail, &counts, seconds);
        match self.format {
            Format::Json => output::json(out, &report)?,
            Format::Table => print(out, &report)?,
        }
        if let Some(path) = &self.plot {
            std::fs::write(path, plot::svg(&report)).with_context(|| path.display().to_string())?;
        }
        Ok(if report.holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// The host counts everything; a GPU runs the races of this library's noise again, and its counts are the ones kept.
    fn count(&self, device: &Device) -> anyhow::Result<Counts> {
        let progress = Progress::new();
        let mut counts = count::count(self.seed, self.trials, self.tail, &progress);
        if matches!(device, Device::Cuda(_)) {
            for (index, gap) in GAPS.into_iter().enumerate() {
                counts.hits[1][index] = device::hits::<f32>(device, self.seed, self.trials, self.tail, gap, &progress)?;
                counts.hits[2][index] = device::hits::<f64>(device, self.seed, self.trials, self.tail, gap, &progress)?;
            }
        }
        Ok(counts)
    }
}

/// Prints a line for each count, for people.
fn print(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let header = ["what was counted", "noise", "expected", "counted", "z", "verdict"];
    let mut table = output::table(header, &[2, 3, 4]);
    for finding in report.lower_tail.iter().chain(&report.races) {
        table.add_row(row(finding));
    }
    output::print(out, &table, "")?;
    let Report { device, seed, trials, tail, seconds, .. } = report;
    writeln!(out)?;
    writeln!(out, "{trials} races of 1 head against {tail} tail tokens, seed {seed}, on {device}, in {seconds:.1} s")?;
    let verdict = if report.holds { "holds" } else { "FAILS: |z| of 4 or more" };
    writeln!(out, "the noise of this library {verdict}")
}

fn row(finding: &Finding) -> [String; 6] {
    let what = match finding.gap {
        None => format!("noise below 2^-24 in {} draws", finding.of),
        Some(gap) => format!("the tail beats the head, gap {gap}"),
    };
    let (expected, z) = (format!("{:.1}", finding.expected), format!("{:+.2}", finding.z));
    [what, finding.noise.name().into(), expected, finding.count.to_string(), z, finding.verdict.name().into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Races that few words can decide, against the same races run by the kernel: a long tail, so that some are won.
    #[test]
    fn the_count_is_the_kernels() {
        let (seed, trials, tail, progress) = (1, 150, 2_000_000, Progress::new());
        let counts = count::count(seed, trials, tail, &progress);
        let kernel = device::hits::<f64>(&Device::Cpu, seed, trials, tail, GAPS[0], &progress).unwrap();
        assert_eq!(counts.hits[2][0], kernel);
        assert!(kernel > 0, "no race was won, so nothing was compared");
    }
}
