//! What changes logits before a token is drawn, in vLLM V1's order: allowed tokens, bad words, min tokens, logit bias, penalties.

use crate::device::Device;
use crate::error::Result;
use crate::kernels::{ApplyBadWords, ApplyLogitBias, ApplyMinTokens, ApplyPenalties, ApplyTokenBitmask};
use crate::view::{View, ViewMut};

/// The processors of a step. What is absent does nothing; what is given has a value for every row, one without effect where a
/// request does not use it.
///
/// ```
/// use tidelock::sampling::{LogitBias, LogitsProcessors};
/// use tidelock::{AsView, AsViewMut, Device};
///
/// let (token_ids, bias, cu_logit_bias) = ([2i32], [5.0f32], [1i32]);
/// let bias = LogitBias { token_ids: token_ids.view(), bias: bias.view(), cu_logit_bias: cu_logit_bias.view() };
/// let mut logits = [0.5f32, 1.0, 2.0];
/// let processors = LogitsProcessors { logit_bias: Some(bias), ..Default::default() };
/// processors.apply(logits.view_mut().matrix(1, 3)?, &Device::Cpu)?;
/// assert_eq!(logits, [0.5, 1.0, 7.0]);
/// # Ok::<(), tidelock::Error>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct LogitsProcessors<'a> {
    /// Allowed tokens of each row, a bit a token: i32 `[num_rows, ceil(vocab_size / 32)]`; a grammar's, or of `mark_tokens`.
    pub token_bitmask: Option<View<'a, i32>>,
    /// Words that must not be completed.
    pub bad_words: Option<BadWords<'a>>,
    /// Stop tokens of outputs that are still too short.
    pub min_tokens: Option<MinTokens<'a>>,
    /// What is added to the logits of single tokens.
    pub logit_bias: Option<LogitBias<'a>>,
    /// Penalties for tokens that were there before.
    pub penalties: Option<Penalties<'a>>,
}

/// Bad words of each row, and the outputs that they would end.
#[derive(Clone, Copy)]
pub struct BadWords<'a> {
    /// Where each row's words end: i32 `[num_rows]`, inclusive sums.
    pub cu_bad_words: View<'a, i32>,
    /// Where each word's ids end: i32 `[num_bad_words]`, inclusive sums.
    pub cu_bad_word_tokens: View<'a, i32>,
    /// The ids of all words: i32.
    pub bad_word_token_ids: View<'a, i32>,
    /// Where each row's output ends: i32 `[num_rows]`, inclusive sums.
    pub cu_output_tokens: View<'a, i32>,
    /// The ids of all outputs: i32.
    pub output_token_ids: View<'a, i32>,
}

/// How long each output has to be, and what would end it.
#[derive(Clone, Copy)]
pub struct MinTokens<'a> {
    /// i32 `[num_rows]`.
    pub min_tokens: View<'a, i32>,
    /// i32 `[num_rows]`.
    pub output_lens: View<'a, i32>,
    /// Stop tokens of all rows: i32.
    pub stop_token_ids: View<'a, i32>,
    /// Where each row's stop tokens end: i32 `[num_rows]`, inclusive sums.
    pub cu_stop_token_ids: View<'a, i32>,
    /// Rows whose stop tokens stay when no other is left: bool `[num_rows]`.
    pub restore_when_all_masked: View<'a, bool>,
}

/// Biases of single tokens.
#[derive(Clone, Copy)]
pub struct LogitBias<'a> {
    /// The token of each bias: i32 `[num_logit_bias]`.
    pub token_ids: View<'a, i32>,
    /// f32 `[num_logit_bias]`.
    pub bias: View<'a, f32>,
    /// Where each row's biases end: i32 `[num_rows]`, inclusive sums.
    pub cu_logit_bias: View<'a, i32>,
}

/// Repetition, frequency and presence penalties.
#[derive(Clone, Copy)]
pub struct Penalties<'a> {
    /// How often each token is in the output: i32 `[num_rows, vocab_size]`, of `count_tokens`.
    pub output_token_counts: View<'a, i32>,
    /// Which tokens are in the prompt: i32 `[num_rows, ceil(vocab_size / 32)]`, of `mark_tokens`.
    pub prompt_bitmask: View<'a, i32>,
    /// f32 `[num_rows]`; 1 is none.
    pub repetition: View<'a, f32>,
    /// f32 `[num_rows]`; 0 is none.
    pub frequency: View<'a, f32>,
    /// f32 `[num_rows]`; 0 is none.
    pub presence: View<'a, f32>,
}

impl LogitsProcessors<'_> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.token_bitmask.is_none()
            && self.bad_words.is_none()
            && self.min_tokens.is_none()
            && self.logit_bias.is_none()
            && self.penalties.is_none()
    }

    /// Applies all to `logits`, f32 `[num_rows, vocab_size]`.
    ///
    /// # Errors
    /// Where views do not fit each other or the device.
    pub fn apply(&self, mut logits: ViewMut<'_, f32>, device: &Device) -> Result<()> {
        if let Some(bitmask) = self.token_bitmask {
            ApplyTokenBitmask { logits: logits.reborrow(), bitmask }.launch(device)?;
        }
        if let Some(BadWords {
            cu_bad_words,
            cu_bad_word_tokens,
            bad_word_token_ids,
            cu_output_tokens,
            output_token_ids,
        }) = self.bad_words
        {
            ApplyBadWords {
                logits: logits.reborrow(),
                cu_bad_words,
                cu_bad_word_tokens,
                bad_word_token_ids,
                cu_output_tokens,
                output_token_ids,
            }
            .launch(device)?;
        }
        if let Some(MinTokens { min_tokens, output_lens, stop_token_ids, cu_stop_token_ids, restore_when_all_masked }) =
            self.min_tokens
        {
            ApplyMinTokens {
                logits: logits.reborrow(),
                min_tokens,
                output_lens,
                stop_token_ids,
                cu_stop_token_ids,
                restore_when_all_masked,
            }
            .launch(device)?;
        }
        if let Some(LogitBias { token_ids: bias_token_ids, bias: logit_bias, cu_logit_bias }) = self.logit_bias {
            ApplyLogitBias { logits: logits.reborrow(), bias_token_ids, logit_bias, cu_logit_bias }.launch(device)?;
        }
        if let Some(Penalties { output_token_counts, prompt_bitmask, repetition, frequency, presence }) = self.penalties
        {
            ApplyPenalties {
                logits: logits.reborrow(),
                output_token_counts,
                prompt_bitmask,
                repetition_penalties: repetition,
                frequency_penalties: frequency,
                presence_penalties: presence,
            }
            .launch(device)?;
        }
        Ok(())
    }
}
