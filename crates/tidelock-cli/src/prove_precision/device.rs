//! The same races through the kernel `gumbel_sample`, on any device: slow on a CPU, and the point of having a GPU.

use tidelock::kernels::{GumbelSample, GumbelSampleSampledNoise};
use tidelock::sampling::scratch_words;
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose, Result};

use crate::progress::Progress;

/// Logits of one launch, 256 MiB of them.
const LOGITS: usize = 1 << 26;

/// How many of `trials` races of one head against `tail` tokens the tail wins.
pub fn hits<N: GumbelSampleSampledNoise>(
    device: &Device,
    seed: i64,
    trials: u32,
    tail: u32,
    gap: f64,
    progress: &Progress,
) -> Result<u64> {
    let vocab = tail as usize + 1;
    let rows = (LOGITS / vocab).clamp(1, trials as usize);
    let mut row = vec![-gap as f32; vocab];
    row[0] = 0.0;
    let logits = Buffer::from_slice(device, &row.repeat(rows))?;
    let (temperature, seeds) =
        (Buffer::from_slice(device, &vec![1.0; rows])?, Buffer::from_slice(device, &vec![seed; rows])?);
    let (mut tokens, mut sampled) = (Buffer::<i32>::zeros(device, rows)?, Buffer::<f32>::zeros(device, rows)?);
    let words = scratch_words("gumbel_sample", vocab);
    let (mut noise, mut scratch) = (Buffer::<N>::zeros(device, rows)?, Buffer::zeros(device, rows * words)?);
    let mut hits = 0;
    for first in (0..trials).step_by(rows) {
        let positions: Vec<i64> = (i64::from(first)..).take(rows).collect();
        let positions = Buffer::from_slice(device, &positions)?;
        GumbelSample {
            output_token_ids: tokens.view_mut(),
            sampled_logits: sampled.view_mut(),
            sampled_noise: noise.view_mut(),
            scratch: scratch.view_mut().matrix(rows, words)?,
            logits: logits.view().matrix(rows, vocab)?,
            temperature: temperature.view(),
            seeds: seeds.view(),
            positions: positions.view(),
            purpose: Purpose::Sample.into(),
        }
        .launch(device)?;
        let rows = rows.min((trials - first) as usize);
        hits += tokens.to_vec()?[..rows].iter().filter(|&&token| token > 0).count() as u64;
        progress.say_done(&format!("races on {device}, gap {gap}"), u64::from(first) + rows as u64, trials.into());
    }
    Ok(hits)
}
