//! What a step is run with: the command line's options, completed by what the file says, and refused where they disagree.

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tidelock::sampling;

use super::file::Speculation;

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
    /// How drafts are judged: rejection compares probabilities, sampled draws from the target and keeps what equals it
    #[arg(long, value_enum, default_value = "rejection", value_name = "HOW")]
    verify: Verification,
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
    /// Draw and race the noise in f64.
    pub use_fp64_gumbel: bool,
    /// Acceptance rates that replace the judgement.
    pub synthetic_rates: Option<Vec<f32>>,
}

/// How drafts are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Verification {
    /// By the ratio of probabilities.
    Rejection,
    /// By tokens drawn from the target.
    Sampled,
}

impl From<Verification> for sampling::Verification {
    fn from(verification: Verification) -> Self {
        match verification {
            Verification::Rejection => sampling::Verification::Rejection,
            Verification::Sampled => sampling::Verification::Sampled,
        }
    }
}

impl Settings {
    /// Completes `options` with what the file says.
    pub fn new(options: &Options, file: &Speculation) -> anyhow::Result<Settings> {
        let temperature = if options.greedy { 0.0 } else { options.temperature.or(file.temperature).unwrap_or(1.0) };
        let greedy = temperature == 0.0;
        let sampled = options.verify == Verification::Sampled;
        let draft_probs = !greedy && !sampled && !options.no_draft_probs && file.draft_logits.is_some();
        if options.draft_temperature.is_some() && !draft_probs {
            let reason = match (greedy, sampled) {
                (true, _) => "greedy verification uses no draft probabilities",
                (_, true) => "sampled verification uses no draft probabilities",
                _ => "there are no `draft_logits`",
            };
            bail!("--draft-temperature cannot be honoured: {reason}");
        }
        if let Some(rates) = &options.synthetic_rates {
            ensure!(!sampled, "--synthetic-rates cannot be honoured: sampled verification accepts what it draws");
            let (expected, got) = (file.max_spec_len(), rates.len());
            ensure!(
                got == expected,
                "--synthetic-rates: expected {expected}, one for each drafted position, got {got}"
            );
        }
        Ok(Settings {
            seed: options.seed,
            temperature,
            // The drafts were drawn at the file's temperature, whatever the target's is now.
            draft_temperature: draft_probs
                .then(|| options.draft_temperature.or(file.temperature).unwrap_or(temperature)),
            verification: options.verify,
            use_fp64_gumbel: options.use_fp64_gumbel,
            synthetic_rates: options.synthetic_rates.clone(),
        })
    }
}

impl Settings {
    /// Whether drafts are judged by the target's most likely token, without noise.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
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
