"""Logarithms of probabilities, and where a token stands among them. Its twin is src/cpu/logprobs.rs.

The logarithm of a row's sum is one number, taken in f64 from the integer sum of mass.py; so a token that is almost
certain still has a logprob below 0. Nothing but log_softmax itself writes a row of the vocabulary.
"""

import triton
import triton.language as tl

from exact import ln_f64, scale_of
from mass import FIXED_ONE, row_total
from order import key_of, logit_of, tile_of
from race import tiles

BEFORE_ALL = tl.constexpr(-9223372036854775808)
NOWHERE = tl.constexpr(9223372036854775807)
LOW_WORD = tl.constexpr(0xFFFFFFFF)


@triton.jit
def shifted(x, top):
    """The logit measured from the largest, which is 0 even where it is infinite."""
    return tl.where(x == top, 0.0, x - top)


@triton.jit
def log_total(logits, vocab_size):
    """The largest logit, whether the row has a distribution, and the logarithm of the sum of exp(x - top) over it."""
    high, low = scale_of(tl.full([], 1.0, tl.float32))
    top, valid, total = row_total(logits, high, low, vocab_size)
    return top, valid, ln_f64(tl.maximum(total, 1).to(tl.float64) * (1 / FIXED_ONE)).to(tl.float32)


@triton.jit
def log_softmax_kernel(logprobs, logits, vocab_size, logprobs_stride, logits_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logprobs += row * logprobs_stride
    logits += row * logits_stride
    top, valid, total = log_total(logits, vocab_size)
    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        x, tokens = tile_of(logits, tile, vocab_size, BLOCK_SIZE)
        logprob = tl.where(valid, shifted(x, top) - total, float("-inf"))
        tl.store(logprobs + tokens, logprob, mask=tokens < vocab_size)


@triton.jit
def gather_logprobs_kernel(logprobs, ranks, logits, token_ids, vocab_size, logits_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * logits_stride
    token = tl.load(token_ids + row)
    known = (token >= 0) & (token < vocab_size)
    chosen = tl.load(logits + token, mask=known, other=float("-inf")).to(tl.float32)
    top, valid, total = log_total(logits, vocab_size)
    as_likely = tl.zeros([BLOCK_SIZE], tl.int32)
    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        x, tokens = tile_of(logits, tile, vocab_size, BLOCK_SIZE)
        as_likely += ((tokens < vocab_size) & (x >= chosen)).to(tl.int32)
    defined = valid & known
    tl.store(logprobs + row, tl.where(defined, shifted(chosen, top) - total, float("-inf")))
    tl.store(ranks + row, tl.where(defined, tl.sum(as_likely), 0))


@triton.jit
def top_logprobs_kernel(logprobs, token_ids, logits, num_logprobs, vocab_size, logprobs_stride, token_ids_stride,
                        logits_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logprobs += row * logprobs_stride
    token_ids += row * token_ids_stride
    logits += row * logits_stride
    top, valid, total = log_total(logits, vocab_size)
    # A token's place orders it by its key, the largest first, then by its id: no two tokens share one.
    place = tl.full([], BEFORE_ALL, tl.int64)
    for column in range(0, num_logprobs):
        following = tl.full([BLOCK_SIZE], NOWHERE, tl.int64)
        for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
            x, tokens = tile_of(logits, tile, vocab_size, BLOCK_SIZE)
            its = (~key_of(x) << 32) | tokens.to(tl.int64)
            following = tl.minimum(following, tl.where((x > float("-inf")) & (its > place), its, NOWHERE))
        place = tl.min(following)
        found = valid & (place < NOWHERE)
        logprob = shifted(logit_of(~(place >> 32)), top) - total
        tl.store(logprobs + column, tl.where(found, logprob, float("-inf")))
        tl.store(token_ids + column, tl.where(found, place & LOW_WORD, -1).to(tl.int32))
