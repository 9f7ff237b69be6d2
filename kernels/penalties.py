"""Penalties for tokens that were there before, and the counts they rest on. Its twin is src/cpu/penalties.rs.

Counting uses atomics, but only integer sums and ors, whose order does not matter.
"""

import triton
import triton.language as tl

from logits import bit_is_set, rounded
from ragged import request_tokens


@triton.jit
def count_tokens_kernel(counts, token_ids, cu_token_ids, clear, num_token_ids, vocab_size, counts_stride,
                        BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    counts += row * counts_stride
    if tl.load(clear + row):
        for first in range(0, vocab_size.to(tl.int64), BLOCK_SIZE):
            tokens = first + tl.arange(0, BLOCK_SIZE)
            tl.store(counts + tokens, 0, mask=tokens < vocab_size)
    tl.debug_barrier()  # no thread counts before all have cleared
    start, end = request_tokens(cu_token_ids, row, num_token_ids)
    for first in range(start, end, BLOCK_SIZE):
        index = first + tl.arange(0, BLOCK_SIZE)
        token = tl.load(token_ids + index, mask=index < end, other=-1)
        tl.atomic_add(counts + token, 1, mask=(token >= 0) & (token < vocab_size), sem="relaxed")


@triton.jit
def mark_tokens_kernel(bitmask, token_ids, cu_token_ids, initial, num_token_ids, num_words, bitmask_stride,
                       BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    bitmask += row * bitmask_stride
    num_words = num_words.to(tl.int64)
    word = tl.load(initial + row)
    for first in range(0, num_words, BLOCK_SIZE):
        words = first + tl.arange(0, BLOCK_SIZE)
        tl.store(bitmask + words, word, mask=words < num_words)
    tl.debug_barrier()  # no thread marks before all have begun
    start, end = request_tokens(cu_token_ids, row, num_token_ids)
    for first in range(start, end, BLOCK_SIZE):
        index = first + tl.arange(0, BLOCK_SIZE)
        token = tl.load(token_ids + index, mask=index < end, other=-1)
        inside = (token >= 0) & (token < num_words * 32)
        tl.atomic_or(bitmask + token // 32, 1 << (token % 32), mask=inside, sem="relaxed")


@triton.jit
def apply_penalties_kernel(logits, output_token_counts, prompt_bitmask, repetition_penalties, frequency_penalties,
                           presence_penalties, vocab_size, logits_stride, output_token_counts_stride,
                           prompt_bitmask_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    repetition = tl.load(repetition_penalties + row)
    frequency = tl.load(frequency_penalties + row)
    presence = tl.load(presence_penalties + row)
    if (repetition == 1) & (frequency == 0) & (presence == 0):
        return
    tokens = tl.program_id(1).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = tokens < vocab_size
    logits += row * logits_stride + tokens
    count = tl.load(output_token_counts + row * output_token_counts_stride + tokens, mask=inside, other=0)
    in_output = count > 0
    seen = in_output | bit_is_set(prompt_bitmask + row * prompt_bitmask_stride, tokens, inside)

    logit = tl.load(logits, mask=seen, other=float("-inf")).to(tl.float32)
    x = tl.where(logit > 0, tl.div_rn(logit, repetition), logit * repetition)
    x = tl.where(in_output, x - frequency * count.to(tl.float32) - presence, x)
    tl.store(logits, rounded(x, logits.dtype.element_ty), mask=seen & (logit > float("-inf")))
