//! One step and all the memory that it needs: the sampler draws the bonus tokens, the rejection sampler verifies the drafts.

use tidelock::sampling::{
    LogitsProcessors, LogprobsMode, RejectionSampler, RejectionScratch, Sampler, SamplerOutput, SamplerScratch,
    SamplingMetadata, Scratch, SpecDecodeMetadata,
};
use tidelock::{AsView, AsViewMut, Buffer, Device, Result};

use super::file::Speculation;
use super::settings::Settings;
use crate::logits::Logits;

/// A step that can be run again and then gives the same tokens.
///
/// A request's drafts are at the positions from 0 on, and its bonus token comes at the one after them. So each draw has its
/// own seed, position and purpose, whatever place the request has in the batch.
pub struct Step {
    device: Device,
    sampler: Sampler,
    sampler_scratch: SamplerScratch,
    rejection_sampler: RejectionSampler,
    rejection_scratch: RejectionScratch,
    greedy: bool,
    max_spec_len: usize,
    target_logits: Logits,
    bonus_logits: Logits,
    draft: Option<Draft>,
    synthetic_rates: Option<Buffer<f32>>,
    cu_num_draft_tokens: Buffer<i32>,
    draft_token_ids: Buffer<i32>,
    temperature: Buffer<f32>,
    seeds: Buffer<i64>,
    positions: Buffer<i64>,
    first_positions: Buffer<i64>,
    bonus_positions: Buffer<i64>,
    bonus_token_ids: Buffer<i32>,
    output_token_ids: Buffer<i32>,
}

/// The distributions that the drafts were drawn from.
struct Draft {
    logits: Logits,
    temperature: Buffer<f32>,
    probs: Buffer<f32>,
    scratch: Scratch,
}

impl Step {
    /// The step of `speculation` on `device`.
    pub fn new(device: &Device, speculation: Speculation, settings: &Settings) -> Result<Step> {
        let lengths: Vec<i64> = speculation.requests().iter().map(|tokens| tokens.len() as i64).collect();
        let (batch_size, num_tokens) = (lengths.len(), speculation.draft_token_ids.len());
        let (max_spec_len, vocab_size) = (speculation.max_spec_len(), speculation.target_logits.vocab_size);
        let sampler = Sampler::new(settings.use_fp64_gumbel, LogprobsMode::Raw);
        let rejection_sampler = RejectionSampler::new(settings.use_fp64_gumbel, settings.verification.into());
        let seeds: Vec<i64> = (0..).take(batch_size).map(|request| settings.seed.wrapping_add(request)).collect();
        let positions: Vec<i64> = lengths.iter().flat_map(|&length| 0..length).collect();
        let draft = |(logits, temperature): (Logits, f32)| {
            Ok(Draft {
                temperature: Buffer::from_slice(device, &vec![temperature; num_tokens])?,
                probs: Buffer::zeros(device, num_tokens * vocab_size)?,
                scratch: Scratch::new("softmax", num_tokens, vocab_size, device)?,
                logits,
            })
        };
        let rates = settings.synthetic_rates.as_ref();
        let new_scratch = match rates {
            Some(_) => RejectionScratch::with_synthetic_rates,
            None => RejectionScratch::new,
        };
        Ok(Step {
            sampler_scratch: SamplerScratch::new(&sampler, batch_size, vocab_size, device)?,
            rejection_scratch: new_scratch(&rejection_sampler, batch_size, num_tokens, vocab_size, device)?,
            sampler,
            rejection_sampler,
            greedy: settings.is_greedy(),
            max_spec_len,
            draft: speculation.draft_logits.zip(settings.draft_temperature).map(draft).transpose()?,
            target_logits: speculation.target_logits,
            bonus_logits: speculation.bonus_logits,
            synthetic_rates: rates.map(|rates| Buffer::from_slice(device, rates)).transpose()?,
            cu_num_draft_tokens: Buffer::from_slice(device, &speculation.cu_num_draft_tokens)?,
            draft_token_ids: Buffer::from_slice(device, &speculation.draft_token_ids)?,
            temperature: Buffer::from_slice(device, &vec![settings.temperature; batch_size])?,
            seeds: Buffer::from_slice(device, &seeds)?,
            positions: Buffer::from_slice(device, &positions)?,
            first_positions: Buffer::zeros(device, batch_size)?,
            bonus_positions: Buffer::from_slice(device, &lengths)?,
            bonus_token_ids: Buffer::zeros(device, batch_size)?,
            output_token_ids: Buffer::zeros(device, batch_size * (max_spec_len + 1))?,
            device: device.clone(),
        })
    }

    /// Launches the kernels.
    pub fn run(&mut self) -> Result<()> {
        if let Some(Draft { logits, temperature, probs, scratch }) = &mut self.draft {
            let probs = probs.view_mut().matrix(logits.rows, logits.vocab_size)?;
            logits.view()?.softmax(probs, temperature.view(), scratch, &self.device)?;
        }
        self.sample_bonus_tokens()?;
        self.verify()
    }

    /// The token that follows each request's drafts, should all be accepted.
    fn sample_bonus_tokens(&mut self) -> Result<()> {
        let metadata = SamplingMetadata {
            temperature: self.temperature.view(),
            all_greedy: self.greedy,
            top_k: None,
            top_p: None,
            min_p: None,
            seeds: self.seeds.view(),
            positions: self.bonus_positions.view(),
        };
        self.sampler.forward(
            SamplerOutput { sampled_token_ids: self.bonus_token_ids.view_mut(), logprobs: None },
            self.bonus_logits.view()?,
            &LogitsProcessors::default(),
            &metadata,
            self.rejection_sampler.bonus_purpose(),
            &mut self.sampler_scratch,
            &self.device,
        )
    }

    /// Judges the drafts and writes what came out.
    fn verify(&mut self) -> Result<()> {
        let metadata = SpecDecodeMetadata {
            cu_num_draft_tokens: self.cu_num_draft_tokens.view(),
            draft_token_ids: self.draft_token_ids.view(),
            temperature: self.temperature.view(),
            is_greedy: None,
            all_greedy: self.greedy,
            all_random: !self.greedy,
            top_k: None,
            top_p: None,
            min_p: None,
            seeds: self.seeds.view(),
            positions: self.positions.view(),
            first_positions: self.first_positions.view(),
            synthetic_conditional_rates: self.synthetic_rates.as_ref().map(Buffer::view),
        };
        let (rows, vocab_size) = (self.target_logits.rows, self.target_logits.vocab_size);
        let draft_probs = self.draft.as_ref().map(|draft| draft.probs.view().matrix(rows, vocab_size));
        self.rejection_sampler.forward(
            self.output_token_ids.view_mut().matrix(self.bonus_logits.rows, self.max_spec_len + 1)?,
            self.target_logits.view()?,
            draft_probs.transpose()?,
            self.bonus_token_ids.view(),
            &metadata,
            &mut self.rejection_scratch,
            &self.device,
        )
    }

    /// What came out: for each request a row of its tokens, -1 after the last.
    pub fn output(&self) -> Result<Vec<i32>> {
        self.output_token_ids.to_vec()
    }
}
