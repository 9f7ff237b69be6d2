//! Probabilities from logits. Its twin is `kernels/softmax.py`.
//!
//! Floating-point sums depend on their order, and a GPU sums in no order that a CPU would choose. So each term, which
//! lies in [0, 1], is cut to a multiple of 2^-40 and the sum is taken in 64-bit integers, where order does not matter.
//! The largest term is 1, so what is cut off is below 2^-40 of the sum for each token; up to 2^22 tokens cannot
//! overflow.

use multiversion::multiversion;
use rayon::prelude::*;

use super::Logit;
use crate::CpuArm;
use crate::exact::exp;
use crate::kernels::{SoftmaxCpu, SoftmaxL, WidenLogitsCpu, WidenLogitsL};

/// What 1 is in fixed point.
pub(super) const FIXED_ONE: f32 = (1_u64 << 40) as f32;

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn softmax<L: Logit>(probs: &mut [f32], logits: &[L], temperature: f32) {
    let (mut top, mut nan) = (f32::NEG_INFINITY, false);
    for logit in logits {
        let x = logit.to_f32();
        nan |= x.is_nan();
        top = if x > top { x } else { top };
    }
    if nan || top == f32::NEG_INFINITY || temperature.is_nan() || temperature < 0.0 {
        return probs.fill(0.0);
    }
    let temperature = temperature.abs(); // -0 is 0
    let mut sum = 0_i64;
    for (p, logit) in probs.iter_mut().zip(logits) {
        let x = logit.to_f32();
        // 1 for the largest logits at every temperature.
        *p = if x == top { 1.0 } else { exp((x - top) / temperature) };
        sum = sum.wrapping_add((*p * FIXED_ONE) as i64);
    }
    let total = sum as f32 * (1.0 / FIXED_ONE);
    for p in probs {
        *p /= total;
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
