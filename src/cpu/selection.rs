//! Which tokens of a row top-k, top-p and min-p keep, exactly and without sorting the row.
//!
//! Top-k and top-p each keep a first part of the row's order, so what they keep is known by its last place. Both begin
//! with a rough cut that needs no places: the k-th largest of the largest logits of some columns each is no larger than
//! the k-th largest of all; and masses summed by the size of a logit say between which sizes the nucleus ends. Mass is
//! in multiples of 2^-40 of the largest token's, as in `mass.rs`, and its sums are integers; so it does not matter that
//! a GPU finds the same part in another way.

use std::cell::Cell;

use multiversion::multiversion;
use rayon::prelude::*;

use super::largest::{largest, largest_of};
use super::mass::mass;
use super::order::{LAST_PLACE, logit_at, place, token_at};
use super::{Logit, TILE, scratch};
use crate::exact::Scale;

/// What is asked of one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) temperature: f32,
    pub(super) top_k: i32,
    pub(super) top_p: f32,
    pub(super) min_p: f32,
}

impl Limits {
    /// Whether any row can be sampled with them.
    pub(super) fn are_valid(&self) -> bool {
        self.temperature >= 0.0 && !self.top_p.is_nan() && !self.min_p.is_nan()
    }
}

/// What is kept of a row that has a distribution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// The largest logit.
    pub(super) top: f32,
    scale: Scale,
    min_p: f32,
    /// The last logit that top-k and top-p keep, and its token.
    least: f32,
    last: u32,
}

impl Kept {
    /// What `limits`, which are valid, keep of a row. With top-k, `places` are those that it and top-p keep.
    pub(super) fn of<L: Logit>(logits: &[L], limits: Limits, places: &mut Vec<i64>) -> Option<Kept> {
        let Limits { temperature, top_k, top_p, min_p } = limits;
        let scale = Scale::of(temperature.abs()); // -0 is 0
        let top_k = if temperature == 0.0 { 1 } else { top_k };
        let kept = |top, last| Kept { top, scale, min_p, least: logit_at(last), last: token_at(last) as u32 };
        if top_k > 0 && (top_k as usize) < logits.len() {
            let top = first(logits, top_k as usize, places)?;
            if top_p < 1.0 {
                let target = part(total(places, top, scale), top_p);
                let count = fewest(places, top, scale, target);
                places.truncate(count);
            }
            return Some(kept(top, places.iter().copied().max()?));
        }
        let (top, _) = largest(logits)?;
        let last = if top_p < 1.0 { nucleus(logits, top, scale, top_p, places) } else { LAST_PLACE };
        places.clear();
        Some(kept(top, last))
    }

    /// Whether a token is kept.
    #[inline(always)]
    pub(super) fn has(&self, x: f32, token: u32) -> bool {
        let first = (x > self.least) | ((x == self.least) & (token <= self.last));
        first & self.is_likely(x)
    }

    /// Whether min-p keeps a token.
    #[inline(always)]
    pub(super) fn is_likely(&self, x: f32) -> bool {
        if self.min_p <= 0.0 {
            return true;
        }
        (x == self.top) | (self.scale.weight(x - self.top) >= self.min_p)
    }
}

/// Columns of which only the largest logit is looked at first.
const CHUNK: usize = 64;

thread_local! {
    static LARGEST: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// Writes the first `count` places above -inf, in any order, to `places`, and returns the largest logit; `None` where
/// there is a NaN, or nothing above -inf.
pub(super) fn first<L: Logit>(logits: &[L], count: usize, places: &mut Vec<i64>) -> Option<f32> {
    scratch::with(&LARGEST, |tops| {
        let chunks = logits.len().div_ceil(CHUNK);
        tops.resize(chunks, f32::NEG_INFINITY);
        let tiles = tops.par_chunks_mut(TILE / CHUNK).zip(logits.par_chunks(TILE));
        let nan = tiles.map(|(tops, tile)| chunk_tops(tile, tops)).reduce(|| false, |a, b| a | b);
        let (top, _) = largest_of(tops);
        if nan || top == f32::NEG_INFINITY {
            return None;
        }
        let mut least = f32::MIN;
        if count < chunks {
            tops.extend_from_within(..);
            let (_, nth, _) = tops[chunks..].select_nth_unstable_by(count.saturating_sub(1), |a, b| b.total_cmp(a));
            least = nth.max(least);
        }
        for (number, chunk) in logits.chunks(CHUNK).enumerate().filter(|&(number, _)| tops[number] >= least) {
            for (token, logit) in (number * CHUNK..).zip(chunk) {
                if logit.to_f32() >= least {
                    places.push(place(logit.to_f32(), token as u32));
                }
            }
        }
        if count < places.len() {
            places.select_nth_unstable(count);
            places.truncate(count);
        }
        Some(top)
    })
}

/// Writes the largest logit of each chunk, and says whether there is a NaN.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn chunk_tops<L: Logit>(logits: &[L], tops: &mut [f32]) -> bool {
    let (mut wide, mut any) = ([0.0; CHUNK], false);
    for (top, chunk) in tops.iter_mut().zip(logits.chunks(CHUNK)) {
        let (largest, nan) = largest_of(L::widen(chunk, &mut wide));
        *top = largest;
        any |= nan;
    }
    any
}

/// Sizes of logits that mass is summed by: 16 to each halving of the weight, to beyond where the mass is 0.
const SIZES: usize = 1024;

/// The mass of the logits of each size.
type Masses = [i64; SIZES];

/// The size of a logit, 0 for the largest.
#[inline(always)]
fn size(x: f32, top: f32, scale: Scale) -> u32 {
    const INTEGERS: f32 = (1 << 23) as f32; // adding it rounds to an integer, which the low bits are
    let size = (scale.exponent(x - top) * -16.0).min((SIZES - 1) as f32);
    if x == top { 0 } else { (size + INTEGERS).to_bits() % SIZES as u32 }
}

/// The last place of the fewest first ones that have `p` of the mass of all.
fn nucleus<L: Logit>(logits: &[L], top: f32, scale: Scale, p: f32, places: &mut Vec<i64>) -> i64 {
    let tiles = logits.par_chunks(TILE).map(|tile| masses_of(tile, top, scale));
    let masses = tiles.reduce(|| [0; SIZES], together);
    let mut target = part(masses.iter().sum(), p);
    let mut last = 0;
    while masses[last] < target {
        target -= masses[last];
        last += 1;
    }
    places_of_size(logits, last as u32, top, scale, places);
    let count = fewest(places, top, scale, target);
    places[..count].iter().copied().max().unwrap_or(LAST_PLACE)
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn masses_of<L: Logit>(logits: &[L], top: f32, scale: Scale) -> Masses {
    let mut wide = [0.0; CHUNK];
    let (mut sizes, mut masses) = ([0; CHUNK], [0; CHUNK]);
    let mut sums = [[0; SIZES]; 2]; // in turns, so that equal sizes need not wait for each other
    for chunk in logits.chunks(CHUNK) {
        let chunk = L::widen(chunk, &mut wide);
        masses[chunk.len()..].fill(0);
        for ((&x, to), mass_to) in chunk.iter().zip(&mut sizes).zip(&mut masses) {
            (*to, *mass_to) = (size(x, top, scale), mass(x, top, scale));
        }
        for (sizes, masses) in sizes.as_chunks::<2>().0.iter().zip(masses.as_chunks::<2>().0) {
            for turn in 0..2 {
                sums[turn][sizes[turn] as usize % SIZES] += masses[turn];
            }
        }
    }
    let [first, second] = sums;
    together(first, second)
}

fn together(mut first: Masses, second: Masses) -> Masses {
    for (sum, mass) in first.iter_mut().zip(second) {
        *sum += mass;
    }
    first
}

/// Writes the places of the logits of one size that are above -inf.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn places_of_size<L: Logit>(logits: &[L], wanted: u32, top: f32, scale: Scale, places: &mut Vec<i64>) {
    let (mut wide, mut hits) = ([0.0; CHUNK], [0; CHUNK]);
    for (start, chunk) in (0..).step_by(CHUNK).zip(logits.chunks(CHUNK)) {
        let chunk = L::widen(chunk, &mut wide);
        hits[chunk.len()..].fill(0);
        for (&x, hit) in chunk.iter().zip(&mut hits) {
            *hit = u8::from((size(x, top, scale) == wanted) & (x > f32::NEG_INFINITY));
        }
        for (start, hits) in (start..).step_by(8).zip(hits.as_chunks::<8>().0) {
            if *hits == [0; 8] {
                continue; // most of them
            }
            for (token, _) in (start..).zip(hits).filter(|&(_, &hit)| hit != 0) {
                places.push(place(logits[token as usize].to_f32(), token));
            }
        }
    }
}

/// Moves the first places to the front, as few as have the mass `target`, which all together have, and says how many
/// they are.
fn fewest(places: &mut [i64], top: f32, scale: Scale, mut target: i64) -> usize {
    let (mut start, mut end) = (0, places.len());
    // The last place that is needed is in start..end, and `target` is what is needed from there on.
    while end - start > 1 {
        let half = (end - start) / 2;
        places[start..end].select_nth_unstable(half);
        let mass = total(&places[start..start + half], top, scale);
        if mass >= target {
            end = start + half;
        } else {
            target -= mass;
            start += half;
        }
    }
    end
}

/// `p` of a mass, rounded up; at least 1, since a mass of 0 would keep no token.
fn part(total: i64, p: f32) -> i64 {
    let exact = f64::from(p.max(0.0)) * total as f64;
    let whole = exact as i64;
    (whole + i64::from((whole as f64) < exact)).max(1)
}

/// The mass of all these tokens.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn total(places: &[i64], top: f32, scale: Scale) -> i64 {
    let mut sum = 0;
    for &place in places {
        sum += mass(logit_at(place), top, scale);
    }
    sum
}
#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts the row.
    fn by_definition(logits: &[f32], limits: Limits) -> Option<Vec<usize>> {
        let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if !limits.are_valid() || top == f32::NEG_INFINITY || logits.iter().any(|x| x.is_nan()) {
            return None;
        }
        let scale = Scale::of(limits.temperature.abs());
        let above = logits.iter().enumerate().filter(|(_, x)| **x > f32::NEG_INFINITY);
        let mut places: Vec<i64> = above.map(|(token, &x)| place(x, token as u32)).collect();
        places.sort_unstable();
        let top_k = if limits.temperature == 0.0 { 1 } else { limits.top_k };
        if top_k > 0 {
            places.truncate(top_k as usize);
        }
        if limits.top_p < 1.0 {
            let (target, mut sum) = (part(total(&places, top, scale), limits.top_p), 0);
            let last = places.iter().position(|&place| {
                sum += mass(logit_at(place), top, scale);
                sum >= target
            });
            places.truncate(last.expect("the mass is there") + 1);
        }
        let likely = |x: f32| x == top || scale.weight(x - top) >= limits.min_p;
        let mut tokens: Vec<usize> =
            places.into_iter().filter(|&place| likely(logit_at(place))).map(token_at).collect();
        tokens.sort_unstable();
        Some(tokens)
    }

    fn check(logits: &[f32]) {
        for temperature in [0.0, 1e-45, 0.3, 1.0, 40.0, f32::MAX, f32::INFINITY, -1.0, f32::NAN] {
            for top_k in [-1, 0, 1, 7, 50, 1000, 20_000, i32::MAX] {
                for (top_p, min_p) in
                    [(1.0, 0.0), (0.9, 0.0), (0.3, 0.1), (0.999_999, 2.0), (-1.0, 0.0), (1.0, f32::NAN)]
                {
                    let limits = Limits { temperature, top_k, top_p, min_p };
                    let mut places = Vec::new();
                    let kept = limits.are_valid().then(|| Kept::of(logits, limits, &mut places)).flatten();
                    let has =
                        |kept: Kept| (0..logits.len()).filter(|&token| kept.has(logits[token], token as u32)).collect();
                    assert_eq!(kept.map(has), by_definition(logits, limits), "{} logits, {limits:?}", logits.len());
                    if let Some(kept) = kept.filter(|_| !places.is_empty()) {
                        places.retain(|&place| kept.is_likely(logit_at(place)));
                        places.sort_unstable_by_key(|&place| token_at(place));
                        let listed: Vec<usize> = places.iter().map(|&place| token_at(place)).collect();
                        assert_eq!(Some(listed), by_definition(logits, limits), "{} logits, {limits:?}", logits.len());
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_kept_is_what_sorting_keeps() {
        let scattered = |number: usize| (number as u32).wrapping_mul(0x9e37_79b9) as f32 / 4294967296.0;
        for length in [0, 1, 63, 64, 65, 900, 20_000] {
            let row: Vec<f32> = (0..length).map(|token| scattered(token) * scattered(token * 7) * 20.0).collect();
            check(&row);
            check(&row.iter().map(|x| x.round()).collect::<Vec<_>>());
            check(&row.iter().map(|x| if *x > 3.0 { f32::NEG_INFINITY } else { -*x }).collect::<Vec<_>>());
        }
    }

    #[test]
    fn hostile_rows_keep_what_sorting_keeps() {
        let special = [f32::INFINITY, f32::MAX, 1.0, 0.0, -0.0, 1e-45, f32::MIN, f32::NEG_INFINITY, f32::NAN];
        for first in 0..special.len() {
            for step in [1, 2, 4, 5] {
                check(&(0..300).map(|i| special[first.max(i * step % 8)]).collect::<Vec<_>>());
            }
        }
    }
}
