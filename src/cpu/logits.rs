//! What is written to logits. Its twin is `kernels/logits.py`.
//!
//! Processors calculate in f32 and round once to the type of the logits, to nearest even. Which bits a computed NaN has
//! depends on the machine, so it is written as the one quiet NaN. A logit that is NaN or -inf already is no processor's
//! matter: it keeps its bits, and so a token that was removed stays removed.

use half::{bf16, f16};

use super::Logit;

/// A logit that processors can write.
pub trait WritableLogit: Logit {
    /// What removes a token.
    const REMOVED: Self;
    /// A number in the type of the logits, to nearest even; any NaN as the one quiet NaN.
    fn rounded(x: f32) -> Self;

    /// Writes `change` of the logit, unless that is NaN or -inf.
    #[inline(always)]
    fn change(&mut self, change: impl FnOnce(f32) -> f32) {
        let x = self.to_f32();
        if x > f32::NEG_INFINITY {
            *self = Self::rounded(change(x));
        }
    }
}

impl WritableLogit for f32 {
    const REMOVED: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn rounded(x: f32) -> f32 {
        if x.is_nan() { f32::from_bits(0x7fc0_0000) } else { x }
    }
}

impl WritableLogit for f16 {
    const REMOVED: f16 = f16::NEG_INFINITY;

    #[inline(always)]
    fn rounded(x: f32) -> f16 {
        if x.is_nan() { f16::from_bits(0x7e00) } else { f16::from_f32(x) }
    }
}

impl WritableLogit for bf16 {
    const REMOVED: bf16 = bf16::NEG_INFINITY;

    #[inline(always)]
    fn rounded(x: f32) -> bf16 {
        if x.is_nan() { bf16::from_bits(0x7fc0) } else { bf16::from_f32(x) }
    }
}

/// Whether the bit of `token` is set, which is bit `token % 32` of word `token / 32`.
#[inline(always)]
pub(super) fn bit_is_set(bitmask: &[i32], token: usize) -> bool {
    bitmask[token / 32] >> (token % 32) & 1 != 0
}

/// Removes `token`, if it is one of the vocabulary.
pub(super) fn remove<L: WritableLogit>(logits: &mut [L], token: i32) {
    if let Some(logit) = usize::try_from(token).ok().and_then(|token| logits.get_mut(token)) {
        *logit = L::REMOVED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_to_nearest_even_and_overflows_to_infinity() {
        assert_eq!(f16::rounded(2049.0).to_f32(), 2048.0);
        assert_eq!(f16::rounded(2051.0).to_f32(), 2052.0);
        assert_eq!(f16::rounded(65519.996).to_f32(), 65504.0);
        assert_eq!(f16::rounded(65520.0), f16::INFINITY);
        assert_eq!(f16::rounded(-65520.0), f16::NEG_INFINITY);
        assert_eq!(f16::rounded(2.0_f32.powi(-25)).to_bits(), 0, "half of the least subnormal is a tie");
        assert_eq!(f16::rounded(2.0_f32.powi(-25) * 1.0001).to_bits(), 1);
        assert_eq!(bf16::rounded(257.0).to_f32(), 256.0);
        assert_eq!(bf16::rounded(259.0).to_f32(), 260.0);
        assert_eq!(bf16::rounded(f32::MAX), bf16::INFINITY);
    }

    #[test]
    fn there_is_one_nan() {
        for bits in [0x7f80_0001, 0xff80_0001, 0xffff_ffff, 0x7fff_ffff] {
            let nan = f32::from_bits(bits);
            let all =
                [f32::rounded(nan).to_bits(), f16::rounded(nan).to_bits().into(), bf16::rounded(nan).to_bits().into()];
            assert_eq!(all, [0x7fc0_0000, 0x7e00, 0x7fc0], "{bits:#x}");
        }
    }
}
