"""Probabilities from logits. Its twin is src/cpu/softmax.rs.

Floating-point sums depend on their order, and a GPU sums in no order that a CPU would choose. So each term, which
lies in [0, 1], is cut to a multiple of 2^-40 and the sum is taken in 64-bit integers, where order does not matter.
The largest term is 1, so what is cut off is below 2^-40 of the sum for each token; up to 2^22 tokens cannot overflow.
"""

import triton
import triton.language as tl

from exact import exp
from race import tiles

FIXED_ONE = tl.constexpr(1099511627776.0)  # 2^40


@triton.jit
def term(x, top, temperature):
    """exp((x - top) / temperature), which is 1 for the largest logits at every temperature."""
    return tl.where(x == top, 1.0, exp(tl.div_rn(x - top, temperature)))


@triton.jit
def softmax_kernel(probs, logits, temperature, vocab_size, probs_stride, logits_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    probs += row * probs_stride
    logits += row * logits_stride
    temperature = tl.load(temperature + row)

    best = tl.full([BLOCK_SIZE], float("-inf"), tl.float32)
    nan = tl.zeros([BLOCK_SIZE], tl.int32)
    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        offsets = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits + offsets, mask=offsets < vocab_size, other=float("-inf")).to(tl.float32)
        nan |= x != x
        best = tl.where(x > best, x, best)
    top = tl.max(best)
    valid = (tl.max(nan) == 0) & (top > float("-inf")) & (temperature >= 0)
    temperature = tl.abs(temperature)  # -0 is 0

    sums = tl.zeros([BLOCK_SIZE], tl.int64)
    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        offsets = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits + offsets, mask=offsets < vocab_size, other=float("-inf")).to(tl.float32)
        sums += (term(x, top, temperature) * FIXED_ONE).to(tl.int64)  # outside the row the term is 0
    total = tl.sum(sums).to(tl.float32) * (1 / FIXED_ONE)

    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        offsets = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        inside = offsets < vocab_size
        x = tl.load(logits + offsets, mask=inside, other=float("-inf")).to(tl.float32)
        p = tl.where(valid, tl.div_rn(term(x, top, temperature), total), 0.0)
        tl.store(probs + offsets, p, mask=inside)


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
