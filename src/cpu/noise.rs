//! Random numbers of sampling. Its twin is `kernels/noise.py`; [`crate::philox`] makes the words, and [`crate::noise`]
//! noise of them.
//!
//! One counter gives four words, which serve four neighbouring tokens. The low word that only f64 needs comes from a
//! second counter.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::CpuArm;
use crate::kernels::{DrawInverseExponentialCpu, DrawInverseExponentialOutput, DrawUniformProbsCpu};
use crate::noise::{exponential_f32, exponential_f64, uniform_f64};
use crate::philox::Stream;

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
            *noise = 1.0 / exponential_f64(high, low);
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
