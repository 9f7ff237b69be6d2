"""Random numbers of sampling. Its twins are src/philox.rs and src/cpu/noise.rs.

A number is a pure function of seed, position, token and purpose: the seed is the key of Philox4x32-10, the other
three its counter. So neither the place in a batch nor the shape of the grid can change it. One counter gives four
words, which serve four neighbouring tokens. The low word that only f64 needs comes from a second counter, whose
purpose has its top bit set. The 32 tokens of a group share their first two arrivals, from a third; src/noise.rs says why.
"""

import triton
import triton.language as tl

from exact import ln_f64, ln_reduced_f32, reduce_f32

HALF_STEP = tl.constexpr(0x80000000)
LOW_WORDS = tl.constexpr(0x80000000)
GROUP_WORDS = tl.constexpr(0x40000000)
GROUP = tl.constexpr(32)
ONE_MINUS_SQRT_HALF = tl.constexpr(0.2928932309150696)


@triton.jit
def words(seed, position, block, purpose):
    """Four words of each block of four tokens."""
    return tl.philox(seed, block, position.to(tl.uint32), (position >> 32).to(tl.uint32), purpose)


@triton.jit
def token_words(seed, position, block, purpose):
    """One word a token, in the order of the tokens."""
    a, b, c, d = words(seed, position, block, purpose)
    return tl.interleave(tl.interleave(a, c), tl.interleave(b, d))


@triton.jit
def uniform_f64(high, low):
    """The middle of one of 2^52 equal parts of (0, 1), which f64 holds exactly."""
    part = ((high.to(tl.uint64) << 32) | low.to(tl.uint64)) >> 12
    return (part.to(tl.float64) + 0.5) * 2.220446049250313e-16


@triton.jit
def exponential_f32(word):
    """-ln(u) for u in the middle of one of 2^32 equal parts, measured from the nearer end of (0, 1).

    Near 1 an f32 cannot hold u, but it holds v = 1 - u, and -log1p(-v) is as precise there as -ln(u) is near 0.
    """
    near_zero = word < HALF_STEP
    v = (tl.where(near_zero, word, ~word).to(tl.float32) + 0.5) * 2.3283064365386963e-10
    f, k = reduce_f32(v)
    halved = v > ONE_MINUS_SQRT_HALF  # 1 - v is below sqrt(1/2): 2 (1 - v) is in range
    f = tl.where(near_zero, f, tl.where(halved, tl.fma(v, -2.0, 1.0), -v))
    k = tl.where(near_zero, k, tl.where(halved, -1.0, 0.0))
    return -ln_reduced_f32(f, k)


@triton.jit
def draw_uniform_probs_kernel(output, seeds, positions, purpose, num_values, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = offsets < num_values
    seed = tl.load(seeds + offsets, mask=inside, other=0)
    position = tl.load(positions + offsets, mask=inside, other=0)
    purpose = purpose.to(tl.uint32)
    block = tl.zeros([BLOCK_SIZE], tl.uint32)
    high, _, _, _ = words(seed, position, block, purpose)
    low, _, _, _ = words(seed, position, block, purpose | LOW_WORDS)
    tl.store(output + offsets, uniform_f64(high, low), mask=inside)


@triton.jit
def draw_inverse_exponential_kernel(output, seeds, positions, purpose, vocab_size, output_stride,
                                    BLOCK_SIZE: tl.constexpr, USE_FP64_GUMBEL: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    tile = tl.program_id(1)
    seed = tl.load(seeds + row)
    position = tl.load(positions + row)
    purpose = purpose.to(tl.uint32)
    block = tile * (BLOCK_SIZE // 4) + tl.arange(0, BLOCK_SIZE // 4)
    high = token_words(seed, position, block, purpose)
    group = tile * (BLOCK_SIZE // GROUP) + tl.arange(0, BLOCK_SIZE // GROUP)
    first_high, first_low, mixed, next = words(seed, position, group, purpose | GROUP_WORDS)
    if USE_FP64_GUMBEL:
        low = token_words(seed, position, block, purpose | LOW_WORDS)
        first = -ln_f64(uniform_f64(first_high, first_low)) * (1 / GROUP)
        second = first - ln_f64(uniform_f64(next, mixed << 10)) * (1 / GROUP)
        time = -ln_f64(uniform_f64(high, low))
    else:
        first = exponential_f32(first_high) * (1 / GROUP)
        second = first + exponential_f32(next) * (1 / GROUP)
        time = exponential_f32(high)
    # A group is a row of 32.
    lane = tl.arange(0, GROUP)[None, :]
    time = second[:, None] + tl.reshape(time, [BLOCK_SIZE // GROUP, GROUP])
    time = tl.where(((mixed >> 22) & 31)[:, None] == lane, second[:, None], time)
    time = tl.where((mixed >> 27)[:, None] == lane, first[:, None], time)
    if USE_FP64_GUMBEL:
        inv_q = 1.0 / time
    else:
        inv_q = tl.div_rn(1.0, time)
    inv_q = tl.reshape(inv_q, [BLOCK_SIZE])
    offsets = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(output + row * output_stride + offsets, inv_q, mask=offsets < vocab_size)
