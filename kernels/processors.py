"""Logits processors besides penalties: temperature, bitmask, bad words, bias, min tokens. Its twin is
src/cpu/processors.rs.

Lists of ids are ragged, and no id or length in them is trusted. Where several programs may write one logit, all write
-inf there; a bias, which adds, is written by one program alone.
"""

import triton
import triton.language as tl

from logits import bit_is_set, rounded
from ragged import request_of, request_tokens

STEP = tl.constexpr(128)


@triton.jit
def apply_temperature_kernel(logits, temperature, vocab_size, logits_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    temperature = tl.load(temperature + row)
    if (temperature == 0) | (temperature == 1):
        return
    logits += row * logits_stride
    dtype: tl.constexpr = logits.dtype.element_ty
    vocab_size = vocab_size.to(tl.int64)

    best = tl.full([BLOCK_SIZE], float("-inf"), tl.float32)
    for first in range(0, vocab_size, BLOCK_SIZE):
        tokens = first + tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits + tokens, mask=tokens < vocab_size, other=float("-inf")).to(tl.float32)
        best = tl.where(x > best, x, best)
    top = tl.max(best)
    fits = tl.abs(rounded(tl.div_rn(top, temperature), dtype).to(tl.float32)) < float("inf")
    base = tl.where(fits, 0.0, top)
    valid = temperature > 0

    for first in range(0, vocab_size, BLOCK_SIZE):
        tokens = first + tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits + tokens, mask=tokens < vocab_size, other=float("-inf")).to(tl.float32)
        distance = x - base
        scaled = tl.where(distance == float("-inf"), distance, tl.div_rn(distance, temperature))
        scaled = tl.where(fits | (x != top), scaled, 0.0)
        scaled = tl.where(valid, scaled, float("nan"))
        tl.store(logits + tokens, rounded(scaled, dtype), mask=(tokens < vocab_size) & ((x > float("-inf")) | ~valid))


@triton.jit
def apply_token_bitmask_kernel(logits, bitmask, vocab_size, logits_stride, bitmask_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    tokens = tl.program_id(1).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = tokens < vocab_size
    allowed = bit_is_set(bitmask + row * bitmask_stride, tokens, inside)
    tl.store(logits + row * logits_stride + tokens, float("-inf"), mask=inside & ~allowed)


@triton.jit
def apply_bad_words_kernel(logits, cu_bad_words, cu_bad_word_tokens, bad_word_token_ids, cu_output_tokens,
                           output_token_ids, num_rows, num_bad_word_tokens, num_output_tokens, vocab_size,
                           logits_stride):
    word = tl.program_id(0).to(tl.int64)
    row = request_of(cu_bad_words, word, num_rows)
    start, end = request_tokens(cu_bad_word_tokens, word, num_bad_word_tokens)
    if (row == num_rows) | (start == end):
        return
    output_start, output_end = request_tokens(cu_output_tokens, row, num_output_tokens)
    prefix = end - start - 1
    if prefix > output_end - output_start:
        return
    differs = tl.zeros([STEP], tl.int32)
    for first in range(0, prefix, STEP):
        index = first + tl.arange(0, STEP)
        inside = index < prefix
        expected = tl.load(bad_word_token_ids + start + index, mask=inside, other=0)
        differs |= tl.load(output_token_ids + output_end - prefix + index, mask=inside, other=0) != expected
    token = tl.load(bad_word_token_ids + end - 1)
    matches = (tl.max(differs) == 0) & (token >= 0) & (token < vocab_size)
    tl.store(logits + row * logits_stride + token, float("-inf"), mask=matches)


@triton.jit
def apply_logit_bias_kernel(logits, bias_token_ids, logit_bias, cu_logit_bias, num_rows, num_logit_bias, vocab_size,
                            logits_stride):
    entry = tl.program_id(0).to(tl.int64)
    row = request_of(cu_logit_bias, entry, num_rows)
    token = tl.load(bias_token_ids + entry)
    if (row == num_rows) | (token < 0) | (token >= vocab_size):
        return
    # The first entry of a token adds the biases of all of them, in the order of the list.
    start, end = request_tokens(cu_logit_bias, row, num_logit_bias)
    lowest = tl.zeros([STEP], tl.int64) + entry
    highest = lowest
    for first in range(start, end, STEP):
        other = first + tl.arange(0, STEP)
        same = tl.load(bias_token_ids + other, mask=other < end, other=-1) == token
        lowest = tl.minimum(lowest, tl.where(same, other, entry))
        highest = tl.maximum(highest, tl.where(same, other, entry))
    if tl.min(lowest) < entry:
        return
    logits += row * logits_stride + token
    logit = tl.load(logits).to(tl.float32)
    x = logit
    for other in range(entry, tl.max(highest) + 1):
        x = tl.where(tl.load(bias_token_ids + other) == token, x + tl.load(logit_bias + other), x)
    tl.store(logits, rounded(x, logits.dtype.element_ty), mask=logit > float("-inf"))


@triton.jit
def another_is_left(logits, stop_token_ids, start, end, vocab_size, BLOCK_SIZE: tl.constexpr):
    """Whether a token that is no stop token of [start, end) has a logit other than -inf."""
    left = tl.zeros([BLOCK_SIZE], tl.int32)
    for first in range(0, vocab_size.to(tl.int64), BLOCK_SIZE):
        tokens = first + tl.arange(0, BLOCK_SIZE)
        alive = tl.load(logits + tokens, mask=tokens < vocab_size, other=float("-inf")).to(tl.float32) != float("-inf")
        for stop in range(start, end):
            alive &= tokens != tl.load(stop_token_ids + stop)
        left |= alive
    return tl.max(left) != 0


@triton.jit
def apply_min_tokens_kernel(logits, min_tokens, output_lens, stop_token_ids, cu_stop_token_ids,
                            restore_when_all_masked, num_stop_token_ids, vocab_size, logits_stride,
                            BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    if tl.load(output_lens + row) >= tl.load(min_tokens + row):
        return
    logits += row * logits_stride
    start, end = request_tokens(cu_stop_token_ids, row, num_stop_token_ids)
    if tl.load(restore_when_all_masked + row):
        if not another_is_left(logits, stop_token_ids, start, end, vocab_size, BLOCK_SIZE):
            return
    for first in range(start, end, STEP):
        index = first + tl.arange(0, STEP)
        token = tl.load(stop_token_ids + index, mask=index < end, other=-1)
        tl.store(logits + token, float("-inf"), mask=(token >= 0) & (token < vocab_size))
