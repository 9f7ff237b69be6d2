//! Verifies drafted tokens, as vLLM V1's class of this name does, or by drawing from the target.

use super::logits::Logits;
use super::noise::InverseExponential;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernels::{DrawUniformProbs, Expand, RejectionGreedySample, RejectionRandomSample};
use crate::purpose::Purpose;
use crate::view::{AsView, AsViewMut, View, ViewMut};

/// How drafts are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// By the ratio of probabilities, with recovery from the residual. Needs the probabilities that drafts were drawn from.
    Rejection,
    /// By drawing from the target at every position and keeping drafts while they equal what was drawn. A seeded request's
    /// tokens then are those that it would have had without drafts.
    Sampled,
}

/// A batch of requests with drafts.
#[derive(Clone, Copy)]
pub struct SpecDecodeMetadata<'a> {
    /// Where each request's drafts end: i32 `[batch_size]`, inclusive sums.
    pub cu_num_draft_tokens: View<'a, i32>,
    /// Drafted tokens: i32 `[num_tokens]`, -1 for a placeholder.
    pub draft_token_ids: View<'a, i32>,
    /// Most drafts of a request.
    pub max_spec_len: usize,
    /// Temperature of each request: f32 `[batch_size]`; 0 for greedy.
    pub temperature: View<'a, f32>,
    /// Which requests are greedy, bool `[batch_size]`: those of temperature 0. Absent where `all_greedy` or `all_random` says it.
    pub is_greedy: Option<View<'a, bool>>,
    /// Every request is greedy.
    pub all_greedy: bool,
    /// No request is greedy.
    pub all_random: bool,
    /// Seed of each request: i64 `[batch_size]`.
    pub seeds: View<'a, i64>,
    /// Position of each drafted token in its request's sequence: i64 `[num_tokens]`.
    pub positions: View<'a, i64>,
    /// Position of each request's first draft: i64 `[batch_size]`.
    pub first_positions: View<'a, i64>,
    /// Acceptance rate at each position, f32 `[max_spec_len]`, instead of a judgement.
    pub synthetic_conditional_rates: Option<View<'a, f32>>,
}

/// The memory of a step, owned by the caller and used again for the next one.
#[derive(Debug)]
pub struct RejectionScratch {
    max_requests: usize,
    max_tokens: usize,
    use_fp64_gumbel: bool,
    target_probs: Buffer<f32>,
    token_temperature: Buffer<f32>,
    token_seeds: Buffer<i64>,
    uniform_probs: Buffer<f64>,
    noise: InverseExponential,
    recovered_token_ids: Buffer<i32>,
    target_token_ids: Buffer<i32>,
}

/// Verifies drafts. What cannot be honoured is refused when it is made or called, never ignored.
#[derive(Clone, Copy, Debug)]
pub struct RejectionSampler {
    use_fp64_gumbel: bool,
    verification: Verification,
}

impl RejectionScratch {
    /// Bytes of device memory that [`RejectionScratch::new`] takes.
    pub fn required_bytes(
        sampler: &RejectionSampler,
        max_requests: usize,
        max_tokens: usize,
        vocab_size: usize,
    ) -> usize {
        let noise_rows = sampler.noise_rows(max_requests, max_tokens);
        let per_token =
            size_of::<f32>() * (vocab_size + 1) + size_of::<i64>() + size_of::<f64>() + 2 * size_of::<i32>();
        max_tokens * per_token + noise_rows * vocab_size * InverseExponential::element_bytes(sampler.use_fp64_gumbel)
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
        let noise = sampler.noise_rows(max_requests, max_tokens) * vocab_size;
        Ok(RejectionScratch {
            max_requests,
            max_tokens,
            use_fp64_gumbel: sampler.use_fp64_gumbel,
            target_probs: Buffer::zeros(device, max_tokens * vocab_size)?,
            token_temperature: Buffer::zeros(device, max_tokens)?,
            token_seeds: Buffer::zeros(device, max_tokens)?,
            uniform_probs: Buffer::zeros(device, max_tokens)?,
            noise: InverseExponential::new(device, sampler.use_fp64_gumbel, noise)?,
            recovered_token_ids: Buffer::zeros(device, max_tokens)?,
            target_token_ids: Buffer::zeros(device, max_tokens)?,
        })
    }
}

impl RejectionSampler {
    /// `use_fp64_gumbel`: every race draws 64-bit noise.
    pub fn new(use_fp64_gumbel: bool, verification: Verification) -> RejectionSampler {
        RejectionSampler { use_fp64_gumbel, verification }
    }

    fn noise_rows(&self, max_requests: usize, max_tokens: usize) -> usize {
        match self.verification {
            Verification::Rejection => max_requests,
            Verification::Sampled => max_tokens,
        }
    }

    /// What the bonus token of each request must be drawn for, so that its noise is its own: the sampler's call for the logits
    /// after the last draft passes it on.
    pub fn bonus_purpose(&self) -> Purpose {
        match self.verification {
            Verification::Rejection => Purpose::Bonus,
            Verification::Sampled => Purpose::Sample,
        }
    }

    /// Verifies the drafts of a batch.
    ///
    /// `output_token_ids` is i32 `[batch_size, max_spec_len + 1]`: each request's tokens, -1 after the last; `target_logits`
    /// `[num_tokens, vocab_size]`, `draft_probs` f32 of the same shape, what the drafts were drawn from (absent: each was
    /// certain); `bonus_token_ids` i32 `[batch_size]`, drawn for [`RejectionSampler::bonus_purpose`]. Allocates nothing and does
    /// not synchronise.
    ///
    /// # Errors
    /// Where views do not fit each other, the scratch or the device, or a parameter cannot be honoured.
    pub fn forward(
        &self,
        output_token_ids: ViewMut<'_, i32>,
        target_logits: Logits<'_>,
        draft_probs: Option<View<'_, f32>>,
        bonus_token_ids: View<'_, i32>,
        metadata: &SpecDecodeMetadata<'_>,
        scratch: &mut RejectionScratch,
        device: &Device,
    ) -> Result<()> {
        self.check(target_logits, draft_probs, metadata, scratch)?;
        let mut step = Step { sampler: self, target_logits, metadata, scratch, device };
        match self.verification {
            Verification::Rejection => step.reject(output_token_ids, draft_probs, bonus_token_ids),
            Verification::Sampled => step.compare(output_token_ids, bonus_token_ids),
        }
    }

    fn check(
        &self,
        target_logits: Logits<'_>,
        draft_probs: Option<View<'_, f32>>,
        metadata: &SpecDecodeMetadata<'_>,
        scratch: &RejectionScratch,
    ) -> Result<()> {
        let refuse = |expected: &str, got: String| Err(Error::sampling("RejectionSampler", expected, got));
        let (requests, tokens) = (metadata.cu_num_draft_tokens.layout().columns(), target_logits.num_rows());
        if scratch.use_fp64_gumbel != self.use_fp64_gumbel {
            return refuse("scratch made for this sampler's use_fp64_gumbel", scratch.use_fp64_gumbel.to_string());
        }
        if requests > scratch.max_requests || tokens > scratch.max_tokens {
            let expected = format!("at most {} requests and {} tokens", scratch.max_requests, scratch.max_tokens);
            return refuse(&expected, format!("{requests} and {tokens}"));
        }
        if metadata.all_greedy && metadata.all_random && requests > 0 {
            return refuse("all_greedy or all_random", "both".into());
        }
        if metadata.is_greedy.is_none() && !metadata.all_greedy && !metadata.all_random && requests > 0 {
            return refuse("is_greedy for a batch that is neither all greedy nor all random", "none".into());
        }
        if self.verification == Verification::Sampled
            && (draft_probs.is_some() || metadata.synthetic_conditional_rates.is_some())
        {
            let expected = "neither draft probabilities nor synthetic rates with sampled verification";
            return refuse(expected, "one of them".into());
        }
        Ok(())
    }
}

/// One call, with all that its parts share.
struct Step<'a, 'b> {
    sampler: &'a RejectionSampler,
    target_logits: Logits<'a>,
    metadata: &'a SpecDecodeMetadata<'a>,
    scratch: &'b mut RejectionScratch,
    device: &'a Device,
}

impl Step<'_, '_> {
    fn tokens(&self) -> usize {
        self.target_logits.num_rows()
    }

    fn softmax(&mut self) -> Result<()> {
        let (tokens, vocab_size) = (self.tokens(), self.target_logits.vocab_size());
        let Step { metadata, scratch, device, target_logits, .. } = self;
        let temperature = scratch.token_temperature.view_mut().slice(0..tokens)?;
        // Tokens of nobody keep temperature 0 from the last step or before; their rows are read by nobody either.
        Expand { output: temperature, input: metadata.temperature, cu_num_tokens: metadata.cu_num_draft_tokens }
            .launch(device)?;
        let temperature = scratch.token_temperature.view().slice(0..tokens)?;
        target_logits.softmax(scratch.target_probs.view_mut().matrix(tokens, vocab_size)?, temperature, device)
    }

    fn token_seeds(&mut self) -> Result<()> {
        let tokens = self.tokens();
        let Step { metadata, scratch, device, .. } = self;
        let output = scratch.token_seeds.view_mut().slice(0..tokens)?;
        Expand { output, input: metadata.seeds, cu_num_tokens: metadata.cu_num_draft_tokens }.launch(device)
    }

    fn draw_uniform_probs(&mut self) -> Result<()> {
        let tokens = self.tokens();
        self.token_seeds()?;
        DrawUniformProbs {
            output: self.scratch.uniform_probs.view_mut().slice(0..tokens)?,
            seeds: self.scratch.token_seeds.view().slice(0..tokens)?,
            positions: self.metadata.positions,
            purpose: Purpose::Acceptance.into(),
        }
        .launch(self.device)
    }

    fn reject(
        &mut self,
        mut output_token_ids: ViewMut<'_, i32>,
        draft_probs: Option<View<'_, f32>>,
        bonus_token_ids: View<'_, i32>,
    ) -> Result<()> {
        if !self.metadata.all_greedy || self.metadata.synthetic_conditional_rates.is_some() {
            self.draw_uniform_probs()?;
        }
        if !self.metadata.all_random {
            self.verify_greedy(output_token_ids.reborrow(), bonus_token_ids)?;
        }
        if !self.metadata.all_greedy {
            self.softmax()?;
            self.sample_recovered_tokens(draft_probs)?;
            self.verify_random(output_token_ids, draft_probs, bonus_token_ids)?;
        }
        Ok(())
    }

    fn verify_greedy(&mut self, output_token_ids: ViewMut<'_, i32>, bonus_token_ids: View<'_, i32>) -> Result<()> {
        let tokens = self.tokens();
        self.target_logits.argmax(self.scratch.target_token_ids.view_mut().slice(0..tokens)?, self.device)?;
        let rates = self.metadata.synthetic_conditional_rates;
        let is_greedy = if self.metadata.all_greedy { None } else { self.metadata.is_greedy };
        self.keep_equal(output_token_ids, bonus_token_ids, is_greedy, rates)
    }

    /// Keeps drafts while they equal the target's tokens.
    fn keep_equal(
        &self,
        mut output_token_ids: ViewMut<'_, i32>,
        bonus_token_ids: View<'_, i32>,
        is_greedy: Option<View<'_, bool>>,
        synthetic_conditional_rates: Option<View<'_, f32>>,
    ) -> Result<()> {
        let tokens = self.tokens();
        let uniform_probs = synthetic_conditional_rates.map(|_| self.scratch.uniform_probs.view().slice(0..tokens));
        RejectionGreedySample {
            output_token_ids: output_token_ids.reborrow(),
            cu_num_draft_tokens: self.metadata.cu_num_draft_tokens,
            draft_token_ids: self.metadata.draft_token_ids,
            target_argmax: self.scratch.target_token_ids.view().slice(0..tokens)?,
            bonus_token_ids,
            is_greedy,
            uniform_probs: uniform_probs.transpose()?,
            synthetic_conditional_rates,
        }
        .launch(self.device)
    }

    fn sample_recovered_tokens(&mut self, draft_probs: Option<View<'_, f32>>) -> Result<()> {
        let (tokens, vocab_size) = (self.tokens(), self.target_logits.vocab_size());
        let Step { metadata, scratch, device, .. } = self;
        scratch.noise.draw(metadata.seeds, metadata.first_positions, Purpose::Recovery, vocab_size, device)?;
        scratch.noise.sample_recovered_tokens(
            scratch.recovered_token_ids.view_mut().slice(0..tokens)?,
            metadata.cu_num_draft_tokens,
            metadata.draft_token_ids,
            draft_probs,
            scratch.target_probs.view().matrix(tokens, vocab_size)?,
            device,
        )
    }

    fn verify_random(
        &mut self,
        mut output_token_ids: ViewMut<'_, i32>,
        draft_probs: Option<View<'_, f32>>,
        bonus_token_ids: View<'_, i32>,
    ) -> Result<()> {
        let (tokens, vocab_size) = (self.tokens(), self.target_logits.vocab_size());
        RejectionRandomSample {
            output_token_ids: output_token_ids.reborrow(),
            cu_num_draft_tokens: self.metadata.cu_num_draft_tokens,
            draft_token_ids: self.metadata.draft_token_ids,
            draft_probs,
            target_probs: self.scratch.target_probs.view().matrix(tokens, vocab_size)?,
            bonus_token_ids,
            recovered_token_ids: self.scratch.recovered_token_ids.view().slice(0..tokens)?,
            uniform_probs: self.scratch.uniform_probs.view().slice(0..tokens)?,
            is_greedy: if self.metadata.all_random { None } else { self.metadata.is_greedy },
            synthetic_conditional_rates: self.metadata.synthetic_conditional_rates,
        }
        .launch(self.device)
    }

    /// Draws from the target at every position, as a request without drafts would, and keeps what equals it.
    fn compare(&mut self, output_token_ids: ViewMut<'_, i32>, bonus_token_ids: View<'_, i32>) -> Result<()> {
        let (tokens, vocab_size) = (self.tokens(), self.target_logits.vocab_size());
        debug_assert_eq!(self.sampler.verification, Verification::Sampled);
        if self.metadata.all_greedy {
            self.target_logits.argmax(self.scratch.target_token_ids.view_mut().slice(0..tokens)?, self.device)?;
            return self.keep_equal(output_token_ids, bonus_token_ids, None, None);
        }
        self.softmax()?;
        self.token_seeds()?;
        let Step { metadata, scratch, device, .. } = self;
        let seeds = scratch.token_seeds.view().slice(0..tokens)?;
        scratch.noise.draw(seeds, metadata.positions, Purpose::Sample, vocab_size, device)?;
        let probs = scratch.target_probs.view().matrix(tokens, vocab_size)?;
        scratch.noise.random_sample(scratch.target_token_ids.view_mut().slice(0..tokens)?, probs, device)?;
        self.keep_equal(output_token_ids, bonus_token_ids, None, None)
    }
}
