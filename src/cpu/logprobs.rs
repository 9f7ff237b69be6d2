//! Logarithms of probabilities, and where a token stands among them. Its twin is `kernels/logprobs.py`.
//!
//! The logarithm of a row's sum is one number, taken in f64 from the integer sum of `mass.rs`; so a token that is
//! almost certain still has a logprob below 0.

use multiversion::multiversion;
use rayon::prelude::*;

use super::Logit;
use super::mass::{FIXED_ONE, row_total};
use super::order::{logit_at, places, token_at};
use crate::CpuArm;
use crate::exact::{self, ln_f64};
use crate::kernels::{GatherLogprobsCpu, GatherLogprobsL, LogSoftmaxCpu, LogSoftmaxL, TopLogprobsCpu, TopLogprobsL};

/// What turns a row's logits into logprobs.
#[derive(Clone, Copy)]
struct Scale {
    top: f32,
    log_total: f32,
}

impl Scale {
    /// `None` for a row without a distribution.
    fn of<L: Logit>(logits: &[L]) -> Option<Scale> {
        log_total(logits).map(|(top, log_total)| Scale { top, log_total })
    }

    fn logprob(self, x: f32) -> f32 {
        shifted(x, self.top) - self.log_total
    }
}

/// The logit measured from the largest, which is 0 even where it is infinite.
#[inline(always)]
fn shifted(x: f32, top: f32) -> f32 {
    if x == top { 0.0 } else { x - top }
}

/// The largest logit of a row, and the logarithm of the sum of exp(x - largest) over it.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn log_total<L: Logit>(logits: &[L]) -> Option<(f32, f32)> {
    let (top, total) = row_total(logits, exact::Scale::of(1.0))?;
    Some((top, ln_f64(total as f64 * (1.0 / f64::from(FIXED_ONE))) as f32))
}

impl<L: LogSoftmaxL + Logit> CpuArm for LogSoftmaxCpu<'_, L> {
    fn run(self) {
        let Self { logprobs, logits, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        logprobs.into_par_rows().enumerate().for_each(|(row, logprobs)| {
            let logits = &logits.row(row)[..vocab_size];
            match Scale::of(logits) {
                Some(scale) => {
                    logprobs.iter_mut().zip(logits).for_each(|(output, x)| *output = scale.logprob(x.to_f32()));
                }
                None => logprobs.fill(f32::NEG_INFINITY),
            }
        });
    }
}

impl<L: GatherLogprobsL + Logit> CpuArm for GatherLogprobsCpu<'_, L> {
    fn run(self) {
        let Self { logprobs, ranks, logits, token_ids, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        let outputs = logprobs.par_iter_mut().zip(ranks).zip(token_ids);
        outputs.enumerate().for_each(|(row, ((logprob, rank), &token))| {
            (*logprob, *rank) = (f32::NEG_INFINITY, 0);
            let logits = &logits.row(row)[..vocab_size];
            let chosen = usize::try_from(token).ok().and_then(|token| logits.get(token));
            if let (Some(chosen), Some(scale)) = (chosen, Scale::of(logits)) {
                let chosen = chosen.to_f32();
                *logprob = scale.logprob(chosen);
                *rank = logits.iter().filter(|x| x.to_f32() >= chosen).count() as i32;
            }
        });
    }
}

/// The places of the first `count` tokens above -inf, in order.
fn most_likely<L: Logit>(logits: &[L], count: usize) -> Vec<i64> {
    let mut places = places(logits);
    if count < places.len() {
        places.select_nth_unstable(count);
        places.truncate(count);
    }
    places.sort_unstable();
    places
}

impl<L: TopLogprobsL + Logit> CpuArm for TopLogprobsCpu<'_, L> {
    fn run(self) {
        let Self { logprobs, token_ids, logits, num_logprobs, vocab_size } = self;
        let (num_logprobs, vocab_size) = (num_logprobs as usize, vocab_size as usize);
        let outputs = logprobs.into_par_rows().zip(token_ids.into_par_rows());
        outputs.enumerate().for_each(|(row, (logprobs, token_ids))| {
            logprobs.fill(f32::NEG_INFINITY);
            token_ids.fill(-1);
            let logits = &logits.row(row)[..vocab_size];
            let Some(scale) = Scale::of(logits) else { return };
            let outputs = logprobs.iter_mut().zip(token_ids);
            for (place, (logprob, token)) in most_likely(logits, num_logprobs).into_iter().zip(outputs) {
                (*logprob, *token) = (scale.logprob(logit_at(place)), token_at(place) as i32);
            }
        });
    }
}
