//! The noise of many races, of which only what is small is looked at.
//!
//! A tail token wins only with noise that one token in millions has. Naive noise is small where its word is next to 1; this library's
//! is in no token of a group whose first arrival is late. So the largest word of a stretch tells whether to look closer.

use multiversion::multiversion;
use tidelock::noise::{self, GROUP};
use tidelock::philox::Stream;

use super::noise::{Naive, Ours, Racing};

/// Counters of which the largest word is found at once.
const STRETCH: u32 = 512;

/// Naive noise of a token, from its own word.
pub fn naive(stream: &Stream, token: u32) -> Naive {
    Naive::of(stream.high_words(token / 4)[token as usize % 4])
}

/// Noise of this library of a token.
pub fn ours<N: noise::Noise>(stream: &Stream, token: u32) -> Ours<N> {
    Ours(noise::time(stream, token))
}

/// The naive noise of the tokens `1..=tail`, as far as it is at most `latest`, which is above 2^-23.
pub fn early_naive(stream: &Stream, tail: u32, latest: f64) -> Vec<Naive> {
    // -ln(u) is at least 1 - u, which has a step of 2^-24.
    let least = least_word(latest + 2.0_f64.powi(-23));
    let mut found = Vec::new();
    for first in (0..tail / 4 + 1).step_by(STRETCH as usize) {
        let last = (first + STRETCH).min(tail / 4 + 1);
        if largest_own(stream, first, last) >= least {
            let tokens = (first * 4).max(1)..(last * 4).min(tail + 1);
            found.extend(tokens.map(|token| naive(stream, token)).filter(|noise| noise.time() <= latest));
        }
    }
    found
}

/// The noise of this library of the same tokens.
pub fn early_ours<N: noise::Noise>(stream: &Stream, tail: u32, latest: f64) -> Vec<Ours<N>> {
    let least = least_word(latest * f64::from(GROUP));
    let mut found = Vec::new();
    for first in (0..tail / GROUP + 1).step_by(STRETCH as usize) {
        let last = (first + STRETCH).min(tail / GROUP + 1);
        if largest_first(stream, first, last) < least {
            continue;
        }
        for group in (first..last).filter(|&group| stream.group_words(group)[0] >= least) {
            let tokens = (group * GROUP).max(1)..((group + 1) * GROUP).min(tail + 1);
            found.extend(tokens.map(|token| ours(stream, token)).filter(|noise| noise.time() <= latest));
        }
    }
    found
}

/// Exponential noise of a word below this is above `latest`: it is at least 1 - u, which the word's complement tells.
fn least_word(latest: f64) -> u32 {
    !((latest * 4294967296.0) as u32).saturating_add(1)
}

/// The largest of the tokens' own words, of the blocks `first..last`.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn largest_own(stream: &Stream, first: u32, last: u32) -> u32 {
    let mut largest = [0; 4];
    for block in first..last {
        let words = stream.high_words(block);
        for (largest, word) in largest.iter_mut().zip(words) {
            *largest = word.max(*largest);
        }
    }
    largest.into_iter().max().unwrap_or(0)
}

/// The largest of the words that first arrivals are made of, of the groups `first..last`.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn largest_first(stream: &Stream, first: u32, last: u32) -> u32 {
    let mut largest = 0;
    for group in first..last {
        largest = stream.group_words(group)[0].max(largest);
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_early_is_missed() {
        for (tail, latest) in
            [(1, 40.0), (6, 40.0), (7, 0.5), (10_000, 1e-3), (2047, 1e-2), (2048, 1e-2), (40_000, 1e-4)]
        {
            let stream = Stream::new(1, 2, 0);
            let naive: Vec<_> =
                (1..=tail).map(|token| naive(&stream, token)).filter(|noise| noise.time() <= latest).collect();
            let f32: Vec<_> =
                (1..=tail).map(|token| ours::<f32>(&stream, token)).filter(|noise| noise.time() <= latest).collect();
            let f64: Vec<_> =
                (1..=tail).map(|token| ours::<f64>(&stream, token)).filter(|noise| noise.time() <= latest).collect();
            assert!(!f64.is_empty() && !naive.is_empty());
            assert_eq!(early_naive(&stream, tail, latest), naive, "{tail} tokens");
            assert_eq!(early_ours(&stream, tail, latest), f32, "{tail} tokens");
            assert_eq!(early_ours(&stream, tail, latest), f64, "{tail} tokens");
        }
    }
}
