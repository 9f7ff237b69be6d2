//! The memory of verifying drafts: what requests say, once for each of their drafted tokens, and what the kernels hand on.

use super::metadata::SamplingMetadata;
use super::noise::InverseExponential;
use super::rejection_sampler::{RejectionSampler, SpecDecodeMetadata};
use super::scratch::scratch_words;
use super::synthetic_rates::SyntheticScratch;
use super::topk_topp_sampler::{SampledNoise, SamplingScratch};
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
    pub(super) target_token_ids: Buffer<i32>,
    pub(super) recovered_noise: SampledNoise,
    pub(super) parts: Buffer<i64>,
    pub(super) no_greedy: Buffer<bool>,
    pub(super) ones: Buffer<f32>,
    pub(super) synthetic: Option<SyntheticScratch>,
}

/// Words in which the blocks of a GPU meet for each request.
pub(super) fn part_words(vocab_size: usize) -> usize {
    scratch_words("rejection_sample_from_logits", vocab_size)
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
        let of_token = 3 * size_of::<f32>() + 2 * size_of::<i32>() + size_of::<i64>();
        let noise = InverseExponential::element_bytes(sampler.sampler().use_fp64_gumbel());
        let of_request = noise + part_words(vocab_size) * size_of::<i64>() + size_of::<bool>();
        SamplingScratch::required_bytes(sampler.sampler(), max_tokens, vocab_size)
            + max_tokens * of_token
            + max_requests * of_request
            + max_requests.max(max_tokens) * size_of::<f32>()
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
            target_token_ids: Buffer::zeros(device, max_tokens)?,
            recovered_noise: SampledNoise::new(sampler.sampler(), max_requests, device)?,
            parts: Buffer::zeros(device, max_requests * part_words(vocab_size))?,
            no_greedy: Buffer::from_slice(device, &vec![false; max_requests])?,
            ones: Buffer::from_slice(device, &vec![1.0; max_requests.max(max_tokens)])?,
            synthetic: None,
        })
    }

    /// Memory for steps with synthetic rates, too, which need a distribution for each drafted token and noise for each request: beyond
    /// [`RejectionScratch::required_bytes`], `max_tokens * (vocab_size + 3)` values of four bytes, `max_requests * vocab_size` of noise, and
    /// [`Scratch::required_bytes`](super::Scratch::required_bytes) of `softmax`.
    ///
    /// # Errors
    /// Where the GPU has no memory left.
    pub fn with_synthetic_rates(
        sampler: &RejectionSampler,
        max_requests: usize,
        max_tokens: usize,
        vocab_size: usize,
        device: &Device,
    ) -> Result<RejectionScratch> {
        let use_fp64_gumbel = sampler.sampler().use_fp64_gumbel();
        let synthetic = SyntheticScratch::new(use_fp64_gumbel, max_requests, max_tokens, vocab_size, device)?;
        let scratch = RejectionScratch::new(sampler, max_requests, max_tokens, vocab_size, device)?;
        Ok(RejectionScratch { synthetic: Some(synthetic), ..scratch })
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
