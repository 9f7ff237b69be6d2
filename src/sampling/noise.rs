//! The precision of noise, said once where a sampler is made, and the memory that carries it through every race.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Result;
use crate::kernels::{
    DrawInverseExponential, DrawInverseExponentialOutput, RandomSample, RandomSampleInvQ, SampleRecoveredTokens,
    SampleRecoveredTokensInvQ,
};
use crate::purpose::Purpose;
use crate::view::{AsView, AsViewMut, View, ViewMut};

/// What a race needs of the type of its noise.
pub trait Noise: DrawInverseExponentialOutput + SampleRecoveredTokensInvQ + RandomSampleInvQ {}

impl<T: DrawInverseExponentialOutput + SampleRecoveredTokensInvQ + RandomSampleInvQ> Noise for T {}

/// Reciprocals of exponential noise, `[rows, vocab_size]`: f64 where the sampler's configuration says `use_fp64_gumbel`.
///
/// There is no other way to noise in this module, so a path cannot ignore the flag.
///
/// ```
/// use tidelock::sampling::InverseExponential;
/// use tidelock::{AsView, AsViewMut, Device, Purpose};
///
/// let mut noise = InverseExponential::new(&Device::Cpu, true, 3)?;
/// noise.draw([7i64].view(), [0i64].view(), Purpose::Sample, 3, &Device::Cpu)?;
/// let (probs, mut tokens) = ([0.0f32, 1.0, 0.0], [0i32]);
/// noise.random_sample(tokens.view_mut(), probs.view().matrix(1, 3)?, &Device::Cpu)?;
/// assert_eq!(tokens, [1]);
/// # Ok::<(), tidelock::Error>(())
/// ```
#[derive(Debug)]
pub enum InverseExponential {
    /// 32-bit noise.
    F32(Buffer<f32>),
    /// 64-bit noise.
    F64(Buffer<f64>),
}

macro_rules! with_noise {
    ($noise:expr, $buffer:ident => $body:expr) => {
        match $noise {
            InverseExponential::F32($buffer) => $body,
            InverseExponential::F64($buffer) => $body,
        }
    };
}

impl InverseExponential {
    /// Memory for `elements` values.
    ///
    /// # Errors
    /// Where the GPU has no memory left.
    pub fn new(device: &Device, use_fp64_gumbel: bool, elements: usize) -> Result<InverseExponential> {
        Ok(if use_fp64_gumbel {
            InverseExponential::F64(Buffer::zeros(device, elements)?)
        } else {
            InverseExponential::F32(Buffer::zeros(device, elements)?)
        })
    }

    /// Bytes of one value.
    pub fn element_bytes(use_fp64_gumbel: bool) -> usize {
        if use_fp64_gumbel { size_of::<f64>() } else { size_of::<f32>() }
    }

    /// Draws a row of `vocab_size` values for each seed.
    ///
    /// # Errors
    /// Where the memory is shorter than the rows, or views do not fit the device.
    pub fn draw(
        &mut self,
        seeds: View<'_, i64>,
        positions: View<'_, i64>,
        purpose: Purpose,
        vocab_size: usize,
        device: &Device,
    ) -> Result<()> {
        let rows = seeds.layout().columns();
        with_noise!(self, buffer => {
            let output = buffer.view_mut().matrix(rows, vocab_size)?;
            DrawInverseExponential { output, seeds, positions, purpose: purpose.into() }.launch(device)
        })
    }

    /// Races the tokens of each row of `probs`, f32 `[rows, vocab_size]`, over the noise drawn before.
    ///
    /// # Errors
    /// Where the views do not fit each other or the device.
    pub fn random_sample(
        &self,
        mut output_token_ids: ViewMut<'_, i32>,
        probs: View<'_, f32>,
        device: &Device,
    ) -> Result<()> {
        let (rows, columns) = (probs.layout().rows(), probs.layout().columns());
        with_noise!(self, buffer => {
            let inv_q = buffer.view().matrix(rows, columns)?;
            RandomSample { output_token_ids: output_token_ids.reborrow(), probs, inv_q }.launch(device)
        })
    }

    /// Races the residual of each draft over the noise of its request, drawn before.
    ///
    /// # Errors
    /// Where the views do not fit each other or the device.
    pub fn sample_recovered_tokens(
        &self,
        mut output_token_ids: ViewMut<'_, i32>,
        cu_num_draft_tokens: View<'_, i32>,
        draft_token_ids: View<'_, i32>,
        draft_probs: Option<View<'_, f32>>,
        target_probs: View<'_, f32>,
        device: &Device,
    ) -> Result<()> {
        let (rows, columns) = (cu_num_draft_tokens.layout().columns(), target_probs.layout().columns());
        with_noise!(self, buffer => {
            let inv_q = buffer.view().matrix(rows, columns)?;
            SampleRecoveredTokens {
                output_token_ids: output_token_ids.reborrow(), cu_num_draft_tokens, draft_token_ids, draft_probs, target_probs, inv_q,
            }
            .launch(device)
        })
    }
}
