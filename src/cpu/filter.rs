//! Top-k, top-p and min-p over a row of logits, exactly. Its twin is `kernels/filter.py`.
//!
//! Top-k and top-p each keep a first part of the row's order, which is found by selection, without sorting the row.
//! Mass is in multiples of 2^-40 of the largest token's, as in `mass.rs`, and its sums are integers; so it does not
//! matter that a GPU finds the same part in another way.

use multiversion::multiversion;
use rayon::prelude::*;

use super::Logit;
use super::mass::mass;
use super::order::{largest, logit_at, places, token_at};
use crate::CpuArm;
use crate::exact::Scale;
use crate::kernels::{FilterLogitsCpu, FilterLogitsL};

/// What is asked of one row.
#[derive(Clone, Copy)]
struct Limits {
    temperature: f32,
    top_k: i32,
    top_p: f32,
    min_p: f32,
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn filter<L: Logit>(output: &mut [f32], logits: &[L], limits: Limits) {
    output.fill(f32::NEG_INFINITY);
    let Limits { temperature, top_k, top_p, min_p } = limits;
    let Some(top) = largest(logits) else { return };
    if temperature.is_nan() || temperature < 0.0 || top_p.is_nan() || min_p.is_nan() {
        return;
    }
    let temperature = temperature.abs(); // -0 is 0
    let scale = Scale::of(temperature);
    let top_k = if temperature == 0.0 { 1 } else { top_k };
    let mut places = places(logits);
    if top_k > 0 && (top_k as usize) < places.len() {
        places.select_nth_unstable(top_k as usize - 1);
        places.truncate(top_k as usize);
    }
    if top_p < 1.0 {
        let count = fewest(&mut places, top, scale, top_p);
        places.truncate(count);
    }
    for place in places {
        let x = logit_at(place);
        let y = scaled(x, top, temperature);
        if x == top || scale.weight(x - top) >= min_p {
            output[token_at(place)] = if y >= f32::MIN { y } else { f32::MIN };
        }
    }
}

/// Moves the first places to the front, as few as have `p` of the mass of all, and says how many they are.
#[inline(always)]
fn fewest(places: &mut [i64], top: f32, scale: Scale, p: f32) -> usize {
    let mut target = part(total(places, top, scale), p);
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
#[inline(always)]
fn part(total: i64, p: f32) -> i64 {
    let exact = f64::from(p.max(0.0)) * total as f64;
    let whole = exact as i64;
    (whole + i64::from((whole as f64) < exact)).max(1)
}

/// The mass of all these tokens.
#[inline(always)]
fn total(places: &[i64], top: f32, scale: Scale) -> i64 {
    let mut sum = 0;
    for &place in places {
        sum += mass(logit_at(place), top, scale);
    }
    sum
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
