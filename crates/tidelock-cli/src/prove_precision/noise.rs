//! The three kinds of noise that are put to the proof.

use serde::Serialize;
use tidelock::noise;

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
}

/// Noise whose races are run: small noise wins.
pub trait Racing: Copy {
    /// Exponential noise, as f64.
    fn time(self) -> f64;
    /// Whether a tail token with this noise, e^gap times less likely than the head, beats the head.
    fn beats(self, head: Self, gap: f64) -> bool;
}

/// Noise of this library, as its races run it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ours<N>(pub N);

impl<N: noise::Noise> Racing for Ours<N> {
    fn time(self) -> f64 {
        self.0.into()
    }

    fn beats(self, head: Self, gap: f64) -> bool {
        N::gumbel(self.0).into() - gap > N::gumbel(head.0).into()
    }
}

/// -ln(u) in f32, for u one of the 2^24 multiples of 2^-24 in (0, 1]; where that is 0, the next to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Naive(f32);

impl Naive {
    /// The noise that a random word makes.
    pub fn of(word: u32) -> Naive {
        const STEP: f32 = 1.0 / (1 << 24) as f32;
        let u = ((word >> 8) + 1) as f32 * STEP;
        Naive((-u.ln()).max(STEP))
    }
}

impl Racing for Naive {
    fn time(self) -> f64 {
        self.0.into()
    }

    fn beats(self, head: Naive, gap: f64) -> bool {
        (-gap).exp() as f32 / self.0 > 1.0 / head.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidelock::noise::{Noise as _, exponential_f32, exponential_f64};

    #[test]
    fn naive_noise_ends_at_its_step() {
        let (step, naive) = (2.0_f32.powi(-24), |word| Naive::of(word).0);
        assert_eq!([naive(u32::MAX), naive(u32::MAX - 256)], [step; 2]);
        assert!(naive(u32::MAX - 512) > step);
        assert!((naive(0) - 24.0 * std::f32::consts::LN_2).abs() < 1e-5);
    }

    /// The share of all words next to 1 with which a token of a tail of one wins, against what it should be: no chance in it.
    #[test]
    fn our_noise_gives_the_tail_its_share_and_naive_noise_none() {
        let gap = 20.0_f64;
        let share =
            |wins: &dyn Fn(u32) -> bool| (0..4096).filter(|below| wins(u32::MAX - below)).count() as f64 / 4294967296.0;
        let head = 0x5e2d_58d8; // q = 1.000
        let exact = -(-exponential_f64(head, 0) * (-gap).exp()).exp_m1();
        let f64_wins = |word| Ours(exponential_f64(word, 0x8000_0000)).beats(Ours(exponential_f64(head, 0)), gap);
        let f32_wins = |word| Ours(exponential_f32(word)).beats(Ours(exponential_f32(head)), gap);
        assert!((share(&f64_wins) - exact).abs() <= 1.0 / 4294967296.0);
        assert!((share(&f32_wins) - exact).abs() <= 1.0 / 4294967296.0);
        assert_eq!(share(&|word| Naive::of(word).beats(Naive::of(head), gap)), 0.0);
        assert!(f64::gumbel(1.0).abs() < 1e-15);
    }
}
