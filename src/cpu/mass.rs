//! What tokens weigh against each other, in integers. Its twin is `kernels/mass.py`.
//!
//! Floating-point sums depend on their order, and a GPU sums in no order that a CPU would choose. So a weight, which lies
//! in [0, 1], is rounded to a multiple of 2^-40 and sums are taken in 64-bit integers, where order does not matter.
//!
//! The sum of a row is taken tile by tile, each measured from its own largest logit, so that one read of a row is enough;
//! which tokens make a tile is part of the contract, for each tile's sum is rounded when it is measured from the row's.

use super::Logit;
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
    const ROUND_HIGH: f32 = 1.5 * (1_u64 << 43) as f32; // adding it rounds to a multiple of 2^20
    const ROUND_LOW: f32 = 1.5 * (1_u64 << 23) as f32; // adding it rounds to an integer
    let scaled = weight * FIXED_ONE;
    let upper = scaled + ROUND_HIGH;
    let lower = (scaled - (upper - ROUND_HIGH)) + ROUND_LOW;
    // An f32's bits count its last places.
    let places = |x: f32, from: f32| x.to_bits().wrapping_sub(from.to_bits()) as i32;
    (i64::from(places(upper, ROUND_HIGH)) << 20) + i64::from(places(lower, ROUND_LOW))
}

/// The weight of a logit in multiples of 2^-40.
#[inline(always)]
pub(super) fn mass(x: f32, top: f32, scale: Scale) -> i64 {
    fixed(relative(x, top, scale))
}

/// The largest logit of a row and the mass of its tokens; `None` where it has a NaN, or nothing above -inf.
#[inline(always)]
pub(super) fn row_total<L: Logit>(logits: &[L], scale: Scale) -> Option<(f32, i64)> {
    let (mut top, mut total) = (f32::NEG_INFINITY, 0_i64);
    for tile in logits.chunks(SUM_TILE) {
        let (mut tile_top, mut nan) = (f32::NEG_INFINITY, false);
        for logit in tile {
            let x = logit.to_f32();
            nan |= x.is_nan();
            tile_top = if x > tile_top { x } else { tile_top };
        }
        if nan {
            return None;
        }
        if tile_top > top {
            top = tile_top;
        }
    }
    if top == f32::NEG_INFINITY {
        return None;
    }
    for tile in logits.chunks(SUM_TILE) {
        let mut tile_top = f32::NEG_INFINITY;
        for logit in tile {
            let x = logit.to_f32();
            tile_top = if x > tile_top { x } else { tile_top };
        }
        if tile_top == f32::NEG_INFINITY {
            continue;
        }
        let mut sum = 0_i64;
        for logit in tile {
            sum += mass(logit.to_f32(), tile_top, scale);
        }
        total += (sum as f64 * f64::from(relative(tile_top, top, scale))) as i64;
    }
    Some((top, total))
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
}
