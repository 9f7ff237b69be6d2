//! `tidelock speculate`: one speculative decoding step, from logits in a file to tokens.
//!
//! Everything between the logits and the tokens is done by the sampling layers, and so by kernels of the registry, in one code
//! for both devices.

mod file;
mod report;
mod settings;
mod step;
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
use file::Speculation;
use report::{Report, Request, Timing};
use settings::{Options, Settings};
use step::Step;

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

impl Arguments {
    /// Runs the step and prints what came of it.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let path = self.file.map_or_else(example::file, Ok)?;
        let device: Device = self.device.parse()?;
        let speculation = Speculation::read(&path, &device)?;
        let settings = Settings::new(&self.options, &speculation).with_context(|| path.display().to_string())?;
        let tokenizer = example::tokenizer(self.tokenizer, &path)?;
        let drafted = speculation.drafted();
        let mut step = Step::new(&device, speculation, &settings)?;
        let timing = measure(&mut step, &device, self.repeat)?;
        let requests = Request::all(&drafted, &step.output()?, tokenizer.as_ref())?;
        let report = Report::new(&path, &device, &settings, requests, timing);
        match self.format {
            Format::Json => output::json(out, &report)?,
            Format::Table => table::print(out, &report)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Runs the step `runs` times, after one more that loads the kernels if there are several.
fn measure(step: &mut Step, device: &Device, runs: u32) -> tidelock::Result<Timing> {
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
