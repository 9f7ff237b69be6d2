"""The order of a row's logits: the largest first, and of equal ones the lowest token. Its twin is src/cpu/order.rs.

Selection compares integers, which have no NaN, no rounding and one zero: the key of a logit is the integer that
orders as it does. Which tokens are chosen is then a matter of counting, so it depends on no order of execution.
"""

import triton
import triton.language as tl

from race import tiles


@triton.jit
def tile_of(logits, tile, vocab_size, BLOCK_SIZE: tl.constexpr):
    """One tile of a row as f32, -inf outside the vocabulary; and its tokens."""
    tokens = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    return tl.load(logits + tokens, mask=tokens < vocab_size, other=float("-inf")).to(tl.float32), tokens


@triton.jit
def largest(logits, vocab_size, BLOCK_SIZE: tl.constexpr):
    """The largest logit, and whether the row has a distribution: no NaN, and something above -inf."""
    best = tl.full([BLOCK_SIZE], float("-inf"), tl.float32)
    nan = tl.zeros([BLOCK_SIZE], tl.int32)
    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        x, _ = tile_of(logits, tile, vocab_size, BLOCK_SIZE)
        nan |= x != x
        best = tl.where(x > best, x, best)
    top = tl.max(best)
    return top, (tl.max(nan) == 0) & (top > float("-inf"))


@triton.jit
def flip(bits):
    """Between an f32's bits and the integer that orders as the f32 does; it undoes itself."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def key_of(x):
    """The key of a logit, an i32 in 64 bits. -0 has the key of 0."""
    return flip(tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)).to(tl.int64)


@triton.jit
def logit_of(key):
    """The logit with this key."""
    return flip(key.to(tl.int32)).to(tl.float32, bitcast=True)
