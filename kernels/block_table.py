"""The paged cache: where tokens go, and copies of its bytes. Its twin is src/cpu/block_table.rs.

Copies that overlap leave what they would leave one after the other. For that, each writes only the bytes that no later
copy writes, so all can run at once.
"""

import triton
import triton.language as tl

from ragged import request_tokens
from slots import slot_in_block

STEP = tl.constexpr(512)


@triton.jit
def pad(slot_mapping, start, end, PAD_ID: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """Gives tokens [start, end) no slot."""
    for first in range(start, end, BLOCK_SIZE):
        token = first + tl.arange(0, BLOCK_SIZE)
        tl.store(slot_mapping + token, PAD_ID, mask=token < end)


@triton.jit
def compute_slot_mapping_kernel(num_tokens, max_num_tokens, query_start_loc, positions, block_table,
                                block_table_stride, slot_mapping, kv_cache_block_size, total_cp_world_size,
                                total_cp_rank, cp_kv_cache_interleave_size, num_reqs, n_blocks_per_req,
                                PAD_ID: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    # One program more than requests: request r is that of program r + 1, and the first has the tokens of nobody.
    program = tl.program_id(0).to(tl.int64)
    num_tokens = tl.minimum(num_tokens, max_num_tokens)
    start, end = request_tokens(query_start_loc, program, num_tokens)
    if program == 0:
        last = request_tokens(query_start_loc, num_reqs.to(tl.int64), num_tokens)[1]
        pad(slot_mapping, start, end, PAD_ID, BLOCK_SIZE)
        pad(slot_mapping, last, max_num_tokens.to(tl.int64), PAD_ID, BLOCK_SIZE)
        return
    block_ids = block_table + (program - 1) * block_table_stride
    possible = (kv_cache_block_size > 0) & (total_cp_world_size > 0) & (cp_kv_cache_interleave_size > 0)
    world_size = tl.maximum(total_cp_world_size, 1).to(tl.int64)
    interleave = tl.maximum(cp_kv_cache_interleave_size, 1).to(tl.int64)
    virtual_block_size = tl.maximum(kv_cache_block_size, 1).to(tl.int64) * world_size
    for first in range(start, end, BLOCK_SIZE):
        token = first + tl.arange(0, BLOCK_SIZE)
        position = tl.load(positions + token, mask=token < end, other=-1)
        offset = position % virtual_block_size
        chunk = offset // interleave
        is_local = possible & (position >= 0) & (chunk % world_size == total_cp_rank)
        offset = chunk // world_size * interleave + offset % interleave
        slot = slot_in_block(block_ids, position // virtual_block_size, offset, n_blocks_per_req, kv_cache_block_size,
                             is_local, PAD_ID)
        tl.store(slot_mapping + token, slot, mask=token < end)


@triton.jit
def destination_range(destination_offsets, source_offsets, sizes, copy, inside, destination_bytes, source_bytes):
    """The bytes [start, end) that copies write, none where one does not lie within both buffers."""
    start = tl.load(destination_offsets + copy, mask=inside, other=-1)
    source = tl.load(source_offsets + copy, mask=inside, other=-1)
    size = tl.load(sizes + copy, mask=inside, other=0)
    within = (start >= 0) & (start <= destination_bytes) & (size <= destination_bytes - start)
    within = within & (source >= 0) & (source <= source_bytes) & (size <= source_bytes - source) & (size > 0)
    return tl.where(within, start, 0), tl.where(within, start + size, 0)


@triton.jit
def batch_copy_kernel(destination, source, destination_offsets, source_offsets, sizes, destination_bytes, source_bytes,
                      num_copies, BLOCK_SIZE: tl.constexpr, BLOCKS_PER_COPY: tl.constexpr):
    copy = tl.program_id(0).to(tl.int64)
    start, end = destination_range(destination_offsets, source_offsets, sizes, copy, copy < num_copies,
                                   destination_bytes, source_bytes)
    if start == end:
        return
    source += tl.load(source_offsets + copy) - start

    # Seldom does a later copy write the same bytes; then the loop over them below has nothing to do.
    overlapped = copy + 1
    for first in range(copy + 1, num_copies.to(tl.int64), STEP):
        later = first + tl.arange(0, STEP)
        later_start, later_end = destination_range(destination_offsets, source_offsets, sizes, later,
                                                   later < num_copies, destination_bytes, source_bytes)
        overlaps = (later_start < end) & (later_end > start)
        overlapped = tl.maximum(overlapped, tl.max(tl.where(overlaps, later + 1, 0)))

    for first in range(start + tl.program_id(1) * BLOCK_SIZE, end, BLOCK_SIZE * BLOCKS_PER_COPY):
        byte = first + tl.arange(0, BLOCK_SIZE)
        mine = byte < end
        for later in range(copy + 1, overlapped):
            later_start, later_end = destination_range(destination_offsets, source_offsets, sizes, later,
                                                       later < num_copies, destination_bytes, source_bytes)
            mine = mine & ((byte < later_start) | (byte >= later_end))
        tl.store(destination + byte, tl.load(source + byte, mask=mine), mask=mine)
