//! A sum of vectors. Its twin is kernels/blend.py.

use tidelock::CpuArm;

use crate::kernels::AddScaledCpu;

impl CpuArm for AddScaledCpu<'_> {
    fn run(self) {
        let Self { output, input, added, factor, size } = self;
        let size = size as usize;
        for ((output, x), y) in output[..size].iter_mut().zip(&input[..size]).zip(&added[..size]) {
            let total = y.mul_add(factor, *x);
            *output = if total.is_nan() { 0.0 } else { total };
        }
    }
}
