"""Rejection sampling for speculative decoding. Its twin is src/cpu/rejection.rs.

A request's drafts are judged in order until the first is rejected. `kept` counts the accepted and `position` the
written ones, so the two are equal for as long as nothing was rejected, and a request whose drafts were all kept gets
its bonus.
"""

import triton
import triton.language as tl

from race import contend, contenders, race, score, tiles, winner
from ragged import request_of, request_tokens


@triton.jit
def finish(row, position, kept, num_drafts, bonus, max_spec_len):
    """Writes the bonus token where every draft was kept, and -1 after the last token."""
    if kept == num_drafts:
        tl.store(row + position, bonus)
        position += 1
    for first in range(position, max_spec_len.to(tl.int64) + 1, 32):
        columns = first + tl.arange(0, 32)
        tl.store(row + columns, -1, mask=columns <= max_spec_len)


@triton.jit
def rejection_greedy_sample_kernel(output_token_ids, cu_num_draft_tokens, draft_token_ids, target_argmax,
                                   bonus_token_ids, is_greedy, max_spec_len, num_tokens, uniform_probs,
                                   synthetic_conditional_rates, SYNTHETIC_MODE: tl.constexpr):
    request = tl.program_id(0).to(tl.int64)
    if is_greedy is not None:
        if not tl.load(is_greedy + request):
            return
    row = output_token_ids + request * (max_spec_len.to(tl.int64) + 1)
    start, end = request_tokens(cu_num_draft_tokens, request, num_tokens)
    num_drafts = tl.minimum(end - start, max_spec_len)
    position = num_drafts * 0
    kept = num_drafts * 0
    while (position == kept) & (position < num_drafts):
        draft = tl.load(draft_token_ids + start + position)
        target = tl.load(target_argmax + start + position)
        accepted = draft >= 0
        token = target.to(tl.int32)
        if SYNTHETIC_MODE:
            uniform = tl.load(uniform_probs + start + position)
            rate = tl.load(synthetic_conditional_rates + position).to(tl.float64)
            accepted = accepted & (uniform < rate)
            token = tl.where(accepted, draft, token)
        else:
            accepted = accepted & (draft.to(tl.int64) == target)
        tl.store(row + position, token)
        kept += accepted.to(tl.int64)
        position += 1
    finish(row, position, kept, num_drafts, tl.load(bonus_token_ids + request), max_spec_len)


@triton.jit
def rejection_random_sample_kernel(output_token_ids, cu_num_draft_tokens, draft_token_ids, draft_probs, target_probs,
                                   bonus_token_ids, recovered_token_ids, uniform_probs, is_greedy, max_spec_len,
                                   num_tokens, vocab_size, draft_probs_stride, target_probs_stride,
                                   synthetic_conditional_rates, NO_DRAFT_PROBS: tl.constexpr,
                                   SYNTHETIC_MODE: tl.constexpr):
    request = tl.program_id(0).to(tl.int64)
    if is_greedy is not None:
        if tl.load(is_greedy + request):
            return
    row = output_token_ids + request * (max_spec_len.to(tl.int64) + 1)
    start, end = request_tokens(cu_num_draft_tokens, request, num_tokens)
    num_drafts = tl.minimum(end - start, max_spec_len)
    position = num_drafts * 0
    kept = num_drafts * 0
    while (position == kept) & (position < num_drafts):
        token = start + position
        draft = tl.load(draft_token_ids + token)
        uniform = tl.load(uniform_probs + token)
        accepted = (draft >= 0) & (draft < vocab_size)
        if SYNTHETIC_MODE:
            accepted = accepted & (uniform < tl.load(synthetic_conditional_rates + position).to(tl.float64))
        else:
            p = tl.load(target_probs + token * target_probs_stride + draft, mask=accepted, other=0.0)
            if NO_DRAFT_PROBS:
                ratio = p
            else:
                q = tl.load(draft_probs + token * draft_probs_stride + draft, mask=accepted, other=0.0)
                accepted = accepted & (q > 0)
                ratio = tl.div_rn(p, q)
            accepted = accepted & (p > 0) & (ratio.to(tl.float64) >= uniform)
        tl.store(row + position, tl.where(accepted, draft, tl.load(recovered_token_ids + token)))
        kept += accepted.to(tl.int64)
        position += 1
    finish(row, position, kept, num_drafts, tl.load(bonus_token_ids + request), max_spec_len)


@triton.jit
def expand_kernel(output, input, cu_num_tokens, replace_from, replace_to, num_tokens, MAX_NUM_TOKENS: tl.constexpr):
    request = tl.program_id(0).to(tl.int64)
    value = tl.load(input + request)
    value = tl.where(value == replace_from, replace_to, value)
    start, end = request_tokens(cu_num_tokens, request, num_tokens)
    for first in range(start, end, MAX_NUM_TOKENS):
        tokens = first + tl.arange(0, MAX_NUM_TOKENS)
        tl.store(output + tokens, value, mask=tokens < end)


@triton.jit
def sample_recovered_tokens_kernel(output_token_ids, cu_num_draft_tokens, draft_token_ids, draft_probs, target_probs,
                                   inv_q, batch_size, vocab_size, draft_probs_stride, target_probs_stride,
                                   inv_q_stride, BLOCK_SIZE: tl.constexpr, NO_DRAFT_PROBS: tl.constexpr,
                                   USE_FP64_GUMBEL: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    request = request_of(cu_num_draft_tokens, token, batch_size)
    if request == batch_size:
        tl.store(output_token_ids + token, -1)
        return
    target_probs += token * target_probs_stride
    inv_q += request * inv_q_stride
    if NO_DRAFT_PROBS:
        draft = tl.load(draft_token_ids + token)
    else:
        draft_probs += token * draft_probs_stride

    dtype: tl.constexpr = tl.float64 if USE_FP64_GUMBEL else tl.float32
    best, id = contenders(0.0, BLOCK_SIZE, dtype)
    for tile in range(0, tiles(vocab_size, BLOCK_SIZE)):
        offsets = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        inside = offsets < vocab_size
        p = tl.load(target_probs + offsets, mask=inside, other=0.0)
        if NO_DRAFT_PROBS:
            weight = tl.where((offsets != draft) & (p > 0), p, 0.0)
        else:
            q = tl.load(draft_probs + offsets, mask=inside, other=0.0)
            weight = tl.where(p > q, p - q, 0.0)
        noise = tl.load(inv_q + offsets, mask=inside, other=0.0)
        best, id = contend(best, id, score(weight, noise, USE_FP64_GUMBEL), offsets)
    recovered = winner(best, id)
    if recovered < 0:
        recovered = race(target_probs, inv_q, vocab_size, BLOCK_SIZE, USE_FP64_GUMBEL)
    tl.store(output_token_ids + token, recovered)
