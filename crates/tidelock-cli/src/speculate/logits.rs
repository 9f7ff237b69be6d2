//! Logits of whichever type the file has, on the device. The kernels take them as they are.

use anyhow::bail;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tidelock::{AsView, Buffer, Device, Result, bf16, f16, sampling};

/// Rows of logits, one after the other.
pub struct Logits {
    values: Values,
    /// Number of rows.
    pub rows: usize,
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
}

enum Values {
    F16(Buffer<f16>),
    BF16(Buffer<bf16>),
    F32(Buffer<f32>),
}

impl Logits {
    /// Checks the values of `view`, whose shape is `[rows, vocab_size]`, and copies them to the device.
    pub fn read(view: &TensorView<'_>, [rows, vocab_size]: [usize; 2], device: &Device) -> anyhow::Result<Logits> {
        let bytes = view.data();
        let values = match view.dtype() {
            Dtype::F16 => {
                let values: Vec<_> = bytes.as_chunks().0.iter().map(|&value| f16::from_le_bytes(value)).collect();
                check(&values, vocab_size, f16::to_f32)?;
                Values::F16(Buffer::from_slice(device, &values)?)
            }
            Dtype::BF16 => {
                let values: Vec<_> = bytes.as_chunks().0.iter().map(|&value| bf16::from_le_bytes(value)).collect();
                check(&values, vocab_size, bf16::to_f32)?;
                Values::BF16(Buffer::from_slice(device, &values)?)
            }
            Dtype::F32 => {
                let values: Vec<_> = bytes.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value)).collect();
                check(&values, vocab_size, |value| value)?;
                Values::F32(Buffer::from_slice(device, &values)?)
            }
            other => bail!("expected type F16, BF16 or F32, got {other}"),
        };
        Ok(Logits { values, rows, vocab_size })
    }

    /// The rows as the sampling layers take them.
    pub fn view(&self) -> Result<sampling::Logits<'_>> {
        let (rows, vocab_size) = (self.rows, self.vocab_size);
        Ok(match &self.values {
            Values::F16(values) => values.view().matrix(rows, vocab_size)?.into(),
            Values::BF16(values) => values.view().matrix(rows, vocab_size)?.into(),
            Values::F32(values) => values.view().matrix(rows, vocab_size)?.into(),
        })
    }
}

/// Every row can be sampled from: no NaN, no infinity but -inf, and not that alone.
fn check<T: Copy>(values: &[T], vocab_size: usize, to_f32: fn(T) -> f32) -> anyhow::Result<()> {
    for (row, values) in values.chunks(vocab_size).enumerate() {
        let mut sampled = false;
        for (token, &value) in values.iter().enumerate() {
            let value = to_f32(value);
            if value.is_nan() || value == f32::INFINITY {
                bail!("row {row}, token {token}: expected a finite logit or -inf, got {value}");
            }
            sampled |= value.is_finite();
        }
        if !sampled {
            bail!("row {row}: expected at least one finite logit, got only -inf");
        }
    }
    Ok(())
}
