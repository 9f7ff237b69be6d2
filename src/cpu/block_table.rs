//! The paged cache: where tokens go, and copies of its bytes. Its twin is `kernels/block_table.py`.
//!
//! Copies are done in their order, which is what the twin's all-at-once copies amount to.

use super::ragged::request_tokens;
use super::slots::slot_in_block;
use crate::CpuArm;
use crate::kernels::{BatchCopyCpu, ComputeSlotMappingCpu};

impl CpuArm for ComputeSlotMappingCpu<'_> {
    fn run(self) {
        let Self {
            num_tokens,
            max_num_tokens,
            query_start_loc,
            positions,
            block_table,
            slot_mapping,
            kv_cache_block_size,
            total_cp_world_size,
            total_cp_rank,
            cp_kv_cache_interleave_size,
            num_reqs,
            n_blocks_per_req,
            pad_id,
        } = self;
        slot_mapping.fill(pad_id);
        if kv_cache_block_size < 1 || total_cp_world_size < 1 || cp_kv_cache_interleave_size < 1 {
            return;
        }
        let (world_size, interleave) = (i64::from(total_cp_world_size), i64::from(cp_kv_cache_interleave_size));
        let virtual_block_size = i64::from(kv_cache_block_size) * world_size;
        // The first tokens, up to where the first request begins, are nobody's.
        let requests = request_tokens(query_start_loc, num_tokens.min(max_num_tokens)).skip(1);
        for (request, tokens) in requests.enumerate().take(num_reqs as usize) {
            let block_ids = &block_table.row(request)[..n_blocks_per_req as usize];
            for token in tokens {
                let (position, offset) = (positions[token], positions[token] % virtual_block_size);
                let chunk = offset / interleave;
                if position >= 0 && chunk % world_size == i64::from(total_cp_rank) {
                    let block = position / virtual_block_size;
                    let offset = chunk / world_size * interleave + offset % interleave;
                    slot_mapping[token] = slot_in_block(block_ids, block, offset, kv_cache_block_size, pad_id);
                }
            }
        }
    }
}

/// Bytes `offset..offset + size`, where they lie within `length`.
fn range(offset: i64, size: i64, length: i64) -> Option<std::ops::Range<usize>> {
    let within = (0..=length).contains(&offset) && (0..=length - offset).contains(&size);
    within.then(|| offset as usize..(offset + size) as usize)
}

impl CpuArm for BatchCopyCpu<'_> {
    fn run(self) {
        let Self {
            destination,
            source,
            destination_offsets,
            source_offsets,
            sizes,
            destination_bytes,
            source_bytes,
            num_copies,
        } = self;
        for copy in 0..num_copies as usize {
            let to = range(destination_offsets[copy], sizes[copy], destination_bytes);
            let from = range(source_offsets[copy], sizes[copy], source_bytes);
            if let (Some(to), Some(from)) = (to, from) {
                destination[to].copy_from_slice(&source[from]);
            }
        }
    }
}
