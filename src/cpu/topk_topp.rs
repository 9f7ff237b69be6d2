//! Drawing a token from what top-k, top-p and min-p keep of a row, without writing the row that they leave. Its twin is
//! `kernels/topk_topp.cu`.
//!
//! It is the race of `gumbel_race.rs` among the tokens that `selection.rs` keeps, run with their own logits. Where these
//! are few, no other token's noise is drawn.

use std::cell::Cell;

use rayon::prelude::*;

use super::gumbel_race::{Drawn, Race, invalid};
use super::order::{logit_at, token_at};
use super::selection::{Kept, Limits};
use super::{Logit, scratch};
use crate::CpuArm;
use crate::kernels::{TopKTopPSampleCpu, TopKTopPSampleL, TopKTopPSampleSampledNoise};
use crate::noise::Noise;
use crate::philox::Stream;

/// Tokens that run one by one; more are looked for in the row, where noise is drawn side by side.
const FEW: usize = 1024;

thread_local! {
    static PLACES: Cell<Vec<i64>> = const { Cell::new(Vec::new()) };
}

/// What a row draws within `limits`: the token, its logit and its noise.
fn top_k_top_p_sample<L: Logit, N: Noise>(logits: &[L], limits: Limits, stream: Stream) -> Drawn<N> {
    let race = Race::<N>::new(limits.temperature, stream, 0).filter(|_| limits.are_valid());
    let Some(mut race) = race else { return invalid() };
    scratch::with(&PLACES, |places| {
        let Some(kept) = Kept::of(logits, limits, places) else {
            let nan = logits.iter().any(|logit| logit.to_f32().is_nan());
            return if nan { invalid() } else { race.drawn() };
        };
        if places.is_empty() || places.len() > FEW {
            return race.run_all(logits, Some(kept)).drawn();
        }
        places.sort_unstable_by_key(|&place| token_at(place)); // ties go to the lowest
        for &place in &*places {
            // The place of -0 is that of 0, so the logit is read where it is.
            let x = logits[token_at(place)].to_f32();
            if kept.is_likely(logit_at(place)) {
                race.run_one(token_at(place), x);
            }
        }
        race.drawn()
    })
}

impl<L: TopKTopPSampleL + Logit, N: TopKTopPSampleSampledNoise + Noise> CpuArm for TopKTopPSampleCpu<'_, L, N> {
    fn run(self) {
        let Self {
            output_token_ids,
            sampled_logits,
            sampled_noise,
            logits,
            temperature,
            top_k,
            top_p,
            min_p,
            seeds,
            positions,
            purpose,
            vocab_size,
        } = self;
        let vocab_size = vocab_size as usize;
        let outputs = output_token_ids.par_iter_mut().zip(sampled_logits).zip(sampled_noise);
        outputs.enumerate().for_each(|(row, ((token, logit), noise))| {
            let limits =
                Limits { temperature: temperature[row], top_k: top_k[row], top_p: top_p[row], min_p: min_p[row] };
            let stream = Stream::new(seeds[row], positions[row], purpose);
            (*token, *logit, *noise) = top_k_top_p_sample(&logits.row(row)[..vocab_size], limits, stream);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::filter;
    use super::super::gumbel_race::sample;
    use super::*;

    /// The filter, then the race among what it leaves, with their own logits.
    fn composed<N: Noise>(logits: &[f32], limits: Limits, stream: Stream) -> Drawn<N> {
        if !limits.are_valid() || logits.iter().any(|x| x.is_nan()) {
            return invalid();
        }
        let mut left = vec![0.0; logits.len()];
        filter(&mut left, logits, limits);
        for (left, &x) in left.iter_mut().zip(logits) {
            *left = if *left > f32::NEG_INFINITY { x } else { f32::NEG_INFINITY };
        }
        sample(&left, limits.temperature, stream, 0)
    }

    fn same<N: Noise>(logits: &[f32]) {
        for (number, temperature) in [0.0, 1e-45, 0.7, 30.0, f32::INFINITY, -1.0, f32::NAN].into_iter().enumerate() {
            for top_k in [0, 1, 50, 2000, i32::MAX] {
                for (top_p, min_p) in [(1.0, 0.0), (0.9, 0.0), (0.5, 0.2), (f32::NAN, 0.0), (1.0, f32::NAN), (0.0, 2.0)]
                {
                    let limits = Limits { temperature, top_k, top_p, min_p };
                    let stream = Stream::new(number as i64 - 3, i64::from(top_k) << 7, 0);
                    let bits = |drawn: Drawn<N>| (drawn.0, drawn.1.to_bits(), drawn.2.into().to_bits());
                    let (fused, composed) =
                        (top_k_top_p_sample::<f32, N>(logits, limits, stream), composed::<N>(logits, limits, stream));
                    assert_eq!(bits(fused), bits(composed), "{} logits, {limits:?}", logits.len());
                }
            }
        }
    }

    #[test]
    fn it_draws_what_the_filter_and_the_race_draw() {
        let scattered = |number: usize| (number as u32).wrapping_mul(0x9e37_79b9) as f32 / 4294967296.0;
        for length in [0, 1, 70, 3000, 40_000] {
            let row: Vec<f32> = (0..length).map(|token| scattered(token) * scattered(token * 3) * 12.0).collect();
            same::<f64>(&row);
            same::<f32>(&row);
            same::<f64>(&row.iter().map(|x| x.round()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn hostile_rows_draw_what_the_filter_and_the_race_draw() {
        let special = [f32::INFINITY, f32::MAX, 1.0, 0.0, -0.0, 1e-45, f32::MIN, f32::NEG_INFINITY, f32::NAN];
        for first in 0..special.len() {
            for step in [1, 2, 4, 5] {
                same::<f64>(&(0..300).map(|i| special[first.max(i * step % 8)]).collect::<Vec<_>>());
            }
        }
    }
}
