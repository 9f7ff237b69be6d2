"""Logits as f32. Its twin is src/cpu/softmax.rs."""

import triton
import triton.language as tl


@triton.jit
def widen_logits_kernel(output, logits, vocab_size, output_stride, logits_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = offsets < vocab_size
    x = tl.load(logits + row * logits_stride + offsets, mask=inside)
    wide = x.to(tl.float32)
    # Which NaN a conversion makes of a NaN is not the same everywhere.
    wide = tl.where(wide == wide, wide, float("nan"))
    tl.store(output + row * output_stride + offsets, wide, mask=inside)
