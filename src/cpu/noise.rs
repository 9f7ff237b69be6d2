//! Random numbers of sampling. Its twin is `kernels/noise.py`; [`crate::philox`] makes the words, and [`crate::noise`]
//! noise of them.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::CpuArm;
use crate::kernels::{DrawInverseExponentialCpu, DrawInverseExponentialOutput, DrawUniformProbsCpu};
use crate::noise::{GROUP, Noise, uniform_f64};
use crate::philox::Stream;

/// What the reciprocal of a time can be drawn as.
pub trait InverseExponential: Noise {
    /// 1 / time.
    fn inverse(time: Self) -> Self;
}

impl InverseExponential for f32 {
    #[inline(always)]
    fn inverse(time: f32) -> f32 {
        1.0 / time
    }
}

impl InverseExponential for f64 {
    #[inline(always)]
    fn inverse(time: f64) -> f64 {
        1.0 / time
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn draw_row<O: InverseExponential>(output: &mut [O], stream: Stream) {
    for (group, output) in (0_u32..).zip(output.chunks_mut(GROUP as usize)) {
        let arrivals = O::arrivals(stream.group_words(group));
        for (block, output) in (group * (GROUP / 4)..).zip(output.chunks_mut(4)) {
            for ((token, output), high) in (4 * block..).zip(output).zip(stream.high_words(block)) {
                *output = O::inverse(O::time(&stream, &arrivals, token, high));
            }
        }
    }
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
