//! Random numbers that are the same on every machine and in every version of this crate.
//!
//! A record is made on one machine and compared on others, so a case's values may depend on nothing but its name: ChaCha8
//! seeded by it, and arithmetic that IEEE 754 rounds. No function of a C library takes part, as those differ in their last
//! bits.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

/// A stream of random numbers.
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    /// The stream that belongs to these words.
    pub(crate) fn new(name: &[&str]) -> Random {
        let mut hash = Sha256::new();
        for word in name {
            hash.update((word.len() as u64).to_le_bytes());
            hash.update(word);
        }
        Random(ChaCha8Rng::from_seed(hash.finalize().into()))
    }

    /// Sixty-four random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Thirty-two random bits.
    pub(crate) fn word(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// An integer from 0 to below `end`, which must not be 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// An integer from `low` to `high`, both included; `low` where there is none.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        match u64::try_from(i128::from(high) - i128::from(low)) {
            Ok(u64::MAX) => self.bits() as i64,
            Ok(width) => low.wrapping_add(self.below(width + 1) as i64),
            Err(_) => low,
        }
    }

    /// True once in `times`.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of `choices`, which must not be empty.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A number in the open interval (0, 1): the middle of one of 2^32 equal parts.
    pub(crate) fn unit(&mut self) -> f64 {
        (f64::from(self.word()) + 0.5) / 4294967296.0
    }

    /// About normal, with deviation 1: a sum of four uniforms, which reaches to 3.46.
    pub(crate) fn normal(&mut self) -> f64 {
        let bits = self.bits();
        let sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
        (sum as f64 - 131070.0) / 37837.0
    }
}
