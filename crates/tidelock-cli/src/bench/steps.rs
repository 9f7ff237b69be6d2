//! One step of each layer, with all its memory on a device, ready to be run again and again.

use tidelock::kernels::{DrawUniformProbs, LogSoftmax, RejectionRandomSample};
use tidelock::sampling::{
    InverseExponential, Logits, RejectionSampler, RejectionScratch, SamplingMetadata, SamplingScratch,
    SpecDecodeMetadata, TopKTopPSampler, Verification,
};
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose, Result, bf16};

use super::definition::{Case, Layer, LogitsType};
use super::inputs::{Inputs, bytes, positions, seeds};

/// Work that a clock can run.
pub trait Step {
    /// Does it, or queues it on the device's stream.
    fn run(&mut self) -> Result<()>;
    /// The bytes of what it wrote, once it is done.
    fn output(&self) -> Result<Vec<u8>>;
}

/// The step of `case` on `device`.
pub fn new(case: &Case<'_>, inputs: &Inputs, device: &Device) -> Result<Box<dyn Step>> {
    let rows = Rows::new(case, inputs, device)?;
    Ok(match case.workload.layer {
        Layer::Sample | Layer::Argmax => Box::new(Sample::new(case, rows)?),
        Layer::Softmax | Layer::LogSoftmax | Layer::TopLogprobs => Box::new(Distribution::new(case, rows)?),
        Layer::Verify => Box::new(Verify::new(case, inputs, rows)?),
        Layer::VerifyProbs => Box::new(VerifyProbs::new(case, inputs, rows)?),
    })
}

/// Rows of logits, and what is said of each row or request.
struct Rows {
    device: Device,
    rows: usize,
    vocab_size: usize,
    logits: Typed,
    temperature: Buffer<f32>,
    top_k: Option<Buffer<i32>>,
    top_p: Option<Buffer<f32>>,
    seeds: Buffer<i64>,
    positions: Buffer<i64>,
}

enum Typed {
    F32(Buffer<f32>),
    Bf16(Buffer<bf16>),
}

impl Rows {
    fn new(case: &Case<'_>, inputs: &Inputs, device: &Device) -> Result<Rows> {
        let workload = case.workload;
        let of_each = |value: f32| Buffer::from_slice(device, &vec![value; case.batch]);
        let logits = match workload.logits {
            LogitsType::F32 => Typed::F32(Buffer::from_slice(device, &inputs.logits)?),
            LogitsType::Bf16 => {
                let values: Vec<_> = inputs.logits.iter().map(|&value| bf16::from_f32(value)).collect();
                Typed::Bf16(Buffer::from_slice(device, &values)?)
            }
        };
        Ok(Rows {
            device: device.clone(),
            rows: case.rows(),
            vocab_size: case.vocab_size,
            logits,
            temperature: of_each(1.0)?,
            top_k: workload.top_k.map(|k| Buffer::from_slice(device, &vec![k; case.batch])).transpose()?,
            top_p: workload.top_p.map(of_each).transpose()?,
            seeds: Buffer::from_slice(device, &seeds(case.batch))?,
            positions: Buffer::from_slice(device, &positions(case.rows()))?,
        })
    }

    fn logits(&self) -> Result<Logits<'_>> {
        Ok(match &self.logits {
            Typed::F32(values) => values.view().matrix(self.rows, self.vocab_size)?.into(),
            Typed::Bf16(values) => values.view().matrix(self.rows, self.vocab_size)?.into(),
        })
    }
}

/// A draw, or the most likely tokens.
struct Sample {
    rows: Rows,
    all_greedy: bool,
    sampler: TopKTopPSampler,
    scratch: SamplingScratch,
    tokens: Buffer<i32>,
}

impl Sample {
    fn new(case: &Case<'_>, rows: Rows) -> Result<Sample> {
        let sampler = TopKTopPSampler::new(case.workload.use_fp64_gumbel);
        Ok(Sample {
            all_greedy: case.workload.layer == Layer::Argmax,
            sampler,
            scratch: SamplingScratch::new(sampler, rows.rows, rows.vocab_size, &rows.device)?,
            tokens: Buffer::zeros(&rows.device, rows.rows)?,
            rows,
        })
    }
}

impl Step for Sample {
    fn run(&mut self) -> Result<()> {
        let Sample { rows, all_greedy, sampler, scratch, tokens } = self;
        let metadata = SamplingMetadata {
            temperature: rows.temperature.view(),
            all_greedy: *all_greedy,
            top_k: rows.top_k.as_ref().map(AsView::view),
            top_p: rows.top_p.as_ref().map(AsView::view),
            min_p: None,
            seeds: rows.seeds.view(),
            positions: rows.positions.view(),
        };
        sampler.forward(tokens.view_mut(), rows.logits()?, &metadata, Purpose::Sample, scratch, &rows.device)
    }

    fn output(&self) -> Result<Vec<u8>> {
        Ok(bytes(&self.tokens.to_vec()?, i32::to_le_bytes))
    }
}

/// Probabilities or their logarithms: of every token, or of the most likely ones.
struct Distribution {
    rows: Rows,
    layer: Layer,
    values: Buffer<f32>,
    columns: usize,
    token_ids: Buffer<i32>,
}

impl Distribution {
    fn new(case: &Case<'_>, rows: Rows) -> Result<Distribution> {
        let top = case.workload.layer == Layer::TopLogprobs;
        let columns = if top { case.top_logprobs } else { rows.vocab_size };
        Ok(Distribution {
            layer: case.workload.layer,
            values: Buffer::zeros(&rows.device, rows.rows * columns)?,
            columns,
            token_ids: Buffer::zeros(&rows.device, if top { rows.rows * columns } else { 0 })?,
            rows,
        })
    }
}

impl Step for Distribution {
    fn run(&mut self) -> Result<()> {
        let Distribution { rows, layer, values, columns, token_ids } = self;
        let (values, device) = (values.view_mut().matrix(rows.rows, *columns)?, &rows.device);
        match (&layer, &rows.logits) {
            (Layer::Softmax, _) => rows.logits()?.softmax(values, rows.temperature.view(), device),
            (Layer::TopLogprobs, _) => {
                let token_ids = token_ids.view_mut().matrix(rows.rows, *columns)?;
                rows.logits()?.top_logprobs(values, token_ids, device)
            }
            (_, Typed::F32(logits)) => {
                LogSoftmax { logprobs: values, logits: logits.view().matrix(rows.rows, *columns)? }.launch(device)
            }
            (_, Typed::Bf16(logits)) => {
                LogSoftmax { logprobs: values, logits: logits.view().matrix(rows.rows, *columns)? }.launch(device)
            }
        }
    }

    fn output(&self) -> Result<Vec<u8>> {
        let mut output = bytes(&self.values.to_vec()?, f32::to_le_bytes);
        output.extend(bytes(&self.token_ids.to_vec()?, i32::to_le_bytes));
        Ok(output)
    }
}

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
struct Verify {
    rows: Rows,
    drafts: Drafts,
    sampler: RejectionSampler,
    scratch: RejectionScratch,
}

impl Verify {
    fn new(case: &Case<'_>, inputs: &Inputs, rows: Rows) -> Result<Verify> {
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
struct VerifyProbs {
    rows: Rows,
    drafts: Drafts,
    target_probs: Buffer<f32>,
    uniform_probs: Buffer<f64>,
    token_seeds: Buffer<i64>,
    noise: InverseExponential,
    recovered_token_ids: Buffer<i32>,
}

impl VerifyProbs {
    fn new(case: &Case<'_>, inputs: &Inputs, rows: Rows) -> Result<VerifyProbs> {
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
