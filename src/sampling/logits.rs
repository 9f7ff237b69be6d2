//! Logits of any type, and what is made of them by one kernel.

use half::{bf16, f16};

use super::metadata::SamplingMetadata;
use super::rejection_sampler::SpecDecodeMetadata;
use super::scratch::Scratch;
use crate::device::Device;
use crate::error::Result;
use crate::kernels::{
    Argmax, ArgmaxI, FilterLogits, GatherLogprobs, GreedySample, GumbelSample, GumbelSampleSampledNoise,
    RejectionSampleFromLogits, RejectionSampleFromLogitsRecoveredNoise, Softmax, TopKTopPSample,
    TopKTopPSampleSampledNoise, TopLogprobs, WidenLogits,
};
use crate::purpose::Purpose;
use crate::view::{View, ViewMut};

/// Logits, `[num_rows, vocab_size]` with any row stride, read as they are: no copy in f32 is made.
#[derive(Clone, Copy)]
pub enum Logits<'a> {
    /// f32.
    F32(View<'a, f32>),
    /// f16.
    F16(View<'a, f16>),
    /// bf16.
    BF16(View<'a, bf16>),
}

/// Top-k, top-p and min-p of each row.
#[derive(Clone, Copy)]
pub(super) struct Filters<'a> {
    pub(super) top_k: View<'a, i32>,
    pub(super) top_p: View<'a, f32>,
    pub(super) min_p: View<'a, f32>,
}

/// Runs an expression with the view of whichever type the logits have.
macro_rules! for_each_type {
    ($logits:expr, $view:ident => $body:expr) => {
        match $logits {
            Logits::F32($view) => $body,
            Logits::F16($view) => $body,
            Logits::BF16($view) => $body,
        }
    };
}

impl<'a> From<View<'a, f32>> for Logits<'a> {
    fn from(view: View<'a, f32>) -> Self {
        Logits::F32(view)
    }
}

impl<'a> From<View<'a, f16>> for Logits<'a> {
    fn from(view: View<'a, f16>) -> Self {
        Logits::F16(view)
    }
}

impl<'a> From<View<'a, bf16>> for Logits<'a> {
    fn from(view: View<'a, bf16>) -> Self {
        Logits::BF16(view)
    }
}

impl<'a> Logits<'a> {
    /// Rows.
    pub fn num_rows(&self) -> usize {
        for_each_type!(self, view => view.layout().rows())
    }

    /// Tokens of a row.
    pub fn vocab_size(&self) -> usize {
        for_each_type!(self, view => view.layout().columns())
    }

    /// Probabilities at each row's temperature. `probs` is f32 `[num_rows, vocab_size]`, `temperature` f32 `[num_rows]`, `scratch` was
    /// made for `softmax`.
    ///
    /// # Errors
    /// Where the views do not fit each other, the scratch or the device.
    pub fn softmax(
        self,
        mut probs: ViewMut<'_, f32>,
        temperature: View<'_, f32>,
        scratch: &mut Scratch,
        device: &Device,
    ) -> Result<()> {
        let rows = self.num_rows();
        for_each_type!(self, logits => {
            Softmax { probs: probs.reborrow(), scratch: scratch.rows(rows)?, logits, temperature }.launch(device)
        })
    }

    /// The most likely token of each row, -1 where a row has none.
    ///
    /// # Errors
    /// Where the views do not fit each other or the device.
    pub fn argmax<I: ArgmaxI>(self, mut output_token_ids: ViewMut<'_, I>, device: &Device) -> Result<()> {
        for_each_type!(self, logits => Argmax { output_token_ids: output_token_ids.reborrow(), logits }.launch(device))
    }

    /// Temperature, top-k, top-p and min-p: `output` is f32 `[num_rows, vocab_size]`, logits at temperature 1, -inf for what is
    /// removed.
    ///
    /// # Errors
    /// Where the views do not fit each other or the device.
    pub fn filter(
        self,
        mut output: ViewMut<'_, f32>,
        temperature: View<'_, f32>,
        top_k: View<'_, i32>,
        top_p: View<'_, f32>,
        min_p: View<'_, f32>,
        device: &Device,
    ) -> Result<()> {
        for_each_type!(self, logits => {
            FilterLogits { output: output.reborrow(), logits, temperature, top_k, top_p, min_p }.launch(device)
        })
    }

    /// The most likely token of each row, by as many blocks of a GPU as a draw has.
    pub(super) fn greedy(
        self,
        mut output_token_ids: ViewMut<'_, i32>,
        mut scratch: ViewMut<'_, i64>,
        device: &Device,
    ) -> Result<()> {
        for_each_type!(self, logits => {
            let (output_token_ids, scratch) = (output_token_ids.reborrow(), scratch.reborrow());
            GreedySample { output_token_ids, scratch, logits }.launch(device)
        })
    }

    /// Draws a token of each row by a Gumbel race whose noise has the type of `noise`.
    pub(super) fn race<N: GumbelSampleSampledNoise>(
        self,
        mut output_token_ids: ViewMut<'_, i32>,
        mut sampled_logits: ViewMut<'_, f32>,
        mut sampled_noise: ViewMut<'_, N>,
        mut scratch: ViewMut<'_, i64>,
        metadata: &SamplingMetadata<'_>,
        purpose: Purpose,
        device: &Device,
    ) -> Result<()> {
        let SamplingMetadata { temperature, seeds, positions, .. } = *metadata;
        let purpose = purpose.into();
        for_each_type!(self, logits => {
            GumbelSample {
                output_token_ids: output_token_ids.reborrow(),
                sampled_logits: sampled_logits.reborrow(),
                sampled_noise: sampled_noise.reborrow(),
                scratch: scratch.reborrow(),
                logits,
                temperature,
                seeds,
                positions,
                purpose,
            }
            .launch(device)
        })
    }

    /// The same race among the tokens that `filters` keep.
    pub(super) fn filtered_race<N: TopKTopPSampleSampledNoise>(
        self,
        mut output_token_ids: ViewMut<'_, i32>,
        mut sampled_logits: ViewMut<'_, f32>,
        mut sampled_noise: ViewMut<'_, N>,
        mut scratch: ViewMut<'_, i64>,
        filters: Filters<'_>,
        metadata: &SamplingMetadata<'_>,
        purpose: Purpose,
        device: &Device,
    ) -> Result<()> {
        let (SamplingMetadata { temperature, seeds, positions, .. }, Filters { top_k, top_p, min_p }) =
            (*metadata, filters);
        let purpose = purpose.into();
        for_each_type!(self, logits => {
            TopKTopPSample {
                output_token_ids: output_token_ids.reborrow(),
                sampled_logits: sampled_logits.reborrow(),
                sampled_noise: sampled_noise.reborrow(),
                scratch: scratch.reborrow(),
                logits,
                temperature,
                top_k,
                top_p,
                min_p,
                seeds,
                positions,
                purpose,
            }
            .launch(device)
        })
    }

    /// Verifies drafts by the ratio of probabilities, these logits being the target's.
    pub(super) fn verify<N: RejectionSampleFromLogitsRecoveredNoise>(
        self,
        mut output_token_ids: ViewMut<'_, i32>,
        mut recovered_noise: ViewMut<'_, N>,
        mut scratch: ViewMut<'_, i64>,
        draft_probs: Option<View<'_, f32>>,
        temperature: View<'_, f32>,
        is_greedy: View<'_, bool>,
        bonus_token_ids: View<'_, i32>,
        metadata: &SpecDecodeMetadata<'_>,
        device: &Device,
    ) -> Result<()> {
        let SpecDecodeMetadata { cu_num_draft_tokens, draft_token_ids, seeds, positions, first_positions, .. } =
            *metadata;
        for_each_type!(self, target_logits => {
            RejectionSampleFromLogits {
                output_token_ids: output_token_ids.reborrow(),
                recovered_noise: recovered_noise.reborrow(),
                scratch: scratch.reborrow(),
                cu_num_draft_tokens,
                draft_token_ids,
                draft_probs,
                target_logits,
                temperature,
                bonus_token_ids,
                is_greedy,
                seeds,
                positions,
                first_positions,
            }
            .launch(device)
        })
    }

    /// The logits as f32, each value the same.
    ///
    /// # Errors
    /// Where the views do not fit each other or the device.
    pub fn widen(self, mut output: ViewMut<'_, f32>, device: &Device) -> Result<()> {
        for_each_type!(self, logits => WidenLogits { output: output.reborrow(), logits }.launch(device))
    }

    /// Logprob and rank of one token of each row: f32 and i32 `[num_rows]`. `scratch` was made for `gather_logprobs`.
    ///
    /// # Errors
    /// Where the views do not fit each other, the scratch or the device.
    pub fn gather_logprobs(
        self,
        mut logprobs: ViewMut<'_, f32>,
        mut ranks: ViewMut<'_, i32>,
        token_ids: View<'_, i32>,
        scratch: &mut Scratch,
        device: &Device,
    ) -> Result<()> {
        let rows = self.num_rows();
        for_each_type!(self, logits => {
            let (logprobs, ranks, scratch) = (logprobs.reborrow(), ranks.reborrow(), scratch.rows(rows)?);
            GatherLogprobs { logprobs, ranks, scratch, logits, token_ids }.launch(device)
        })
    }

    /// The most likely tokens of each row and their logprobs: f32 and i32 `[num_rows, num_logprobs]`. `scratch` was made for
    /// `top_logprobs`.
    ///
    /// # Errors
    /// Where the views do not fit each other, the scratch or the device.
    pub fn top_logprobs(
        self,
        mut logprobs: ViewMut<'_, f32>,
        mut token_ids: ViewMut<'_, i32>,
        scratch: &mut Scratch,
        device: &Device,
    ) -> Result<()> {
        let rows = self.num_rows();
        for_each_type!(self, logits => {
            let (logprobs, token_ids, scratch) = (logprobs.reborrow(), token_ids.reborrow(), scratch.rows(rows)?);
            TopLogprobs { logprobs, token_ids, scratch, logits }.launch(device)
        })
    }
}
