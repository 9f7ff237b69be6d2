//! Draws the draft model's tokens, as vLLM V1's `compute_probs_and_sample_next_token` does, and keeps their distributions.

use super::logits::Logits;
use super::noise::InverseExponential;
use super::scratch::Scratch;
use crate::device::Device;
use crate::error::Result;
use crate::purpose::Purpose;
use crate::view::{View, ViewMut};

/// Draws a token of each row and leaves the distribution that it was drawn from in `probs`, for verification.
///
/// `output_token_ids` is i32 `[num_rows]`, `probs` f32 `[num_rows, vocab_size]`, `temperature` f32 `[num_rows]`, `seeds` and
/// `positions` i64 `[num_rows]`: each request's own, so a seeded request's drafts do not depend on its batch. `noise` has memory for
/// `num_rows * vocab_size` values, in the precision that the configuration asks for; `scratch` was made for `softmax`. On a GPU it
/// allocates nothing and does not synchronise.
///
/// # Errors
/// Where views do not fit each other or the device, or noise or scratch are too short.
///
/// ```
/// use tidelock::sampling::{InverseExponential, Scratch, compute_probs_and_sample_next_token};
/// use tidelock::{AsView, AsViewMut, Device};
///
/// let mut noise = InverseExponential::new(&Device::Cpu, true, 2)?;
/// let mut scratch = Scratch::new("softmax", 1, 2, &Device::Cpu)?;
/// let (logits, mut tokens, mut probs) = ([0.0f32, 0.0], [-1i32], [0f32; 2]);
/// let (temperature, seeds, positions) = ([1.0f32], [7i64], [0i64]);
/// compute_probs_and_sample_next_token(
///     tokens.view_mut(),
///     probs.view_mut().matrix(1, 2)?,
///     logits.view().matrix(1, 2)?.into(),
///     temperature.view(),
///     seeds.view(),
///     positions.view(),
///     &mut noise,
///     &mut scratch,
///     &Device::Cpu,
/// )?;
/// assert_eq!(probs, [0.5, 0.5]);
/// assert!(tokens[0] == 0 || tokens[0] == 1);
/// # Ok::<(), tidelock::Error>(())
/// ```
pub fn compute_probs_and_sample_next_token(
    output_token_ids: ViewMut<'_, i32>,
    mut probs: ViewMut<'_, f32>,
    logits: Logits<'_>,
    temperature: View<'_, f32>,
    seeds: View<'_, i64>,
    positions: View<'_, i64>,
    noise: &mut InverseExponential,
    scratch: &mut Scratch,
    device: &Device,
) -> Result<()> {
    logits.softmax(probs.reborrow(), temperature, scratch, device)?;
    noise.draw(seeds, positions, Purpose::Draft, logits.vocab_size(), device)?;
    noise.random_sample(output_token_ids, probs.as_view(), device)
}
