//! The steps that verify drafts: from the target's logits, or from its distributions.

use tidelock::kernels::{RejectionSample, RejectionSampleRecoveredNoise};
use tidelock::sampling::{RejectionSampler, RejectionScratch, SpecDecodeMetadata, Verification, scratch_words};
use tidelock::{AsView, AsViewMut, Buffer, Device, Result};

use super::definition::Case;
use super::inputs::{Inputs, bytes, positions};
use super::steps::{Rows, Step};

/// Requests with drafts.
struct Drafts {
    batch: usize,
    drafts: usize,
    cu_num_draft_tokens: Buffer<i32>,
    draft_token_ids: Buffer<i32>,
    draft_probs: Buffer<f32>,
    bonus_token_ids: Buffer<i32>,
    first_positions: Buffer<i64>,
    output: Buffer<i32>,
}

impl Drafts {
    fn new(case: &Case<'_>, inputs: &Inputs, device: &Device) -> Result<Drafts> {
        Ok(Drafts {
            batch: case.batch,
            drafts: case.drafts,
            cu_num_draft_tokens: Buffer::from_slice(device, &inputs.cu_num_draft_tokens)?,
            draft_token_ids: Buffer::from_slice(device, &inputs.draft_token_ids)?,
            draft_probs: Buffer::from_slice(device, &inputs.draft_probs)?,
            bonus_token_ids: Buffer::from_slice(device, &inputs.bonus_token_ids)?,
            first_positions: Buffer::from_slice(device, &positions(case.batch))?,
            output: Buffer::zeros(device, case.batch * (case.drafts + 1))?,
        })
    }

    fn output(&self) -> Result<Vec<u8>> {
        Ok(bytes(&self.output.to_vec()?, i32::to_le_bytes))
    }
}

/// Verification from the target's logits.
pub struct Verify {
    rows: Rows,
    drafts: Drafts,
    sampler: RejectionSampler,
    scratch: RejectionScratch,
}

impl Verify {
    pub fn new(case: &Case<'_>, inputs: &Inputs, rows: Rows) -> Result<Verify> {
        let sampler = RejectionSampler::new(case.workload.use_fp64_gumbel, Verification::Rejection);
        Ok(Verify {
            drafts: Drafts::new(case, inputs, &rows.device)?,
            scratch: RejectionScratch::new(&sampler, case.batch, rows.rows, rows.vocab_size, &rows.device)?,
            sampler,
            rows,
        })
    }
}

impl Step for Verify {
    fn run(&mut self) -> Result<()> {
        let Verify { rows, drafts, sampler, scratch } = self;
        let metadata = SpecDecodeMetadata {
            cu_num_draft_tokens: drafts.cu_num_draft_tokens.view(),
            draft_token_ids: drafts.draft_token_ids.view(),
            temperature: rows.temperature.view(),
            is_greedy: None,
            all_greedy: false,
            all_random: true,
            top_k: rows.top_k.as_ref().map(AsView::view),
            top_p: rows.top_p.as_ref().map(AsView::view),
            min_p: None,
            seeds: rows.seeds.view(),
            positions: rows.positions.view(),
            first_positions: drafts.first_positions.view(),
            synthetic_conditional_rates: None,
        };
        sampler.forward(
            drafts.output.view_mut().matrix(drafts.batch, drafts.drafts + 1)?,
            rows.logits()?,
            Some(drafts.draft_probs.view().matrix(rows.rows, rows.vocab_size)?),
            drafts.bonus_token_ids.view(),
            &metadata,
            scratch,
            &rows.device,
        )
    }

    fn output(&self) -> Result<Vec<u8>> {
        self.drafts.output()
    }
}

/// Verification where the target's distributions are given.
pub struct VerifyProbs<N> {
    rows: Rows,
    drafts: Drafts,
    target_probs: Buffer<f32>,
    is_greedy: Buffer<bool>,
    recovered_noise: Buffer<N>,
    scratch: Buffer<i64>,
}

impl<N: RejectionSampleRecoveredNoise> VerifyProbs<N> {
    pub fn new(case: &Case<'_>, inputs: &Inputs, rows: Rows) -> Result<VerifyProbs<N>> {
        let device = &rows.device;
        Ok(VerifyProbs {
            drafts: Drafts::new(case, inputs, device)?,
            target_probs: Buffer::from_slice(device, &inputs.target_probs)?,
            is_greedy: Buffer::from_slice(device, &vec![false; case.batch])?,
            recovered_noise: Buffer::zeros(device, case.batch)?,
            scratch: Buffer::zeros(device, case.batch * scratch_words("rejection_sample", rows.vocab_size))?,
            rows,
        })
    }
}

impl<N: RejectionSampleRecoveredNoise> Step for VerifyProbs<N> {
    fn run(&mut self) -> Result<()> {
        let VerifyProbs { rows, drafts, target_probs, is_greedy, recovered_noise, scratch } = self;
        RejectionSample {
            output_token_ids: drafts.output.view_mut().matrix(drafts.batch, drafts.drafts + 1)?,
            recovered_noise: recovered_noise.view_mut(),
            scratch: scratch.view_mut().matrix(drafts.batch, scratch_words("rejection_sample", rows.vocab_size))?,
            cu_num_draft_tokens: drafts.cu_num_draft_tokens.view(),
            draft_token_ids: drafts.draft_token_ids.view(),
            draft_probs: Some(drafts.draft_probs.view().matrix(rows.rows, rows.vocab_size)?),
            target_probs: target_probs.view().matrix(rows.rows, rows.vocab_size)?,
            bonus_token_ids: drafts.bonus_token_ids.view(),
            is_greedy: is_greedy.view(),
            seeds: rows.seeds.view(),
            positions: rows.positions.view(),
            first_positions: drafts.first_positions.view(),
        }
        .launch(&rows.device)
    }

    fn output(&self) -> Result<Vec<u8>> {
        self.drafts.output()
    }
}
