"""Where a token's keys and values lie in the paged cache. Its twin is src/cpu/slots.rs.

A request's block table names the blocks that hold its tokens; the slot of a token is the id of its block times the
block size, plus its offset there. What has no such place gets PAD_ID, which writers of the cache skip: a position that
is negative or beyond the table, a block without an id, an offset outside the block. So a slot that is not PAD_ID
always lies in a block of its own request. Everything is 64 bits wide, where no block times a size overflows.
"""

import triton
import triton.language as tl


@triton.jit
def slot_in_block(block_ids, block, offset, num_blocks, block_size, has_place, PAD_ID: tl.constexpr):
    """The slot at an offset of a block of the table; neither is negative where there is a place."""
    has_place = has_place & (block < num_blocks) & (offset < block_size)
    id = tl.load(block_ids + block, mask=has_place, other=-1).to(tl.int64)
    return tl.where(id >= 0, id * block_size + offset, PAD_ID)


@triton.jit
def slot_of(block_ids, position, num_blocks, block_size, has_place, PAD_ID: tl.constexpr):
    """The slot of a position of a request."""
    size = tl.maximum(block_size, 1).to(tl.int64)
    has_place = has_place & (position >= 0)
    return slot_in_block(block_ids, position // size, position % size, num_blocks, block_size, has_place, PAD_ID)
