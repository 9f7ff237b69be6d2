//! Samples a token of each row of logits: vLLM V1's `Sampler`, in its order.

use super::logits::Logits;
use super::metadata::SamplingMetadata;
use super::processors::LogitsProcessors;
use super::scratch::Scratch;
use super::topk_topp_sampler::{SamplingScratch, TopKTopPSampler};
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::purpose::Purpose;
use crate::view::{AsView, AsViewMut, ViewMut};

/// Which logits logprobs are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogprobsMode {
    /// As the model gave them.
    Raw,
    /// After the processors, the temperature, top-k, top-p and min-p: of the distribution that is drawn from.
    Processed,
}

/// Samples tokens. The precision of the noise and the meaning of logprobs are said here, once.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    topk_topp_sampler: TopKTopPSampler,
    logprobs_mode: LogprobsMode,
}

/// The memory of a step, owned by the caller and used again for the next one.
#[derive(Debug)]
pub struct SamplerScratch {
    processed: Buffer<f32>,
    sampling: SamplingScratch,
    gather: Scratch,
    top: Scratch,
}

/// Where a step leaves its tokens, and logprobs where they are asked for.
pub struct SamplerOutput<'a> {
    /// i32 `[num_rows]`; -1 where a row has no token.
    pub sampled_token_ids: ViewMut<'a, i32>,
    /// Logprobs of the tokens drawn, and of the most likely ones.
    pub logprobs: Option<LogprobsOutput<'a>>,
}

/// Where logprobs go.
pub struct LogprobsOutput<'a> {
    /// Logprob of each token drawn: f32 `[num_rows]`.
    pub sampled_logprobs: ViewMut<'a, f32>,
    /// Its rank, counted from 1: i32 `[num_rows]`.
    pub sampled_ranks: ViewMut<'a, i32>,
    /// The largest logprobs of each row: f32 `[num_rows, num_logprobs]`.
    pub top_logprobs: ViewMut<'a, f32>,
    /// Their tokens: i32 `[num_rows, num_logprobs]`.
    pub top_token_ids: ViewMut<'a, i32>,
}

impl SamplerScratch {
    /// Bytes of device memory that [`SamplerScratch::new`] takes.
    pub fn required_bytes(sampler: &Sampler, max_rows: usize, vocab_size: usize) -> usize {
        let processed = max_rows * vocab_size * size_of::<f32>();
        let logprobs = ["gather_logprobs", "top_logprobs"];
        let logprobs = logprobs.map(|kernel| Scratch::required_bytes(kernel, max_rows, vocab_size));
        let sampling = SamplingScratch::required_bytes(sampler.topk_topp_sampler, max_rows, vocab_size);
        processed + sampling + logprobs.iter().sum::<usize>()
    }

    /// Memory for steps of at most `max_rows` rows.
    ///
    /// # Errors
    /// Where the GPU has no memory left.
    pub fn new(sampler: &Sampler, max_rows: usize, vocab_size: usize, device: &Device) -> Result<SamplerScratch> {
        Ok(SamplerScratch {
            processed: Buffer::zeros(device, max_rows * vocab_size)?,
            sampling: SamplingScratch::new(sampler.topk_topp_sampler, max_rows, vocab_size, device)?,
            gather: Scratch::new("gather_logprobs", max_rows, vocab_size, device)?,
            top: Scratch::new("top_logprobs", max_rows, vocab_size, device)?,
        })
    }
}

impl Sampler {
    /// `use_fp64_gumbel`: every race draws 64-bit noise.
    pub fn new(use_fp64_gumbel: bool, logprobs_mode: LogprobsMode) -> Sampler {
        Sampler { topk_topp_sampler: TopKTopPSampler::new(use_fp64_gumbel), logprobs_mode }
    }

    /// The last layer, which draws.
    pub fn topk_topp_sampler(&self) -> TopKTopPSampler {
        self.topk_topp_sampler
    }

    /// Samples a token of each row. The logits are read and stay as they are. On a GPU it allocates
    /// nothing and does not synchronise.
    ///
    /// `purpose` is [`Purpose::Sample`], or what [`super::RejectionSampler::bonus_purpose`] says for the rows after drafts.
    ///
    /// # Errors
    /// Where views do not fit each other, the scratch or the device.
    pub fn forward(
        &self,
        mut output: SamplerOutput<'_>,
        logits: Logits<'_>,
        processors: &LogitsProcessors<'_>,
        metadata: &SamplingMetadata<'_>,
        purpose: Purpose,
        scratch: &mut SamplerScratch,
        device: &Device,
    ) -> Result<()> {
        let (rows, vocab_size) = (logits.num_rows(), logits.vocab_size());
        let SamplerScratch { processed, sampling, gather, top } = scratch;
        let mut current = logits;
        if !processors.is_empty() {
            let fits = processed.view().layout().columns() >= rows * vocab_size;
            if !fits {
                return Err(Error::sampling(
                    "Sampler",
                    "scratch for as many rows",
                    format!("{rows} of {vocab_size} tokens"),
                ));
            }
            logits.widen(processed.view_mut().matrix(rows, vocab_size)?, device)?;
            processors.apply(processed.view_mut().matrix(rows, vocab_size)?, device)?;
            current = processed.view().matrix(rows, vocab_size)?.into();
        }
        let tokens = output.sampled_token_ids.reborrow();
        self.topk_topp_sampler.forward(tokens, current, metadata, purpose, sampling, device)?;
        let Some(logprobs) = output.logprobs else { return Ok(()) };
        if self.logprobs_mode == LogprobsMode::Raw {
            return logprobs.gather(logits, &output.sampled_token_ids, gather, top, device);
        }
        // The draw needed no distribution; logprobs do.
        self.topk_topp_sampler.filter(current, metadata, sampling, device)?;
        logprobs.gather(sampling.filtered(rows)?.into(), &output.sampled_token_ids, gather, top, device)
    }
}

impl LogprobsOutput<'_> {
    fn gather(
        self,
        logits: Logits<'_>,
        tokens: &ViewMut<'_, i32>,
        gather: &mut Scratch,
        top: &mut Scratch,
        device: &Device,
    ) -> Result<()> {
        logits.gather_logprobs(self.sampled_logprobs, self.sampled_ranks, tokens.as_view(), gather, device)?;
        logits.top_logprobs(self.top_logprobs, self.top_token_ids, top, device)
    }
}
