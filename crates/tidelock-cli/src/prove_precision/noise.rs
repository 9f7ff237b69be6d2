//! The three kinds of noise that are put to the proof.

use serde::Serialize;
use tidelock::noise::{exponential_f32, exponential_f64, gumbel_f32, gumbel_f64};

use super::scan::Words;

/// A kind of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// What samplers commonly draw: -ln of a 24-bit uniform in f32, and 2^-24 in the place of 0.
    NaiveF32,
    /// f32 noise of this library.
    F32,
    /// f64 noise of this library, what `USE_FP64_GUMBEL` asks for.
    F64,
}

impl Noise {
    /// All of them.
    pub const ALL: [Noise; 3] = [Noise::NaiveF32, Noise::F32, Noise::F64];

    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Noise::NaiveF32 => "naive f32 (24-bit uniforms)",
            Noise::F32 => "tidelock f32",
            Noise::F64 => "tidelock f64",
        }
    }

    /// Whether it is this library's, which has to hold.
    pub fn ours(self) -> bool {
        self != Noise::NaiveF32
    }

    /// Exponential noise.
    pub fn exponential(self, words: Words) -> f64 {
        match self {
            Noise::NaiveF32 => naive(words.high).into(),
            Noise::F32 => exponential_f32(words.high).into(),
            Noise::F64 => exponential_f64(words.high, words.low),
        }
    }

    /// Whether a tail token, e^gap times less likely than the head, beats it.
    pub fn tail_wins(self, tail: Words, head: Words, gap: f64) -> bool {
        match self {
            Noise::NaiveF32 => (-gap).exp() as f32 / naive(tail.high) > 1.0 / naive(head.high),
            Noise::F32 => f64::from(gumbel_f32(tail.high)) - gap > f64::from(gumbel_f32(head.high)),
            Noise::F64 => gumbel_f64(tail.high, tail.low) - gap > gumbel_f64(head.high, head.low),
        }
    }
}

/// -ln(u) in f32, for u one of the 2^24 multiples of 2^-24 in (0, 1]; where that is 0, the next to it.
fn naive(word: u32) -> f32 {
    const STEP: f32 = 1.0 / (1 << 24) as f32;
    let u = ((word >> 8) + 1) as f32 * STEP;
    (-u.ln()).max(STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naive_noise_ends_at_its_step() {
        let step = 2.0_f32.powi(-24);
        assert_eq!([naive(u32::MAX), naive(u32::MAX - 256)], [step; 2]);
        assert!(naive(u32::MAX - 512) > step);
        assert!((naive(0) - 24.0 * std::f32::consts::LN_2).abs() < 1e-5);
    }

    /// The share of all words next to 1 with which a tail token wins, against what it should be: no chance in it.
    #[test]
    fn our_noise_gives_the_tail_its_share_and_naive_noise_none() {
        let head = Words { high: 0x5e2d_58d8, low: 0 }; // q = 1.000
        let gap = 20.0;
        let share = |noise: Noise| {
            let words = (0..4096).map(|below| Words { high: u32::MAX - below, low: 0x8000_0000 });
            words.filter(|&words| noise.tail_wins(words, head, gap)).count() as f64 / 4294967296.0
        };
        let exact = -(-Noise::F64.exponential(head) * (-gap).exp()).exp_m1();
        for noise in [Noise::F32, Noise::F64] {
            assert!((share(noise) - exact).abs() <= 1.0 / 4294967296.0, "{noise:?}: {} of {exact}", share(noise));
        }
        assert_eq!(share(Noise::NaiveF32), 0.0);
    }
}
