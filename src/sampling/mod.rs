//! Sampling as vLLM's V1 does it, layer by layer and by the same names, out of kernels of the registry.
//!
//! [`Sampler`] samples a token of each row: the processors, then [`TopKTopPSampler`], which filters and draws. [`RejectionSampler`]
//! verifies drafts that [`compute_probs_and_sample_next_token`] drew. `use_fp64_gumbel` is said once, where a layer is made, and is the
//! type of its memory from then on; a layer that is handed memory of the other precision refuses it.
//!
//! The memory of a step is the caller's, made once with `new` (its `required_bytes` says how much) and used again. On a GPU
//! a step then allocates nothing and does not synchronise; only token ids need to go to the host. Everything a request says of itself is one value a row, so greedy, seeded,
//! filtered and unfiltered requests share a batch, and a request's tokens depend on nothing beside it.
//!
//! # What parameters mean
//!
//! | parameter, input | meaning, on both arms |
//! | --- | --- |
//! | order | allowed tokens, bad words, min tokens, logit bias, penalties; then temperature, top-k, top-p of what is left, min-p; then the draw |
//! | temperature 0 | the most likely token, the lowest id where several tie |
//! | temperature tiny, huge | as exact arithmetic would: nothing overflows, infinity gives every token above -inf the same probability |
//! | temperature negative or NaN | the row has no token |
//! | top-k of 0 or less, or of the vocabulary's size or more | off |
//! | top-k otherwise | exactly k tokens, ties by the lowest id |
//! | top-p of 1 or more; of 0 or less | off; the most likely token alone |
//! | top-p otherwise | the fewest most likely tokens that have p of the mass that top-k left |
//! | min-p of 0 or less; above 1 | off; the most likely token alone (and what ties with it) |
//! | a row with a NaN, or with nothing above -inf | the row has no token |
//! | a row that has no token | -1 |
//! | finite masks (-1e9, the least f32) | logits like any other |
//! | columns beyond the view | never looked at, so padding cannot be drawn |
//! | a drafted token of -1, or outside the vocabulary | rejected |
//! | a request without drafts | its bonus token |
//! | p = q, and so no residual | the target's own distribution |
//!
//! vLLM keeps all ties at the k-th value in its sorted path and exactly k in its kernel; here it is exactly k. It applies min-p before top-k;
//! the order here is the one in which each step sees the distribution that the one before left. It leaves min-p out of verification;
//! here a request's drafts are verified with all of its parameters, save the processors, which the target's logits must have had.
//!
//! # A step
//!
//! ```
//! use tidelock::sampling::{LogitsProcessors, LogprobsMode, Sampler, SamplerOutput, SamplerScratch, SamplingMetadata};
//! use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose};
//!
//! let device = Device::Cpu;
//! let sampler = Sampler::new(true, LogprobsMode::Raw); // f64 noise
//! let mut scratch = SamplerScratch::new(&sampler, 2, 4, &device)?; // made once
//!
//! let logits = Buffer::from_slice(&device, &[0.1f32, 3.0, -1.0, 0.5, 2.0, 2.0, 2.0, f32::NEG_INFINITY])?;
//! let temperature = Buffer::from_slice(&device, &[0.0f32, 0.8])?; // the first row is greedy
//! let (seeds, positions) = (Buffer::from_slice(&device, &[7i64, 11])?, Buffer::from_slice(&device, &[0i64, 5])?);
//! let metadata = SamplingMetadata {
//!     temperature: temperature.view(),
//!     all_greedy: false,
//!     top_k: None,
//!     top_p: None,
//!     min_p: None,
//!     seeds: seeds.view(),
//!     positions: positions.view(),
//! };
//! let mut tokens = Buffer::zeros(&device, 2)?;
//! let output = SamplerOutput { sampled_token_ids: tokens.view_mut(), logprobs: None };
//! let (logits, none) = (logits.view().matrix(2, 4)?.into(), LogitsProcessors::default());
//! sampler.forward(output, logits, &none, &metadata, Purpose::Sample, &mut scratch, &device)?;
//! let tokens = tokens.to_vec()?;
//! assert_eq!(tokens[0], 1);
//! assert!((0..3).contains(&tokens[1]));
//! # Ok::<(), tidelock::Error>(())
//! ```

mod draft_proposer;
mod logits;
mod metadata;
mod noise;
mod processors;
mod rejection_sampler;
mod rejection_scratch;
mod sampler;
mod scratch;
mod synthetic_rates;
mod topk_topp_sampler;

pub use draft_proposer::compute_probs_and_sample_next_token;
pub use logits::Logits;
pub use metadata::SamplingMetadata;
pub use noise::{InverseExponential, Noise};
pub use processors::{BadWords, LogitBias, LogitsProcessors, MinTokens, Penalties};
pub use rejection_sampler::{RejectionSampler, SpecDecodeMetadata, Verification};
pub use rejection_scratch::RejectionScratch;
pub use sampler::{LogprobsMode, LogprobsOutput, Sampler, SamplerOutput, SamplerScratch};
pub use scratch::{Scratch, scratch_words};
pub use topk_topp_sampler::{SamplingScratch, TopKTopPSampler};
