//! Random numbers of sampling. Its twin is `kernels/noise.py`; [`crate::philox`] makes the words, and [`crate::noise`]
//! noise of them.
//!
//! One counter gives four words, which serve four neighbouring tokens. The low word that only f64 needs comes from a
//! second counter.

use multiversion::multiversion;
use rayon::prelude::*;

use super::TILE;
use crate::CpuArm;
use crate::kernels::{DrawInverseExponentialCpu, DrawInverseExponentialOutput, DrawUniformProbsCpu};
use crate::noise::{exponential_f32, exponential_f64, uniform_f64};
use crate::philox::{MANY, Stream};

/// What noise can be drawn as.
pub trait InverseExponential: Copy + Send + Sync {
    /// Noise that is yet to be drawn.
    const NONE: Self;
    /// The noise of the tokens from `4 * block` on.
    fn draw(stream: &Stream, block: u32, noise: &mut [Self; MANY]);
}

impl InverseExponential for f32 {
    const NONE: f32 = 0.0;

    #[inline(always)]
    fn draw(stream: &Stream, block: u32, noise: &mut [f32; MANY]) {
        let mut words = [0; MANY];
        stream.fill_high_words(block, &mut words);
        for (noise, word) in noise.iter_mut().zip(words) {
            *noise = 1.0 / exponential_f32(word);
        }
    }
}

impl InverseExponential for f64 {
    const NONE: f64 = 0.0;

    #[inline(always)]
    fn draw(stream: &Stream, block: u32, noise: &mut [f64; MANY]) {
        let (mut high, mut low) = ([0; MANY], [0; MANY]);
        stream.fill_high_words(block, &mut high);
        stream.fill_low_words(block, &mut low);
        for (noise, (high, low)) in noise.iter_mut().zip(high.into_iter().zip(low)) {
            *noise = 1.0 / exponential_f64(high, low);
        }
    }
}

/// The noise of a whole row.
pub(super) fn draw_row<O: InverseExponential>(output: &mut [O], stream: Stream) {
    let tiles = output.par_chunks_mut(TILE).enumerate();
    tiles.for_each(|(number, output)| draw_tile(output, stream, (number * TILE / 4) as u32));
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn draw_tile<O: InverseExponential>(output: &mut [O], stream: Stream, block: u32) {
    let (many, rest) = output.as_chunks_mut::<MANY>();
    let mut block = block;
    for noise in many {
        O::draw(&stream, block, noise);
        block = block.wrapping_add(MANY as u32 / 4);
    }
    let mut noise = [O::NONE; MANY];
    O::draw(&stream, block, &mut noise);
    rest.copy_from_slice(&noise[..rest.len()]);
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

    /// Noise token by token.
    fn one<O: InverseExponential>(stream: Stream, token: u32, of: impl Fn(u32, u32) -> O) -> O {
        let lane = token as usize % 4;
        of(stream.high_words(token / 4)[lane], stream.low_words(token / 4)[lane])
    }

    #[test]
    fn a_token_draws_the_same_wherever_its_row_ends() {
        let stream = Stream::new(1, 2, 3);
        for length in [0, 1, 5, MANY - 1, MANY, MANY + 1, TILE, TILE + 3, 2 * TILE + 70] {
            let (mut wide, mut narrow) = (vec![0.0_f64; length], vec![0.0_f32; length]);
            draw_row(&mut wide, stream);
            draw_row(&mut narrow, stream);
            for (token, (wide, narrow)) in (0..).zip(wide.into_iter().zip(narrow)) {
                assert_eq!(
                    wide,
                    one(stream, token, |high, low| 1.0 / exponential_f64(high, low)),
                    "{token} of {length}"
                );
                assert_eq!(narrow, one(stream, token, |high, _| 1.0 / exponential_f32(high)), "{token} of {length}");
            }
        }
    }
}
