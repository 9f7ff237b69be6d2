//! Draws the draft model's tokens, as vLLM V1's `compute_probs_and_sample_next_token` does, and keeps their distributions.

use super::logits::Logits;
use super::noise::InverseExponential;
use crate::device::Device;
use crate::error::Result;
use crate::purpose::Purpose;
use crate::view::{View, ViewMut};

/// Draws a token of each row and leaves the distribution that it was drawn from in `probs`, for verification.
///
/// `output_token_ids` is i32 `[num_rows]`, `probs` f32 `[num_rows, vocab_size]`, `temperature` f32 `[num_rows]`, `seeds` and
/// `positions` i64 `[num_rows]`: each request's own, so a seeded request's drafts do not depend on its batch. `noise` has memory for
/// `num_rows * vocab_size` values, in the precision that the configuration asks for. On a GPU it
/// allocates nothing and does not synchronise.
///
/// # Errors
/// Where views do not fit each other or the device, or the noise is too short.
pub fn compute_probs_and_sample_next_token(
    output_token_ids: ViewMut<'_, i32>,
    mut probs: ViewMut<'_, f32>,
    logits: Logits<'_>,
    temperature: View<'_, f32>,
    seeds: View<'_, i64>,
    positions: View<'_, i64>,
    noise: &mut InverseExponential,
    device: &Device,
) -> Result<()> {
    logits.softmax(probs.reborrow(), temperature, device)?;
    noise.draw(seeds, positions, Purpose::Draft, logits.vocab_size(), device)?;
    noise.random_sample(output_token_ids, probs.as_view(), device)
}
