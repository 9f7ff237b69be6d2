//! The most likely token of each row. Its twin is `kernels/greedy.cu`.

use rayon::prelude::*;

use super::Logit;
use super::largest::largest;
use crate::CpuArm;
use crate::kernels::{GreedySampleCpu, GreedySampleL};

impl<L: GreedySampleL + Logit> CpuArm for GreedySampleCpu<'_, L> {
    fn run(self) {
        let Self { output_token_ids, logits, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        output_token_ids.par_iter_mut().enumerate().for_each(|(row, output)| {
            *output = largest(&logits.row(row)[..vocab_size]).map_or(-1, |(_, token)| token as i32);
        });
    }
}
