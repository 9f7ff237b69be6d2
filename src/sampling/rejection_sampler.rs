//! Verifies drafted tokens: by the ratio of probabilities, as vLLM V1's class of this name does, or by drawing from the target.

use super::logits::Logits;
use super::rejection_scratch::{RejectionScratch, part_words};
use super::topk_topp_sampler::{SampledNoise, TopKTopPSampler, with_sampled_noise};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernels::RejectionGreedySample;
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

/// A batch of requests with drafts. Optional parameters are off for all requests where they are absent.
#[derive(Clone, Copy)]
pub struct SpecDecodeMetadata<'a> {
    /// Where each request's drafts end: i32 `[batch_size]`, inclusive sums.
    pub cu_num_draft_tokens: View<'a, i32>,
    /// Drafted tokens: i32 `[num_tokens]`, -1 for a placeholder.
    pub draft_token_ids: View<'a, i32>,
    /// Temperature of each request: f32 `[batch_size]`; 0 for greedy.
    pub temperature: View<'a, f32>,
    /// Which requests are greedy, bool `[batch_size]`: those of temperature 0. Absent where `all_greedy` or `all_random` says it.
    pub is_greedy: Option<View<'a, bool>>,
    /// Every request is greedy.
    pub all_greedy: bool,
    /// No request is greedy.
    pub all_random: bool,
    /// i32 `[batch_size]`.
    pub top_k: Option<View<'a, i32>>,
    /// f32 `[batch_size]`.
    pub top_p: Option<View<'a, f32>>,
    /// f32 `[batch_size]`.
    pub min_p: Option<View<'a, f32>>,
    /// Seed of each request: i64 `[batch_size]`.
    pub seeds: View<'a, i64>,
    /// Position of each drafted token in its request's sequence: i64 `[num_tokens]`.
    pub positions: View<'a, i64>,
    /// Position of each request's first draft: i64 `[batch_size]`.
    pub first_positions: View<'a, i64>,
    /// Acceptance rate at each position, f32 `[max_spec_len]`, instead of a judgement.
    pub synthetic_conditional_rates: Option<View<'a, f32>>,
}

/// Verifies drafts. What cannot be honoured is refused, never ignored.
///
/// ```
/// use tidelock::sampling::{RejectionSampler, RejectionScratch, SpecDecodeMetadata, Verification};
/// use tidelock::{AsView, AsViewMut, Device};
///
/// let device = Device::Cpu;
/// let sampler = RejectionSampler::new(true, Verification::Rejection);
/// let mut scratch = RejectionScratch::new(&sampler, 1, 2, 4, &device)?; // a request, two drafts, four tokens
/// // Greedy: the first draft is the target's choice, the second is not and is replaced by it.
/// let target_logits = [0.0f32, 9.0, 0.0, 0.0, 0.0, 0.0, 9.0, 0.0];
/// let metadata = SpecDecodeMetadata {
///     cu_num_draft_tokens: [2i32].view(),
///     draft_token_ids: [1i32, 3].view(),
///     temperature: [0.0f32].view(),
///     is_greedy: None,
///     all_greedy: true,
///     all_random: false,
///     top_k: None,
///     top_p: None,
///     min_p: None,
///     seeds: [7i64].view(),
///     positions: [10i64, 11].view(),
///     first_positions: [10i64].view(),
///     synthetic_conditional_rates: None,
/// };
/// let (mut tokens, bonus) = ([0i32; 3], [0i32]);
/// let target_logits = target_logits.view().matrix(2, 4)?.into();
/// let output = tokens.view_mut().matrix(1, 3)?;
/// sampler.forward(output, target_logits, None, bonus.view(), &metadata, &mut scratch, &device)?;
/// assert_eq!(tokens, [1, 2, -1]);
/// # Ok::<(), tidelock::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RejectionSampler {
    sampler: TopKTopPSampler,
    verification: Verification,
}

impl RejectionSampler {
    /// `use_fp64_gumbel`: every race draws 64-bit noise.
    pub fn new(use_fp64_gumbel: bool, verification: Verification) -> RejectionSampler {
        RejectionSampler { sampler: TopKTopPSampler::new(use_fp64_gumbel), verification }
    }

    /// How drafts are judged.
    pub fn verification(&self) -> Verification {
        self.verification
    }

    /// What draws from the target.
    pub fn sampler(&self) -> TopKTopPSampler {
        self.sampler
    }

    /// What the bonus token of each request must be drawn for, so that its noise is its own, or, with sampled verification, that
    /// of the same token without drafts.
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
    /// certain); `bonus_token_ids` i32 `[batch_size]`, drawn for [`RejectionSampler::bonus_purpose`]. On a GPU it allocates nothing
    /// and does not synchronise.
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
        let tokens = target_logits.num_rows();
        let mut step =
            Step { sampler: self.sampler, target_logits, tokens, bonus_token_ids, metadata, scratch, device };
        step.scratch.tokens.expand(metadata, tokens, device)?;
        match self.verification {
            Verification::Rejection => step.reject(output_token_ids, draft_probs),
            Verification::Sampled => step.compare(output_token_ids),
        }
    }

    fn check(
        &self,
        target_logits: Logits<'_>,
        draft_probs: Option<View<'_, f32>>,
        metadata: &SpecDecodeMetadata<'_>,
        scratch: &RejectionScratch,
    ) -> Result<()> {
        let refuse = |expected: String, got: &str| Err(Error::sampling("RejectionSampler", expected, got));
        let (requests, tokens) = (metadata.cu_num_draft_tokens.layout().columns(), target_logits.num_rows());
        if requests > scratch.max_requests || tokens > scratch.max_tokens {
            let expected = format!("at most {} requests and {} tokens", scratch.max_requests, scratch.max_tokens);
            return refuse(expected, &format!("{requests} and {tokens}"));
        }
        if requests > 0 && metadata.all_greedy && metadata.all_random {
            return refuse("all_greedy or all_random".into(), "both");
        }
        if requests > 0 && !metadata.all_greedy && !metadata.all_random && metadata.is_greedy.is_none() {
            return refuse("is_greedy where requests are neither all greedy nor all random".into(), "none");
        }
        if self.verification == Verification::Sampled && draft_probs.is_some() {
            return refuse("no draft probabilities with sampled verification".into(), "some");
        }
        if self.verification == Verification::Sampled && metadata.synthetic_conditional_rates.is_some() {
            return refuse("no synthetic rates with sampled verification".into(), "some");
        }
        self.sampler.check("RejectionSampler", target_logits, &scratch.sampling)?;
        if metadata.synthetic_conditional_rates.is_some() && scratch.synthetic.is_none() {
            return refuse("scratch made with_synthetic_rates".into(), "other scratch");
        }
        Ok(())
    }
}

/// One call, with all that its parts share.
struct Step<'a, 'b> {
    sampler: TopKTopPSampler,
    target_logits: Logits<'a>,
    tokens: usize,
    bonus_token_ids: View<'a, i32>,
    metadata: &'a SpecDecodeMetadata<'a>,
    scratch: &'b mut RejectionScratch,
    device: &'a Device,
}

impl Step<'_, '_> {
    /// Greedy requests keep what equals the most likely token; the others keep by ratio, or at synthetic rates.
    fn reject(&mut self, mut output: ViewMut<'_, i32>, draft_probs: Option<View<'_, f32>>) -> Result<()> {
        let (metadata, rates) = (self.metadata, self.metadata.synthetic_conditional_rates);
        if let (Some(_), Some(synthetic)) = (rates, &mut self.scratch.synthetic) {
            synthetic.draw_uniform_probs(self.scratch.tokens.seeds(self.tokens)?, metadata.positions, self.device)?;
        }
        if !metadata.all_random {
            let RejectionScratch { target_token_ids, sampling, .. } = &mut *self.scratch;
            let target_token_ids = target_token_ids.view_mut().slice(0..self.tokens)?;
            self.sampler.greedy(target_token_ids, self.target_logits, sampling, self.device)?;
            let is_greedy = if metadata.all_greedy { None } else { metadata.is_greedy };
            self.keep_equal(output.reborrow(), is_greedy, rates)?;
        }
        if metadata.all_greedy {
            return Ok(());
        }
        self.keep_random(output, draft_probs)
    }

    /// Verifies the requests that are not greedy, after top-k, top-p and min-p where a request has them.
    fn keep_random(&mut self, output: ViewMut<'_, i32>, draft_probs: Option<View<'_, f32>>) -> Result<()> {
        let (metadata, bonus, device) = (self.metadata, self.bonus_token_ids, self.device);
        let (rows, requests) = (self.tokens, metadata.cu_num_draft_tokens.layout().columns());
        let RejectionScratch { sampling, tokens, recovered_noise, parts, no_greedy, ones, synthetic, .. } =
            &mut *self.scratch;
        let of_tokens = tokens.metadata(metadata, rows)?;
        let (mut logits, mut temperature, mut token_temperature) =
            (self.target_logits, metadata.temperature, of_tokens.temperature);
        if of_tokens.filters() {
            self.sampler.filter(logits, &of_tokens, sampling, device)?;
            logits = sampling.filtered(rows)?.into();
            (temperature, token_temperature) = (ones.view().slice(0..requests)?, ones.view().slice(0..rows)?);
        }
        if let (Some(_), Some(synthetic)) = (metadata.synthetic_conditional_rates, synthetic) {
            return synthetic.keep(output, logits, token_temperature, draft_probs, bonus, metadata, device);
        }
        let is_greedy = match metadata.is_greedy {
            Some(is_greedy) if !metadata.all_random => is_greedy,
            _ => no_greedy.view().slice(0..requests)?,
        };
        let parts = parts.view_mut().matrix(requests, part_words(logits.vocab_size()))?;
        with_sampled_noise!(recovered_noise, requests, noise => {
            logits.verify(output, noise, parts, draft_probs, temperature, is_greedy, bonus, metadata, device)
        })
    }

    /// Draws from the target at every position, as a request without drafts would, and keeps what equals it.
    fn compare(&mut self, output: ViewMut<'_, i32>) -> Result<()> {
        let RejectionScratch { tokens, sampling, target_token_ids, .. } = &mut *self.scratch;
        let rows = tokens.metadata(self.metadata, self.tokens)?;
        let drawn = target_token_ids.view_mut().slice(0..self.tokens)?;
        self.sampler.forward(drawn, self.target_logits, &rows, Purpose::Sample, sampling, self.device)?;
        self.keep_equal(output, None, None)
    }

    /// Keeps drafts while they equal the target's tokens.
    fn keep_equal(
        &self,
        mut output: ViewMut<'_, i32>,
        is_greedy: Option<View<'_, bool>>,
        synthetic_conditional_rates: Option<View<'_, f32>>,
    ) -> Result<()> {
        let synthetic = synthetic_conditional_rates.and(self.scratch.synthetic.as_ref());
        let uniform_probs = synthetic.map(|synthetic| synthetic.uniform_probs(self.tokens));
        RejectionGreedySample {
            output_token_ids: output.reborrow(),
            cu_num_draft_tokens: self.metadata.cu_num_draft_tokens,
            draft_token_ids: self.metadata.draft_token_ids,
            target_argmax: self.scratch.target_token_ids.view().slice(0..self.tokens)?,
            bonus_token_ids: self.bonus_token_ids,
            is_greedy,
            uniform_probs: uniform_probs.transpose()?,
            synthetic_conditional_rates,
        }
        .launch(self.device)
    }
}
