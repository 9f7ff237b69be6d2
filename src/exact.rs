//! Exponentials and logarithms with reproducible bits. Their twins are `kernels/exact.py` and `kernels/exact.cuh`.
//!
//! A GPU's own `exp` and `log` are approximations of unstated rounding, and a C library's differ between versions. Here
//! each is one polynomial whose every step (multiply, add, divide, fma) is rounded to nearest by IEEE 754, so two
//! machines that do the same steps in the same order get the same bits. The twin does them: change neither alone.
//!
//! All is inlined, so that a caller compiled for a processor with fma gets the instruction instead of a library call.
//!
//! Largest errors measured, in units in the last place of the result; the tests bound them on a coarser grid:
//!
//! | function | domain | error |
//! | --- | --- | --- |
//! | [`Scale::weight`] at temperature 1 | every f32 in [-86, 0] | 1.18 |
//! | [`ln_f32`] | every f32 in (0, 1) that is normal | 0.96 |
//! | [`ln_reduced_f32`] with `k = 0` (`log1p`) | every f32 `f` in [-0.2929, 0.4142], from 2^-33 in size | 0.90 |
//! | [`ln_f64`] | 2^24 random points in (0, 1), many of them near an end | 0.97 |
//!
//! ```
//! use tidelock::exact::{Scale, ln_f64};
//!
//! assert_eq!(Scale::of(1.0).weight(0.0), 1.0);
//! assert!((Scale::of(2.0).weight(-1.0) - 0.5f32.exp().recip()).abs() < 1e-7);
//! assert!((ln_f64(0.25) - 0.25f64.ln()).abs() < 1e-15);
//! ```

const ROUND: f32 = 12582912.0; // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
// ln 2 in two parts.
const LN2_HI_F32: f32 = std::f32::consts::LN_2;
const LN2_LO_F32: f32 = -1.904_654_2e-9;
const LN2_HI_F64: f64 = std::f64::consts::LN_2;
const LN2_LO_F64: f64 = 2.3190468138462996e-17;
const SQRT_HALF_BITS_F32: i32 = 0x3F3504F3;
const SQRT_HALF_BITS_F64: i64 = 0x3FE6A09E667F3BCD;

/// 1 / (temperature ln 2) in two parts, which together carry 48 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    high: f32,
    low: f32,
}

impl Scale {
    /// That of a temperature of 0 or above; infinite for 0.
    #[inline(always)]
    pub fn of(temperature: f32) -> Scale {
        let scale = std::f64::consts::LOG2_E / f64::from(temperature);
        let high = scale as f32;
        Scale { high, low: if high < f32::INFINITY { (scale - f64::from(high)) as f32 } else { 0.0 } }
    }

    /// The exponent of 2 that e^(d / temperature) is, but for rounding.
    #[inline(always)]
    pub fn exponent(self, d: f32) -> f32 {
        d * self.high
    }

    /// e^(d / temperature) for d <= 0; 0 below 2^-125, and for NaN.
    ///
    /// It is 2^(d scale): n, the nearest integer to the exponent, becomes the exponent, and what is left of it a polynomial.
    #[inline(always)]
    pub fn weight(self, d: f32) -> f32 {
        let shifted = d.mul_add(self.high, ROUND);
        let n = shifted - ROUND;
        let f = d.mul_add(self.low, d.mul_add(self.high, -n));
        let p = 0.000_153_533_62_f32;
        let p = p.mul_add(f, 0.001_339_887_5);
        let p = p.mul_add(f, 0.009_618_437);
        let p = p.mul_add(f, 0.055_503_324);
        let p = p.mul_add(f, 0.240_226_48);
        let p = p.mul_add(f, std::f32::consts::LN_2);
        let p = p.mul_add(f, 1.0);
        let scaled = f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23));
        if d * self.high >= -125.0 { scaled } else { 0.0 }
    }
}

/// `f` and `k` with x = 2^k (1 + f) and 1 + f in [sqrt(1/2), sqrt(2)), for positive normal x.
#[inline(always)]
pub fn reduce_f32(x: f32) -> (f32, f32) {
    let bits = x.to_bits() as i32;
    let k = bits.wrapping_sub(SQRT_HALF_BITS_F32) >> 23;
    (f32::from_bits(bits.wrapping_sub(k << 23) as u32) - 1.0, k as f32)
}

/// ln(2^k (1 + f)); with `k` = 0 it is `log1p(f)`.
///
/// ln(1 + f) is 2 atanh(s) for s = f / (2 + f), whose series is 2 s + s z (2/3 + 2/5 z + ...) with z = s^2.
#[inline(always)]
pub fn ln_reduced_f32(f: f32, k: f32) -> f32 {
    let s = f / (f + 2.0);
    let z = s * s;
    let p = 2.0_f32 / 9.0;
    let p = p.mul_add(z, 2.0 / 7.0);
    let p = p.mul_add(z, 2.0 / 5.0);
    let p = p.mul_add(z, 2.0 / 3.0);
    // 2 s = f - s f, so only a small part of the result carries the rounding of s.
    let rest = s * (-z).mul_add(p, f);
    let rest = k.mul_add(-LN2_LO_F32, rest);
    k.mul_add(LN2_HI_F32, f - rest)
}

/// ln(x) in f32, for positive normal x.
#[inline(always)]
pub fn ln_f32(x: f32) -> f32 {
    let (f, k) = reduce_f32(x);
    ln_reduced_f32(f, k)
}

/// ln(x) in f64, for positive normal x. The same steps as in f32, and a longer series.
#[inline(always)]
pub fn ln_f64(x: f64) -> f64 {
    const SERIES: [f64; 9] =
        [2.0 / 19.0, 2.0 / 17.0, 2.0 / 15.0, 2.0 / 13.0, 2.0 / 11.0, 2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0];
    let bits = x.to_bits() as i64;
    let k = bits.wrapping_sub(SQRT_HALF_BITS_F64) >> 52;
    let f = f64::from_bits(bits.wrapping_sub(k << 52) as u64) - 1.0;
    let k = k as i32 as f64;
    let s = f / (f + 2.0);
    let z = s * s;
    let mut p = 2.0_f64 / 21.0;
    for c in SERIES {
        p = p.mul_add(z, c);
    }
    let rest = s * (-z).mul_add(p, f);
    let rest = k.mul_add(-LN2_LO_F64, rest);
    k.mul_add(LN2_HI_F64, f - rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far `value` is from `exact`, in units in the last place of an f32.
    fn ulps(value: f32, exact: f64) -> f64 {
        let size = (exact as f32).abs();
        (f64::from(value) - exact).abs() / f64::from(f32::from_bits(size.to_bits() + 1) - size)
    }

    /// Every `step`th f32 from `low` to `high`, both positive.
    fn floats(low: f32, high: f32, step: usize) -> impl Iterator<Item = f32> {
        (low.to_bits()..=high.to_bits()).step_by(step).map(f32::from_bits)
    }

    fn worst(xs: impl Iterator<Item = f32>, ours: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) -> f64 {
        xs.map(|x| ulps(ours(x), exact(f64::from(x)))).fold(0.0, f64::max)
    }

    #[test]
    fn weights_are_close() {
        for temperature in [1.0_f32, 0.7, 1e-3, 3e4] {
            let scale = Scale::of(temperature);
            let exact = |d: f64| (d / f64::from(temperature)).exp();
            let least = 86.0 * temperature;
            assert!(worst(floats(1e-9 * temperature, least, 997).map(|d| -d), |d| scale.weight(d), exact) < 1.18);
        }
    }

    #[test]
    fn weights_at_the_edges() {
        let one = Scale::of(1.0);
        assert_eq!([one.weight(0.0), one.weight(-0.0)], [1.0; 2]);
        assert!(one.weight(-86.6) >= f32::MIN_POSITIVE);
        assert_eq!([-86.7, f32::MIN, f32::NEG_INFINITY, f32::NAN].map(|d| one.weight(d)), [0.0; 4]);
        assert_eq!([-1e-30, -1.0, f32::NEG_INFINITY].map(|d| Scale::of(0.0).weight(d)), [0.0; 3]);
        let hot = Scale::of(f32::INFINITY);
        assert_eq!([0.0, -1.0, f32::MIN].map(|d| hot.weight(d)), [1.0; 3]);
        assert_eq!(hot.weight(f32::NEG_INFINITY), 0.0);
    }

    #[test]
    fn ln_f32_is_close() {
        assert!(worst(floats(f32::MIN_POSITIVE, 1.0_f32.next_down(), 997), ln_f32, f64::ln) < 0.96);
    }

    #[test]
    fn log1p_is_close() {
        let log1p = |f| ln_reduced_f32(f, 0.0);
        let smallest = 2.0_f32.powi(-33);
        assert!(worst(floats(smallest, 0.41421354, 499), log1p, f64::ln_1p) < 0.9);
        assert!(worst(floats(smallest, 0.29289323, 499).map(|f| -f), log1p, f64::ln_1p) < 0.9);
    }

    /// Against the C library, which is itself within 1 unit.
    #[test]
    fn ln_f64_is_close() {
        for step in 1..100_000_u32 {
            let wide = f64::from(step) * 1e-5;
            for x in [wide, 1.0 - wide * 1e-9, wide * 1e-15, wide * f64::MIN_POSITIVE * 1e5] {
                let (ours, theirs) = (ln_f64(x), x.ln());
                assert!((ours.to_bits() as i64 - theirs.to_bits() as i64).abs() <= 1, "{x:e}: {ours:e}, {theirs:e}");
            }
        }
    }

    #[test]
    fn ln_of_one_is_zero() {
        assert_eq!((ln_f32(1.0), ln_f64(1.0)), (0.0, 0.0));
    }
}
