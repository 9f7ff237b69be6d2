//! One step of each layer, with all its memory on a device, ready to be run again and again.

use tidelock::kernels::LogSoftmax;
use tidelock::sampling::{Logits, SamplingMetadata, SamplingScratch, Scratch, TopKTopPSampler};
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose, Result, bf16};

use super::definition::{Case, Layer, LogitsType};
use super::inputs::{Inputs, bytes, positions, seeds};
use super::verification::{Verify, VerifyProbs};

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
        Layer::VerifyProbs if case.workload.use_fp64_gumbel => Box::new(VerifyProbs::<f64>::new(case, inputs, rows)?),
        Layer::VerifyProbs => Box::new(VerifyProbs::<f32>::new(case, inputs, rows)?),
    })
}

/// Rows of logits, and what is said of each row or request.
pub struct Rows {
    pub device: Device,
    pub rows: usize,
    pub vocab_size: usize,
    pub logits: Typed,
    pub temperature: Buffer<f32>,
    pub top_k: Option<Buffer<i32>>,
    pub top_p: Option<Buffer<f32>>,
    pub seeds: Buffer<i64>,
    pub positions: Buffer<i64>,
}

pub enum Typed {
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

    pub fn logits(&self) -> Result<Logits<'_>> {
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
    scratch: Scratch,
}

impl Distribution {
    fn new(case: &Case<'_>, rows: Rows) -> Result<Distribution> {
        let top = case.workload.layer == Layer::TopLogprobs;
        let columns = if top { case.top_logprobs } else { rows.vocab_size };
        let kernel = match case.workload.layer {
            Layer::Softmax => "softmax",
            Layer::TopLogprobs => "top_logprobs",
            _ => "log_softmax",
        };
        Ok(Distribution {
            layer: case.workload.layer,
            values: Buffer::zeros(&rows.device, rows.rows * columns)?,
            columns,
            token_ids: Buffer::zeros(&rows.device, if top { rows.rows * columns } else { 0 })?,
            scratch: Scratch::new(kernel, rows.rows, rows.vocab_size, &rows.device)?,
            rows,
        })
    }
}

impl Step for Distribution {
    fn run(&mut self) -> Result<()> {
        let Distribution { rows, layer, values, columns, token_ids, scratch } = self;
        let (values, device) = (values.view_mut().matrix(rows.rows, *columns)?, &rows.device);
        match (&layer, &rows.logits) {
            (Layer::Softmax, _) => rows.logits()?.softmax(values, rows.temperature.view(), scratch, device),
            (Layer::TopLogprobs, _) => {
                let token_ids = token_ids.view_mut().matrix(rows.rows, *columns)?;
                rows.logits()?.top_logprobs(values, token_ids, scratch, device)
            }
            (_, Typed::F32(logits)) => {
                let (scratch, logits) = (scratch.rows(rows.rows)?, logits.view().matrix(rows.rows, *columns)?);
                LogSoftmax { logprobs: values, scratch, logits }.launch(device)
            }
            (_, Typed::Bf16(logits)) => {
                let (scratch, logits) = (scratch.rows(rows.rows)?, logits.view().matrix(rows.rows, *columns)?);
                LogSoftmax { logprobs: values, scratch, logits }.launch(device)
            }
        }
    }

    fn output(&self) -> Result<Vec<u8>> {
        let mut output = bytes(&self.values.to_vec()?, f32::to_le_bytes);
        output.extend(bytes(&self.token_ids.to_vec()?, i32::to_le_bytes));
        Ok(output)
    }
}
