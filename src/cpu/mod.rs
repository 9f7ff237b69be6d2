//! The CPU arms: what each kernel of `kernels/` does, in Rust, with the same bits.
//!
//! One file a family, named as its signatures and its kernels are, and one for each thing that families share. An arm
//! takes its arguments apart without `..`, so that a parameter added to a signature is a compile error here until the arm
//! has read it. By then the arguments are checked; their values are not, so an arm must do what its kernel does whatever
//! they are, and never panics over one.
//!
//! The loops with much arithmetic are compiled for several generations of processors and chosen from at run time. That
//! changes their speed and, since every step is rounded by IEEE 754, not a bit of what they return. What such a loop
//! calls must be inlined into it, or each fma becomes a call of the C library: no closures there. The targets are those of
//! x86-64; on aarch64 every processor has NEON and fma, and elsewhere the loops are compiled once, as they stand.
//!
//! Rows are run side by side, and so are the tiles of a row. Which core does what cannot be told from the result.

mod block_table;
mod drawn_race;
mod eagle;
mod exponential_race;
mod filter;
mod fly;
mod greedy;
mod gumbel;
mod gumbel_race;
mod largest;
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
mod scratch;
mod selection;
mod slots;
mod softmax;
mod topk_topp;
mod verification;
mod weights;

use half::slice::HalfFloatSliceExt;

/// Columns of a row that a core takes on at a time, so that one row is work for all cores.
const TILE: usize = 16_384;

/// A logit of any type, as the f32 of the same value.
pub trait Logit: Copy + Send + Sync {
    /// The same value; every type of logits is a part of f32.
    fn to_f32(self) -> f32;
    /// The same values, in `wide` where they are of another type. Both are equally long, or `wide` is longer.
    fn widen<'a>(logits: &'a [Self], wide: &'a mut [f32]) -> &'a [f32];
}

impl Logit for f32 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn widen<'a>(logits: &'a [f32], _: &'a mut [f32]) -> &'a [f32] {
        logits
    }
}

impl Logit for half::f16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        half::f16::to_f32(self)
    }

    #[inline(always)]
    fn widen<'a>(logits: &'a [half::f16], wide: &'a mut [f32]) -> &'a [f32] {
        let wide = &mut wide[..logits.len()];
        logits.convert_to_f32_slice(wide);
        wide
    }
}

impl Logit for half::bf16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        half::bf16::to_f32(self)
    }

    #[inline(always)]
    fn widen<'a>(logits: &'a [half::bf16], wide: &'a mut [f32]) -> &'a [f32] {
        let wide = &mut wide[..logits.len()];
        for (wide, logit) in wide.iter_mut().zip(logits) {
            *wide = f32::from_bits(u32::from(logit.to_bits()) << 16);
        }
        wide
    }
}
