//! Probabilities from logits. Its twin is `kernels/softmax.py`.

use multiversion::multiversion;
use rayon::prelude::*;

use super::Logit;
use super::mass::{FIXED_ONE, relative, row_total};
use crate::CpuArm;
use crate::exact::Scale;
use crate::kernels::{SoftmaxCpu, SoftmaxL, WidenLogitsCpu, WidenLogitsL};

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn softmax<L: Logit>(probs: &mut [f32], logits: &[L], temperature: f32) {
    let scale = Scale::of(temperature.abs()); // -0 is 0
    let Some((top, total)) = row_total(logits, scale).filter(|_| temperature >= 0.0) else { return probs.fill(0.0) };
    let part = 1.0 / (total as f32 * (1.0 / FIXED_ONE));
    for (p, logit) in probs.iter_mut().zip(logits) {
        *p = relative(logit.to_f32(), top, scale) * part;
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
