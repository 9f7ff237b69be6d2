//! Probabilities from logits. Its twins are `kernels/softmax.cu` and `kernels/softmax.py`.

use multiversion::multiversion;
use rayon::prelude::*;

use super::mass::{FIXED_ONE, relative, row_total};
use super::{Logit, TILE};
use crate::CpuArm;
use crate::exact::Scale;
use crate::kernels::{SoftmaxCpu, SoftmaxL, WidenLogitsCpu, WidenLogitsL};

fn softmax<L: Logit>(probs: &mut [f32], logits: &[L], temperature: f32) {
    let Some(share) = Share::of(logits, temperature) else { return probs.fill(0.0) };
    probs
        .par_chunks_mut(TILE)
        .zip(logits.par_chunks(TILE))
        .for_each(|(probs, logits)| write_probs(share, logits, probs));
}

/// What turns a row's logits into probabilities.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    top: f32,
    scale: Scale,
    /// What 1 / the sum of all weights is.
    part: f32,
}

impl Share {
    /// `None` for a row without a distribution, and for a temperature that is negative or NaN.
    pub(super) fn of<L: Logit>(logits: &[L], temperature: f32) -> Option<Share> {
        let scale = Scale::of(temperature.abs()); // -0 is 0
        let (top, total) = row_total(logits, scale).filter(|_| temperature >= 0.0)?;
        Some(Share { top, scale, part: 1.0 / (total as f32 * (1.0 / FIXED_ONE)) })
    }

    /// The probability of a token with this logit.
    #[inline(always)]
    pub(super) fn prob(&self, x: f32) -> f32 {
        relative(x, self.top, self.scale) * self.part
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn write_probs<L: Logit>(share: Share, logits: &[L], probs: &mut [f32]) {
    for (p, logit) in probs.iter_mut().zip(logits) {
        *p = share.prob(logit.to_f32());
    }
}

impl<L: SoftmaxL + Logit> CpuArm for SoftmaxCpu<'_, L> {
    fn run(self) {
        let Self { probs, logits, temperature, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        probs.into_par_rows().zip(temperature).enumerate().for_each(|(row, (probs, &temperature))| {
            softmax(probs, &logits.row(row)[..vocab_size], temperature);
        });
    }
}

impl<L: WidenLogitsL + Logit> CpuArm for WidenLogitsCpu<'_, L> {
    fn run(self) {
        let Self { output, logits, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        output.into_par_rows().enumerate().for_each(|(row, output)| {
            for (wide, logit) in output.iter_mut().zip(&logits.row(row)[..vocab_size]) {
                let x = logit.to_f32();
                // Which NaN a conversion makes of a NaN is not the same everywhere.
                *wide = if x.is_nan() { f32::from_bits(0x7fc0_0000) } else { x };
            }
        });
    }
}
