//! The exponential race over given noise: the largest `weight * inv_q` wins.
//!
//! Only a strictly larger score displaces the best so far, which starts at 0, so ties go to the lowest token and neither
//! NaN nor a token without weight can win. Scores are calculated side by side; only a span that has a larger one than the
//! best so far is looked at token by token.

use multiversion::multiversion;
use rayon::prelude::*;

use super::TILE;
use super::weights::{SPAN, Target, Weights};

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

/// The best score so far, and whose it is: -1 at the start.
pub(super) type Best<Q> = (Q, i32);

/// The token that wins, -1 where none can.
pub(super) fn race<T: Target, Q: Noise>(weights: Weights<'_, T>, inv_q: &[Q]) -> i32 {
    let tiles = inv_q.par_chunks(TILE).enumerate().map(|(number, tile)| tile_race(weights, tile, number * TILE));
    tiles.reduce(|| (Q::START, -1), better).1
}

/// The better of two, of which the second is of later tokens.
pub(super) fn better<Q: Noise>(first: Best<Q>, later: Best<Q>) -> Best<Q> {
    if later.0 > first.0 { later } else { first }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn tile_race<T: Target, Q: Noise>(all: Weights<'_, T>, inv_q: &[Q], start: usize) -> Best<Q> {
    let (mut best, mut winner) = (Q::START, -1);
    let mut weights = [0.0; SPAN];
    for (number, noise) in inv_q.chunks(SPAN).enumerate() {
        let start = start + number * SPAN;
        let count = all.write(start, &mut weights);
        let (weights, mut any) = (&weights[..count.min(noise.len())], false);
        for (&weight, &noise) in weights.iter().zip(noise) {
            any |= Q::score(weight, noise) > best;
        }
        if any {
            for (token, (&weight, &noise)) in (start..).zip(weights.iter().zip(noise)) {
                let score = Q::score(weight, noise);
                if score > best {
                    (best, winner) = (score, token as i32);
                }
            }
        }
    }
    (best, winner)
}

#[cfg(test)]
mod tests {
    use super::super::weights::Taken;
    use super::*;

    /// Every token runs, one after the other.
    fn all<Q: Noise>(weights: impl Iterator<Item = f32>, inv_q: &[Q]) -> i32 {
        let (mut best, mut winner) = (Q::START, -1);
        for (token, (weight, &noise)) in weights.zip(inv_q).enumerate() {
            if Q::score(weight, noise) > best {
                (best, winner) = (Q::score(weight, noise), token as i32);
            }
        }
        winner
    }

    fn same<Q: Noise>(p: &[f32], q: &[f32], noise: &[Q]) {
        let above = |p: f32| if p > 0.0 { p } else { 0.0 };
        assert_eq!(race(Weights { target: p, taken: Taken::Nothing }, noise), all(p.iter().map(|&p| above(p)), noise));
        let residual = p.iter().zip(q).map(|(&p, &q)| if p > q { p - q } else { 0.0 });
        assert_eq!(race(Weights { target: p, taken: Taken::Probs(q) }, noise), all(residual, noise));
        for draft in [-1, 0, 70, race(Weights { target: p, taken: Taken::Nothing }, noise), i32::MAX] {
            let without = (0..).zip(p).map(|(token, &p)| if token == draft { 0.0 } else { above(p) });
            assert_eq!(race(Weights { target: p, taken: Taken::Token(draft) }, noise), all(without, noise));
        }
    }

    #[test]
    fn the_same_token_wins_as_one_after_the_other() {
        let scattered = |number: usize| (number as u32).wrapping_mul(0x9e37_79b9) as f32 / 4294967296.0;
        for length in [0, 1, 63, 64, 65, 1000, TILE + 70, 3 * TILE] {
            let p: Vec<f32> = (0..length).map(scattered).collect();
            let q: Vec<f32> = (7..length + 7).map(scattered).collect();
            let noise: Vec<f64> = (3..length + 3).map(|i| 1.0 / f64::from(scattered(i * 3) + 1e-9)).collect();
            same(&p, &q, &noise);
            same(&p, &q, &noise.iter().map(|&noise| noise as f32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn hostile_values_run_as_they_would_alone() {
        let values = [0.0, -0.0, 1.0, 1.0, f32::NAN, f32::INFINITY, -1.0, f32::NEG_INFINITY, 1e-45, f32::MAX];
        for shift in 0..100 {
            let pick = |step: usize| (0..200).map(move |i| values[(i * step + shift * (i / 11) + shift) % 10]);
            let (p, q, noise): (Vec<_>, Vec<_>, Vec<f32>) = (pick(3).collect(), pick(7).collect(), pick(9).collect());
            same(&p, &q, &noise);
            same(&p, &q, &noise.iter().map(|&noise| f64::from(noise)).collect::<Vec<_>>());
        }
    }
}
