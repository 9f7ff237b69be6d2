//! Random numbers of sampling. Its twin is `kernels/noise.py`, and [`crate::philox`] makes the words.
//!
//! One counter gives four words, which serve four neighbouring tokens. The low word that only f64 needs comes from a
//! second counter.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::CpuArm;
use crate::exact::{ln_f64, ln_reduced_f32, reduce_f32};
use crate::kernels::{DrawInverseExponentialCpu, DrawInverseExponentialOutput, DrawUniformProbsCpu};
use crate::philox::Stream;

/// The middle of one of 2^52 equal parts of (0, 1), which f64 holds exactly.
#[inline(always)]
fn uniform_f64(high: u32, low: u32) -> f64 {
    let part = (u64::from(high) << 32 | u64::from(low)) >> 12;
    (part as f64 + 0.5) * f64::EPSILON
}

/// `-ln(u)` for `u` in the middle of one of 2^32 equal parts, measured from the nearer end of (0, 1).
///
/// Near 1 an f32 cannot hold `u`, but it holds `v = 1 - u`, and `-log1p(-v)` is as precise there as `-ln(u)` is near 0.
#[inline(always)]
fn exponential_f32(word: u32) -> f32 {
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

/// What noise can be drawn as.
pub trait InverseExponential: Copy + Send + Sync {
    /// The noise of tokens `4 * block` to `4 * block + 3`.
    fn draw(stream: &Stream, block: u32) -> [Self; 4];
}

impl InverseExponential for f32 {
    #[inline(always)]
    fn draw(stream: &Stream, block: u32) -> [f32; 4] {
        let mut noise = [0.0; 4];
        for (noise, word) in noise.iter_mut().zip(stream.high_words(block)) {
            *noise = 1.0 / exponential_f32(word);
        }
        noise
    }
}

impl InverseExponential for f64 {
    #[inline(always)]
    fn draw(stream: &Stream, block: u32) -> [f64; 4] {
        let words = stream.high_words(block).into_iter().zip(stream.low_words(block));
        let mut noise = [0.0; 4];
        for (noise, (high, low)) in noise.iter_mut().zip(words) {
            *noise = 1.0 / -ln_f64(uniform_f64(high, low));
        }
        noise
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn draw_row<O: InverseExponential>(output: &mut [O], stream: Stream) {
    let (blocks, rest) = output.as_chunks_mut::<4>();
    let whole = blocks.len() as u32;
    for (block, output) in (0..).zip(blocks) {
        *output = O::draw(&stream, block);
    }
    rest.copy_from_slice(&O::draw(&stream, whole)[..rest.len()]);
}

impl CpuArm for DrawUniformProbsCpu<'_> {
    fn run(self) {
        let Self { output, seeds, positions, purpose, num_values } = self;
        for (index, output) in output.iter_mut().enumerate().take(num_values as usize) {
            let stream = Stream::new(seeds[index], positions[index], purpose);
            *output = uniform_f64(stream.high_words(0)[0], stream.low_words(0)[0]);
        }
    }
}

impl<O: DrawInverseExponentialOutput + InverseExponential> CpuArm for DrawInverseExponentialCpu<'_, O> {
    fn run(self) {
        let Self { output, seeds, positions, purpose, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        output.into_par_rows().zip(seeds).zip(positions).for_each(|((output, &seed), &position)| {
            draw_row(&mut output[..vocab_size], Stream::new(seed, position, purpose));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniforms_are_open_at_both_ends() {
        assert_eq!(uniform_f64(0, 0), f64::EPSILON / 2.0);
        assert_eq!(uniform_f64(u32::MAX, u32::MAX), 1.0 - f64::EPSILON / 2.0);
    }

    #[test]
    fn f32_noise_is_precise_at_both_ends() {
        let words = (0..32).flat_map(|bit| [1 << bit, !(1 << bit), u32::MAX >> bit, 0x9e37_79b9_u32.rotate_left(bit)]);
        for word in words.chain([0, u32::MAX, 0x7fff_ffff, 0x8000_0000]) {
            let exact = -((f64::from(word) + 0.5) / 4294967296.0).ln();
            let exact = if word < 1 << 31 { exact } else { -(-(f64::from(!word) + 0.5) / 4294967296.0).ln_1p() };
            let error = (f64::from(exponential_f32(word)) / exact - 1.0).abs();
            assert!(error < 1.5e-7, "{word:#x}: {error:e}");
        }
    }

    #[test]
    fn a_token_draws_the_same_wherever_its_row_ends() {
        let stream = Stream::new(1, 2, 3);
        let mut long = [0.0_f64; 13];
        draw_row(&mut long, stream);
        for length in 0..long.len() {
            let mut short = vec![0.0; length];
            draw_row(&mut short, stream);
            assert_eq!(short, long[..length]);
        }
    }
}
