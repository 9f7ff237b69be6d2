//! The inputs of a workload: logits from N(0, 3), a pure function of row and column, so that each process makes the same.
//!
//! A peer is given them as files of raw values; nothing has to be made twice in two languages.

use std::fs;
use std::path::Path;

use anyhow::Context;
use rayon::prelude::*;
use tidelock::kernels::{GumbelSample, Softmax};
use tidelock::philox::Stream;
use tidelock::sampling::{Scratch, scratch_words};
use tidelock::{AsView, AsViewMut, Device, Purpose, Result};

use super::definition::{Case, Layer};

/// The standard deviation of logits.
const DEVIATION: f64 = 3.0;
/// What the words of each kind of logits are drawn for; beyond every purpose of sampling.
const TARGET: i32 = 14;
const DRAFT: i32 = 15;

/// What a case is run on, in host memory.
pub struct Inputs {
    /// `[rows, vocab_size]`
    pub logits: Vec<f32>,
    /// What drafts were drawn from, `[rows, vocab_size]`; empty where nothing is verified.
    pub draft_probs: Vec<f32>,
    /// Probabilities of the target, `[rows, vocab_size]`; empty where they are not given.
    pub target_probs: Vec<f32>,
    /// `[rows]`, drawn from the draft's distributions; empty where nothing is verified.
    pub draft_token_ids: Vec<i32>,
    /// `[batch]`, likewise.
    pub bonus_token_ids: Vec<i32>,
    /// Where each request's drafts end, `[batch]`.
    pub cu_num_draft_tokens: Vec<i32>,
}

impl Inputs {
    /// Makes those that `case` needs.
    pub fn new(case: &Case<'_>) -> Result<Inputs> {
        let (rows, vocab) = (case.rows(), case.vocab_size);
        let verifies = matches!(case.workload.layer, Layer::Verify | Layer::VerifyProbs);
        let logits = normal(rows, vocab, TARGET);
        let (mut draft_probs, mut draft_token_ids) = (Vec::new(), Vec::new());
        if verifies {
            let draft = normal(rows, vocab, DRAFT);
            draft_probs = softmax(&draft, rows, vocab)?;
            draft_token_ids = draw(&draft, rows, vocab)?;
        }
        let given = case.workload.layer == Layer::VerifyProbs;
        Ok(Inputs {
            target_probs: if given { softmax(&logits, rows, vocab)? } else { Vec::new() },
            bonus_token_ids: draft_token_ids.iter().step_by(case.drafts).copied().collect(),
            cu_num_draft_tokens: (1..=case.batch).map(|request| (request * case.drafts) as i32).collect(),
            logits,
            draft_probs,
            draft_token_ids,
        })
    }

    /// Writes them to `folder`, unless they are there: each is named by what it is and its number of rows.
    pub fn write(&self, case: &Case<'_>, folder: &Path) -> anyhow::Result<()> {
        let write = |name: &str, bytes: &dyn Fn() -> Vec<u8>| {
            let path = folder.join(file(name, case));
            if path.exists() {
                return Ok(());
            }
            fs::write(&path, bytes()).with_context(|| path.display().to_string())
        };
        write("logits", &|| bytes(&self.logits, |value| value.to_le_bytes()))?;
        if !self.draft_probs.is_empty() {
            write("draft_probs", &|| bytes(&self.draft_probs, |value| value.to_le_bytes()))?;
            write("draft_token_ids", &|| bytes(&self.draft_token_ids, |value| value.to_le_bytes()))?;
        }
        if !self.target_probs.is_empty() {
            write("target_probs", &|| bytes(&self.target_probs, |value| value.to_le_bytes()))?;
        }
        Ok(())
    }
}

/// The file of one input: raw values, little end first, f32 or i32.
pub fn file(name: &str, case: &Case<'_>) -> String {
    format!("{name}-{}x{}.bin", case.rows(), case.vocab_size)
}

/// The bytes of `values`, each as `to_bytes` gives it.
pub fn bytes<T: Copy, const N: usize>(values: &[T], to_bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * N);
    values.iter().for_each(|&value| bytes.extend_from_slice(&to_bytes(value)));
    bytes
}

/// Rows from N(0, [`DEVIATION`]), by Box and Muller from the words of Philox.
fn normal(rows: usize, vocab: usize, purpose: i32) -> Vec<f32> {
    let mut values = vec![0f32; rows * vocab];
    values.par_chunks_mut(vocab).enumerate().for_each(|(row, values)| {
        let stream = Stream::new(row as i64, 0, purpose);
        for (block, values) in values.chunks_mut(4).enumerate() {
            let uniforms = stream.high_words(block as u32).map(|word| (f64::from(word) + 0.5) / f64::from(u32::MAX));
            let pair = |u: f64, v: f64| {
                let (radius, angle) = (DEVIATION * (-2.0 * u.min(1.0).ln()).sqrt(), std::f64::consts::TAU * v);
                [(radius * angle.cos()) as f32, (radius * angle.sin()) as f32]
            };
            let drawn = [pair(uniforms[0], uniforms[1]), pair(uniforms[2], uniforms[3])];
            values.copy_from_slice(&drawn.as_flattened()[..values.len()]);
        }
    });
    values
}

fn softmax(logits: &[f32], rows: usize, vocab: usize) -> Result<Vec<f32>> {
    let mut probs = vec![0f32; rows * vocab];
    let (logits, temperature) = (logits.view().matrix(rows, vocab)?, vec![1.0; rows]);
    let mut scratch = Scratch::new("softmax", rows, vocab, &Device::Cpu)?;
    Softmax {
        probs: probs.view_mut().matrix(rows, vocab)?,
        scratch: scratch.rows(rows)?,
        logits,
        temperature: temperature.view(),
    }
    .launch(&Device::Cpu)?;
    Ok(probs)
}

/// Draws a token of each row.
fn draw(logits: &[f32], rows: usize, vocab: usize) -> Result<Vec<i32>> {
    let (mut tokens, mut sampled, mut noise) = (vec![0; rows], vec![0f32; rows], vec![0f64; rows]);
    let (temperature, seeds, positions) = (vec![1.0; rows], seeds(rows), positions(rows));
    let words = scratch_words("gumbel_sample", vocab);
    let mut scratch = vec![0; rows * words];
    GumbelSample {
        output_token_ids: tokens.view_mut(),
        sampled_logits: sampled.view_mut(),
        sampled_noise: noise.view_mut(),
        scratch: scratch.view_mut().matrix(rows, words)?,
        logits: logits.view().matrix(rows, vocab)?,
        temperature: temperature.view(),
        seeds: seeds.view(),
        positions: positions.view(),
        purpose: Purpose::Draft.into(),
    }
    .launch(&Device::Cpu)?;
    Ok(tokens)
}

/// The seed of each request.
pub fn seeds(count: usize) -> Vec<i64> {
    (0..count as i64).map(|index| 1_000 + index).collect()
}

/// The position of each row.
pub fn positions(count: usize) -> Vec<i64> {
    (0..count as i64).map(|index| 17 + index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_have_their_mean_and_deviation_and_do_not_depend_on_the_number_of_rows() {
        let values = normal(4, 50_001, TARGET);
        assert_eq!(normal(1, 50_001, TARGET), values[..50_001]);
        assert_ne!(normal(1, 50_001, DRAFT), values[..50_001]);
        let count = values.len() as f64;
        let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
        let variance = values.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>() / count;
        // Standard errors: 3 / sqrt(200,004) = 0.0067 of the mean, 3 / sqrt(400,008) = 0.0047 of the deviation.
        assert!(mean.abs() < 0.04 && (variance.sqrt() - 3.0).abs() < 0.03, "{mean} {variance}");
        assert!(values.iter().all(|value| value.is_finite()));
    }
}
