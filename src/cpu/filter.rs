//! Top-k, top-p and min-p over a row of logits. Its twin is `kernels/filter.py`; `selection.rs` says what is kept.

use std::cell::Cell;

use multiversion::multiversion;
use rayon::prelude::*;

use super::order::{logit_at, token_at};
use super::selection::{Kept, Limits};
use super::{Logit, TILE, scratch};
use crate::CpuArm;
use crate::kernels::{FilterLogitsCpu, FilterLogitsL};

thread_local! {
    static PLACES: Cell<Vec<i64>> = const { Cell::new(Vec::new()) };
}

pub(super) fn filter<L: Logit>(output: &mut [f32], logits: &[L], limits: Limits) {
    scratch::with(&PLACES, |places| {
        let kept = limits.are_valid().then(|| Kept::of(logits, limits, places)).flatten();
        let temperature = limits.temperature.abs(); // -0 is 0
        match kept {
            Some(kept) if places.is_empty() => {
                let tiles = output.par_chunks_mut(TILE).zip(logits.par_chunks(TILE)).enumerate();
                tiles.for_each(|(number, (output, logits))| {
                    filter_tile(output, logits, (number * TILE) as u32, kept, temperature);
                });
            }
            _ => {
                output.par_chunks_mut(TILE).for_each(|output| output.fill(f32::NEG_INFINITY));
                for &mut place in places {
                    let x = logit_at(place);
                    if let Some(kept) = kept.filter(|kept| kept.is_likely(x)) {
                        output[token_at(place)] = written(x, kept.top, temperature);
                    }
                }
            }
        }
    });
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn filter_tile<L: Logit>(output: &mut [f32], logits: &[L], start: u32, kept: Kept, temperature: f32) {
    for (index, (output, logit)) in output.iter_mut().zip(logits).enumerate() {
        let x = logit.to_f32();
        *output = if kept.has(x, start + index as u32) { written(x, kept.top, temperature) } else { f32::NEG_INFINITY };
    }
}

/// What is written for a token that is kept: never -inf, which removes.
#[inline(always)]
fn written(x: f32, top: f32, temperature: f32) -> f32 {
    let y = scaled(x, top, temperature);
    if y >= f32::MIN { y } else { f32::MIN }
}

/// The logit at its temperature, measured from the largest, which is 0 at every temperature.
#[inline(always)]
fn scaled(x: f32, top: f32, temperature: f32) -> f32 {
    if x == top { 0.0 } else { (x - top) / temperature }
}

impl<L: FilterLogitsL + Logit> CpuArm for FilterLogitsCpu<'_, L> {
    fn run(self) {
        let Self { output, logits, temperature, top_k, top_p, min_p, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        output.into_par_rows().enumerate().for_each(|(row, output)| {
            let limits =
                Limits { temperature: temperature[row], top_k: top_k[row], top_p: top_p[row], min_p: min_p[row] };
            filter(output, &logits.row(row)[..vocab_size], limits);
        });
    }
}
