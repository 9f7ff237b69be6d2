//! `tidelock sample`: logits in a file, tokens out.
//!
//! Everything between the two is done by the sampling layer, in one code for both devices.

mod draw;
mod file;
mod npy;
mod options;
mod parse;
mod processors;
mod ragged;
mod report;
mod table;

use std::io::{Write, stderr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tidelock::Device;
use tidelock::sampling::{LogprobsMode, Sampler};

use crate::example;
use crate::output::{self, Format};
use crate::precision::Precision;
use draw::{Amount, draw};
use options::Settings;
use processors::Processors;
use report::{Parts, Report};

/// The tensor of the example.
const EXAMPLE_TENSOR: &str = "target_logits";

/// Draw tokens from the logits in a file
#[derive(Args)]
pub struct Arguments {
    /// Logits [rows, V]: .safetensors in f16, bf16 or f32, or .npy in f16 or f32
    /// [default: examples/data/speculation.safetensors]
    file: Option<PathBuf>,
    /// Tensor of a .safetensors file [default: logits, in the example target_logits]
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    /// Take a part of the rows
    #[arg(long, value_name = "A..B", value_parser = parse::rows)]
    rows: Option<Range<usize>>,
    /// Where the kernels run: auto, cpu, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    /// Draw N tokens of each row, at its position and those that follow
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
    /// Draw and race the noise in f64
    #[arg(long)]
    use_fp64_gumbel: bool,
    /// Tell logprobs of the tokens drawn, and of the N most likely ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024))]
    logprobs: Option<u32>,
    /// Which logits logprobs are of: the file's, or those that the tokens are drawn from
    #[arg(long, value_enum, default_value = "raw", requires = "logprobs")]
    logprobs_mode: Mode,
    /// Tokenizer that shows the tokens as text [default: tokenizer.json beside the data, where there is one]
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    options: options::Options,
    #[command(flatten)]
    processors: processors::Options,
}

/// Which logits logprobs are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
enum Mode {
    Raw,
    Processed,
}

impl Mode {
    fn of_sampler(self) -> LogprobsMode {
        match self {
            Mode::Raw => LogprobsMode::Raw,
            Mode::Processed => LogprobsMode::Processed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Mode::Raw => "raw",
            Mode::Processed => "processed",
        }
    }
}

impl Arguments {
    /// Draws, and prints what was drawn.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let path = self.file.clone().map_or_else(example::file, Ok)?;
        let report = self.report(&path)?;
        match self.format {
            Format::Json => output::json(out, &report)?,
            Format::Table => table::print(out, &report)?,
        }
        if report.rows_without_token > 0 {
            let (count, rows) = (report.rows_without_token, output::plural(report.rows.len(), "row"));
            writeln!(stderr(), "{} in {count} of {rows}", table::NO_TOKEN)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn report(&self, path: &Path) -> anyhow::Result<Report> {
        let device: Device = self.device.parse()?;
        let tensor = self.tensor.as_deref().or(self.file.is_none().then_some(EXAMPLE_TENSOR));
        let logits = file::read(path, tensor, self.rows.clone(), &device)?;
        let first_row = self.rows.as_ref().map_or(0, |rows| rows.start);
        let in_file = || path.display().to_string();
        let settings = Settings::new(&self.options, first_row, logits.rows).with_context(in_file)?;
        let shape = [logits.rows, logits.vocab_size];
        let processors = Processors::new(&self.processors, shape, &device).with_context(in_file)?;
        let tokenizer = example::tokenizer(self.tokenizer.clone(), path)?;
        let sampler = Sampler::new(self.use_fp64_gumbel, self.logprobs_mode.of_sampler());
        let amount = Amount { samples: self.samples as usize, num_logprobs: self.logprobs.map(|count| count as usize) };
        let drawn = draw(&sampler, &logits, &processors, &settings, amount, &device)?;
        let parts = Parts { settings: &settings, drawn: &drawn, first_row, tokenizer: tokenizer.as_ref() };
        let noise = (!settings.all_greedy()).then(|| Precision::new(sampler.topk_topp_sampler().use_fp64_gumbel()));
        let mode = self.logprobs.map(|_| self.logprobs_mode.name());
        Ok(Report::new(path, &device, noise, mode, logits.vocab_size, parts.rows()))
    }
}
