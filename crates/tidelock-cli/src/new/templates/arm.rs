//! What this family of kernels is for. Its twin is `{source}`.

use {tidelock}::CpuArm;

use crate::kernels::{Kernel}Cpu;

impl CpuArm for {Kernel}Cpu<'_> {
    fn run(self) {
        let Self { output, input, width, factor } = self;
        for (row, output) in output.into_rows().enumerate() {
            for (output, x) in output.iter_mut().zip(&input.row(row)[..width as usize]) {
                let product = x * factor;
                // Which NaN an operation gives is not the same everywhere.
                *output = if product.is_nan() { f32::from_bits(0x7fc0_0000) } else { product };
            }
        }
    }
}
