//! What tokens weigh against each other, in integers. Its twins are `kernels/mass.py`, `kernels/mass.cuh` and
//! `kernels/distribution.cuh`.
//!
//! Floating-point sums depend on their order, and a GPU sums in no order that a CPU would choose. So a weight, which lies
//! in [0, 1], is rounded to a multiple of 2^-40 and sums are taken in 64-bit integers, where order does not matter.
//!
//! The sum of a row is taken tile by tile, each measured from its own largest logit, so that one read of a row is enough;
//! which tokens make a tile is part of the contract, for each tile's sum is rounded when it is measured from the row's.

use std::cell::Cell;

use multiversion::multiversion;
use rayon::prelude::*;

use super::largest::largest_of;
use super::{Logit, scratch};
use crate::exact::Scale;

/// What 1 is in fixed point.
pub(super) const FIXED_ONE: f32 = (1_u64 << 40) as f32;

/// Tokens whose weights are summed before they are measured from the row's largest logit.
const SUM_TILE: usize = 4096;

/// The weight of a logit against the largest, which is 1 for that at every temperature, infinite as it may be.
#[inline(always)]
pub(super) fn relative(x: f32, top: f32, scale: Scale) -> f32 {
    if x == top { 1.0 } else { scale.weight(x - top) }
}

/// A weight in multiples of 2^-40, to nearest even: a multiple of 2^20 and what is left, both exact in f32.
#[inline(always)]
pub(super) fn fixed(weight: f32) -> i64 {
    let (upper, lower) = parts(weight);
    (i64::from(upper) << 20) + i64::from(lower)
}

/// The two parts of a weight in fixed point: multiples of 2^-20, up to 2^20 of them, and what is left in multiples of
/// 2^-40, at most 2^19 of them either way.
#[inline(always)]
fn parts(weight: f32) -> (i32, i32) {
    const ROUND_HIGH: f32 = 1.5 * (1_u64 << 43) as f32; // adding it rounds to a multiple of 2^20
    const ROUND_LOW: f32 = 1.5 * (1_u64 << 23) as f32; // adding it rounds to an integer
    let scaled = weight * FIXED_ONE;
    let upper = scaled + ROUND_HIGH;
    let lower = (scaled - (upper - ROUND_HIGH)) + ROUND_LOW;
    (places(upper, ROUND_HIGH), places(lower, ROUND_LOW))
}

/// How many last places lie between two f32 of the same exponent: their bits count them.
#[inline(always)]
fn places(x: f32, from: f32) -> i32 {
    x.to_bits().wrapping_sub(from.to_bits()) as i32
}

/// The weight of a logit in multiples of 2^-40.
#[inline(always)]
pub(super) fn mass(x: f32, top: f32, scale: Scale) -> i64 {
    fixed(relative(x, top, scale))
}

thread_local! {
    static TILES: Cell<Vec<TileSum>> = const { Cell::new(Vec::new()) };
}

/// The largest logit of a row and the mass of its tokens; `None` where it has a NaN, or nothing above -inf.
pub(super) fn row_total<L: Logit>(logits: &[L], scale: Scale) -> Option<(f32, i64)> {
    scratch::with(&TILES, |tiles| {
        logits.par_chunks(SUM_TILE).map(|tile| sum_tile(tile, scale)).collect_into_vec(tiles);
        let mut top = f32::NEG_INFINITY;
        for tile in &*tiles {
            if tile.nan {
                return None;
            }
            top = if tile.top > top { tile.top } else { top };
        }
        let from_top = |tile: &TileSum| (tile.sum as f64 * f64::from(relative(tile.top, top, scale))) as i64;
        (top > f32::NEG_INFINITY).then(|| (top, tiles.iter().map(from_top).sum()))
    })
}

/// The largest logit of a tile and the mass of its tokens, measured from that.
struct TileSum {
    top: f32,
    nan: bool,
    sum: i64,
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn sum_tile<L: Logit>(tile: &[L], scale: Scale) -> TileSum {
    let mut wide = [0.0; SUM_TILE];
    let tile = L::widen(tile, &mut wide);
    let (top, nan) = largest_of(tile);
    let sum = if top > f32::NEG_INFINITY { sum_of(tile, top, scale) } else { 0 };
    TileSum { top, nan, sum }
}

/// The mass of these logits, no more than a tile of them. Each lane sums the two parts of [`parts`] apart, of which an
/// i32 holds more than a thousand.
#[inline(always)]
fn sum_of(logits: &[f32], top: f32, scale: Scale) -> i64 {
    const LANES: usize = 32;
    const { assert!(SUM_TILE / LANES <= 1024) };
    let (mut upper, mut lower) = ([0_i32; LANES], [0_i32; LANES]);
    let (groups, rest) = logits.as_chunks::<LANES>();
    for group in groups {
        for lane in 0..LANES {
            let (more, less) = parts(relative(group[lane], top, scale));
            upper[lane] += more;
            lower[lane] += less;
        }
    }
    let mut sum = 0;
    for (upper, lower) in upper.into_iter().zip(lower) {
        sum += (i64::from(upper) << 20) + i64::from(lower);
    }
    for &x in rest {
        sum += mass(x, top, scale);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_rounds_to_nearest_even() {
        let unit = 1.0 / f64::from(FIXED_ONE);
        assert_eq!([fixed(0.0), fixed(1.0), fixed(unit as f32)], [0, 1 << 40, 1]);
        assert_eq!(
            [0.5, 1.5, 2.5, 0.49, 1048575.5, 1048576.5].map(|x| fixed((x * unit) as f32)),
            [0, 2, 2, 0, 1048576, 1048576]
        );
        for step in 0..1_000_000_u32 {
            let weight = (1.0 - f64::from(step) * 1e-6) as f32 * 2.0_f32.powi(-(step as i32 % 41));
            assert_eq!(fixed(weight), (f64::from(weight) / unit).round_ties_even() as i64, "{weight}");
        }
    }

    #[test]
    fn a_row_weighs_what_its_tokens_do() {
        let row: Vec<f32> = (0..10_000).map(|token| ((token * 7919) % 10_000) as f32 * -1e-3).collect();
        let (top, total) = row_total(&row, Scale::of(1.0)).expect("it has a distribution");
        let exact: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
        assert_eq!(top, 0.0);
        assert!((total as f64 / f64::from(FIXED_ONE) / exact - 1.0).abs() < 1e-7);
        assert_eq!(row_total(&[f32::NEG_INFINITY; 5000], Scale::of(1.0)), None);
        let mut broken = row;
        broken[9999] = f32::NAN;
        assert_eq!(row_total(&broken, Scale::of(1.0)), None);
    }

    /// The sum of a row as its definition has it, logit by logit.
    fn by_definition(logits: &[f32], scale: Scale) -> Option<(f32, i64)> {
        let largest = |logits: &[f32]| logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let top = largest(logits);
        if top == f32::NEG_INFINITY || logits.iter().any(|x| x.is_nan()) {
            return None;
        }
        let of = |tile: &[f32]| {
            let tile_top = largest(tile);
            let sum: i64 = tile.iter().map(|&x| mass(x, tile_top, scale)).sum();
            (sum as f64 * f64::from(relative(tile_top, top, scale))) as i64
        };
        let tiles = logits.chunks(SUM_TILE).filter(|tile| largest(tile) > f32::NEG_INFINITY);
        Some((top, tiles.map(of).sum()))
    }

    #[test]
    fn lanes_sum_to_what_logits_do() {
        let scattered = |number: usize| (number as u32).wrapping_mul(0x9e37_79b9) as f32 / 4294967296.0;
        let special = [f32::NEG_INFINITY, f32::INFINITY, f32::MIN, f32::MAX, 0.0, -0.0, 1e-45, f32::NAN];
        for length in [0, 1, 31, 32, 100, SUM_TILE, SUM_TILE + 1, 5 * SUM_TILE + 33] {
            let plain: Vec<f32> = (0..length).map(|i| scattered(i) * 30.0).collect();
            for temperature in [0.0, 1e-45, 0.3, 1.0, 50.0, f32::INFINITY] {
                let scale = Scale::of(temperature);
                assert_eq!(row_total(&plain, scale), by_definition(&plain, scale), "{length}, {temperature}");
                assert_eq!(row_total(&vec![1.0; length], scale), by_definition(&vec![1.0; length], scale));
                for (number, x) in special.into_iter().enumerate() {
                    let mut row = plain.clone();
                    row.iter_mut().skip(number * 11).step_by(number + 1).for_each(|to| *to = x);
                    assert_eq!(row_total(&row, scale), by_definition(&row, scale), "{length}, {temperature}, {x}");
                }
            }
        }
    }
}
