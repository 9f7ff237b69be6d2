//! The random words of many races, of which only those next to 1 are looked at.
//!
//! A tail token wins only with noise that one word in millions has. So the words are drawn in full, but only the largest
//! of a stretch is compared, and noise is made of what stands out.

use multiversion::multiversion;
use tidelock::philox::Stream;

/// Blocks of four words of which the largest is found at once.
const STRETCH: u32 = 512;

/// The random words that one token's noise is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// What all noise needs.
    pub high: u32,
    /// What f64 noise needs, too.
    pub low: u32,
}

impl Words {
    /// The words of `token`.
    pub fn of(stream: &Stream, token: u32) -> Words {
        let (block, lane) = (token / 4, token as usize % 4);
        Words { high: stream.high_words(block)[lane], low: stream.low_words(block)[lane] }
    }
}

/// The words of the tokens `1..=tail` whose high word is at least `least`.
pub fn standing_out(stream: &Stream, tail: u32, least: u32) -> Vec<Words> {
    let mut found = Vec::new();
    let end = tail / 4 + 1;
    for first in (0..end).step_by(STRETCH as usize) {
        let last = (first + STRETCH).min(end);
        if largest(stream, first, last) >= least {
            let tokens = (first * 4).max(1)..(last * 4).min(tail + 1);
            found.extend(tokens.map(|token| Words::of(stream, token)).filter(|words| words.high >= least));
        }
    }
    found
}

/// The largest high word of the blocks `first..last`.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn largest(stream: &Stream, first: u32, last: u32) -> u32 {
    let mut largest = [0; 4];
    for block in first..last {
        let words = stream.high_words(block);
        for (largest, word) in largest.iter_mut().zip(words) {
            *largest = word.max(*largest);
        }
    }
    largest.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_stands_out_is_missed() {
        for (tail, least) in [(1, 0), (6, 0), (7, 0), (10_000, 0xFFF0_0000), (2047, 0xFF00_0000), (2048, 0xFF00_0000)] {
            let stream = Stream::new(1, 2, 0);
            let all = (1..=tail).map(|token| Words::of(&stream, token));
            let expected: Vec<_> = all.filter(|words| words.high >= least).collect();
            assert!(!expected.is_empty());
            assert_eq!(standing_out(&stream, tail, least), expected, "{tail} tokens");
        }
    }
}
