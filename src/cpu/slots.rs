//! Where a token's keys and values lie in the paged cache. Its twin is `kernels/slots.py`.
//!
//! A request's block table names the blocks that hold its tokens; the slot of a token is the id of its block times the
//! block size, plus its offset there. What has no such place gets `pad_id`, which writers of the cache skip: a position
//! that is negative or beyond the table, a block without an id, an offset outside the block. So a slot that is not
//! `pad_id` always lies in a block of its own request. Everything is 64 bits wide, where no block times a size overflows.

/// The slot at an offset of a block of the table; neither is negative.
pub(super) fn slot_in_block(block_ids: &[i32], block: i64, offset: i64, block_size: i32, pad_id: i64) -> i64 {
    let id = usize::try_from(block).ok().and_then(|block| block_ids.get(block));
    match id {
        Some(&id @ 0..) if offset < i64::from(block_size) => i64::from(id) * i64::from(block_size) + offset,
        _ => pad_id,
    }
}

/// The slot of a position of a request.
pub(super) fn slot_of(block_ids: &[i32], position: i64, block_size: i32, pad_id: i64) -> i64 {
    if position < 0 || block_size < 1 {
        return pad_id;
    }
    let size = i64::from(block_size);
    slot_in_block(block_ids, position / size, position % size, block_size, pad_id)
}
