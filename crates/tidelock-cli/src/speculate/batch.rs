//! What every kernel of a step is told of its batch, and the noise that every request owns.

use tidelock::kernels::{DrawUniformProbs, Expand, ExpandT};
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose, Result, View, ViewMut};

use super::file::Speculation;
use super::settings::Settings;

/// A batch on a device: its drafts, and where each draw of its requests stands.
///
/// A request's drafts are at the positions from 0 on, and its bonus token comes at the one after them. So each draw has its
/// own seed, position and purpose, whatever place the request has in the batch.
pub struct Batch {
    /// Where the step runs.
    pub device: Device,
    /// Requests.
    pub batch_size: usize,
    /// Drafted tokens of all of them.
    pub num_tokens: usize,
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// The most drafts of a request.
    pub max_spec_len: usize,
    /// Where each request's drafts end.
    pub cu_num_draft_tokens: Buffer<i32>,
    /// Drafted tokens.
    pub draft_token_ids: Buffer<i32>,
    /// Seed of each request.
    pub seeds: Buffer<i64>,
    /// Position of each request's first draft.
    pub first_positions: Buffer<i64>,
    /// Position of each request's bonus token.
    pub bonus_positions: Buffer<i64>,
    /// One uniform a drafted token.
    pub uniform_probs: Buffer<f64>,
    /// Acceptance rates that replace the judgement.
    pub synthetic_rates: Option<Buffer<f32>>,
    /// Tokens of each request, `max_spec_len + 1` of them, -1 after the last.
    pub output_token_ids: Buffer<i32>,
    token_seeds: Buffer<i64>,
    token_positions: Buffer<i64>,
}

impl Batch {
    /// The batch of `speculation` on `device`.
    pub fn new(device: &Device, speculation: &Speculation, settings: &Settings) -> Result<Batch> {
        let requests = speculation.requests();
        let (batch_size, num_tokens) = (requests.len(), speculation.draft_token_ids.len());
        let max_spec_len = speculation.max_spec_len();
        let seeds: Vec<i64> = (0..).take(batch_size).map(|request| settings.seed.wrapping_add(request)).collect();
        let ends: Vec<i64> = requests.iter().map(|tokens| tokens.len() as i64).collect();
        let positions: Vec<i64> = ends.iter().flat_map(|&end| 0..end).collect();
        let rates = settings.synthetic_rates.as_ref();
        Ok(Batch {
            device: device.clone(),
            batch_size,
            num_tokens,
            vocab_size: speculation.target_logits.vocab_size,
            max_spec_len,
            cu_num_draft_tokens: Buffer::from_slice(device, &speculation.cu_num_draft_tokens)?,
            draft_token_ids: Buffer::from_slice(device, &speculation.draft_token_ids)?,
            seeds: Buffer::from_slice(device, &seeds)?,
            first_positions: Buffer::zeros(device, batch_size)?,
            bonus_positions: Buffer::from_slice(device, &ends)?,
            uniform_probs: Buffer::zeros(device, num_tokens)?,
            synthetic_rates: rates.map(|rates| Buffer::from_slice(device, rates)).transpose()?,
            output_token_ids: Buffer::zeros(device, batch_size * (max_spec_len + 1))?,
            token_seeds: Buffer::zeros(device, num_tokens)?,
            token_positions: Buffer::from_slice(device, &positions)?,
        })
    }

    /// Gives each drafted token the value of its request.
    pub fn expand<T: ExpandT>(&self, input: &Buffer<T>, output: &mut Buffer<T>) -> Result<()> {
        expand(input.view(), output.view_mut(), self.cu_num_draft_tokens.view(), &self.device)
    }

    /// Draws the uniforms that the drafts are judged with.
    pub fn draw_uniform_probs(&mut self) -> Result<()> {
        let cu_num_tokens = self.cu_num_draft_tokens.view();
        expand(self.seeds.view(), self.token_seeds.view_mut(), cu_num_tokens, &self.device)?;
        DrawUniformProbs {
            output: self.uniform_probs.view_mut(),
            seeds: self.token_seeds.view(),
            positions: self.token_positions.view(),
            purpose: Purpose::Acceptance.into(),
        }
        .launch(&self.device)
    }
}

fn expand<'a, T: ExpandT>(
    input: View<'a, T>,
    output: ViewMut<'a, T>,
    cu_num_tokens: View<'a, i32>,
    device: &Device,
) -> Result<()> {
    Expand { output, input, cu_num_tokens }.launch(device)
}
