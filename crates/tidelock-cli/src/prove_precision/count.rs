//! Counting, race by race, on the host's processors.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use tidelock::Purpose;
use tidelock::philox::Stream;

use super::noise::{Noise, Racing};
use super::scan::{early_naive, early_ours, naive, ours};
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
    let mut counts = Counts::default();
    let head = naive(stream, 0);
    counts.add(0, head, &early_naive(stream, tail, latest(head)));
    let head = ours::<f32>(stream, 0);
    counts.add(1, head, &early_ours(stream, tail, latest(head)));
    let head = ours::<f64>(stream, 0);
    counts.add(2, head, &early_ours(stream, tail, latest(head)));
    counts
}

/// Noise above it cannot be counted: it is above [`SMALL`], and above twice what beats this head at the smallest gap.
fn latest(head: impl Racing) -> f64 {
    (2.0 * head.time() * (-GAPS[0]).exp()).max(2.0 * SMALL)
}

impl Counts {
    /// Counts the early tokens of one race, with the noise of one kind.
    fn add<N: Racing>(&mut self, kind: usize, head: N, runners: &[N]) {
        self.small[kind] += runners.iter().filter(|noise| noise.time() < SMALL).count() as u64;
        for (gap, hits) in GAPS.into_iter().zip(&mut self.hits[kind]) {
            *hits += u64::from(runners.iter().any(|noise| noise.beats(head, gap)));
        }
    }

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

    /// Against every token of every race; a head whose noise is large makes the tail win.
    #[test]
    fn no_race_is_decided_by_a_token_that_was_passed_over() {
        for trial in 0..300 {
            let stream = Stream::new(9, trial, 0);
            let head = ours::<f64>(&stream, 0);
            let mut late =
                (1..2000).map(|token| ours::<f64>(&stream, token)).filter(|noise| noise.time() > latest(head));
            assert!(late.all(|noise| noise.time() >= SMALL && !noise.beats(head, GAPS[0])));
        }
    }
}
