//! Choosing one token of a row: the exponential race and the argmax. Its twin is `kernels/race.py`.

use rayon::prelude::*;

use super::Logit;
use super::exponential_race::{Noise, race};
use super::largest::largest;
use super::weights::{Taken, Weights};
use crate::CpuArm;
use crate::kernels::{ArgmaxCpu, ArgmaxI, ArgmaxL, RandomSampleCpu, RandomSampleInvQ};

impl<Q: RandomSampleInvQ + Noise> CpuArm for RandomSampleCpu<'_, Q> {
    fn run(self) {
        let Self { output_token_ids, probs, inv_q, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        output_token_ids.par_iter_mut().enumerate().for_each(|(row, output)| {
            *output = race(Weights { target: &probs.row(row)[..vocab_size], taken: Taken::Nothing }, inv_q.row(row));
        });
    }
}

impl<L: ArgmaxL + Logit, I: ArgmaxI + From<i32>> CpuArm for ArgmaxCpu<'_, L, I> {
    fn run(self) {
        let Self { output_token_ids, logits, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        output_token_ids.par_iter_mut().enumerate().for_each(|(row, output)| {
            *output = largest(&logits.row(row)[..vocab_size]).map_or(-1, |(_, token)| token as i32).into();
        });
    }
}
