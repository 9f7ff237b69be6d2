//! Logarithms of probabilities, and where a token stands among them. Its twins are `kernels/logprobs.cuh` and what includes it.
//!
//! The logarithm of a row's sum is one number, taken in f64 from the integer sum of `mass.rs`; so a token that is
//! almost certain still has a logprob below 0.

use std::cell::Cell;

use multiversion::multiversion;
use rayon::prelude::*;

use super::mass::{FIXED_ONE, row_total};
use super::order::{logit_at, token_at};
use super::selection::first;
use super::{Logit, TILE, scratch};
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

    #[inline(always)]
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
fn log_total<L: Logit>(logits: &[L]) -> Option<(f32, f32)> {
    let (top, total) = row_total(logits, exact::Scale::of(1.0))?;
    Some((top, ln_f64(total as f64 * (1.0 / f64::from(FIXED_ONE))) as f32))
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn write_logprobs<L: Logit>(scale: Scale, logits: &[L], logprobs: &mut [f32]) {
    for (logprob, logit) in logprobs.iter_mut().zip(logits) {
        *logprob = scale.logprob(logit.to_f32());
    }
}

/// How many logits are at least `least`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn count_from<L: Logit>(least: f32, logits: &[L]) -> i32 {
    let mut count = 0;
    for logit in logits {
        count += i32::from(logit.to_f32() >= least);
    }
    count
}

impl<L: LogSoftmaxL + Logit> CpuArm for LogSoftmaxCpu<'_, L> {
    fn run(self) {
        let Self { logprobs, logits, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        logprobs.into_par_rows().enumerate().for_each(|(row, logprobs)| {
            let logits = &logits.row(row)[..vocab_size];
            match Scale::of(logits) {
                Some(scale) => {
                    let tiles = logprobs.par_chunks_mut(TILE).zip(logits.par_chunks(TILE));
                    tiles.for_each(|(logprobs, logits)| write_logprobs(scale, logits, logprobs));
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
                *rank = logits.par_chunks(TILE).map(|logits| count_from(chosen, logits)).sum();
            }
        });
    }
}

thread_local! {
    static PLACES: Cell<Vec<i64>> = const { Cell::new(Vec::new()) };
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
            scratch::with(&PLACES, |places| {
                first(logits, num_logprobs, places);
                places.sort_unstable();
                for (&place, (logprob, token)) in places.iter().zip(logprobs.iter_mut().zip(token_ids)) {
                    (*logprob, *token) = (scale.logprob(logit_at(place)), token_at(place) as i32);
                }
            });
        });
    }
}
