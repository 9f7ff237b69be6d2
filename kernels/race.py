"""Choosing one token of a row: the exponential race and the argmax. Its twin is src/cpu/race.rs.

A race over given noise is won by the largest weight * inv_q. Each lane keeps its own best and gives it up only to a
strictly larger one, so it holds its lowest winning token; the last step takes the lowest of the lanes that tie. The
choice therefore does not depend on how the row is cut up, and neither NaN nor a score that is not above the start can
win.
"""

import triton
import triton.language as tl

NO_TOKEN = tl.constexpr(2147483647)


@triton.jit
def tiles(vocab_size, BLOCK_SIZE: tl.constexpr):
    """How many tiles cover the vocabulary, at least one. Written so that no vocabulary of 31 bits overflows."""
    return (vocab_size - 1) // BLOCK_SIZE + 1


@triton.jit
def contenders(start: tl.constexpr, BLOCK_SIZE: tl.constexpr, dtype: tl.constexpr):
    """The best score and its token in each lane, before anything has run."""
    return tl.full([BLOCK_SIZE], start, dtype), tl.full([BLOCK_SIZE], NO_TOKEN, tl.int32)


@triton.jit
def contend(best, token, score, offsets):
    """Lets each lane's next score run."""
    wins = score > best
    return tl.where(wins, score, best), tl.where(wins, offsets, token)


@triton.jit
def winner(best, token):
    """The lowest token among the best scores, -1 where nothing has won."""
    lowest = tl.min(tl.where(best == tl.max(best), token, NO_TOKEN))
    return tl.where(lowest == NO_TOKEN, -1, lowest)


@triton.jit
def score(weight, inv_q, USE_FP64_GUMBEL: tl.constexpr):
    """What a token runs with; f64 noise keeps all its bits."""
    if USE_FP64_GUMBEL:
        return weight.to(tl.float64) * inv_q
    else:
        return weight * inv_q


@triton.jit
def race(probs, inv_q, vocab_size, BLOCK_SIZE: tl.constexpr, USE_FP64_GUMBEL: tl.constexpr):
    """The winner over one row of probabilities, of which only those above 0 run."""
    dtype: tl.constexpr = tl.float64 if USE_FP64_GUMBEL else tl.float32
    best, token = contenders(0.0, BLOCK_SIZE, dtype)
    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        offsets = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        inside = offsets < vocab_size
        p = tl.load(probs + offsets, mask=inside, other=0.0)
        noise = tl.load(inv_q + offsets, mask=inside, other=0.0)
        best, token = contend(best, token, score(tl.where(p > 0, p, 0.0), noise, USE_FP64_GUMBEL), offsets)
    return winner(best, token)


@triton.jit
def random_sample_kernel(output_token_ids, probs, inv_q, vocab_size, probs_stride, inv_q_stride,
                         BLOCK_SIZE: tl.constexpr, USE_FP64_GUMBEL: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    token = race(probs + row * probs_stride, inv_q + row * inv_q_stride, vocab_size, BLOCK_SIZE, USE_FP64_GUMBEL)
    tl.store(output_token_ids + row, token)


@triton.jit
def argmax_kernel(output_token_ids, logits, vocab_size, logits_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best, token = contenders(float("-inf"), BLOCK_SIZE, tl.float32)
    nan = tl.zeros([BLOCK_SIZE], tl.int32)
    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        offsets = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits + row * logits_stride + offsets, mask=offsets < vocab_size, other=float("-inf"))
        x = x.to(tl.float32)
        nan |= x != x
        best, token = contend(best, token, x, offsets)
    token = tl.where(tl.max(nan) == 0, winner(best, token), -1)
    tl.store(output_token_ids + row, token.to(output_token_ids.dtype.element_ty))
