//! Drawing tokens straight from logits: the Gumbel-max race. Its twin is `kernels/gumbel.py`.
//!
//! The race is run with logit + temperature * noise, which is logit / temperature + noise on another scale. Each sum is
//! kept exactly, as its rounded value and the rest that rounding took away, so neither 1e38 nor a tiny temperature can
//! swallow the noise; and it knows nothing of other tokens, so shards of a vocabulary run the same race as the whole.
//!
//! What the kernel does for every token, is done here only for those that the high word of their noise lets win: a few
//! of a hundred thousand. So f64 noise costs hardly more than f32 noise.

use multiversion::multiversion;
use rayon::prelude::*;

use super::Logit;
use crate::CpuArm;
use crate::kernels::{GumbelSampleCpu, GumbelSampleL, GumbelSampleSampledNoise};
use crate::noise::{gumbel_bound, gumbel_f32, gumbel_f64};
use crate::philox::Stream;

/// What Gumbel noise can be drawn as.
pub trait Gumbel: Copy + Into<f64> + Send + Sync {
    /// Noise that is above all other.
    const INFINITY: Self;
    /// Noise that is below all other.
    const NEG_INFINITY: Self;
    /// The noise of token `4 * block + lane`, whose high word is `high`.
    fn draw(stream: &Stream, block: u32, lane: usize, high: u32) -> Self;
}

impl Gumbel for f32 {
    const INFINITY: f32 = f32::INFINITY;
    const NEG_INFINITY: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn draw(_: &Stream, _: u32, _: usize, high: u32) -> f32 {
        gumbel_f32(high)
    }
}

impl Gumbel for f64 {
    const INFINITY: f64 = f64::INFINITY;
    const NEG_INFINITY: f64 = f64::NEG_INFINITY;

    #[inline(always)]
    fn draw(stream: &Stream, block: u32, lane: usize, high: u32) -> f64 {
        gumbel_f64(high, stream.low_words(block)[lane])
    }
}

/// What one row draws: its token, -1 where it has none, with its logit and its noise.
type Drawn<N> = (i32, f32, N);

/// x + scaled, rounded, and the rest: what rounding took away. Logits of +inf compare by their noise. The rest of -inf is
/// NaN, which wins nothing.
#[inline(always)]
fn exact_sum(x: f64, scaled: f64) -> (f64, f64) {
    let rounded = x + scaled;
    let part = rounded - x;
    let rest = (x - (rounded - part)) + (scaled - part);
    (rounded, if x == f64::INFINITY { scaled } else { rest })
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn sample<L: Logit, N: Gumbel>(logits: &[L], temperature: f32, stream: Stream, vocab_start: i32) -> Drawn<N> {
    let invalid = (-1, f32::INFINITY, N::INFINITY);
    if temperature.is_nan() || temperature < 0.0 {
        return invalid;
    }
    let hot = temperature == f32::INFINITY; // only the noise counts
    let scale = if hot { 1.0 } else { f64::from(temperature) };
    let (mut best, mut best_rest) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    let mut drawn = (-1, f32::NEG_INFINITY, N::NEG_INFINITY);
    let (mut block, mut lane) = ((vocab_start >> 2) as u32, (vocab_start & 3) as usize);
    let mut words = stream.high_words(block);
    for (column, logit) in logits.iter().enumerate() {
        if lane == 4 {
            (block, lane) = (block.wrapping_add(1), 0);
            words = stream.high_words(block);
        }
        let (logit, word) = (logit.to_f32(), words[lane]);
        let x = if hot && logit.is_finite() { 0.0 } else { f64::from(logit) };
        if x.is_nan() {
            return invalid;
        }
        // Rounding keeps the order, so what this bound is below of, its noise is below of.
        if x + scale * gumbel_bound(word) >= best {
            let noise = N::draw(&stream, block, lane, word);
            let (rounded, rest) = exact_sum(x, scale * noise.into());
            if rounded > best || (rounded == best && rest > best_rest) {
                (best, best_rest) = (rounded, rest);
                drawn = (vocab_start.wrapping_add(column as i32), logit, noise);
            }
        }
        lane += 1;
    }
    drawn
}

impl<L: GumbelSampleL + Logit, N: GumbelSampleSampledNoise + Gumbel> CpuArm for GumbelSampleCpu<'_, L, N> {
    fn run(self) {
        let Self {
            output_token_ids,
            sampled_logits,
            sampled_noise,
            logits,
            temperature,
            seeds,
            positions,
            purpose,
            vocab_start,
            vocab_size,
        } = self;
        let vocab_size = vocab_size as usize;
        let outputs = output_token_ids.par_iter_mut().zip(sampled_logits).zip(sampled_noise);
        outputs.enumerate().for_each(|(row, ((token, logit), noise))| {
            let stream = Stream::new(seeds[row], positions[row], purpose);
            (*token, *logit, *noise) = sample(&logits.row(row)[..vocab_size], temperature[row], stream, vocab_start);
        });
    }
}
