//! What a draft model is given: EAGLE's inputs between its steps, and DFlash's. Its twin is `kernels/eagle.py`.
//!
//! The first token of a request's query is no draft: it was sampled before. So it is never rejected, however many are said
//! to be, and every index made here stays among its own request's tokens.

use super::ragged::request_tokens;
use super::slots::slot_of;
use crate::CpuArm;
use crate::kernels::{
    CopyAndExpandDflashInputsCpu, CopyAndExpandEagleInputsCpu, EaglePrepareInputsPaddedCpu,
    EaglePrepareNextTokenPaddedCpu, EagleStepSlotMappingMetadataCpu,
};

/// `high` where it is below `low`.
fn clamp(value: i64, low: i64, high: i64) -> i64 {
    value.max(low).min(high)
}

impl CpuArm for EagleStepSlotMappingMetadataCpu<'_> {
    fn run(self) {
        let Self {
            positions,
            block_table,
            seq_lens,
            out_clamped_positions,
            out_slot_mapping,
            block_size,
            max_model_len,
            n_blocks_per_req,
            batch_size,
            input_batch_size,
            pad_id,
        } = self;
        let max_model_len = i64::from(max_model_len);
        out_slot_mapping[..input_batch_size as usize].fill(pad_id);
        for request in 0..batch_size as usize {
            let next = positions[request].wrapping_add(1);
            let fits = (0..max_model_len).contains(&next);
            let seq_len = if fits { i64::from(seq_lens[request]) + 1 } else { 1 };
            seq_lens[request] = seq_len.min(max_model_len) as i32;
            out_clamped_positions[request] = if fits { next } else { 0 };
            if let (true, Some(slot)) = (fits, out_slot_mapping.get_mut(request)) {
                let block_ids = &block_table.row(request)[..n_blocks_per_req as usize];
                *slot = slot_of(block_ids, next, block_size, pad_id);
            }
        }
    }
}

impl CpuArm for EaglePrepareInputsPaddedCpu<'_> {
    fn run(self) {
        let Self {
            cu_num_draft_tokens,
            valid_sampled_tokens_count,
            query_start_loc,
            token_indices_to_sample,
            num_rejected_tokens,
            num_reqs,
        } = self;
        let drafts = request_tokens(cu_num_draft_tokens, i32::MAX);
        let tokens = request_tokens(query_start_loc, i32::MAX).skip(1);
        for (request, (drafts, tokens)) in drafts.zip(tokens).enumerate().take(num_reqs as usize) {
            let num_drafts = drafts.len() as i64;
            let valid = i64::from(valid_sampled_tokens_count[request]);
            let rejected = clamp(num_drafts + 1 - valid, 0, num_drafts);
            let (start, end) = (tokens.start as i64, tokens.end as i64);
            let index = if start < end { (end - 1 - rejected).max(start) } else { -1 };
            token_indices_to_sample[request] = index as i32;
            num_rejected_tokens[request] = rejected as i32;
        }
    }
}

impl CpuArm for EaglePrepareNextTokenPaddedCpu<'_> {
    fn run(self) {
        let Self {
            sampled_token_ids,
            discard_request_mask,
            backup_next_token_ids,
            next_token_ids,
            valid_sampled_tokens_count,
            vocab_size,
            num_sampled_tokens_per_req,
            num_reqs,
        } = self;
        for request in 0..num_reqs as usize {
            let sampled = &sampled_token_ids.row(request)[..num_sampled_tokens_per_req as usize];
            let sampled = if discard_request_mask[request] { &[] } else { sampled };
            let valid = || sampled.iter().filter(|&id| (0..vocab_size).contains(id));
            next_token_ids[request] = *valid().next_back().unwrap_or(&backup_next_token_ids[request]);
            valid_sampled_tokens_count[request] = valid().count() as i32;
        }
    }
}

impl CpuArm for CopyAndExpandEagleInputsCpu<'_> {
    fn run(self) {
        let Self {
            target_token_ids,
            target_positions,
            next_token_ids,
            out_input_ids,
            out_positions,
            out_is_rejected_token_mask,
            out_is_masked_token_mask,
            mut out_new_token_indices,
            out_hidden_state_mapping,
            query_start_loc,
            query_end_loc,
            padding_token_id,
            parallel_drafting_token_id,
            total_input_tokens,
            num_padding_slots_per_request,
            shift_input_ids,
            num_output_tokens,
        } = self;
        let shift = usize::from(shift_input_ids);
        let slots = num_padding_slots_per_request as usize;
        let added = slots.saturating_sub(shift);
        let place = |output: usize| if output < num_output_tokens as usize { output as i32 } else { -1 };
        for (request, tokens) in request_tokens(query_start_loc, total_input_tokens).skip(1).enumerate() {
            let (start, length) = (tokens.start, tokens.len());
            let kept = clamp(i64::from(query_end_loc[request]) + 1 - start as i64, 1, length as i64) as usize;
            let copied = kept.saturating_sub(shift);
            let drafted = copied + if length > 0 { slots } else { 0 };
            let out_start = start + request * added;
            for token in 0..length + added {
                let output = out_start + token;
                if shift_input_ids && token < length {
                    out_hidden_state_mapping[start + token] = place(output);
                }
                if output >= num_output_tokens as usize {
                    continue;
                }
                let rejected = token >= drafted;
                out_input_ids[output] = if token < copied {
                    target_token_ids[start + shift + token]
                } else if rejected {
                    padding_token_id
                } else if token == copied {
                    next_token_ids[request]
                } else {
                    parallel_drafting_token_id
                };
                out_positions[output] = if rejected { 0 } else { target_positions[start].wrapping_add(token as i64) };
                out_is_rejected_token_mask[output] = rejected;
                out_is_masked_token_mask[output] = token > copied && !rejected;
            }
            for (new, index) in out_new_token_indices.row_mut(request).iter_mut().enumerate() {
                *index = if length > 0 { place(out_start + copied + new) } else { -1 };
            }
        }
    }
}

impl CpuArm for CopyAndExpandDflashInputsCpu<'_> {
    fn run(self) {
        let Self {
            next_token_ids,
            target_positions,
            mut out_input_ids,
            out_context_positions,
            mut out_query_positions,
            out_context_slot_mapping,
            mut out_query_slot_mapping,
            mut out_token_indices,
            block_table,
            query_start_loc,
            num_rejected_tokens,
            parallel_drafting_token_id,
            block_size,
            num_query_per_req,
            num_speculative_tokens,
            total_input_tokens,
            n_blocks_per_req,
            pad_id,
        } = self;
        let (num_queries, num_drafts) = (num_query_per_req as usize, num_speculative_tokens as usize);
        for (request, context) in request_tokens(query_start_loc, total_input_tokens).skip(1).enumerate() {
            let block_ids = &block_table.row(request)[..n_blocks_per_req as usize];
            for token in context.clone() {
                let position = target_positions[token];
                out_context_positions[token] = position;
                out_context_slot_mapping[token] = slot_of(block_ids, position, block_size, pad_id);
            }

            let rejected = num_rejected_tokens.map_or(0, |rejected| i64::from(rejected[request]));
            let last_position = (!context.is_empty()).then(|| {
                let (start, last) = (context.start as i64, context.end as i64 - 1);
                target_positions[clamp(last - rejected, start, last) as usize]
            });
            for query in 0..num_queries {
                let position = last_position.map(|last| last.wrapping_add(1 + query as i64));
                out_input_ids.row_mut(request)[query] =
                    if query == 0 { next_token_ids[request] } else { parallel_drafting_token_id };
                out_query_positions.row_mut(request)[query] = position.unwrap_or(0);
                out_query_slot_mapping.row_mut(request)[query] =
                    position.map_or(pad_id, |position| slot_of(block_ids, position, block_size, pad_id));
            }

            for (draft, index) in out_token_indices.row_mut(request)[..num_drafts].iter_mut().enumerate() {
                let query = draft + 1; // a request's first query is the token that was sampled
                *index = if query < num_queries { (request * num_queries + query) as i32 } else { -1 };
            }
        }
    }
}
