"""Drawing tokens straight from logits: the Gumbel-max race. Its twin is src/cpu/gumbel.rs.

The race is run with logit + temperature * noise, which is logit / temperature + noise on another scale. Each sum is
kept exactly, as its rounded value and the rest that rounding took away, so neither 1e38 nor a tiny temperature can
swallow the noise; and it knows nothing of other tokens, so shards of a vocabulary run the same race as the whole.
"""

import triton
import triton.language as tl

from exact import ln_f64, ln_reduced_f32, reduce_f32
from noise import LOW_WORDS, exponential_f32, token_words, uniform_f64
from race import NO_TOKEN, tiles, winner


@triton.jit
def draw(seed, position, block, purpose, USE_FP64_GUMBEL: tl.constexpr):
    """Gumbel noise of the four tokens of each block: -ln of exponential noise."""
    high = token_words(seed, position, block, purpose)
    if USE_FP64_GUMBEL:
        low = token_words(seed, position, block, purpose | LOW_WORDS)
        return -ln_f64(-ln_f64(uniform_f64(high, low)))
    else:
        f, k = reduce_f32(exponential_f32(high))
        return -ln_reduced_f32(f, k)


@triton.jit
def score(x, noise, temperature):
    """x + temperature * noise, rounded, and the rest: what rounding took away.

    At an infinite temperature only the noise counts. Logits of +inf compare by their noise. The rest of -inf and of
    NaN is NaN, which wins nothing.
    """
    hot = temperature == float("inf")
    x = tl.where(tl.abs(x) < float("inf"), x * tl.where(hot, 0.0, 1.0), x).to(tl.float64)
    scaled = noise.to(tl.float64) * tl.where(hot, 1.0, temperature).to(tl.float64)
    rounded = x + scaled
    part = rounded - x
    rest = (x - (rounded - part)) + (scaled - part)
    return rounded, tl.where(x == float("inf"), scaled, rest)


@triton.jit
def gumbel_sample_kernel(output_token_ids, sampled_logits, sampled_noise, logits, temperature, seeds, positions,
                         purpose, vocab_start, vocab_size, logits_stride, BLOCK_SIZE: tl.constexpr,
                         USE_FP64_GUMBEL: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * logits_stride
    temperature = tl.load(temperature + row)
    seed = tl.load(seeds + row)
    position = tl.load(positions + row)
    purpose = purpose.to(tl.uint32)
    # Four neighbouring tokens share a counter, so a vocabulary that starts among them begins a little earlier.
    first_block = vocab_start >> 2
    before = vocab_start - (first_block << 2)

    noise_type: tl.constexpr = tl.float64 if USE_FP64_GUMBEL else tl.float32
    best = tl.full([BLOCK_SIZE], float("-inf"), tl.float64)
    best_rest = tl.full([BLOCK_SIZE], float("-inf"), tl.float64)
    best_noise = tl.full([BLOCK_SIZE], float("-inf"), noise_type)
    token = tl.full([BLOCK_SIZE], NO_TOKEN, tl.int32)
    nan = tl.zeros([BLOCK_SIZE], tl.int32)
    for tile in range(0, tiles(before + vocab_size, BLOCK_SIZE)):
        block = first_block + tile * (BLOCK_SIZE // 4) + tl.arange(0, BLOCK_SIZE // 4)
        noise = draw(seed, position, block, purpose, USE_FP64_GUMBEL)
        offsets = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE) - before
        inside = (offsets >= 0) & (offsets < vocab_size)
        x = tl.load(logits + offsets, mask=inside, other=float("-inf")).to(tl.float32)
        nan |= x != x
        rounded, rest = score(x, noise, temperature)
        wins = (rounded > best) | ((rounded == best) & (rest > best_rest))
        best = tl.where(wins, rounded, best)
        best_rest = tl.where(wins, rest, best_rest)
        best_noise = tl.where(wins, noise, best_noise)
        token = tl.where(wins, offsets, token)

    leads = best == tl.max(best)
    column = winner(tl.where(leads, best_rest, float("-inf")), tl.where(leads, token, NO_TOKEN))
    logit = tl.load(logits + column, mask=column >= 0, other=float("-inf")).to(tl.float32)
    noise = tl.max(tl.where(token == column, best_noise, float("-inf")))
    valid = (tl.max(nan) == 0) & (temperature >= 0)
    tl.store(output_token_ids + row, tl.where(valid & (column >= 0), vocab_start + column, -1))
    tl.store(sampled_logits + row, tl.where(valid, logit, float("inf")))
    tl.store(sampled_noise + row, tl.where(valid, noise, float("inf")))
