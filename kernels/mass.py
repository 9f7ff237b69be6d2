"""What tokens weigh against each other, in integers. Its twin is src/cpu/mass.rs.

Floating-point sums depend on their order, and a GPU sums in no order that a CPU would choose. So a weight, which lies in
[0, 1], is rounded to a multiple of 2^-40 and sums are taken in 64-bit integers, where order does not matter.

The sum of a row is taken tile by tile, each measured from its own largest logit, so that one read of a row is enough;
which tokens make a tile is part of the contract, for each tile's sum is rounded when it is measured from the row's.
"""

import triton
import triton.language as tl

from exact import weight
from order import tile_of
from race import tiles

FIXED_ONE = tl.constexpr(1099511627776.0)  # 2^40
SUM_TILE = tl.constexpr(4096)
ROUND_HIGH = tl.constexpr(13194139533312.0)  # 1.5 * 2^43: adding it rounds to a multiple of 2^20
ROUND_LOW = tl.constexpr(12582912.0)  # 1.5 * 2^23: adding it rounds to an integer


@triton.jit
def relative(x, top, high, low):
    """The weight of a logit against the largest, which is 1 for that at every temperature, infinite as it may be."""
    return tl.where(x == top, 1.0, weight(x - top, high, low))


@triton.jit
def fixed(w):
    """A weight in multiples of 2^-40, to nearest even, in two steps that f32 does exactly."""
    scaled = w * FIXED_ONE
    upper = scaled + ROUND_HIGH
    lower = (scaled - (upper - ROUND_HIGH)) + ROUND_LOW
    # An f32's bits count its last places.
    upper = upper.to(tl.int32, bitcast=True) - 0x55400000
    lower = lower.to(tl.int32, bitcast=True) - 0x4B400000
    return (upper.to(tl.int64) << 20) + lower.to(tl.int64)


@triton.jit
def mass(x, top, high, low):
    """The weight of a logit in multiples of 2^-40."""
    return fixed(relative(x, top, high, low))


@triton.jit
def row_total(logits, high, low, vocab_size):
    """The largest logit, whether the row has a distribution (no NaN, something above -inf), and the mass of its tokens."""
    top = tl.full([], float("-inf"), tl.float32)
    nan = tl.full([], 0, tl.int32)
    total = tl.full([], 0, tl.int64)
    for tile in range(0, tiles(vocab_size, SUM_TILE)):
        x, _ = tile_of(logits, tile, vocab_size, SUM_TILE)
        nan |= tl.max((x != x).to(tl.int32))
        tile_top = tl.max(tl.where(x == x, x, float("-inf")))
        top = tl.maximum(top, tile_top)
    for tile in range(0, tiles(vocab_size, SUM_TILE)):
        x, _ = tile_of(logits, tile, vocab_size, SUM_TILE)
        tile_top = tl.max(tl.where(x == x, x, float("-inf")))
        inside = x > float("-inf")
        tile_mass = tl.sum(tl.where(inside, mass(x, tile_top, high, low), 0))
        total += (tile_mass.to(tl.float64) * relative(tile_top, top, high, low).to(tl.float64)).to(tl.int64)
    return top, (nan == 0) & (top > float("-inf")), total
