//! A step at a temperature above 0: a draft is kept by the ratio of its probabilities, and what comes out follows the
//! target's distribution.

use tidelock::kernels::{
    DrawInverseExponential, DrawInverseExponentialOutput, RandomSample, RandomSampleInvQ, RejectionRandomSample,
    SampleRecoveredTokens, SampleRecoveredTokensInvQ,
};
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose, Result};

use super::Step;
use super::batch::Batch;
use super::file::Speculation;
use super::settings::Settings;
use crate::logits::Logits;

/// The type of the noise in every race: f32, or f64 where `--use-fp64-gumbel` asks for it.
pub trait Noise: DrawInverseExponentialOutput + SampleRecoveredTokensInvQ + RandomSampleInvQ {}

impl<T: DrawInverseExponentialOutput + SampleRecoveredTokensInvQ + RandomSampleInvQ> Noise for T {}

/// The step and its memory.
pub struct Random<Q> {
    batch: Batch,
    target: Distribution,
    draft: Option<Distribution>,
    bonus: Distribution,
    inv_q: Buffer<Q>,
    recovered_token_ids: Buffer<i32>,
    bonus_token_ids: Buffer<i32>,
}

/// Logits and the probabilities that are made of them.
struct Distribution {
    logits: Logits,
    /// Temperature of each request.
    temperature: Buffer<f32>,
    /// Temperature of each row.
    row_temperature: Buffer<f32>,
    probs: Buffer<f32>,
}

impl Distribution {
    fn new(device: &Device, logits: Logits, batch_size: usize, temperature: f32) -> Result<Distribution> {
        Ok(Distribution {
            temperature: Buffer::from_slice(device, &vec![temperature; batch_size])?,
            row_temperature: Buffer::zeros(device, logits.rows)?,
            probs: Buffer::zeros(device, logits.rows * logits.vocab_size)?,
            logits,
        })
    }

    /// Of logits with a row a drafted token.
    fn of_tokens(&mut self, batch: &Batch) -> Result<()> {
        batch.expand(&self.temperature, &mut self.row_temperature)?;
        self.logits.softmax(&self.row_temperature, &mut self.probs, &batch.device)
    }

    /// Of logits with a row a request.
    fn of_requests(&mut self, batch: &Batch) -> Result<()> {
        self.logits.softmax(&self.temperature, &mut self.probs, &batch.device)
    }
}

impl<Q: Noise> Random<Q> {
    /// Takes the memory that the step needs.
    pub fn new(batch: Batch, speculation: Speculation, settings: &Settings) -> Result<Random<Q>> {
        let Batch { device, batch_size, num_tokens, vocab_size, .. } = &batch;
        let distribution = |logits, temperature| Distribution::new(device, logits, *batch_size, temperature);
        let draft = speculation.draft_logits.zip(settings.draft_temperature);
        Ok(Random {
            target: distribution(speculation.target_logits, settings.temperature)?,
            draft: draft.map(|(logits, temperature)| distribution(logits, temperature)).transpose()?,
            bonus: distribution(speculation.bonus_logits, settings.temperature)?,
            inv_q: Buffer::zeros(device, batch_size * vocab_size)?,
            recovered_token_ids: Buffer::zeros(device, *num_tokens)?,
            bonus_token_ids: Buffer::zeros(device, *batch_size)?,
            batch,
        })
    }

    /// Draws the noise of one race a request.
    fn draw_noise(&mut self, purpose: Purpose) -> Result<()> {
        let batch = &self.batch;
        let positions = if purpose == Purpose::Bonus { &batch.bonus_positions } else { &batch.first_positions };
        DrawInverseExponential {
            output: self.inv_q.view_mut().matrix(batch.batch_size, batch.vocab_size)?,
            seeds: batch.seeds.view(),
            positions: positions.view(),
            purpose: purpose.into(),
        }
        .launch(&batch.device)
    }

    /// The token that replaces each draft, should it be rejected.
    fn sample_recovered_tokens(&mut self) -> Result<()> {
        self.draw_noise(Purpose::Recovery)?;
        let Batch { device, batch_size, num_tokens, vocab_size, .. } = &self.batch;
        let draft_probs = self.draft.as_ref().map(|draft| draft.probs.view().matrix(*num_tokens, *vocab_size));
        SampleRecoveredTokens {
            output_token_ids: self.recovered_token_ids.view_mut(),
            cu_num_draft_tokens: self.batch.cu_num_draft_tokens.view(),
            draft_token_ids: self.batch.draft_token_ids.view(),
            draft_probs: draft_probs.transpose()?,
            target_probs: self.target.probs.view().matrix(*num_tokens, *vocab_size)?,
            inv_q: self.inv_q.view().matrix(*batch_size, *vocab_size)?,
        }
        .launch(device)
    }

    /// The token that follows each request's drafts, should all be accepted.
    fn sample_bonus_tokens(&mut self) -> Result<()> {
        self.draw_noise(Purpose::Bonus)?;
        let Batch { device, batch_size, vocab_size, .. } = &self.batch;
        RandomSample {
            output_token_ids: self.bonus_token_ids.view_mut(),
            probs: self.bonus.probs.view().matrix(*batch_size, *vocab_size)?,
            inv_q: self.inv_q.view().matrix(*batch_size, *vocab_size)?,
        }
        .launch(device)
    }

    /// Judges the drafts and writes what came out.
    fn verify(&mut self) -> Result<()> {
        let batch = &mut self.batch;
        let (num_tokens, vocab_size) = (batch.num_tokens, batch.vocab_size);
        let draft_probs = self.draft.as_ref().map(|draft| draft.probs.view().matrix(num_tokens, vocab_size));
        RejectionRandomSample {
            output_token_ids: batch.output_token_ids.view_mut().matrix(batch.batch_size, batch.max_spec_len + 1)?,
            cu_num_draft_tokens: batch.cu_num_draft_tokens.view(),
            draft_token_ids: batch.draft_token_ids.view(),
            draft_probs: draft_probs.transpose()?,
            target_probs: self.target.probs.view().matrix(num_tokens, vocab_size)?,
            bonus_token_ids: self.bonus_token_ids.view(),
            recovered_token_ids: self.recovered_token_ids.view(),
            uniform_probs: batch.uniform_probs.view(),
            is_greedy: None,
            synthetic_conditional_rates: batch.synthetic_rates.as_ref().map(Buffer::view),
        }
        .launch(&batch.device)
    }
}

impl<Q: Noise> Step for Random<Q> {
    fn run(&mut self) -> Result<()> {
        self.target.of_tokens(&self.batch)?;
        if let Some(draft) = &mut self.draft {
            draft.of_tokens(&self.batch)?;
        }
        self.bonus.of_requests(&self.batch)?;
        self.batch.draw_uniform_probs()?;
        self.sample_recovered_tokens()?;
        self.sample_bonus_tokens()?;
        self.verify()
    }

    fn output(&self) -> Result<Vec<i32>> {
        self.batch.output_token_ids.to_vec()
    }
}
