//! The draws. All of a row's are independent: each is at a position of its own.

use tidelock::sampling::{LogitsProcessors, LogprobsOutput, Sampler, SamplerOutput, SamplerScratch, SamplingMetadata};
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose, Result};

use super::options::Settings;
use super::processors::Processors;
use crate::logits::Logits;
use crate::progress::Counted;

/// Tokens that are drawn, at least, between two looks at the clock.
const TOKENS_A_CHUNK: usize = 2048;

/// How much is drawn.
#[derive(Clone, Copy)]
pub struct Amount {
    /// Draws of each row.
    pub samples: usize,
    /// Most likely tokens whose logprobs are asked for; nothing where none are, not even the drawn tokens'.
    pub num_logprobs: Option<usize>,
}

/// What came of all rows: draw after draw, in each a value a row.
#[derive(Default)]
pub struct Drawn {
    /// Tokens; -1 where a row has none.
    pub tokens: Vec<i32>,
    /// Their logprobs.
    pub logprobs: Vec<f32>,
    /// Their ranks.
    pub ranks: Vec<i32>,
    /// The most likely tokens of each row, the same in every draw.
    pub top_tokens: Vec<i32>,
    /// Their logprobs.
    pub top_logprobs: Vec<f32>,
}

/// The memory of a chunk of draws.
struct Memory {
    tokens: Buffer<i32>,
    logprobs: Buffer<f32>,
    ranks: Buffer<i32>,
    top_tokens: Buffer<i32>,
    top_logprobs: Buffer<f32>,
    scratch: SamplerScratch,
}

/// What is drawn from, on the device.
struct Source<'a> {
    sampler: &'a Sampler,
    logits: &'a Logits,
    processors: LogitsProcessors<'a>,
    num_logprobs: Option<usize>,
    device: &'a Device,
}

/// Draws from every row.
pub fn draw(
    sampler: &Sampler,
    logits: &Logits,
    processors: &Processors,
    settings: &Settings,
    amount: Amount,
    device: &Device,
) -> Result<Drawn> {
    let rows = logits.rows;
    let draws = TOKENS_A_CHUNK.div_ceil(rows).min(amount.samples);
    let top = rows * amount.num_logprobs.unwrap_or(0);
    let mut memory = Memory {
        tokens: Buffer::zeros(device, draws * rows)?,
        logprobs: Buffer::zeros(device, draws * rows)?,
        ranks: Buffer::zeros(device, draws * rows)?,
        top_tokens: Buffer::zeros(device, top)?,
        top_logprobs: Buffer::zeros(device, top)?,
        scratch: SamplerScratch::new(sampler, rows, logits.vocab_size, device)?,
    };
    let on_device = |values: &Option<Vec<f32>>| values.as_ref().map(|v| Buffer::from_slice(device, v)).transpose();
    let (top_p, min_p) = (on_device(&settings.top_p)?, on_device(&settings.min_p)?);
    let top_k = settings.top_k.as_ref().map(|values| Buffer::from_slice(device, values)).transpose()?;
    let temperature = Buffer::from_slice(device, &settings.temperature)?;
    let seeds = Buffer::from_slice(device, &settings.seeds)?;
    let source = Source { sampler, logits, processors: processors.views()?, num_logprobs: amount.num_logprobs, device };

    let (mut drawn, mut progress) = (Drawn::default(), Counted::new("draws of each row", amount.samples as u64));
    for start in (0..amount.samples).step_by(draws) {
        let chunk = start..(start + draws).min(amount.samples);
        let at = |draw: usize| settings.positions.iter().map(move |position| position.wrapping_add(draw as i64));
        let positions = Buffer::from_slice(device, &chunk.clone().flat_map(at).collect::<Vec<_>>())?;
        for draw in 0..chunk.len() {
            let metadata = SamplingMetadata {
                temperature: temperature.view(),
                all_greedy: settings.all_greedy(),
                top_k: top_k.as_ref().map(Buffer::view),
                top_p: top_p.as_ref().map(Buffer::view),
                min_p: min_p.as_ref().map(Buffer::view),
                seeds: seeds.view(),
                positions: positions.view().slice(draw * rows..(draw + 1) * rows)?,
            };
            source.draw(&metadata, draw, &mut memory)?;
        }
        let taken = chunk.len() * rows;
        drawn.tokens.extend_from_slice(&memory.tokens.to_vec()?[..taken]);
        if amount.num_logprobs.is_some() {
            drawn.logprobs.extend_from_slice(&memory.logprobs.to_vec()?[..taken]);
            drawn.ranks.extend_from_slice(&memory.ranks.to_vec()?[..taken]);
        }
        progress.done(chunk.end as u64);
    }
    drawn.top_tokens = memory.top_tokens.to_vec()?;
    drawn.top_logprobs = memory.top_logprobs.to_vec()?;
    Ok(drawn)
}

impl Source<'_> {
    /// Draws once from every row, into place `draw` of the chunk.
    fn draw(&self, metadata: &SamplingMetadata<'_>, draw: usize, memory: &mut Memory) -> Result<()> {
        let rows = self.logits.rows;
        let place = draw * rows..(draw + 1) * rows;
        let Memory { tokens, logprobs, ranks, top_tokens, top_logprobs, scratch } = memory;
        let logprobs = match self.num_logprobs {
            None => None,
            Some(count) => Some(LogprobsOutput {
                sampled_logprobs: logprobs.view_mut().slice(place.clone())?,
                sampled_ranks: ranks.view_mut().slice(place.clone())?,
                top_logprobs: top_logprobs.view_mut().matrix(rows, count)?,
                top_token_ids: top_tokens.view_mut().matrix(rows, count)?,
            }),
        };
        let output = SamplerOutput { sampled_token_ids: tokens.view_mut().slice(place)?, logprobs };
        let (logits, device) = (self.logits.view()?, self.device);
        self.sampler.forward(output, logits, &self.processors, metadata, Purpose::Sample, scratch, device)
    }
}
