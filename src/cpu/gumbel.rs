//! Drawing tokens straight from logits: the Gumbel-max race. Its twin is `kernels/gumbel.cu`.
//!
//! The race is run with logit + temperature * noise, which is logit / temperature + noise on another scale. Each sum is
//! kept exactly, as its rounded value and the rest that rounding took away, so neither 1e38 nor a tiny temperature can
//! swallow the noise; and it knows nothing of other tokens, so shards of a vocabulary run the same race as the whole.

use rayon::prelude::*;

use super::Logit;
use super::gumbel_race::sample;
use crate::CpuArm;
use crate::kernels::{GumbelSampleCpu, GumbelSampleL, GumbelSampleSampledNoise};
use crate::noise::Noise;
use crate::philox::Stream;

impl<L: GumbelSampleL + Logit, N: GumbelSampleSampledNoise + Noise> CpuArm for GumbelSampleCpu<'_, L, N> {
    fn run(self) {
        let Self {
            output_token_ids,
            sampled_logits,
            sampled_noise,
            logits,
            temperature,
            seeds,
            positions,
            purpose,
            vocab_start,
            vocab_size,
        } = self;
        let vocab_size = vocab_size as usize;
        let outputs = output_token_ids.par_iter_mut().zip(sampled_logits).zip(sampled_noise);
        outputs.enumerate().for_each(|(row, ((token, logit), noise))| {
            let stream = Stream::new(seeds[row], positions[row], purpose);
            (*token, *logit, *noise) = sample(&logits.row(row)[..vocab_size], temperature[row], stream, vocab_start);
        });
    }
}
