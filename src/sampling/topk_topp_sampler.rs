//! Draws a token of each row after top-k, top-p and min-p: the last step of sampling, as vLLM V1's class of this name is.

use super::logits::{Filters, Logits};
use super::metadata::SamplingMetadata;
use super::scratch::scratch_words;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::purpose::Purpose;
use crate::view::{AsView, AsViewMut, View, ViewMut};

/// Draws tokens. The precision of the noise is said here, once, and is the type of the scratch memory from then on.
///
/// ```
/// use tidelock::sampling::{SamplingMetadata, SamplingScratch, TopKTopPSampler};
/// use tidelock::{AsView, AsViewMut, Device};
///
/// let sampler = TopKTopPSampler::new(true);
/// let mut scratch = SamplingScratch::new(sampler, 1, 4, &Device::Cpu)?;
/// let (temperature, top_k, seeds, positions) = ([1.0f32], [2i32], [7i64], [0i64]);
/// let metadata = SamplingMetadata {
///     temperature: temperature.view(),
///     all_greedy: false,
///     top_k: Some(top_k.view()),
///     top_p: None,
///     min_p: None,
///     seeds: seeds.view(),
///     positions: positions.view(),
/// };
/// let (logits, mut tokens) = ([1.0f32, 3.0, 2.0, 0.0], [0i32]);
/// let logits = logits.view().matrix(1, 4)?.into();
/// sampler.forward(tokens.view_mut(), logits, &metadata, tidelock::Purpose::Sample, &mut scratch, &Device::Cpu)?;
/// assert!(tokens == [1] || tokens == [2]); // the two most likely
/// # Ok::<(), tidelock::Error>(())
/// ```
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
    off: Off,
    sampled_logits: Buffer<f32>,
    sampled_noise: SampledNoise,
    race: Buffer<i64>,
    filtered_race: Buffer<i64>,
}

fn race_words(vocab_size: usize) -> usize {
    scratch_words("gumbel_sample", vocab_size)
}

fn greedy_words(vocab_size: usize) -> usize {
    scratch_words("greedy_sample", vocab_size)
}

fn filtered_race_words(vocab_size: usize) -> usize {
    scratch_words("top_k_top_p_sample", vocab_size)
}

/// Filters that keep every token.
#[derive(Debug)]
struct Off {
    top_k: Buffer<i32>,
    ones: Buffer<f32>,
    min_p: Buffer<f32>,
}

impl Off {
    /// The filters of `rows` rows, off where the metadata says none.
    fn or<'a>(&'a self, metadata: &SamplingMetadata<'a>, rows: usize) -> Result<Filters<'a>> {
        let (top_k, top_p, min_p) =
            (self.top_k.view().slice(0..rows)?, self.ones.view().slice(0..rows)?, self.min_p.view().slice(0..rows)?);
        Ok(Filters {
            top_k: metadata.top_k.unwrap_or(top_k),
            top_p: metadata.top_p.unwrap_or(top_p),
            min_p: metadata.min_p.unwrap_or(min_p),
        })
    }
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
                + (race_words(vocab_size) + filtered_race_words(vocab_size)) * size_of::<i64>())
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
            off: Off {
                top_k: Buffer::zeros(device, max_rows)?,
                ones: Buffer::from_slice(device, &vec![1.0; max_rows])?,
                min_p: Buffer::zeros(device, max_rows)?,
            },
            sampled_logits: Buffer::zeros(device, max_rows)?,
            sampled_noise: SampledNoise::new(sampler, max_rows, device)?,
            race: Buffer::zeros(device, max_rows * race_words(vocab_size))?,
            filtered_race: Buffer::zeros(device, max_rows * filtered_race_words(vocab_size))?,
        })
    }

    /// The filtered logits of the last call of [`TopKTopPSampler::filter`]: f32 `[num_rows, vocab_size]`, at temperature 1.
    ///
    /// # Errors
    /// Where there were fewer rows.
    pub fn filtered(&self, num_rows: usize) -> Result<View<'_, f32>> {
        self.filtered.view().matrix(num_rows, self.vocab_size)
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
        let SamplingScratch { filtered, off, vocab_size, .. } = scratch;
        let Filters { top_k, top_p, min_p } = off.or(metadata, rows)?;
        let filtered = filtered.view_mut().matrix(rows, *vocab_size)?;
        logits.filter(filtered, metadata.temperature, top_k, top_p, min_p, device)
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
            return self.greedy(output_token_ids, logits, scratch, device);
        }
        let SamplingScratch { off, sampled_logits, sampled_noise, race, filtered_race, vocab_size, .. } = scratch;
        let sampled = sampled_logits.view_mut().slice(0..rows)?;
        with_sampled_noise!(sampled_noise, rows, noise => match metadata.filters() {
            false => {
                let parts = race.view_mut().matrix(rows, race_words(*vocab_size))?;
                logits.race(output_token_ids, sampled, noise, parts, metadata, purpose, device)
            }
            true => {
                let parts = filtered_race.view_mut().matrix(rows, filtered_race_words(*vocab_size))?;
                let filters = off.or(metadata, rows)?;
                logits.filtered_race(output_token_ids, sampled, noise, parts, filters, metadata, purpose, device)
            }
        })
    }

    /// The most likely token of each row, -1 where a row has none.
    pub(super) fn greedy(
        self,
        output_token_ids: ViewMut<'_, i32>,
        logits: Logits<'_>,
        scratch: &mut SamplingScratch,
        device: &Device,
    ) -> Result<()> {
        let rows = self.rows(logits, scratch)?;
        let parts = scratch.race.view_mut().matrix(rows, greedy_words(scratch.vocab_size))?;
        logits.greedy(output_token_ids, parts, device)
    }

    /// The number of rows, which the scratch must have room for.
    fn rows(self, logits: Logits<'_>, scratch: &SamplingScratch) -> Result<usize> {
        let rows = logits.num_rows();
        if rows > scratch.max_rows {
            let expected = format!("at most {} rows", scratch.max_rows);
            return Err(Error::sampling("TopKTopPSampler", expected, rows.to_string()));
        }
        self.check("TopKTopPSampler", logits, scratch)?;
        Ok(rows)
    }

    /// The scratch was made for this vocabulary and this precision.
    pub(super) fn check(self, layer: &'static str, logits: Logits<'_>, scratch: &SamplingScratch) -> Result<()> {
        let (expected, vocab_size) = (scratch.vocab_size, logits.vocab_size());
        if vocab_size != expected {
            return Err(Error::sampling(layer, format!("rows of {expected} tokens"), vocab_size.to_string()));
        }
        if matches!(scratch.sampled_noise, SampledNoise::F64(_)) != self.use_fp64_gumbel {
            return Err(Error::sampling(layer, "scratch made for this sampler's use_fp64_gumbel", "another's"));
        }
        Ok(())
    }
}
