"""Top-k, top-p and min-p over a row of logits, exactly. Its twin is src/cpu/filter.rs.

Top-k and top-p each keep a first part of the row's order: every key above one, and of the tokens with that key the
first few. One search finds the key for both, two bits a step, from the weight of the tokens at or above a key: 1 each
for top-k, its probability mass for top-p. Mass is in multiples of 2^-40 of the largest token's, as in mass.py, and
its sums are integers; so no tolerance is needed, and no number of steps is a limit.
"""

import triton
import triton.language as tl

from exact import scale_of, weight
from mass import mass
from order import key_of, largest, logit_of, tile_of
from race import tiles

EVERY_KEY = tl.constexpr(-2147483648)  # below the key of -inf
LOWEST = tl.constexpr(-3.4028234663852886e38)


@triton.jit
def scaled(x, top, temperature):
    """The logit at its temperature, measured from the largest, which is 0 at every temperature."""
    return tl.where(x == top, 0.0, tl.div_rn(x - top, temperature))


@triton.jit
def mass_above(logits, key, top, high, low, vocab_size, BLOCK_SIZE: tl.constexpr):
    """The mass of all tokens whose key is larger."""
    sums = tl.zeros([BLOCK_SIZE], tl.int64)
    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        x, _ = tile_of(logits, tile, vocab_size, BLOCK_SIZE)
        sums += tl.where(key_of(x) > key, mass(x, top, high, low), 0)
    return tl.sum(sums)


@triton.jit
def last_key(logits, key, target, top, high, low, vocab_size, BLOCK_SIZE: tl.constexpr, BY_MASS: tl.constexpr):
    """The largest key at or above which the tokens weigh `target` or more, given one that is; and what is above it."""
    above = target * 0
    for step in range(0, 16):
        unit = tl.full([], 1 << 30, tl.int64) >> (2 * step)
        first = tl.zeros([BLOCK_SIZE], tl.int64)
        second = tl.zeros([BLOCK_SIZE], tl.int64)
        third = tl.zeros([BLOCK_SIZE], tl.int64)
        for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
            x, tokens = tile_of(logits, tile, vocab_size, BLOCK_SIZE)
            if BY_MASS:
                weight = mass(x, top, high, low)
            else:
                weight = (tokens < vocab_size).to(tl.int64)
            beyond = key_of(x) - key
            first += tl.where(beyond >= unit, weight, 0)
            second += tl.where(beyond >= 2 * unit, weight, 0)
            third += tl.where(beyond >= 3 * unit, weight, 0)
        a = tl.sum(first)
        b = tl.sum(second)
        c = tl.sum(third)
        above = tl.where(a < target, a, tl.where(b < target, b, tl.where(c < target, c, above)))
        key += unit * ((a >= target).to(tl.int64) + (b >= target).to(tl.int64) + (c >= target).to(tl.int64))
    return key, above


@triton.jit
def part(total, p):
    """p of a mass, rounded up; at least 1, since a mass of 0 would keep no token."""
    exact = tl.where(p > 0, p, 0.0).to(tl.float64) * total.to(tl.float64)
    whole = exact.to(tl.int64)
    return tl.maximum(whole + (whole.to(tl.float64) < exact).to(tl.int64), 1)


@triton.jit
def filter_logits_kernel(output, logits, temperature, top_k, top_p, min_p, vocab_size, output_stride, logits_stride,
                         BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    output += row * output_stride
    logits += row * logits_stride
    temperature = tl.load(temperature + row)
    k = tl.load(top_k + row)
    p = tl.load(top_p + row)
    min_p = tl.load(min_p + row)
    top, valid = largest(logits, vocab_size, BLOCK_SIZE)
    valid = valid & (temperature >= 0) & (p == p) & (min_p == min_p)
    temperature = tl.abs(temperature)  # -0 is 0
    high, low = scale_of(temperature)
    k = tl.where(temperature == 0, 1, k)

    # Kept so far: every token whose key is above `key`, and the first `ties` of those that have it.
    key = tl.full([], EVERY_KEY, tl.int64)
    ties = tl.full([], 0, tl.int64)
    if valid & (k > 0) & (k < vocab_size):
        target = k.to(tl.int64)
        key, above = last_key(logits, key, target, top, high, low, vocab_size, BLOCK_SIZE, False)
        ties = target - above
    if valid & (p < 1):
        total = mass_above(logits, key, top, high, low, vocab_size, BLOCK_SIZE)
        target = part(total + ties * mass(logit_of(key), top, high, low), p)
        key, above = last_key(logits, key, target, top, high, low, vocab_size, BLOCK_SIZE, True)
        each = tl.maximum(mass(logit_of(key), top, high, low), 1)
        ties = (target - above + each - 1) // each

    seen = tl.full([], 0, tl.int32)
    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        x, tokens = tile_of(logits, tile, vocab_size, BLOCK_SIZE)
        inside = tokens < vocab_size
        equal = inside & (key_of(x) == key)
        tied = seen + tl.cumsum(equal.to(tl.int32))
        seen += tl.sum(equal.to(tl.int32))
        y = scaled(x, top, temperature)
        kept = (key_of(x) > key) | (equal & (tied <= ties))
        kept = kept & valid & (x > float("-inf")) & ((x == top) | (weight(x - top, high, low) >= min_p))
        tl.store(output + tokens, tl.where(kept, tl.where(y >= LOWEST, y, LOWEST), float("-inf")), mask=inside)
