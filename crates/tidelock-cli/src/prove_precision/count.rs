//! Counting, race by race, on the host's processors.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use tidelock::Purpose;
use tidelock::philox::Stream;

use super::noise::Noise;
use super::scan::{Words, standing_out};
use super::{GAPS, SMALL};
use crate::progress::Progress;

/// What was counted of each kind of noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Draws below [`SMALL`].
    pub small: [u64; Noise::ALL.len()],
    /// Races that a tail token won, for each gap.
    pub hits: [[u64; GAPS.len()]; Noise::ALL.len()],
}

/// Runs `trials` races of one head against `tail` tokens. All gaps and kinds of noise see the same random words.
pub fn count(seed: i64, trials: u32, tail: u32, progress: &Progress) -> Counts {
    let done = AtomicU64::new(0);
    let (step, total) = (u64::from(trials / 200).max(1), u64::from(trials));
    let one = |trial: u32| {
        let counts = race(&Stream::new(seed, trial.into(), Purpose::Sample.into()), tail);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(step) {
            progress.say_done("races", done, total);
        }
        counts
    };
    (0..trials).into_par_iter().map(one).reduce(Counts::default, Counts::plus)
}

/// One race, with noise of each kind.
fn race(stream: &Stream, tail: u32) -> Counts {
    let head = Words::of(stream, 0);
    let runners = standing_out(stream, tail, least_word(head));
    let mut counts = Counts::default();
    for (kind, noise) in Noise::ALL.into_iter().enumerate() {
        counts.small[kind] = runners.iter().filter(|&&words| noise.exponential(words) < SMALL).count() as u64;
        for (gap, hits) in GAPS.into_iter().zip(&mut counts.hits[kind]) {
            *hits = runners.iter().any(|&words| noise.tail_wins(words, head, gap)).into();
        }
    }
    counts
}

/// No word below it can be counted: its noise is above [`SMALL`], and above what beats this head at the smallest gap.
///
/// Noise is at least 1 - u, which the word's complement tells; twice that, and two of the naive noise's steps, is enough.
fn least_word(head: Words) -> u32 {
    let most = Noise::ALL.map(|noise| noise.exponential(head)).into_iter().fold(0.0, f64::max);
    let winning = (most * (-GAPS[0]).exp()).max(SMALL);
    !((winning * 2.0 * 4294967296.0) as u32 + 512)
}

impl Counts {
    fn plus(mut self, other: Counts) -> Counts {
        for kind in 0..Noise::ALL.len() {
            self.small[kind] += other.small[kind];
            self.hits[kind].iter_mut().zip(other.hits[kind]).for_each(|(hits, more)| *hits += more);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against every token of every race, with gaps as they are; a head whose noise is large makes the tail win.
    #[test]
    fn no_race_is_decided_by_a_token_that_was_passed_over() {
        for trial in 0..300 {
            let stream = Stream::new(9, trial, 0);
            let head = Words::of(&stream, 0);
            let least = least_word(head);
            for noise in Noise::ALL {
                let below = Words { high: least - 1, low: u32::MAX };
                assert!(noise.exponential(below) >= SMALL && !noise.tail_wins(below, head, GAPS[0]), "{noise:?}");
            }
        }
    }
}
