//! What a step is run with: the command line's options, completed by what the file says, and refused where they disagree.

use anyhow::{bail, ensure};
use clap::Args;

use super::file::Speculation;
use crate::precision::Precision;

/// Options that change which tokens come out.
#[derive(Args)]
pub struct Options {
    /// Draw and race the noise in f64
    #[arg(long)]
    use_fp64_gumbel: bool,
    /// Seed of the first request; each later one has the next
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    seed: i64,
    /// Temperature of the target [default: the file's, or 1]
    #[arg(long, value_name = "T", value_parser = temperature, allow_negative_numbers = true)]
    temperature: Option<f32>,
    /// Temperature that the drafts were drawn at [default: the file's, or that of the target]
    #[arg(long, value_name = "T", value_parser = temperature, allow_negative_numbers = true)]
    draft_temperature: Option<f32>,
    /// Keep the drafts that are the target's most likely tokens; the same as --temperature 0
    #[arg(long, conflicts_with = "temperature")]
    greedy: bool,
    /// Accept drafts at these rates, one for each position, instead of by their probabilities
    #[arg(long, value_name = "R1,R2,..", value_delimiter = ',', value_parser = rate, allow_negative_numbers = true)]
    synthetic_rates: Option<Vec<f32>>,
    /// Treat each draft as certain, as if the file had no draft_logits
    #[arg(long, conflicts_with = "draft_temperature")]
    no_draft_probs: bool,
}

/// A step's settings, with nothing left open.
#[derive(Debug)]
pub struct Settings {
    /// Seed of the first request.
    pub seed: i64,
    /// Temperature of the target.
    pub temperature: f32,
    /// Temperature of the draft model; nothing where its probabilities are not used.
    pub draft_temperature: Option<f32>,
    /// How drafts are judged.
    pub verification: Verification,
    /// Acceptance rates that replace the judgement.
    pub synthetic_rates: Option<Vec<f32>>,
}

/// How drafts are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// By the target's most likely token.
    Greedy,
    /// By probabilities, with noise of this precision.
    Random {
        /// Type of the noise in every race.
        noise: Precision,
    },
}

impl Settings {
    /// Completes `options` with what the file says.
    pub fn new(options: &Options, file: &Speculation) -> anyhow::Result<Settings> {
        let temperature = if options.greedy { 0.0 } else { options.temperature.or(file.temperature).unwrap_or(1.0) };
        let greedy = temperature == 0.0;
        let draft_probs = !greedy && !options.no_draft_probs && file.draft_logits.is_some();
        if options.draft_temperature.is_some() && !draft_probs {
            let reason =
                if greedy { "greedy verification uses no draft probabilities" } else { "there are no `draft_logits`" };
            bail!("--draft-temperature cannot be honoured: {reason}");
        }
        if let Some(rates) = &options.synthetic_rates {
            let (expected, got) = (file.max_spec_len(), rates.len());
            ensure!(
                got == expected,
                "--synthetic-rates: expected {expected}, one for each drafted position, got {got}"
            );
        }
        let noise = Precision::new(options.use_fp64_gumbel);
        Ok(Settings {
            seed: options.seed,
            temperature,
            // The drafts were drawn at the file's temperature, whatever the target's is now.
            draft_temperature: draft_probs
                .then(|| options.draft_temperature.or(file.temperature).unwrap_or(temperature)),
            verification: if greedy { Verification::Greedy } else { Verification::Random { noise } },
            synthetic_rates: options.synthetic_rates.clone(),
        })
    }
}

/// A temperature: finite and at least 0.
pub fn temperature(text: &str) -> Result<f32, String> {
    let valid = |value: &f32| value.is_finite() && *value >= 0.0;
    text.trim()
        .parse()
        .ok()
        .filter(valid)
        .ok_or_else(|| format!("expected a finite number of at least 0, got {text:?}"))
}

fn rate(text: &str) -> Result<f32, String> {
    let valid = |value: &f32| (0.0..=1.0).contains(value);
    text.trim().parse().ok().filter(valid).ok_or_else(|| format!("expected a rate from 0 to 1, got {text:?}"))
}
