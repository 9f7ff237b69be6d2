//! From random words to noise. Its twins are `kernels/noise.py` and `kernels/noise.cuh`.
//!
//! Tokens race: each arrives after a time that is exponentially distributed, `-ln(u)`, and the first to arrive after times are
//! divided by probabilities is drawn. Gumbel noise is `-ln` of the time.
//!
//! The 32 tokens of a group share their first two arrivals. The first of 32 exponential times is an exponential time over 32, each
//! token is as likely to be the first as any other, and what is left to wait for all 32 is exponential again, since such times have
//! no memory; so the same step gives the next, which may fall to the token that has arrived and then to none. What the others need beyond
//! it is exponential once more. So all 32 times are as independent as if each had been drawn alone; but two numbers bound them all, and a
//! group whose most likely token cannot win with the second, nor its first with the first, needs no further words. That is why a race costs
//! little more than a look at the logits, in any precision.
//!
//! f64 noise is made of two words and f32 noise of one.
//!
//! ```
//! use tidelock::noise::{exponential_f32, exponential_f64, uniform_f64};
//!
//! let (first, last) = (uniform_f64(0, 0), uniform_f64(u32::MAX, u32::MAX));
//! assert!(0.0 < first && last < 1.0);
//! // 52 bits reach further out than 32.
//! assert!(exponential_f64(0, 0) > f64::from(exponential_f32(0)));
//! ```

use crate::exact::{ln_f32, ln_f64, ln_reduced_f32, reduce_f32};
use crate::philox::Stream;

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

/// Tokens that share their first two arrivals.
pub const GROUP: u32 = 32;

/// The first two arrivals of a group: when, and which of its tokens, counted from the group's first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrivals<N> {
    /// When the first token arrives.
    pub first: N,
    /// Which it is.
    pub first_lane: u32,
    /// Before this time no other token arrives.
    pub second: N,
    /// Which token arrives then; none does where it is the first.
    pub second_lane: u32,
}

/// What noise can be drawn as.
pub trait Noise: Copy + Into<f64> + PartialOrd + Send + Sync {
    /// Noise that is above all other.
    const INFINITY: Self;
    /// Noise that is below all other.
    const NEG_INFINITY: Self;

    /// The first arrivals of the group that these words are of.
    fn arrivals(words: [u32; 4]) -> Arrivals<Self>;

    /// The time of `token`, of whose group `arrivals` are, and whose own high word is `high`.
    fn time(stream: &Stream, arrivals: &Arrivals<Self>, token: u32, high: u32) -> Self;

    /// The Gumbel noise of a time: `-ln` of it.
    fn gumbel(time: Self) -> Self;
}

/// Which tokens arrive first and second: five bits each from the top.
#[inline(always)]
fn lanes(word: u32) -> (u32, u32) {
    (word >> 27, word >> 22 & 31)
}

impl Noise for f32 {
    const INFINITY: f32 = f32::INFINITY;
    const NEG_INFINITY: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn arrivals([word, _, mixed, next]: [u32; 4]) -> Arrivals<f32> {
        let (first_lane, second_lane) = lanes(mixed);
        let first = exponential_f32(word) * (1.0 / GROUP as f32);
        Arrivals { first, first_lane, second: first + exponential_f32(next) * (1.0 / GROUP as f32), second_lane }
    }

    #[inline(always)]
    fn time(_: &Stream, arrivals: &Arrivals<f32>, token: u32, high: u32) -> f32 {
        match token % GROUP {
            lane if lane == arrivals.first_lane => arrivals.first,
            lane if lane == arrivals.second_lane => arrivals.second,
            _ => arrivals.second + exponential_f32(high),
        }
    }

    #[inline(always)]
    fn gumbel(time: f32) -> f32 {
        -ln_f32(time)
    }
}

impl Noise for f64 {
    const INFINITY: f64 = f64::INFINITY;
    const NEG_INFINITY: f64 = f64::NEG_INFINITY;

    #[inline(always)]
    fn arrivals([high, low, mixed, next]: [u32; 4]) -> Arrivals<f64> {
        let (first_lane, second_lane) = lanes(mixed);
        let first = exponential_f64(high, low) * (1.0 / f64::from(GROUP));
        // The bits of the lanes are not used again.
        let second = first + exponential_f64(next, mixed << 10) * (1.0 / f64::from(GROUP));
        Arrivals { first, first_lane, second, second_lane }
    }

    #[inline(always)]
    fn time(stream: &Stream, arrivals: &Arrivals<f64>, token: u32, high: u32) -> f64 {
        match token % GROUP {
            lane if lane == arrivals.first_lane => arrivals.first,
            lane if lane == arrivals.second_lane => arrivals.second,
            _ => arrivals.second + exponential_f64(high, stream.low_words(token / 4)[token as usize % 4]),
        }
    }

    #[inline(always)]
    fn gumbel(time: f64) -> f64 {
        -ln_f64(time)
    }
}

/// The time of one token, with nothing known of its group.
#[inline(always)]
pub fn time<N: Noise>(stream: &Stream, token: u32) -> N {
    let arrivals = N::arrivals(stream.group_words(token / GROUP));
    N::time(stream, &arrivals, token, stream.high_words(token / 4)[token as usize % 4])
}

/// No Gumbel noise of either type is larger in a group, the first of whose words this is; and it is not negative.
///
/// It is at most `-ln((1 - u) / 32)`; and 1 - u is at least `(!word >> 1) * 2^-31`. The bits of an f32, read as an integer,
/// are its logarithm from below, drawn straight between powers of two. Rounded up by far more than noise is by its own steps.
#[inline(always)]
pub fn gumbel_bound(word: u32) -> f32 {
    const LN_2: f32 = std::f32::consts::LN_2;
    const OF_1: f32 = (127 + 31 + GROUP.ilog2()) as f32 * LN_2 + 1e-3;
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
            let error = f64::from(f32::gumbel(exponential_f32(word))) + exact.ln();
            assert!(error.abs() < 1.2e-7 * exact.ln().abs().max(1.3), "{word:#x}: {error:e}");
        }
    }

    #[test]
    fn f64_noise_is_minus_ln_twice() {
        for (high, low) in words().zip(words().skip(7).chain([0; 7])) {
            let q = -uniform_f64(high, low).ln();
            assert!((exponential_f64(high, low) / q - 1.0).abs() < 1e-15, "{high:#x} {low:#x}");
            assert!((f64::gumbel(exponential_f64(high, low)) + q.ln()).abs() < 1e-14, "{high:#x} {low:#x}");
        }
        assert!((f64::gumbel(exponential_f64(u32::MAX, u32::MAX)) - 53.0 * std::f64::consts::LN_2).abs() < 1e-13);
    }

    #[test]
    fn nothing_arrives_before_the_first_and_the_second() {
        let stream = Stream::new(1, 2, 3);
        for group in 0..1000 {
            let arrivals = f64::arrivals(stream.group_words(group));
            for lane in 0..GROUP {
                let time = time::<f64>(&stream, group * GROUP + lane);
                match lane {
                    lane if lane == arrivals.first_lane => assert_eq!(time, arrivals.first),
                    lane if lane == arrivals.second_lane => assert_eq!(time, arrivals.second),
                    _ => assert!(time > arrivals.second && arrivals.second > arrivals.first),
                }
            }
        }
    }

    #[test]
    fn the_bound_holds_and_is_close() {
        for word in words() {
            let first = [f64::from(f32::arrivals([word; 4]).first), f64::arrivals([word, u32::MAX, 0, 0]).first];
            let most = first.map(|time| -time.ln()).into_iter().fold(0.0, f64::max);
            let bound = f64::from(gumbel_bound(word));
            assert!(bound >= 0.0 && most < bound, "{word:#x}");
            if (0x8000_0000..0xffff_ff00).contains(&word) {
                assert!(bound < -first[0].ln() + 0.45, "{word:#x}");
            }
        }
    }
}
