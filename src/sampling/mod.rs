//! Sampling as vLLM's V1 does it, layer by layer and by the same names, out of kernels of the registry.

mod logits;
mod noise;
mod rejection_sampler;

pub use logits::Logits;
pub use noise::{InverseExponential, Noise};
pub use rejection_sampler::{RejectionSampler, RejectionScratch, SpecDecodeMetadata, Verification};
