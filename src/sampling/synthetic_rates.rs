//! Acceptance at synthetic rates instead of by the ratio of probabilities, as vLLM V1 has it for measuring: kernel after kernel, with memory of
//! its own for what each hands to the next.

use super::logits::Logits;
use super::noise::InverseExponential;
use super::rejection_sampler::SpecDecodeMetadata;
use super::scratch::Scratch;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Result;
use crate::kernels::{DrawUniformProbs, RejectionRandomSample};
use crate::purpose::Purpose;
use crate::view::{AsView, AsViewMut, View, ViewMut};

/// What synthetic rates alone need.
#[derive(Debug)]
pub(super) struct SyntheticScratch {
    target_probs: Buffer<f32>,
    softmax: Scratch,
    uniform_probs: Buffer<f64>,
    noise: InverseExponential,
    recovered_token_ids: Buffer<i32>,
}

impl SyntheticScratch {
    pub(super) fn new(
        use_fp64_gumbel: bool,
        max_requests: usize,
        max_tokens: usize,
        vocab_size: usize,
        device: &Device,
    ) -> Result<SyntheticScratch> {
        Ok(SyntheticScratch {
            target_probs: Buffer::zeros(device, max_tokens * vocab_size)?,
            softmax: Scratch::new("softmax", max_tokens, vocab_size, device)?,
            uniform_probs: Buffer::zeros(device, max_tokens)?,
            noise: InverseExponential::new(device, use_fp64_gumbel, max_requests * vocab_size)?,
            recovered_token_ids: Buffer::zeros(device, max_tokens)?,
        })
    }

    /// Draws the uniforms that drafts are judged by, with the seed of each token's request.
    pub(super) fn draw_uniform_probs(
        &mut self,
        seeds: View<'_, i64>,
        positions: View<'_, i64>,
        device: &Device,
    ) -> Result<()> {
        let output = self.uniform_probs.view_mut().slice(0..seeds.layout().columns())?;
        DrawUniformProbs { output, seeds, positions, purpose: Purpose::Acceptance.into() }.launch(device)
    }

    /// Those uniforms.
    pub(super) fn uniform_probs(&self, tokens: usize) -> Result<View<'_, f64>> {
        self.uniform_probs.view().slice(0..tokens)
    }

    /// Keeps drafts at the metadata's rates; the first that is not kept is replaced from the residual. `temperature` is one a token.
    pub(super) fn keep(
        &mut self,
        mut output_token_ids: ViewMut<'_, i32>,
        target_logits: Logits<'_>,
        temperature: View<'_, f32>,
        draft_probs: Option<View<'_, f32>>,
        bonus_token_ids: View<'_, i32>,
        metadata: &SpecDecodeMetadata<'_>,
        device: &Device,
    ) -> Result<()> {
        let (tokens, vocab_size) = (target_logits.num_rows(), target_logits.vocab_size());
        let SyntheticScratch { target_probs, softmax, uniform_probs, noise, recovered_token_ids } = self;
        target_logits.softmax(target_probs.view_mut().matrix(tokens, vocab_size)?, temperature, softmax, device)?;
        let target_probs = target_probs.view().matrix(tokens, vocab_size)?;
        noise.draw(metadata.seeds, metadata.first_positions, Purpose::Recovery, vocab_size, device)?;
        noise.sample_recovered_tokens(
            recovered_token_ids.view_mut().slice(0..tokens)?,
            metadata.cu_num_draft_tokens,
            metadata.draft_token_ids,
            draft_probs,
            target_probs,
            device,
        )?;
        RejectionRandomSample {
            output_token_ids: output_token_ids.reborrow(),
            cu_num_draft_tokens: metadata.cu_num_draft_tokens,
            draft_token_ids: metadata.draft_token_ids,
            draft_probs,
            target_probs,
            bonus_token_ids,
            recovered_token_ids: recovered_token_ids.view().slice(0..tokens)?,
            uniform_probs: uniform_probs.view().slice(0..tokens)?,
            is_greedy: if metadata.all_random { None } else { metadata.is_greedy },
            synthetic_conditional_rates: metadata.synthetic_conditional_rates,
        }
        .launch(device)
    }
}
