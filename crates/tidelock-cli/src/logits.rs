//! Logits of whichever type the file has, on the device. The kernels take them as they are.

use anyhow::bail;
use safetensors::Dtype;
use tidelock::kernels::{Argmax, ArgmaxI, Softmax};
use tidelock::{AsView, AsViewMut, Buffer, Device, Result, bf16, f16, sampling};

/// Rows of logits, one after the other.
pub struct Logits {
    buffer: Typed,
    /// Number of rows.
    pub rows: usize,
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
}

enum Typed {
    F16(Buffer<f16>),
    BF16(Buffer<bf16>),
    F32(Buffer<f32>),
}

/// Evaluates `$body` with `$values` as the buffer of its own type.
macro_rules! each_type {
    ($logits:expr, $values:ident => $body:expr) => {
        match &$logits.buffer {
            Typed::F16($values) => $body,
            Typed::BF16($values) => $body,
            Typed::F32($values) => $body,
        }
    };
}

impl Logits {
    /// Copies `bytes`, logits of type `dtype` and shape `[rows, vocab_size]`, to the device, if their values are `accepted`.
    pub fn read(
        dtype: Dtype,
        bytes: &[u8],
        [rows, vocab_size]: [usize; 2],
        accepted: Values,
        device: &Device,
    ) -> anyhow::Result<Logits> {
        let buffer = match dtype {
            Dtype::F16 => {
                let values: Vec<_> = bytes.as_chunks().0.iter().map(|&value| f16::from_le_bytes(value)).collect();
                accepted.check(&values, vocab_size, f16::to_f32)?;
                Typed::F16(Buffer::from_slice(device, &values)?)
            }
            Dtype::BF16 => {
                let values: Vec<_> = bytes.as_chunks().0.iter().map(|&value| bf16::from_le_bytes(value)).collect();
                accepted.check(&values, vocab_size, bf16::to_f32)?;
                Typed::BF16(Buffer::from_slice(device, &values)?)
            }
            Dtype::F32 => {
                let values: Vec<_> = bytes.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value)).collect();
                accepted.check(&values, vocab_size, |value| value)?;
                Typed::F32(Buffer::from_slice(device, &values)?)
            }
            other => bail!("expected type F16, BF16 or F32, got {other}"),
        };
        Ok(Logits { buffer, rows, vocab_size })
    }

    /// As the sampling layer takes them.
    pub fn view(&self) -> Result<sampling::Logits<'_>> {
        each_type!(self, values => Ok(values.view().matrix(self.rows, self.vocab_size)?.into()))
    }

    /// Probabilities of each row at its temperature.
    pub fn softmax(&self, temperature: &Buffer<f32>, probs: &mut Buffer<f32>, device: &Device) -> Result<()> {
        let (rows, vocab_size) = (self.rows, self.vocab_size);
        let (probs, temperature) = (probs.view_mut().matrix(rows, vocab_size)?, temperature.view());
        each_type!(self, values => {
            Softmax { probs, logits: values.view().matrix(rows, vocab_size)?, temperature }.launch(device)
        })
    }

    /// The most likely token of each row.
    pub fn argmax<I: ArgmaxI>(&self, output_token_ids: &mut Buffer<I>, device: &Device) -> Result<()> {
        let output_token_ids = output_token_ids.view_mut();
        each_type!(self, values => {
            Argmax { output_token_ids, logits: values.view().matrix(self.rows, self.vocab_size)? }.launch(device)
        })
    }
}

/// Which values logits may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Whatever there is: kernels are defined for any.
    Any,
    /// Every row can be sampled from: no NaN, no infinity but -inf, and not that alone.
    Samplable,
}

impl Values {
    fn check<T: Copy>(self, values: &[T], vocab_size: usize, to_f32: fn(T) -> f32) -> anyhow::Result<()> {
        if self == Values::Any {
            return Ok(());
        }
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
}
