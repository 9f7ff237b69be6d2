//! Logits of any type for the tests of what changes them, and small random inputs with a fixed seed.

use half::{bf16, f16};
use tidelock::{Buffer, Element};

/// A type of logits, with its bits.
pub trait Logit: Element {
    /// The nearest value, by the type's own crate.
    fn from_f32(x: f32) -> Self;
    /// The same value.
    fn to_f32(self) -> f32;
    /// All of it.
    fn bits(self) -> u32;
    /// The NaN that arithmetic gives.
    const QUIET_NAN: u32;
}

impl Logit for f32 {
    const QUIET_NAN: u32 = 0x7fc0_0000;

    fn from_f32(x: f32) -> f32 {
        x
    }

    fn to_f32(self) -> f32 {
        self
    }

    fn bits(self) -> u32 {
        self.to_bits()
    }
}

impl Logit for f16 {
    const QUIET_NAN: u32 = 0x7e00;

    fn from_f32(x: f32) -> f16 {
        f16::from_f32(x)
    }

    fn to_f32(self) -> f32 {
        f16::to_f32(self)
    }

    fn bits(self) -> u32 {
        self.to_bits().into()
    }
}

impl Logit for bf16 {
    const QUIET_NAN: u32 = 0x7fc0;

    fn from_f32(x: f32) -> bf16 {
        bf16::from_f32(x)
    }

    fn to_f32(self) -> f32 {
        bf16::to_f32(self)
    }

    fn bits(self) -> u32 {
        self.to_bits().into()
    }
}

/// `values` in the type `L`.
pub fn logits<L: Logit>(values: &[f32]) -> Vec<L> {
    values.iter().map(|&x| L::from_f32(x)).collect()
}

/// `values` as bits, any NaN as the quiet one.
pub fn expected<L: Logit>(values: &[f32]) -> Vec<u32> {
    values.iter().map(|&x| if x.is_nan() { L::QUIET_NAN } else { L::from_f32(x).bits() }).collect()
}

/// The bits of what is in `buffer`.
pub fn bits<L: Logit>(buffer: &Buffer<L>) -> Vec<u32> {
    crate::support::read(buffer).into_iter().map(L::bits).collect()
}

/// Runs a test for each type of logits, on each arm.
macro_rules! on_each_type {
    ($test:ident) => {
        crate::support::on_each_arm(|device| {
            $test::<f32>(device);
            $test::<half::f16>(device);
            $test::<half::bf16>(device);
        })
    };
}
pub(crate) use on_each_type;

/// Numbers of splitmix64.
pub struct Draw(pub u64);

impl Draw {
    /// One below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    /// One of `pool`.
    pub fn of<T: Copy>(&mut self, pool: &[T]) -> T {
        pool[self.below(pool.len())]
    }

    /// A logit: mostly a plain number, now and then an odd one.
    pub fn logit(&mut self) -> f32 {
        match self.below(12) {
            0 => self.of(&[0.0, -0.0, f32::NEG_INFINITY, f32::INFINITY, 65504.0, -1e9, f32::MAX, f32::MIN, 1e-40]),
            _ => (self.below(4001) as f32 - 2000.0) / 97.0,
        }
    }

    /// A token id, now and then outside of the vocabulary.
    pub fn token(&mut self, vocab_size: usize) -> i32 {
        match self.below(10) {
            0 => self.of(&[-1, i32::MIN, i32::MAX, vocab_size as i32]),
            _ => self.below(vocab_size) as i32,
        }
    }
}

/// Lists of rows, one after the other, with where each ends.
pub struct Ragged<T> {
    pub values: Vec<T>,
    pub ends: Vec<i32>,
}

impl<T: Clone> Ragged<T> {
    pub fn new<R: AsRef<[T]>>(rows: &[R]) -> Ragged<T> {
        let mut ragged = Ragged { values: Vec::new(), ends: Vec::new() };
        for row in rows {
            ragged.values.extend_from_slice(row.as_ref());
            ragged.ends.push(ragged.values.len() as i32);
        }
        ragged
    }
}
