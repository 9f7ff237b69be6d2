//! `tidelock speculate`: one speculative decoding step, from logits in a file to tokens.
//!
//! Everything between the logits and the tokens is done by kernels of the registry, in one code for both devices.

mod batch;
mod file;
mod greedy;
mod random;
mod report;
mod settings;
mod table;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use tidelock::Device;

use crate::example;
use crate::output::{self, Format};
use crate::precision::Precision;
use batch::Batch;
use file::Speculation;
use greedy::Greedy;
use random::Random;
use report::{Report, Request, Timing};
use settings::{Options, Settings, Verification};

/// Run one speculative decoding step on the logits in a file
#[derive(Args)]
pub struct Arguments {
    /// Safetensors file with target_logits, draft_logits, bonus_logits, draft_token_ids and cu_num_draft_tokens
    /// [default: examples/data/speculation.safetensors]
    file: Option<PathBuf>,
    /// Where the kernels run: auto, cpu, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    #[command(flatten)]
    options: Options,
    /// Tokenizer that shows the tokens as text [default: tokenizer.json beside the data, where there is one]
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Times the step is run; the median is reported
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// How the result is printed
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// One step, with all the memory that it needs: running it again gives the same tokens.
trait Step {
    /// Launches the kernels.
    fn run(&mut self) -> tidelock::Result<()>;
    /// What came out: for each request a row of its tokens, -1 after the last.
    fn output(&self) -> tidelock::Result<Vec<i32>>;
}

impl Arguments {
    /// Runs the step and prints what came of it.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let path = self.file.map_or_else(example::file, Ok)?;
        let device: Device = self.device.parse()?;
        let speculation = Speculation::read(&path, &device)?;
        let settings = Settings::new(&self.options, &speculation).with_context(|| path.display().to_string())?;
        let tokenizer = example::tokenizer(self.tokenizer, &path)?;
        let drafted = speculation.drafted();
        let mut step = step(&device, speculation, &settings)?;
        let timing = measure(&mut *step, &device, self.repeat)?;
        let requests = Request::all(&drafted, &step.output()?, tokenizer.as_ref())?;
        let report = Report::new(&path, &device, &settings, requests, timing);
        match self.format {
            Format::Json => output::json(out, &report)?,
            Format::Table => table::print(out, &report)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The step that `settings` ask for. The precision of the noise is a type from here on.
fn step(device: &Device, speculation: Speculation, settings: &Settings) -> tidelock::Result<Box<dyn Step>> {
    let batch = Batch::new(device, &speculation, settings)?;
    Ok(match settings.verification {
        Verification::Greedy => Box::new(Greedy::new(batch, speculation)?),
        Verification::Random { noise: Precision::F32 } => Box::new(Random::<f32>::new(batch, speculation, settings)?),
        Verification::Random { noise: Precision::F64 } => Box::new(Random::<f64>::new(batch, speculation, settings)?),
    })
}

/// Runs the step `runs` times, after one more that loads the kernels if there are several.
fn measure(step: &mut dyn Step, device: &Device, runs: u32) -> tidelock::Result<Timing> {
    let mut once = || {
        let start = Instant::now();
        step.run()?;
        device.synchronize()?;
        tidelock::Result::Ok(start.elapsed())
    };
    if runs > 1 {
        once()?;
    }
    let mut times = (0..runs).map(|_| once()).collect::<tidelock::Result<Vec<Duration>>>()?;
    times.sort_unstable();
    let middle = times.len() / 2;
    let median = (times[(times.len() - 1) / 2] + times[middle]) / 2;
    Ok(Timing { median_ms: median.as_secs_f64() * 1e3, runs })
}
