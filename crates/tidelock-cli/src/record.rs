//! `tidelock record`: keeps what a GPU gives, so that a machine without one can hold both arms together.
//!
//! The standard cases are run and their digests kept; then both arms are compared on random cases. Records are written only
//! when that found no difference.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use tidelock::{Device, REGISTRY};
use tidelock_parity::{Meta, record};

use crate::parity;
use crate::progress::Progress;

/// Seed of the random cases.
const SEED: u64 = 0;

/// Record what a GPU computes in records/
#[derive(Args)]
pub struct Arguments {
    /// GPU to record
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    device: String,
    /// Rows of random cases on which both arms are compared, for each kernel
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    rows: u64,
    /// Folder that the records are written to
    #[arg(long, value_name = "DIR", default_value = "records")]
    out: PathBuf,
}

impl Arguments {
    /// Makes the records and writes them.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let device: Device = self.device.parse()?;
        let command = format!("tidelock record --device {device} --rows {}", self.rows);
        let meta = Meta::today(&device, command).map_err(|error| anyhow!("--device: {error}"))?;
        let progress = Progress::new();
        let tell =
            |at: tidelock_parity::Progress| progress.say_done(&format!("{}, cases run", at.kernel), at.done, at.total);
        let mut records = record(REGISTRY, &device, &meta, &tell)?;
        drop(progress);
        if self.rows > 0 {
            let summary = parity::compare(REGISTRY, &Device::Cpu, &device, self.rows, SEED)?;
            parity::print(out, REGISTRY, &summary)?;
            if summary.mismatches() > 0 {
                writeln!(out, "nothing was recorded, because the arms differ")?;
                return Ok(ExitCode::FAILURE);
            }
            records.iter_mut().for_each(|record| record.add_sweep(&summary));
        }
        for record in &records {
            record.save(&self.out)?;
            writeln!(out, "wrote {}", self.out.join(&record.family).with_extension("json").display())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
