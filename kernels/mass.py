"""What tokens weigh against each other, in integers. Its twin is src/cpu/mass.rs.

Floating-point sums depend on their order, and a GPU sums in no order that a CPU would choose. So a weight, which lies in
[0, 1], is rounded to a multiple of 2^-40 and sums are taken in 64-bit integers, where order does not matter.

The sum of a row is taken tile by tile, in distribution.cuh.
"""

import triton
import triton.language as tl

from exact import weight

FIXED_ONE = tl.constexpr(1099511627776.0)  # 2^40
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
