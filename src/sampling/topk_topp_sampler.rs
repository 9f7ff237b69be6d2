//! Draws a token of each row after top-k, top-p and min-p: the last step of sampling, as vLLM V1's class of this name is.

use super::logits::{Filters, Logits};
use super::metadata::SamplingMetadata;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::purpose::Purpose;
use crate::view::{AsView, AsViewMut, View, ViewMut};

/// Draws tokens. The precision of the noise is said here, once, and is the type of the scratch memory from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopKTopPSampler {
    use_fp64_gumbel: bool,
}

/// The memory of a draw, owned by the caller and used again for the next one.
#[derive(Debug)]
pub struct SamplingScratch {
    max_rows: usize,
    vocab_size: usize,
    filtered: Buffer<f32>,
    no_top_k: Buffer<i32>,
    ones: Buffer<f32>,
    no_min_p: Buffer<f32>,
    sampled_logits: Buffer<f32>,
    sampled_noise: SampledNoise,
    parts: Buffer<i64>,
    filtering_parts: Buffer<i64>,
}

/// Words in which the blocks of a GPU that look at parts of a row meet, as `gumbel_sample` says.
const PART_WORDS: usize = 520;

/// The same of `top_k_top_p_sample`.
fn filtering_part_words(vocab_size: usize) -> usize {
    vocab_size.div_ceil(64) + 136
}

/// Runs an expression with the memory of the winner's noise, of whichever precision it is.
macro_rules! with_sampled_noise {
    ($noise:expr, $rows:expr, $view:ident => $body:expr) => {
        match $noise {
            SampledNoise::F32(buffer) => {
                let $view = buffer.view_mut().slice(0..$rows)?;
                $body
            }
            SampledNoise::F64(buffer) => {
                let $view = buffer.view_mut().slice(0..$rows)?;
                $body
            }
        }
    };
}

pub(super) use with_sampled_noise;

/// The winner's noise, in the precision that the race was run with.
#[derive(Debug)]
pub(super) enum SampledNoise {
    F32(Buffer<f32>),
    F64(Buffer<f64>),
}

impl SampledNoise {
    pub(super) fn new(sampler: TopKTopPSampler, rows: usize, device: &Device) -> Result<SampledNoise> {
        Ok(if sampler.use_fp64_gumbel {
            SampledNoise::F64(Buffer::zeros(device, rows)?)
        } else {
            SampledNoise::F32(Buffer::zeros(device, rows)?)
        })
    }
}

impl SamplingScratch {
    /// Bytes of device memory that [`SamplingScratch::new`] takes.
    pub fn required_bytes(sampler: TopKTopPSampler, max_rows: usize, vocab_size: usize) -> usize {
        let noise = if sampler.use_fp64_gumbel { size_of::<f64>() } else { size_of::<f32>() };
        max_rows
            * (vocab_size * size_of::<f32>()
                + 4 * size_of::<f32>()
                + noise
                + (PART_WORDS + filtering_part_words(vocab_size)) * size_of::<i64>())
    }

    /// Memory for draws of at most `max_rows` rows.
    ///
    /// # Errors
    /// Where the GPU has no memory left.
    pub fn new(
        sampler: TopKTopPSampler,
        max_rows: usize,
        vocab_size: usize,
        device: &Device,
    ) -> Result<SamplingScratch> {
        Ok(SamplingScratch {
            max_rows,
            vocab_size,
            filtered: Buffer::zeros(device, max_rows * vocab_size)?,
            no_top_k: Buffer::zeros(device, max_rows)?,
            ones: Buffer::from_slice(device, &vec![1.0; max_rows])?,
            no_min_p: Buffer::zeros(device, max_rows)?,
            sampled_logits: Buffer::zeros(device, max_rows)?,
            sampled_noise: SampledNoise::new(sampler, max_rows, device)?,
            parts: Buffer::zeros(device, max_rows * PART_WORDS)?,
            filtering_parts: Buffer::zeros(device, max_rows * filtering_part_words(vocab_size))?,
        })
    }

    /// The filtered logits of the last call of [`TopKTopPSampler::filter`]: f32 `[num_rows, vocab_size]`, at temperature 1.
    ///
    /// # Errors
    /// Where there were fewer rows.
    pub fn filtered(&self, num_rows: usize) -> Result<View<'_, f32>> {
        self.filtered.view().matrix(num_rows, self.vocab_size)
    }

    /// As many ones as there are rows, the temperature of filtered logits.
    pub(super) fn ones(&self, num_rows: usize) -> Result<View<'_, f32>> {
        self.ones.view().slice(0..num_rows)
    }
}

impl TopKTopPSampler {
    /// `use_fp64_gumbel`: the race draws 64-bit noise.
    pub fn new(use_fp64_gumbel: bool) -> TopKTopPSampler {
        TopKTopPSampler { use_fp64_gumbel }
    }

    /// Whether the race draws 64-bit noise.
    pub fn use_fp64_gumbel(self) -> bool {
        self.use_fp64_gumbel
    }

    /// Applies temperature, top-k, top-p and min-p, in this order; the result is [`SamplingScratch::filtered`].
    ///
    /// # Errors
    /// Where views do not fit each other, the scratch or the device.
    pub fn filter(
        self,
        logits: Logits<'_>,
        metadata: &SamplingMetadata<'_>,
        scratch: &mut SamplingScratch,
        device: &Device,
    ) -> Result<()> {
        let rows = self.rows(logits, scratch)?;
        let SamplingScratch { filtered, no_top_k, ones, no_min_p, vocab_size, .. } = scratch;
        let (no_top_k, no_top_p, no_min_p) =
            (no_top_k.view().slice(0..rows)?, ones.view().slice(0..rows)?, no_min_p.view().slice(0..rows)?);
        logits.filter(
            filtered.view_mut().matrix(rows, *vocab_size)?,
            metadata.temperature,
            metadata.top_k.unwrap_or(no_top_k),
            metadata.top_p.unwrap_or(no_top_p),
            metadata.min_p.unwrap_or(no_min_p),
            device,
        )
    }

    /// Draws a token of each row: i32 `[num_rows]`, -1 where a row has none. On a GPU it allocates
    /// nothing and does not synchronise.
    ///
    /// A row's token depends on its own logits, parameters, seed and position alone, not on the rows beside it.
    ///
    /// # Errors
    /// Where views do not fit each other, the scratch or the device.
    pub fn forward(
        self,
        output_token_ids: ViewMut<'_, i32>,
        logits: Logits<'_>,
        metadata: &SamplingMetadata<'_>,
        purpose: Purpose,
        scratch: &mut SamplingScratch,
        device: &Device,
    ) -> Result<()> {
        let rows = self.rows(logits, scratch)?;
        if metadata.all_greedy {
            return logits.argmax(output_token_ids, device);
        }
        let SamplingScratch { no_top_k, ones, no_min_p, sampled_logits, sampled_noise, parts, filtering_parts, .. } =
            scratch;
        let race = Race { metadata, purpose, sampled_logits, sampled_noise };
        if !metadata.filters() {
            return race.run(output_token_ids, logits, parts, device);
        }
        let (no_top_k, no_top_p, no_min_p) =
            (no_top_k.view().slice(0..rows)?, ones.view().slice(0..rows)?, no_min_p.view().slice(0..rows)?);
        let filters = Filters {
            top_k: metadata.top_k.unwrap_or(no_top_k),
            top_p: metadata.top_p.unwrap_or(no_top_p),
            min_p: metadata.min_p.unwrap_or(no_min_p),
        };
        race.run_filtered(output_token_ids, logits, filters, filtering_parts, device)
    }

    /// The number of rows, which the scratch must have room for.
    fn rows(self, logits: Logits<'_>, scratch: &SamplingScratch) -> Result<usize> {
        let (rows, vocab_size) = (logits.num_rows(), logits.vocab_size());
        let refuse = |expected: String, got: String| Err(Error::sampling("TopKTopPSampler", expected, got));
        if rows > scratch.max_rows || vocab_size != scratch.vocab_size {
            let expected = format!("at most {} rows of {} tokens", scratch.max_rows, scratch.vocab_size);
            return refuse(expected, format!("{rows} of {vocab_size}"));
        }
        if matches!(scratch.sampled_noise, SampledNoise::F64(_)) != self.use_fp64_gumbel {
            return refuse("scratch made for this sampler's use_fp64_gumbel".into(), "another's".into());
        }
        Ok(rows)
    }
}

/// One Gumbel race over given logits.
struct Race<'a, 'b> {
    metadata: &'a SamplingMetadata<'a>,
    purpose: Purpose,
    sampled_logits: &'b mut Buffer<f32>,
    sampled_noise: &'b mut SampledNoise,
}

impl Race<'_, '_> {
    fn run(self, tokens: ViewMut<'_, i32>, logits: Logits<'_>, parts: &mut Buffer<i64>, device: &Device) -> Result<()> {
        let rows = logits.num_rows();
        let Race { metadata, purpose, sampled_logits, sampled_noise } = self;
        let sampled = sampled_logits.view_mut().slice(0..rows)?;
        let parts = parts.view_mut().matrix(rows, PART_WORDS)?;
        with_sampled_noise!(sampled_noise, rows, noise => {
            logits.race(tokens, sampled, noise, parts, metadata, purpose, device)
        })
    }

    fn run_filtered(
        self,
        tokens: ViewMut<'_, i32>,
        logits: Logits<'_>,
        filters: Filters<'_>,
        parts: &mut Buffer<i64>,
        device: &Device,
    ) -> Result<()> {
        let rows = logits.num_rows();
        let Race { metadata, purpose, sampled_logits, sampled_noise } = self;
        let sampled = sampled_logits.view_mut().slice(0..rows)?;
        let parts = parts.view_mut().matrix(rows, filtering_part_words(logits.vocab_size()))?;
        with_sampled_noise!(sampled_noise, rows, noise => {
            logits.filtered_race(tokens, sampled, noise, parts, filters, metadata, purpose, device)
        })
    }
}
