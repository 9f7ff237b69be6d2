//! Sampling as vLLM's V1 does it, layer by layer and by the same names, out of kernels of the registry.

mod draft_proposer;
mod logits;
mod metadata;
mod noise;
mod processors;
mod rejection_sampler;
mod rejection_scratch;
mod sampler;
mod topk_topp_sampler;

pub use draft_proposer::compute_probs_and_sample_next_token;
pub use logits::Logits;
pub use metadata::SamplingMetadata;
pub use noise::{InverseExponential, Noise};
pub use processors::{BadWords, LogitBias, LogitsProcessors, MinTokens, Penalties};
pub use rejection_sampler::{RejectionSampler, SpecDecodeMetadata, Verification};
pub use rejection_scratch::RejectionScratch;
pub use sampler::{LogprobsMode, LogprobsOutput, Sampler, SamplerOutput, SamplerScratch};
pub use topk_topp_sampler::{SamplingScratch, TopKTopPSampler};
