//! The steps that verify drafts: from the target's logits, or from its distributions.

use tidelock::kernels::{DrawUniformProbs, RejectionRandomSample};
use tidelock::sampling::{InverseExponential, RejectionSampler, RejectionScratch, SpecDecodeMetadata, Verification};
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose, Result};

use super::definition::Case;
use super::inputs::{Inputs, bytes, positions, seeds};
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

/// Verification where the target's distributions are given, as vLLM V1's kernels do it.
pub struct VerifyProbs {
    rows: Rows,
    drafts: Drafts,
    target_probs: Buffer<f32>,
    uniform_probs: Buffer<f64>,
    token_seeds: Buffer<i64>,
    noise: InverseExponential,
    recovered_token_ids: Buffer<i32>,
}

impl VerifyProbs {
    pub fn new(case: &Case<'_>, inputs: &Inputs, rows: Rows) -> Result<VerifyProbs> {
        let device = &rows.device;
        let token_seeds = seeds(case.batch).into_iter().flat_map(|seed| vec![seed; case.drafts]);
        Ok(VerifyProbs {
            drafts: Drafts::new(case, inputs, device)?,
            target_probs: Buffer::from_slice(device, &inputs.target_probs)?,
            uniform_probs: Buffer::zeros(device, rows.rows)?,
            token_seeds: Buffer::from_slice(device, &token_seeds.collect::<Vec<_>>())?,
            noise: InverseExponential::new(device, case.workload.use_fp64_gumbel, case.batch * case.vocab_size)?,
            recovered_token_ids: Buffer::zeros(device, rows.rows)?,
            rows,
        })
    }
}

impl Step for VerifyProbs {
    fn run(&mut self) -> Result<()> {
        let VerifyProbs { rows, drafts, target_probs, uniform_probs, token_seeds, noise, recovered_token_ids } = self;
        let device = &rows.device;
        let draft_probs = drafts.draft_probs.view().matrix(rows.rows, rows.vocab_size)?;
        let target_probs = target_probs.view().matrix(rows.rows, rows.vocab_size)?;
        DrawUniformProbs {
            output: uniform_probs.view_mut(),
            seeds: token_seeds.view(),
            positions: rows.positions.view(),
            purpose: Purpose::Acceptance.into(),
        }
        .launch(device)?;
        let (seeds, first) = (rows.seeds.view(), drafts.first_positions.view());
        noise.draw(seeds, first, Purpose::Recovery, rows.vocab_size, device)?;
        noise.sample_recovered_tokens(
            recovered_token_ids.view_mut(),
            drafts.cu_num_draft_tokens.view(),
            drafts.draft_token_ids.view(),
            Some(draft_probs),
            target_probs,
            device,
        )?;
        RejectionRandomSample {
            output_token_ids: drafts.output.view_mut().matrix(drafts.batch, drafts.drafts + 1)?,
            cu_num_draft_tokens: drafts.cu_num_draft_tokens.view(),
            draft_token_ids: drafts.draft_token_ids.view(),
            draft_probs: Some(draft_probs),
            target_probs,
            bonus_token_ids: drafts.bonus_token_ids.view(),
            recovered_token_ids: recovered_token_ids.view(),
            uniform_probs: uniform_probs.view(),
            is_greedy: None,
            synthetic_conditional_rates: None,
        }
        .launch(device)
    }

    fn output(&self) -> Result<Vec<u8>> {
        self.drafts.output()
    }
}
