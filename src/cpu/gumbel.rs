//! Drawing tokens straight from logits: the Gumbel-max race. Its twin is `kernels/gumbel.cu`.
//!
//! The race is run with logit + temperature * noise, which is logit / temperature + noise on another scale. Each sum is
//! kept exactly, as its rounded value and the rest that rounding took away, so neither 1e38 nor a tiny temperature can
//! swallow the noise; and it knows nothing of other tokens, so shards of a vocabulary run the same race as the whole.
//!
//! The 32 tokens of a group share the bound of their noise, so only groups whose largest logit may win with it are looked at further:
//! some tens of five thousand. So f64 noise costs hardly more than f32 noise.

use multiversion::multiversion;
use rayon::prelude::*;

use super::Logit;
use crate::CpuArm;
use crate::kernels::{GumbelSampleCpu, GumbelSampleL, GumbelSampleSampledNoise};
use crate::noise::{GROUP, Noise, gumbel_bound};
use crate::philox::Stream;

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
fn sample<L: Logit, N: Noise>(logits: &[L], temperature: f32, stream: Stream, vocab_start: i32) -> Drawn<N> {
    let invalid = (-1, f32::INFINITY, N::INFINITY);
    if temperature.is_nan() || temperature < 0.0 {
        return invalid;
    }
    let hot = temperature == f32::INFINITY; // only the noise counts
    let scale = if hot { 1.0 } else { f64::from(temperature) };
    let start = |logit: f32| if hot && logit.is_finite() { 0.0 } else { f64::from(logit) };
    let (mut best, mut best_rest) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    let mut drawn = (-1, f32::NEG_INFINITY, N::NEG_INFINITY);
    let mut column = 0;
    while column < logits.len() {
        // A vocabulary may start within a group.
        let token = (vocab_start as u32).wrapping_add(column as u32);
        let in_group = &logits[column..logits.len().min(column + (GROUP - token % GROUP) as usize)];
        let mut top = f32::NEG_INFINITY;
        for logit in in_group {
            let x = logit.to_f32();
            if x.is_nan() {
                return invalid;
            }
            top = if x > top { x } else { top };
        }
        let words = stream.group_words(token / GROUP);
        // Rounding keeps the order, so what this bound is below of, its noise is below of.
        if top > f32::NEG_INFINITY && start(top) + scale * gumbel_bound(words[0]) >= best {
            let arrivals = N::arrivals(words);
            for (lane, logit) in in_group.iter().enumerate() {
                let (token, logit) = (token.wrapping_add(lane as u32), logit.to_f32());
                let noise =
                    N::gumbel(N::time(&stream, &arrivals, token, stream.high_words(token / 4)[token as usize % 4]));
                let (rounded, rest) = exact_sum(start(logit), scale * noise.into());
                if rounded > best || (rounded == best && rest > best_rest) {
                    (best, best_rest) = (rounded, rest);
                    drawn = (token as i32, logit, noise);
                }
            }
        }
        column += in_group.len();
    }
    drawn
}

impl<L: GumbelSampleL + Logit, N: GumbelSampleSampledNoise + Noise> CpuArm for GumbelSampleCpu<'_, L, N> {
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
