"""Probabilities from logits. Its twin is src/cpu/softmax.rs."""

import triton
import triton.language as tl

from exact import scale_of
from mass import FIXED_ONE, relative, row_total
from race import tiles


@triton.jit
def softmax_kernel(probs, logits, temperature, vocab_size, probs_stride, logits_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    probs += row * probs_stride
    logits += row * logits_stride
    temperature = tl.load(temperature + row)
    high, low = scale_of(tl.abs(temperature))  # -0 is 0
    top, valid, total = row_total(logits, high, low, vocab_size)
    valid = valid & (temperature >= 0)
    part = tl.div_rn(1.0, total.to(tl.float32) * (1 / FIXED_ONE))
    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        offsets = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        inside = offsets < vocab_size
        x = tl.load(logits + offsets, mask=inside, other=float("-inf")).to(tl.float32)
        tl.store(probs + offsets, tl.where(valid, relative(x, top, high, low) * part, 0.0), mask=inside)


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
