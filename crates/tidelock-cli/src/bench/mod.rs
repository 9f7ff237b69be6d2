//! `tidelock bench`: how long steps of the layers take, beside other implementations and what memory allows.
//!
//! A step is timed only while it is right: its output is compared with the CPU arm's before and after. What is timed is data,
//! `benches/workloads.yaml`; `benches/README.md` has the method.

mod clock;
mod cold_start;
mod definition;
mod flush;
mod inputs;
mod peers;
mod report;
mod steps;
mod verification;

use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use tidelock::Device;

use crate::output;
use crate::progress::Progress;
use clock::Clock;
use definition::{Case, DEFINITIONS, Definitions};
use flush::Flush;
use inputs::Inputs;
use report::Report;

/// The name that asks for the start of a process instead of a workload.
const COLD_START: &str = "cold-start";

/// Time steps of the sampling layers, or with `cold-start` the start of a process
#[derive(Args)]
pub struct Arguments {
    /// Workloads of benches/workloads.yaml, or `cold-start`; all workloads when none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// `cpu`, `cuda`, `cuda:N` or `auto`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,
    /// Command that times other implementations; it is given the folder of inputs
    #[arg(long, value_name = "CMD")]
    peers: Option<String>,
    /// Folder for the inputs that peers read; without it a temporary one
    #[arg(long, value_name = "DIR", requires = "peers")]
    inputs: Option<PathBuf>,
    /// File that the record is written to
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the record instead of a table
    #[arg(long)]
    json: bool,
    /// Replays that count
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    replays: u32,
    /// Batch sizes instead of those defined
    #[arg(long, value_name = "N", value_delimiter = ',')]
    batch: Vec<NonZeroUsize>,
    /// Sizes of the vocabulary instead of the one defined
    #[arg(long, value_name = "N", value_delimiter = ',')]
    vocab_size: Vec<NonZeroUsize>,
    /// What is in a GPU's cache when a step begins: lines that were written, and have to go to memory first, or lines that were read
    #[arg(long, value_enum, default_value_t)]
    flush: Flush,
}

impl Arguments {
    /// Times the workloads, and prints what they took.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        if self.names == [COLD_START] {
            cold_start::run(out, &self.device, self.json)?;
            return Ok(ExitCode::SUCCESS);
        }
        let definitions = Definitions::read(DEFINITIONS)?;
        let [batches, vocab_sizes] =
            [&self.batch, &self.vocab_size].map(|sizes| sizes.iter().map(|size| size.get()).collect::<Vec<_>>());
        let cases = definitions.cases(&self.names, &batches, &vocab_sizes)?;
        let (mut clock, device) = Clock::new(&self.device, self.flush)?;
        let replays = self.replays as usize;
        let mut report = Report::new(&device, replays, clock.flushed(), clock.bandwidth()?)?;
        let temporary = tempfile::tempdir()?;
        let folder = self.inputs.as_deref().unwrap_or(temporary.path());
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let progress = Progress::new();
        for case in &cases {
            let name = format!("{}, batch {}, {} tokens", case.workload.name, case.batch, case.vocab_size);
            progress.say(&name);
            let inputs = Inputs::new(case)?;
            let expected = expected(case, &inputs)?;
            let mut step = steps::new(case, &inputs, &device)?;
            report.add(case, clock.time(&mut *step, replays, &expected).context(name)?)?;
            if self.peers.is_some() {
                inputs.write(case, folder)?;
            }
        }
        let flushed = clock.flushed();
        drop(clock); // its memory is the peers' now
        if let Some(command) = &self.peers {
            progress.say(command);
            report.add_peers(&cases, peers::run(command, folder, &cases, device.to_string(), replays, flushed)?);
        }
        drop(progress);
        if let Some(path) = &self.out {
            report.save(path)?;
        }
        if self.json {
            output::json(out, &report)?
        } else {
            report.print(out)?
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What the CPU arm makes of the same inputs.
fn expected(case: &Case<'_>, inputs: &Inputs) -> tidelock::Result<Vec<u8>> {
    let mut step = steps::new(case, inputs, &Device::Cpu)?;
    step.run()?;
    step.output()
}
