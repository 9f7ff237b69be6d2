//! What came of a step, as it is printed in JSON: every key in this order.

use std::path::Path;

use anyhow::bail;
use serde::Serialize;
use tidelock::Device;

use super::settings::{Settings, Verification};
use crate::precision::Precision;
use crate::tokenizer::Tokenizer;

/// A step's outcome.
#[derive(Serialize)]
pub struct Report {
    /// Where the logits came from.
    pub file: String,
    /// Where the kernels ran.
    pub device: String,
    /// `greedy` or `random`.
    pub verification: &'static str,
    /// Type of the noise; nothing where none is drawn.
    pub noise: Option<Precision>,
    /// Seed of the first request.
    pub seed: i64,
    /// Temperature of the target.
    pub temperature: f32,
    /// Temperature of the drafts; nothing where their probabilities are not used.
    pub draft_temperature: Option<f32>,
    /// Acceptance rates that replaced the judgement.
    pub synthetic_rates: Option<Vec<f32>>,
    /// What came of each request.
    pub requests: Vec<Request>,
    /// Drafted tokens of all requests.
    pub drafted: usize,
    /// Accepted ones.
    pub accepted: usize,
    /// Accepted ones of each drafted one; nothing where none was drafted.
    pub acceptance_rate: Option<f64>,
    /// Tokens that a request got of this step, on average.
    pub mean_tokens: f64,
    /// How long it took.
    pub time: Timing,
}

/// What came of one request.
#[derive(Serialize)]
pub struct Request {
    /// Its index.
    pub request: usize,
    /// Drafted tokens.
    pub drafted: Vec<i32>,
    /// How many of them were accepted.
    pub accepted: usize,
    /// The token that replaced the first rejected one.
    pub recovered: Option<i32>,
    /// The token after the drafts, where all were accepted.
    pub bonus: Option<i32>,
    /// The tokens that came out.
    pub tokens: Vec<i32>,
    /// Text of each drafted token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drafted_text: Option<Vec<Option<String>>>,
    /// Text of each token that came out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Vec<Option<String>>>,
}

/// How long a step took: from the first launch until the device had finished, by the host's clock.
#[derive(Serialize)]
pub struct Timing {
    /// Median of all runs, in milliseconds.
    pub median_ms: f64,
    /// How many there were. Several follow one that is not counted; a single one loads the kernels, too.
    pub runs: u32,
}

impl Report {
    /// The outcome of a step that was run with `settings` on the logits of the file at `path`.
    pub fn new(path: &Path, device: &Device, settings: &Settings, requests: Vec<Request>, time: Timing) -> Report {
        let drafted = requests.iter().map(|request| request.drafted.len()).sum();
        let accepted = requests.iter().map(|request| request.accepted).sum();
        let tokens: usize = requests.iter().map(|request| request.tokens.len()).sum();
        let (verification, noise) = match settings.verification {
            Verification::Greedy => ("greedy", None),
            Verification::Random { noise } => ("random", Some(noise)),
        };
        Report {
            file: path.display().to_string(),
            device: device.to_string(),
            verification,
            noise,
            seed: settings.seed,
            temperature: settings.temperature,
            draft_temperature: settings.draft_temperature,
            synthetic_rates: settings.synthetic_rates.clone(),
            drafted,
            accepted,
            acceptance_rate: (drafted > 0).then(|| accepted as f64 / drafted as f64),
            mean_tokens: tokens as f64 / requests.len() as f64,
            requests,
            time,
        }
    }
}

impl Request {
    /// The requests of a batch: `drafted` are the tokens of each, and `output` has a row for each.
    pub fn all(drafted: &[Vec<i32>], output: &[i32], tokenizer: Option<&Tokenizer>) -> anyhow::Result<Vec<Request>> {
        let rows = output.chunks((output.len() / drafted.len().max(1)).max(1)).zip(drafted).enumerate();
        rows.map(|(request, (row, drafted))| Request::new(request, drafted, row, tokenizer)).collect()
    }

    /// A row holds the accepted drafts and one more token, so its length says how many were accepted.
    fn new(request: usize, drafted: &[i32], row: &[i32], tokenizer: Option<&Tokenizer>) -> anyhow::Result<Request> {
        let tokens: Vec<i32> = row.iter().copied().take_while(|&token| token >= 0).collect();
        let Some((&next, accepted)) = tokens.split_last() else {
            bail!("request {request}: expected 1 to {} tokens, got none", drafted.len() + 1);
        };
        let accepted = accepted.len();
        let bonus = accepted == drafted.len();
        let text = |ids: &[i32]| tokenizer.map(|tokenizer| ids.iter().map(|&id| tokenizer.text(id)).collect());
        Ok(Request {
            request,
            drafted: drafted.to_vec(),
            accepted,
            recovered: (!bonus).then_some(next),
            bonus: bonus.then_some(next),
            drafted_text: text(drafted),
            text: text(&tokens),
            tokens,
        })
    }
}
