//! Random numbers of sampling. Its twin is `kernels/noise.py`; [`crate::philox`] makes the words, and [`crate::noise`]
//! noise of them.

use std::ops::Add;

use multiversion::multiversion;
use rayon::prelude::*;

use super::TILE;
use crate::CpuArm;
use crate::kernels::{DrawInverseExponentialCpu, DrawInverseExponentialOutput, DrawUniformProbsCpu};
use crate::noise::{GROUP, Noise, exponential_f32, exponential_f64, uniform_f64};
use crate::philox::{MANY, Stream};

/// What the reciprocal of a time can be drawn as.
pub trait InverseExponential: Noise + Add<Output = Self> {
    /// What is not drawn yet.
    const NONE: Self;
    /// What the tokens from `4 * block` on draw themselves.
    fn draw(stream: &Stream, block: u32, own: &mut [Self; MANY]);
    /// 1 / time.
    fn inverse(time: Self) -> Self;
}

impl InverseExponential for f32 {
    const NONE: f32 = 0.0;

    #[inline(always)]
    fn draw(stream: &Stream, block: u32, own: &mut [f32; MANY]) {
        let mut words = [0; MANY];
        stream.fill_high_words(block, &mut words);
        for (own, word) in own.iter_mut().zip(words) {
            *own = exponential_f32(word);
        }
    }

    #[inline(always)]
    fn inverse(time: f32) -> f32 {
        1.0 / time
    }
}

impl InverseExponential for f64 {
    const NONE: f64 = 0.0;

    #[inline(always)]
    fn draw(stream: &Stream, block: u32, own: &mut [f64; MANY]) {
        let (mut high, mut low) = ([0; MANY], [0; MANY]);
        stream.fill_high_words(block, &mut high);
        stream.fill_low_words(block, &mut low);
        for (own, (high, low)) in own.iter_mut().zip(high.into_iter().zip(low)) {
            *own = exponential_f64(high, low);
        }
    }

    #[inline(always)]
    fn inverse(time: f64) -> f64 {
        1.0 / time
    }
}

/// The noise of a whole row.
pub(super) fn draw_row<O: InverseExponential>(output: &mut [O], stream: Stream) {
    let tiles = output.par_chunks_mut(TILE).enumerate();
    tiles.for_each(|(number, output)| draw_tile(output, stream, (number * TILE) as u32));
}

/// The noise of the tokens from `start` on, which is the first of a group.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn draw_tile<O: InverseExponential>(output: &mut [O], stream: Stream, start: u32) {
    let (mut words, mut times) = ([0; MANY], [O::NONE; MANY]);
    for (number, output) in output.chunks_mut(MANY / 4 * GROUP as usize).enumerate() {
        let start = start + (number * MANY / 4) as u32 * GROUP;
        stream.fill_group_words(start / GROUP, &mut words);
        let groups = words.as_chunks::<4>().0.chunks(MANY / GROUP as usize);
        for (number, (output, groups)) in output.chunks_mut(MANY).zip(groups).enumerate() {
            O::draw(&stream, (start + (number * MANY) as u32) / 4, &mut times);
            for (times, &words) in times.as_chunks_mut::<{ GROUP as usize }>().0.iter_mut().zip(groups) {
                let arrivals = O::arrivals(words);
                for time in times.iter_mut() {
                    *time = arrivals.second + *time;
                }
                times[arrivals.second_lane as usize] = arrivals.second;
                times[arrivals.first_lane as usize] = arrivals.first;
            }
            for (output, &time) in output.iter_mut().zip(&times) {
                *output = O::inverse(time);
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
    use crate::noise::time;

    #[test]
    fn a_token_draws_the_same_wherever_its_row_ends() {
        let stream = Stream::new(1, 2, 3);
        for length in [0, 1, 5, MANY - 1, MANY, MANY + 1, TILE, TILE + 3, 2 * TILE + 70] {
            let (mut wide, mut narrow) = (vec![0.0_f64; length], vec![0.0_f32; length]);
            draw_row(&mut wide, stream);
            draw_row(&mut narrow, stream);
            for (token, (wide, narrow)) in (0..).zip(wide.into_iter().zip(narrow)) {
                assert_eq!(wide, 1.0 / time::<f64>(&stream, token), "{token} of {length}");
                assert_eq!(narrow, 1.0 / time::<f32>(&stream, token), "{token} of {length}");
            }
        }
    }
}
