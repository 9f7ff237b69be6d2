"""What a draft model is given: EAGLE's inputs between its steps, and DFlash's. Its twin is src/cpu/eagle.rs.

The first token of a request's query is no draft: it was sampled before. So it is never rejected, however many are
said to be, and every index made here stays among its own request's tokens.
"""

import triton
import triton.language as tl

from ragged import request_tokens
from slots import slot_of

ALL = tl.constexpr(2147483647)


@triton.jit
def clamp(value, low, high):
    """`high` where it is below `low`."""
    return tl.minimum(tl.maximum(value, low), high)


@triton.jit
def eagle_step_slot_mapping_metadata_kernel(positions, block_table, block_table_stride, seq_lens,
                                            out_clamped_positions, out_slot_mapping, block_size, max_model_len,
                                            n_blocks_per_req, batch_size, input_batch_size, PAD_ID: tl.constexpr,
                                            BLOCK_SIZE: tl.constexpr):
    request = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = request < batch_size
    position = tl.load(positions + request, mask=inside, other=-2) + 1
    fits = (position >= 0) & (position < max_model_len)
    position = tl.where(fits, position, 0)
    slot = slot_of(block_table + request * block_table_stride, position, n_blocks_per_req, block_size, fits, PAD_ID)
    seq_len = tl.load(seq_lens + request, mask=inside, other=0).to(tl.int64) + 1
    seq_len = tl.minimum(tl.where(fits, seq_len, 1), max_model_len)
    tl.store(out_clamped_positions + request, position, mask=inside)
    tl.store(seq_lens + request, seq_len.to(tl.int32), mask=inside)
    tl.store(out_slot_mapping + request, slot, mask=request < input_batch_size)


@triton.jit
def eagle_prepare_inputs_padded_kernel(cu_num_draft_tokens, valid_sampled_tokens_count, query_start_loc,
                                       token_indices_to_sample, num_rejected_tokens, num_reqs):
    request = tl.program_id(0).to(tl.int64)
    if request >= num_reqs:
        return
    start, end = request_tokens(cu_num_draft_tokens, request, ALL)
    num_drafts = end - start
    valid = tl.load(valid_sampled_tokens_count + request)
    rejected = clamp(num_drafts + 1 - valid, 0, num_drafts)
    start, end = request_tokens(query_start_loc, request + 1, ALL)
    index = tl.where(start < end, tl.maximum(end - 1 - rejected, start), -1)
    tl.store(token_indices_to_sample + request, index.to(tl.int32))
    tl.store(num_rejected_tokens + request, rejected.to(tl.int32))


@triton.jit
def eagle_prepare_next_token_padded_kernel(sampled_token_ids, discard_request_mask, backup_next_token_ids,
                                           next_token_ids, valid_sampled_tokens_count, vocab_size,
                                           num_sampled_tokens_per_req, num_reqs, stride_sampled_token_ids,
                                           BLOCK_SIZE_TOKENS: tl.constexpr):
    request = tl.program_id(0).to(tl.int64)
    if request >= num_reqs:
        return
    row = sampled_token_ids + request * stride_sampled_token_ids
    columns = tl.where(tl.load(discard_request_mask + request), 0, num_sampled_tokens_per_req).to(tl.int64)
    count = tl.zeros([BLOCK_SIZE_TOKENS], tl.int32)
    last = tl.full([BLOCK_SIZE_TOKENS], -1, tl.int64)
    for first in range(0, columns, BLOCK_SIZE_TOKENS):
        column = first + tl.arange(0, BLOCK_SIZE_TOKENS)
        id = tl.load(row + column, mask=column < columns, other=-1)
        valid = (id >= 0) & (id < vocab_size)
        count += valid.to(tl.int32)
        last = tl.where(valid, column, last)
    last = tl.max(last)
    token = tl.load(row + last, mask=last >= 0, other=0)
    token = tl.where(last >= 0, token, tl.load(backup_next_token_ids + request))
    tl.store(next_token_ids + request, token)
    tl.store(valid_sampled_tokens_count + request, tl.sum(count))


@triton.jit
def copy_and_expand_eagle_inputs_kernel(target_token_ids, target_positions, next_token_ids, out_input_ids,
                                        out_positions, out_is_rejected_token_mask, out_is_masked_token_mask,
                                        out_new_token_indices, out_hidden_state_mapping, query_start_loc,
                                        query_end_loc, padding_token_id, parallel_drafting_token_id,
                                        total_input_tokens, num_padding_slots_per_request, shift_input_ids,
                                        num_output_tokens, BLOCK_SIZE_TOKENS: tl.constexpr):
    request = tl.program_id(0).to(tl.int64)
    shift = shift_input_ids.to(tl.int64)
    slots = num_padding_slots_per_request.to(tl.int64)
    added = tl.maximum(slots - shift, 0)
    start, end = request_tokens(query_start_loc, request + 1, total_input_tokens)
    length = end - start
    kept = clamp(tl.load(query_end_loc + request).to(tl.int64) + 1 - start, 1, length)
    copied = tl.maximum(kept - shift, 0)
    drafted = copied + tl.where(length > 0, slots, 0)
    first_position = tl.load(target_positions + start, mask=length > 0, other=0)
    bonus = tl.load(next_token_ids + request)

    out_start = start + request * added
    for first in range(0, length + added, BLOCK_SIZE_TOKENS):
        token = first + tl.arange(0, BLOCK_SIZE_TOKENS)
        output = out_start + token
        fits = output < num_output_tokens
        inside = (token < length + added) & fits
        is_copied = token < copied
        is_rejected = token >= drafted
        id = tl.load(target_token_ids + start + shift + token, mask=inside & is_copied, other=0)
        new = tl.where(token == copied, bonus, parallel_drafting_token_id)
        id = tl.where(is_copied, id, tl.where(is_rejected, padding_token_id, new))
        tl.store(out_input_ids + output, id, mask=inside)
        tl.store(out_positions + output, tl.where(is_rejected, 0, first_position + token), mask=inside)
        tl.store(out_is_rejected_token_mask + output, is_rejected, mask=inside)
        tl.store(out_is_masked_token_mask + output, (token > copied) & (token < drafted), mask=inside)
        place = tl.where(fits, output, -1).to(tl.int32)
        tl.store(out_hidden_state_mapping + start + token, place, mask=(token < length) & (shift > 0))

    for first in range(0, slots, BLOCK_SIZE_TOKENS):
        new = first + tl.arange(0, BLOCK_SIZE_TOKENS)
        output = out_start + copied + new
        place = tl.where((length > 0) & (output < num_output_tokens), output, -1).to(tl.int32)
        tl.store(out_new_token_indices + request * slots + new, place, mask=new < slots)


@triton.jit
def copy_and_expand_dflash_inputs_kernel(next_token_ids, target_positions, out_input_ids, out_context_positions,
                                         out_query_positions, out_context_slot_mapping, out_query_slot_mapping,
                                         out_token_indices, block_table, block_table_stride, query_start_loc,
                                         num_rejected_tokens, parallel_drafting_token_id, block_size,
                                         num_query_per_req, num_speculative_tokens, total_input_tokens,
                                         n_blocks_per_req, BLOCK_SIZE: tl.constexpr,
                                         HAS_NUM_REJECTED: tl.constexpr, PAD_ID: tl.constexpr):
    request = tl.program_id(0).to(tl.int64)
    block_ids = block_table + request * block_table_stride
    start, end = request_tokens(query_start_loc, request + 1, total_input_tokens)
    for first in range(start, end, BLOCK_SIZE):
        token = first + tl.arange(0, BLOCK_SIZE)
        inside = token < end
        position = tl.load(target_positions + token, mask=inside, other=-1)
        slot = slot_of(block_ids, position, n_blocks_per_req, block_size, inside, PAD_ID)
        tl.store(out_context_positions + token, position, mask=inside)
        tl.store(out_context_slot_mapping + token, slot, mask=inside)

    last = end - 1
    if HAS_NUM_REJECTED:
        last = clamp(last - tl.load(num_rejected_tokens + request), start, last)
    has_context = start < end
    last_position = tl.load(target_positions + last, mask=has_context, other=0)
    next_token = tl.load(next_token_ids + request)
    num_queries = num_query_per_req.to(tl.int64)
    for first in range(0, num_queries, BLOCK_SIZE):
        query = first + tl.arange(0, BLOCK_SIZE)
        inside = query < num_queries
        position = tl.where(has_context, last_position + 1 + query, 0)
        slot = slot_of(block_ids, position, n_blocks_per_req, block_size, inside & has_context, PAD_ID)
        output = request * num_queries + query
        tl.store(out_input_ids + output, tl.where(query == 0, next_token, parallel_drafting_token_id), mask=inside)
        tl.store(out_query_positions + output, position, mask=inside)
        tl.store(out_query_slot_mapping + output, slot, mask=inside)

    num_drafts = num_speculative_tokens.to(tl.int64)
    for first in range(0, num_drafts, BLOCK_SIZE):
        draft = first + tl.arange(0, BLOCK_SIZE)
        query = draft + 1  # a request's first query is the token that was sampled
        index = tl.where(query < num_queries, request * num_queries + query, -1).to(tl.int32)
        tl.store(out_token_indices + request * num_drafts + draft, index, mask=draft < num_drafts)
