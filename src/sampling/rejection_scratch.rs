//! The memory of verifying drafts: what requests say, once for each of their drafted tokens, and what the kernels hand on.

use super::metadata::SamplingMetadata;
use super::noise::InverseExponential;
use super::rejection_sampler::{RejectionSampler, SpecDecodeMetadata, Verification};
use super::topk_topp_sampler::SamplingScratch;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Result;
use crate::kernels::{Expand, ExpandT};
use crate::view::{AsView, AsViewMut, View};

/// The memory of a step, owned by the caller and used again for the next one.
#[derive(Debug)]
pub struct RejectionScratch {
    pub(super) max_requests: usize,
    pub(super) max_tokens: usize,
    pub(super) sampling: SamplingScratch,
    pub(super) tokens: TokenParameters,
    pub(super) target_probs: Buffer<f32>,
    pub(super) uniform_probs: Buffer<f64>,
    pub(super) noise: InverseExponential,
    pub(super) recovered_token_ids: Buffer<i32>,
    pub(super) target_token_ids: Buffer<i32>,
}

/// Parameters of requests, once for each drafted token.
#[derive(Debug)]
pub(super) struct TokenParameters {
    temperature: Buffer<f32>,
    top_k: Buffer<i32>,
    top_p: Buffer<f32>,
    min_p: Buffer<f32>,
    seeds: Buffer<i64>,
}

impl RejectionScratch {
    /// Bytes of device memory that [`RejectionScratch::new`] takes.
    pub fn required_bytes(
        sampler: &RejectionSampler,
        max_requests: usize,
        max_tokens: usize,
        vocab_size: usize,
    ) -> usize {
        let parameters = 3 * size_of::<f32>() + size_of::<i32>() + size_of::<i64>();
        let outputs = size_of::<f64>() + 2 * size_of::<i32>();
        let rejection = sampler.verification() == Verification::Rejection;
        let probs = if rejection { vocab_size * size_of::<f32>() } else { 0 };
        let noise = if rejection { max_requests * vocab_size } else { 0 };
        SamplingScratch::required_bytes(sampler.sampler(), max_tokens, vocab_size)
            + max_tokens * (parameters + outputs + probs)
            + noise * InverseExponential::element_bytes(sampler.sampler().use_fp64_gumbel())
    }

    /// Memory for steps of at most so many requests and drafted tokens.
    ///
    /// # Errors
    /// Where the GPU has no memory left.
    pub fn new(
        sampler: &RejectionSampler,
        max_requests: usize,
        max_tokens: usize,
        vocab_size: usize,
        device: &Device,
    ) -> Result<RejectionScratch> {
        let rejection = sampler.verification() == Verification::Rejection;
        let (probs, noise) = if rejection { (max_tokens * vocab_size, max_requests * vocab_size) } else { (0, 0) };
        Ok(RejectionScratch {
            max_requests,
            max_tokens,
            sampling: SamplingScratch::new(sampler.sampler(), max_tokens, vocab_size, device)?,
            tokens: TokenParameters {
                temperature: Buffer::zeros(device, max_tokens)?,
                top_k: Buffer::zeros(device, max_tokens)?,
                top_p: Buffer::zeros(device, max_tokens)?,
                min_p: Buffer::zeros(device, max_tokens)?,
                seeds: Buffer::zeros(device, max_tokens)?,
            },
            target_probs: Buffer::zeros(device, probs)?,
            uniform_probs: Buffer::zeros(device, max_tokens)?,
            noise: InverseExponential::new(device, sampler.sampler().use_fp64_gumbel(), noise)?,
            recovered_token_ids: Buffer::zeros(device, max_tokens)?,
            target_token_ids: Buffer::zeros(device, max_tokens)?,
        })
    }
}

impl TokenParameters {
    /// Gives each of `tokens` drafted tokens the parameters of its request.
    pub(super) fn expand(&mut self, metadata: &SpecDecodeMetadata<'_>, tokens: usize, device: &Device) -> Result<()> {
        let cu = metadata.cu_num_draft_tokens;
        expand(&mut self.temperature, metadata.temperature, cu, tokens, device)?;
        expand(&mut self.seeds, metadata.seeds, cu, tokens, device)?;
        if let Some(top_k) = metadata.top_k {
            expand(&mut self.top_k, top_k, cu, tokens, device)?;
        }
        if let Some(top_p) = metadata.top_p {
            expand(&mut self.top_p, top_p, cu, tokens, device)?;
        }
        if let Some(min_p) = metadata.min_p {
            expand(&mut self.min_p, min_p, cu, tokens, device)?;
        }
        Ok(())
    }

    /// Seeds of the drafted tokens.
    pub(super) fn seeds(&self, tokens: usize) -> Result<View<'_, i64>> {
        self.seeds.view().slice(0..tokens)
    }

    /// The drafted tokens as rows to sample, after [`TokenParameters::expand`].
    pub(super) fn metadata<'a>(
        &'a self,
        metadata: &SpecDecodeMetadata<'a>,
        tokens: usize,
    ) -> Result<SamplingMetadata<'a>> {
        Ok(SamplingMetadata {
            temperature: self.temperature.view().slice(0..tokens)?,
            all_greedy: metadata.all_greedy,
            top_k: metadata.top_k.map(|_| self.top_k.view().slice(0..tokens)).transpose()?,
            top_p: metadata.top_p.map(|_| self.top_p.view().slice(0..tokens)).transpose()?,
            min_p: metadata.min_p.map(|_| self.min_p.view().slice(0..tokens)).transpose()?,
            seeds: self.seeds(tokens)?,
            positions: metadata.positions,
        })
    }
}

fn expand<T: ExpandT>(
    output: &mut Buffer<T>,
    input: View<'_, T>,
    cu_num_tokens: View<'_, i32>,
    tokens: usize,
    device: &Device,
) -> Result<()> {
    Expand { output: output.view_mut().slice(0..tokens)?, input, cu_num_tokens }.launch(device)
}
