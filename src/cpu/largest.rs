//! The largest logit of a row, and where it is.

use multiversion::multiversion;
use rayon::prelude::*;

use super::{Logit, TILE};

/// Logits that are compared side by side.
const LANES: usize = 32;

/// Columns of which the largest logit is known, before it is looked for.
const CHUNK: usize = 1024;

/// The largest of some logits, -inf of none, and whether there is a NaN, which is larger than nothing.
#[inline(always)]
pub(super) fn largest_of(logits: &[f32]) -> (f32, bool) {
    let (mut tops, mut nans) = ([f32::NEG_INFINITY; LANES], [false; LANES]);
    let (groups, rest) = logits.as_chunks::<LANES>();
    for group in groups {
        for lane in 0..LANES {
            tops[lane] = if group[lane] > tops[lane] { group[lane] } else { tops[lane] };
            nans[lane] |= group[lane].is_nan();
        }
    }
    let mut lanes = LANES / 2;
    while lanes > 0 {
        for lane in 0..lanes {
            tops[lane] = if tops[lane + lanes] > tops[lane] { tops[lane + lanes] } else { tops[lane] };
            nans[lane] |= nans[lane + lanes];
        }
        lanes /= 2;
    }
    let (mut top, mut nan) = (tops[0], nans[0]);
    for &x in rest {
        top = if x > top { x } else { top };
        nan |= x.is_nan();
    }
    (top, nan)
}

/// The largest of some columns, the chunk that it is in, and whether there is a NaN.
type Found = (f32, usize, bool);

fn either(first: Found, later: Found) -> Found {
    let (top, chunk, _) = if later.0 > first.0 { later } else { first };
    (top, chunk, first.2 | later.2)
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn tile_largest<L: Logit>(logits: &[L], column: usize) -> Found {
    let (mut found, mut wide) = ((f32::NEG_INFINITY, 0, false), [0.0; CHUNK]);
    for (number, chunk) in logits.chunks(CHUNK).enumerate() {
        let (top, nan) = largest_of(L::widen(chunk, &mut wide));
        found = either(found, (top, column + number * CHUNK, nan));
    }
    found
}

/// The largest logit and the lowest column that has it; `None` where there is a NaN, or nothing above -inf.
pub(super) fn largest<L: Logit>(logits: &[L]) -> Option<(f32, usize)> {
    let tiles = logits.par_chunks(TILE).enumerate().map(|(number, tile)| tile_largest(tile, number * TILE));
    let (top, chunk, nan) = tiles.reduce(|| (f32::NEG_INFINITY, 0, false), either);
    if nan || top == f32::NEG_INFINITY {
        return None;
    }
    let within = logits[chunk..].iter().position(|logit| logit.to_f32() == top)?;
    Some((top, chunk + within))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_largest_is_found() {
        for length in [1, 31, 32, 33, CHUNK + 5, 2 * TILE + 40] {
            for at in [0, length / 3, length / 2, length - 1] {
                let mut row: Vec<f32> = (0..length).map(|i| ((i * 7919) % 1000) as f32 * -1e-3 - 1.0).collect();
                (row[at], row[length - 1]) = (0.0, row[length - 1].max(-0.5));
                row[length - 1] = if at == length - 1 { 0.0 } else { -0.0 };
                assert_eq!(largest(&row), Some((0.0, at)), "{length}");
                row[at] = f32::INFINITY;
                assert_eq!(largest(&row), Some((f32::INFINITY, at)), "{length}");
                row[length / 2] = f32::NAN;
                assert_eq!(largest(&row), None, "{length}");
            }
        }
        assert_eq!(largest::<f32>(&[]), None);
        assert_eq!(largest(&[f32::NEG_INFINITY; 100]), None);
        assert_eq!(largest(&[f32::NEG_INFINITY, f32::MIN]), Some((f32::MIN, 1)));
    }
}
