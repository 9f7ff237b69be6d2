//! From random words to noise. Its twins are `kernels/noise.py` and, for Gumbel noise, `kernels/gumbel.py`.
//!
//! f64 noise is made of two words and f32 noise of one. Exponential noise is `-ln(u)`; Gumbel noise is `-ln` of that, so
//! the smallest exponential and the largest Gumbel noise, which win races, both come from uniforms next to 1.

use crate::exact::{ln_f32, ln_f64, ln_reduced_f32, reduce_f32};

/// The middle of one of 2^52 equal parts of (0, 1), which f64 holds exactly.
#[inline(always)]
pub fn uniform_f64(high: u32, low: u32) -> f64 {
    const TWO_POW_52: f64 = (1_u64 << 52) as f64; // an f64 of this exponent counts in its bits
    let part = (u64::from(high) << 32 | u64::from(low)) >> 12;
    let part = f64::from_bits(TWO_POW_52.to_bits() | part) - TWO_POW_52;
    (part + 0.5) * f64::EPSILON
}

/// `-ln(u)` for `u` in the middle of one of 2^52 equal parts of (0, 1).
#[inline(always)]
pub fn exponential_f64(high: u32, low: u32) -> f64 {
    -ln_f64(uniform_f64(high, low))
}

/// `-ln(u)` for `u` in the middle of one of 2^32 equal parts, measured from the nearer end of (0, 1).
///
/// Near 1 an f32 cannot hold `u`, but it holds `v = 1 - u`, and `-log1p(-v)` is as precise there as `-ln(u)` is near 0.
#[inline(always)]
pub fn exponential_f32(word: u32) -> f32 {
    const TWO_POW_MINUS_32: f32 = 1.0 / (1_u64 << 32) as f32;
    const ONE_MINUS_SQRT_HALF: f32 = 0.29289323;
    let near_zero = word < 0x8000_0000;
    let v = ((if near_zero { word } else { !word }) as f32 + 0.5) * TWO_POW_MINUS_32;
    let (f, k) = if near_zero {
        reduce_f32(v)
    } else if v > ONE_MINUS_SQRT_HALF {
        (v.mul_add(-2.0, 1.0), -1.0) // 1 - v is below sqrt(1/2): 2 (1 - v) is in range
    } else {
        (-v, 0.0)
    };
    -ln_reduced_f32(f, k)
}

/// `-ln(-ln(u))` of the same `u` as [`exponential_f64`].
#[inline(always)]
pub fn gumbel_f64(high: u32, low: u32) -> f64 {
    -ln_f64(exponential_f64(high, low))
}

/// `-ln(-ln(u))` of the same `u` as [`exponential_f32`].
#[inline(always)]
pub fn gumbel_f32(word: u32) -> f32 {
    -ln_f32(exponential_f32(word))
}

/// No Gumbel noise of either type whose high word this is, is larger; and it is not negative.
///
/// Noise is `-ln(-ln(u))`, so at most `-ln(1 - u)`; and 1 - u is at least `(!word >> 1) * 2^-31`. The bits of an f32, read as an
/// integer, are its logarithm from below, drawn straight between powers of two. Rounded up by far more than noise is by
/// its own steps.
#[inline(always)]
pub fn gumbel_bound(word: u32) -> f32 {
    const LN_2: f32 = std::f32::consts::LN_2;
    const OF_1: f32 = (127 + 31) as f32 * LN_2 + 1e-3;
    let bits = ((!word >> 1) as i32 as f32).to_bits() as i32;
    (bits as f32).mul_add(-LN_2 / (1 << 23) as f32, OF_1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of every size from either end, and some between.
    fn words() -> impl Iterator<Item = u32> {
        let words = (0..32).flat_map(|bit| [1 << bit, !(1 << bit), u32::MAX >> bit, 0x9e37_79b9_u32.rotate_left(bit)]);
        words.chain([0, u32::MAX, 0x7fff_ffff, 0x8000_0000])
    }

    #[test]
    fn uniforms_are_open_at_both_ends() {
        assert_eq!(uniform_f64(0, 0), f64::EPSILON / 2.0);
        assert_eq!(uniform_f64(u32::MAX, u32::MAX), 1.0 - f64::EPSILON / 2.0);
    }

    #[test]
    fn f32_noise_is_precise_at_both_ends() {
        for word in words() {
            let exact = -((f64::from(word) + 0.5) / 4294967296.0).ln();
            let exact = if word < 1 << 31 { exact } else { -(-(f64::from(!word) + 0.5) / 4294967296.0).ln_1p() };
            let error = (f64::from(exponential_f32(word)) / exact - 1.0).abs();
            assert!(error < 1.5e-7, "{word:#x}: {error:e}");
            let error = f64::from(gumbel_f32(word)) + exact.ln();
            assert!(error.abs() < 1.2e-7 * exact.ln().abs().max(1.3), "{word:#x}: {error:e}");
        }
    }

    #[test]
    fn f64_noise_is_minus_ln_twice() {
        for (high, low) in words().zip(words().skip(7).chain([0; 7])) {
            let q = -uniform_f64(high, low).ln();
            assert!((exponential_f64(high, low) / q - 1.0).abs() < 1e-15, "{high:#x} {low:#x}");
            assert!((gumbel_f64(high, low) + q.ln()).abs() < 1e-14, "{high:#x} {low:#x}");
        }
        assert!((gumbel_f64(u32::MAX, u32::MAX) - 53.0 * std::f64::consts::LN_2).abs() < 1e-13);
    }

    #[test]
    fn the_bound_holds_and_is_close() {
        for word in words() {
            let most = f64::max(gumbel_f64(word, u32::MAX), gumbel_f32(word).into());
            let bound = f64::from(gumbel_bound(word));
            assert!(bound >= 0.0 && most < bound, "{word:#x}");
            if (0x8000_0000..0xffff_ff00).contains(&word) {
                assert!(bound < f64::from(gumbel_f32(word)) + 0.45, "{word:#x}");
            }
        }
    }
}
