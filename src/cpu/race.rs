//! Choosing one token of a row: the exponential race and the argmax. Its twin is `kernels/race.py`.
//!
//! A race over given noise is won by the largest `weight * inv_q`. Only a strictly larger score displaces the best so
//! far, which starts at 0, so ties go to the lowest token and neither NaN nor a token without weight can win.

use rayon::prelude::*;

use super::Logit;
use crate::CpuArm;
use crate::kernels::{ArgmaxCpu, ArgmaxI, ArgmaxL, RandomSampleCpu, RandomSampleInvQ};

/// Noise of an exponential race.
pub trait Noise: Copy + PartialOrd + Send + Sync {
    /// The score that a token must beat.
    const START: Self;
    /// What a token of this weight runs with; f64 noise keeps all its bits.
    fn score(weight: f32, inv_q: Self) -> Self;
}

impl Noise for f32 {
    const START: f32 = 0.0;

    #[inline(always)]
    fn score(weight: f32, inv_q: f32) -> f32 {
        weight * inv_q
    }
}

impl Noise for f64 {
    const START: f64 = 0.0;

    #[inline(always)]
    fn score(weight: f32, inv_q: f64) -> f64 {
        f64::from(weight) * inv_q
    }
}

/// The token that wins among these weights, -1 where none can.
#[inline(always)]
pub(super) fn race<Q: Noise>(weights: impl Iterator<Item = f32>, inv_q: &[Q]) -> i32 {
    let (mut best, mut winner) = (Q::START, -1);
    for (token, (weight, &noise)) in weights.zip(inv_q).enumerate() {
        let score = Q::score(weight, noise);
        if score > best {
            (best, winner) = (score, token as i32);
        }
    }
    winner
}

/// The winner over one row of probabilities, of which only those above 0 run.
pub(super) fn race_probs<Q: Noise>(probs: &[f32], inv_q: &[Q]) -> i32 {
    race(probs.iter().map(|&p| if p > 0.0 { p } else { 0.0 }), inv_q)
}

/// The lowest token of the largest logit; -1 where there is a NaN, or nothing above -inf.
fn argmax<L: Logit>(logits: &[L]) -> i32 {
    let (mut best, mut winner) = (f32::NEG_INFINITY, -1);
    for (token, logit) in logits.iter().enumerate() {
        let x = logit.to_f32();
        if x > best {
            (best, winner) = (x, token as i32);
        } else if x.is_nan() {
            return -1;
        }
    }
    winner
}

impl<Q: RandomSampleInvQ + Noise> CpuArm for RandomSampleCpu<'_, Q> {
    fn run(self) {
        let Self { output_token_ids, probs, inv_q, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        output_token_ids.par_iter_mut().enumerate().for_each(|(row, output)| {
            *output = race_probs(&probs.row(row)[..vocab_size], inv_q.row(row));
        });
    }
}

impl<L: ArgmaxL + Logit, I: ArgmaxI + From<i32>> CpuArm for ArgmaxCpu<'_, L, I> {
    fn run(self) {
        let Self { output_token_ids, logits, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        output_token_ids.par_iter_mut().enumerate().for_each(|(row, output)| {
            *output = argmax(&logits.row(row)[..vocab_size]).into();
        });
    }
}
