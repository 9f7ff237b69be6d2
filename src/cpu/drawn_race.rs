//! The exponential race over noise that is drawn on the way: the largest `weight / time` wins.
//!
//! It is the race of `exponential_race.rs` over the noise of `draw_inverse_exponential`, without a row of noise between.
//! No token of a group arrives before a time that one word tells, and but one before a second; so most tokens are known
//! to lose without a logarithm or a word of their own.

use multiversion::multiversion;
use rayon::prelude::*;

use super::TILE;
use super::exponential_race::{Best, Noise, better};
use super::noise::InverseExponential;
use super::weights::{SPAN, Target, Weights};
use crate::noise::{GROUP, time};
use crate::philox::{MANY, Stream};

/// What the noise of a race can be drawn as.
pub trait DrawnNoise: Noise + InverseExponential {}

impl<N: Noise + InverseExponential> DrawnNoise for N {}

/// The noise of one token.
pub(super) fn noise_of<N: DrawnNoise>(stream: &Stream, token: usize) -> N {
    N::inverse(time(stream, token as u32))
}

/// The token that wins among `length`, -1 where none can.
pub(super) fn race<T: Target, N: DrawnNoise>(weights: Weights<'_, T>, length: usize, stream: Stream) -> i32 {
    let tiles = (0..length.div_ceil(TILE)).into_par_iter().map(|number| {
        let start = number * TILE;
        tile_race::<T, N>(weights, start, length.min(start + TILE), stream)
    });
    tiles.reduce(|| (N::START, -1), better).1
}

/// The race of tokens `start..end`; `start` is a multiple of a span.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn tile_race<T: Target, N: DrawnNoise>(all: Weights<'_, T>, start: usize, end: usize, stream: Stream) -> Best<N> {
    const { assert!(SPAN == MANY / 4 * GROUP as usize) };
    let mut best = (N::START, -1);
    let (mut weights, mut words) = ([0.0; SPAN], [0; MANY]);
    for start in (start..end).step_by(SPAN) {
        let count = all.write(start, &mut weights);
        weights[count..].fill(0.0);
        let mut any = false;
        for weight in weights {
            any |= weight > 0.0;
        }
        if !any {
            continue;
        }
        stream.fill_group_words(start as u32 / GROUP, &mut words);
        let groups = weights.as_chunks::<{ GROUP as usize }>().0.iter().zip(words.as_chunks::<4>().0);
        for (number, (weights, &words)) in groups.enumerate() {
            let (earliest, threshold, mut any) = (earliest(words[0]), threshold(best.0), false);
            for &weight in weights {
                any |= can_win(weight, earliest, threshold);
            }
            if any {
                best = run_group(best, start + number * GROUP as usize, weights, words, &stream);
            }
        }
    }
    best
}

/// The best after those of a group have run that can win; they begin with `start`.
#[inline(always)]
fn run_group<N: DrawnNoise>(best: Best<N>, start: usize, weights: &[f32], words: [u32; 4], stream: &Stream) -> Best<N> {
    let (mut best, arrivals) = (best, N::arrivals(words));
    let (first, second): (f64, f64) = (arrivals.first.into(), arrivals.second.into());
    for (lane, &weight) in (0..).zip(weights) {
        let earliest = if lane == arrivals.first_lane { first } else { second };
        if can_win(weight, earliest as f32, threshold(best.0)) {
            let token = start as u32 + lane;
            let high = stream.high_words(token / 4)[token as usize % 4];
            let score = N::score(weight, N::inverse(N::time(stream, &arrivals, token, high)));
            if score > best.0 {
                best = (score, token as i32);
            }
        }
    }
    best
}

/// No token of a group arrives before this, the first of whose words this is: E is at least 1 - u, which the word tells.
#[inline(always)]
fn earliest(word: u32) -> f32 {
    const PART: f32 = 1.0 / ((1_u32 << 31) as f32 * GROUP as f32);
    (!word >> 1) as i32 as f32 * PART
}

/// A little less than the best score so far.
#[inline(always)]
fn threshold<N: DrawnNoise>(best: N) -> f32 {
    const A_BIT_LESS: f32 = 1.0 - 1.0 / (1 << 16) as f32;
    let best: f64 = best.into();
    (best as f32).min(f32::MAX) * A_BIT_LESS
}

/// Whether a weight can have a score above `threshold`. It cannot where it is at most `threshold * earliest`; rounding is
/// far below what `threshold` was made less by, and below `TINY` where floats are subnormal.
#[inline(always)]
#[expect(clippy::neg_cmp_op_on_partial_ord, reason = "infinity times 0 rules nothing out")]
fn can_win(weight: f32, earliest: f32, threshold: f32) -> bool {
    const TINY: f32 = f32::MIN_POSITIVE / (1 << 14) as f32;
    (weight > 0.0) & !(weight <= threshold.mul_add(earliest, -TINY))
}

#[cfg(test)]
mod tests {
    use super::super::exponential_race;
    use super::super::noise::draw_row;
    use super::super::weights::Taken;
    use super::*;

    fn same<N: DrawnNoise>(p: &[f32], q: &[f32]) {
        for seed in [0, 7, -3] {
            let stream = Stream::new(seed, 5, 3);
            let mut inv_q = vec![N::NONE; p.len()];
            draw_row(&mut inv_q, stream);
            for taken in [Taken::Nothing, Taken::Probs(q), Taken::Token(3), Taken::Token(-1)] {
                let weights = Weights { target: p, taken };
                let (fused, given) = (race::<_, N>(weights, p.len(), stream), exponential_race::race(weights, &inv_q));
                assert_eq!(fused, given, "{} tokens, {seed}", p.len());
                if let Ok(token) = usize::try_from(fused) {
                    assert!(noise_of::<N>(&stream, token) == inv_q[token]);
                }
            }
        }
    }

    #[test]
    fn the_token_that_wins_over_given_noise_wins() {
        let scattered = |number: usize| (number as u32).wrapping_mul(0x9e37_79b9) as f32 / 4294967296.0;
        for length in [0, 1, 4, 63, 64, 65, 1000, TILE + 70, 2 * TILE] {
            for size in [1.0, 1e-38, 1e-42, 1e37] {
                let p: Vec<f32> = (0..length).map(|token| scattered(token) * size).collect();
                let q: Vec<f32> = (5..length + 5).map(|token| scattered(token) * size).collect();
                same::<f64>(&p, &q);
                same::<f32>(&p, &q);
            }
        }
    }

    #[test]
    fn hostile_weights_run_as_over_given_noise() {
        let values = [0.0, -0.0, 1.0, 1e-45, f32::NAN, f32::INFINITY, -1.0, 2e-45, 1e-40, f32::MAX];
        for shift in 0..200 {
            let kinds = 1 + shift % 10;
            let pick = |step: usize| (0..200).map(move |i| values[(i * step + shift * (i / 11) + shift) % kinds]);
            let (p, q): (Vec<_>, Vec<_>) = (pick(3).collect(), pick(7).collect());
            same::<f64>(&p, &q);
            same::<f32>(&p, &q);
        }
    }
}
