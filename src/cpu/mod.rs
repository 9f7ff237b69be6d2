//! The CPU arms: what each kernel of `kernels/` does, in Rust, with the same bits.
//!
//! One file a family, named as its signatures and its kernels are. An arm takes its arguments apart without `..`, so
//! that a parameter added to a signature is a compile error here until the arm has read it. By then the arguments are
//! checked; their values are not, so an arm must do what its kernel does whatever they are, and never panics over one.
//!
//! The loops with much arithmetic are compiled for several generations of processors and chosen from at run time. That
//! changes their speed and, since every step is rounded by IEEE 754, not a bit of what they return. What such a loop
//! calls must be inlined into it, or each fma becomes a call of the C library: no closures there.

mod block_table;
mod eagle;
mod filter;
mod fly;
mod gumbel;
mod logits;
mod logprobs;
mod mass;
mod noise;
mod order;
mod penalties;
mod processors;
mod race;
mod ragged;
mod rejection;
mod slots;
mod softmax;

/// A logit of any type, as the f32 of the same value.
pub trait Logit: Copy + Send + Sync {
    /// The same value; every type of logits is a part of f32.
    fn to_f32(self) -> f32;
}

impl Logit for f32 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
}

impl Logit for half::f16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        half::f16::to_f32(self)
    }
}

impl Logit for half::bf16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        half::bf16::to_f32(self)
    }
}
