"""FLy: accepts a draft that the target would reject where the drafts after it fit. Its twin is src/cpu/fly.rs.

A draft that rejection sampling would reject is let through when the target was unsure there, and would itself accept
each of the next drafts, as many as the window has. Drafts are looked at from the last to the first, counting how many
in a row would be accepted by themselves; so a draft that was let through never counts for one before it.
"""

import triton
import triton.language as tl

from ragged import request_tokens


@triton.jit
def apply_fly_greedy_acceptance_kernel(cu_num_draft_tokens, draft_token_ids, target_argmax, target_logits, fly_entropy,
                                       is_greedy, num_tokens, vocab_size, target_logits_stride,
                                       fly_entropy_threshold, fly_window_size):
    request = tl.program_id(0).to(tl.int64)
    if is_greedy is not None:
        if not tl.load(is_greedy + request):
            return
    start, end = request_tokens(cu_num_draft_tokens, request, num_tokens)
    accepted_after = start * 0
    for step in range(0, end - start):
        token = end - 1 - step
        draft = tl.load(draft_token_ids + token)
        accepted = (draft >= 0) & (draft.to(tl.int64) == tl.load(target_argmax + token))
        possible = (draft >= 0) & (draft < vocab_size)
        logit = tl.load(target_logits + token * target_logits_stride + draft, mask=possible, other=0).to(tl.float32)
        possible = possible & (logit > float("-inf")) & (tl.load(fly_entropy + token) >= fly_entropy_threshold)
        let_through = possible & (accepted_after >= fly_window_size)
        tl.store(target_argmax + token, draft.to(tl.int64), mask=let_through)
        accepted_after = tl.where(accepted, accepted_after + 1, 0)


@triton.jit
def apply_fly_random_acceptance_kernel(cu_num_draft_tokens, draft_token_ids, draft_probs, target_probs, uniform_probs,
                                       fly_entropy, is_greedy, num_tokens, vocab_size, draft_probs_stride,
                                       target_probs_stride, fly_entropy_threshold, fly_window_size,
                                       NO_DRAFT_PROBS: tl.constexpr):
    request = tl.program_id(0).to(tl.int64)
    if is_greedy is not None:
        if tl.load(is_greedy + request):
            return
    start, end = request_tokens(cu_num_draft_tokens, request, num_tokens)
    accepted_after = start * 0
    for step in range(0, end - start):
        token = end - 1 - step
        draft = tl.load(draft_token_ids + token)
        possible = (draft >= 0) & (draft < vocab_size)
        ratio = tl.load(target_probs + token * target_probs_stride + draft, mask=possible, other=0.0)
        possible = possible & (ratio > 0)
        if not NO_DRAFT_PROBS:
            q = tl.load(draft_probs + token * draft_probs_stride + draft, mask=possible, other=0.0)
            possible = possible & (q > 0)
            ratio = tl.div_rn(ratio, q)
        accepted = possible & (ratio.to(tl.float64) >= tl.load(uniform_probs + token))
        possible = possible & (tl.load(fly_entropy + token) >= fly_entropy_threshold)
        let_through = possible & (accepted_after >= fly_window_size) & (accepted == 0)
        tl.store(uniform_probs + token, 0.0, mask=let_through)
        accepted_after = tl.where(accepted, accepted_after + 1, 0)
