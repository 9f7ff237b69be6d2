//! Slots of the KV cache and copies of its bytes, on both arms.

use crate::support::{Draw, on, on_each_arm, read};
use tidelock::kernels::{BatchCopy, ComputeSlotMapping};
use tidelock::{AsView, AsViewMut, Device};

/// How requests, blocks and ranks lie.
#[derive(Clone)]
struct Cache {
    starts: Vec<i32>,
    positions: Vec<i64>,
    /// A row a request.
    blocks: Vec<i32>,
    padded: usize,
    block_size: i32,
    /// World size, rank and interleave size.
    ranks: (i32, i32, i32),
}

impl Cache {
    fn slots(&self, device: &Device) -> Vec<i64> {
        let requests = self.starts.len() - 1;
        let columns = self.blocks.len().checked_div(requests).unwrap_or(0);
        let (starts, positions, blocks) =
            (on(device, &self.starts), on(device, &self.positions), on(device, &self.blocks));
        let mut slots = on(device, &vec![-77; self.padded]);
        let (world_size, rank, interleave) = self.ranks;
        ComputeSlotMapping {
            query_start_loc: starts.view(),
            positions: positions.view(),
            block_table: blocks.view().matrix(requests, columns).expect("it fits"),
            slot_mapping: slots.view_mut(),
            kv_cache_block_size: self.block_size,
        }
        .total_cp_world_size(world_size)
        .total_cp_rank(rank)
        .cp_kv_cache_interleave_size(interleave)
        .launch(device)
        .expect("the arguments fit");
        read(&slots)
    }
}

/// Two requests in blocks of four: the first goes on at position 3, the second is at its beginning.
fn two_requests() -> Cache {
    Cache {
        starts: vec![0, 3, 5],
        positions: vec![3, 4, 5, 0, 1],
        blocks: vec![7, 2, 9, 5, -1, -1],
        padded: 8,
        block_size: 4,
        ranks: (1, 0, 1),
    }
}

/// vLLM's CPU fallback never writes the padding.
#[test]
fn tokens_get_slots_and_padding_gets_none() {
    on_each_arm(|device| {
        assert_eq!(two_requests().slots(device), [31, 8, 9, 20, 21, -1, -1, -1], "{device}");
        let exact = Cache { padded: 5, ..two_requests() };
        assert_eq!(exact.slots(device), [31, 8, 9, 20, 21], "{device}");
        let short = Cache { padded: 4, ..two_requests() };
        assert_eq!(short.slots(device), [31, 8, 9, 20], "tokens beyond the mapping are left out, on {device}");
    });
}

/// vLLM's CPU fallback refuses more than one rank.
#[test]
fn ranks_share_the_tokens_of_a_request() {
    on_each_arm(|device| {
        let sequence = |ranks| Cache {
            starts: vec![0, 10],
            positions: (0..10).collect(),
            blocks: vec![3, 1, 8],
            padded: 11,
            block_size: 4,
            ranks,
        };
        let first = sequence((2, 0, 1)).slots(device);
        assert_eq!(first, [12, -1, 13, -1, 14, -1, 15, -1, 4, -1, -1], "{device}");
        let second = sequence((2, 1, 1)).slots(device);
        assert_eq!(second, [-1, 12, -1, 13, -1, 14, -1, 15, -1, 4, -1], "{device}");
        let in_pairs = sequence((2, 1, 2)).slots(device);
        assert_eq!(in_pairs, [-1, -1, 12, 13, -1, -1, 14, 15, -1, -1, -1], "{device}");
    });
}

#[test]
fn what_has_no_place_gets_no_slot() {
    on_each_arm(|device| {
        let at = |positions: &[i64; 5]| Cache { positions: positions.to_vec(), ..two_requests() }.slots(device);
        assert_eq!(at(&[-1, i64::MIN, 12, 4, 12])[..5], [-1; 5], "negative, beyond the table, no block, on {device}");
        assert_eq!(at(&[i64::MAX, 11, 0, i64::MAX, 3])[..5], [-1, 39, 28, -1, 23], "{device}");
        for block_size in [0, -4, i32::MIN] {
            assert_eq!(Cache { block_size, ..two_requests() }.slots(device), [-1; 8], "{block_size} on {device}");
        }
        for ranks in [(0, 0, 1), (-2, 0, 1), (1, 1, 1), (1, -1, 1), (1, 0, 0), (2, i32::MIN, -3)] {
            assert_eq!(Cache { ranks, ..two_requests() }.slots(device), [-1; 8], "{ranks:?} on {device}");
        }
        // An interleave size that does not divide the block size would point behind the block.
        let beyond = Cache {
            starts: vec![0, 8],
            positions: (0..8).collect(),
            blocks: vec![3],
            padded: 8,
            block_size: 4,
            ranks: (2, 0, 3),
        };
        assert_eq!(beyond.slots(device), [12, 13, 14, -1, -1, -1, 15, -1], "{device}");
        let huge = Cache { blocks: vec![i32::MAX; 6], block_size: i32::MAX, ..two_requests() };
        let first = i64::from(i32::MAX) * i64::from(i32::MAX);
        assert_eq!(huge.slots(device)[..5], [first + 3, first + 4, first + 5, first, first + 1], "{device}");
    });
}

#[test]
fn tokens_of_nobody_get_no_slot() {
    on_each_arm(|device| {
        let with = |starts: &[i32; 3]| Cache { starts: starts.to_vec(), ..two_requests() }.slots(device);
        assert_eq!(with(&[1, 3, 4]), [-1, 8, 9, 20, -1, -1, -1, -1], "{device}");
        assert_eq!(with(&[0, 0, 2]), [23, -1, -1, -1, -1, -1, -1, -1], "the second has one block, on {device}");
        assert_eq!(with(&[-5, 3, 1]), [31, 8, 9, -1, -1, -1, -1, -1], "{device}");
        assert_eq!(with(&[4, 2, i32::MAX]), [-1, -1, -1, -1, 21, -1, -1, -1], "{device}");
        let nobody = Cache { starts: vec![0], blocks: vec![], ..two_requests() };
        assert_eq!(nobody.slots(device), [-1; 8], "{device}");
    });
}

/// The slot of each position of one request on one rank, found by dealing out the tokens one after the other.
fn dealt(
    positions: usize,
    blocks: &[i32],
    block_size: i32,
    (world_size, rank, interleave): (i32, i32, i32),
) -> Vec<i64> {
    let mut held = 0;
    let slot = |position: usize| {
        let owner = position as i32 / interleave % world_size;
        let block = blocks.get(position / (block_size * world_size) as usize).copied().unwrap_or(-1);
        if owner != rank {
            return -1;
        }
        let slot = if block < 0 { -1 } else { i64::from(block * block_size + held % block_size) };
        held += 1;
        slot
    };
    (0..positions).map(slot).collect()
}

#[test]
fn ranks_are_dealt_whole_interleaves() {
    on_each_arm(|device| {
        let mut draw = Draw(1);
        for _ in 0..60 {
            let interleave = draw.below(4) + 1;
            let block_size = interleave * (draw.below(3) + 1);
            let world_size = draw.below(4) + 1;
            let ranks = (world_size, draw.below(world_size), interleave);
            let blocks: Vec<i32> = (0..3).map(|_| draw.below(6) - 1).collect();
            let positions = draw.below(60) as usize;
            let cache = Cache {
                starts: vec![0, positions as i32],
                positions: (0..positions as i64).collect(),
                blocks: blocks.clone(),
                padded: positions,
                block_size,
                ranks,
            };
            let expected = dealt(positions, &blocks, block_size, ranks);
            assert_eq!(cache.slots(device), expected, "{ranks:?}, blocks {blocks:?} of {block_size} on {device}");
        }
    });
}

/// What is left in `destination` after copies of (to, from, size).
fn copy(device: &Device, destination: &[u8], source: &[u8], copies: &[(i64, i64, i64)]) -> Vec<u8> {
    let (mut destination, source) = (on(device, destination), on(device, source));
    let offsets = on(device, &copies.iter().map(|copy| copy.0).collect::<Vec<_>>());
    let from = on(device, &copies.iter().map(|copy| copy.1).collect::<Vec<_>>());
    let sizes = on(device, &copies.iter().map(|copy| copy.2).collect::<Vec<_>>());
    BatchCopy {
        destination: destination.view_mut(),
        source: source.view(),
        destination_offsets: offsets.view(),
        source_offsets: from.view(),
        sizes: sizes.view(),
    }
    .launch(device)
    .expect("the arguments fit");
    read(&destination)
}

#[test]
fn copies_land_where_they_should() {
    on_each_arm(|device| {
        let copied = copy(device, &[0; 8], &[1, 2, 3, 4, 5], &[(6, 3, 2), (0, 0, 3), (4, 1, 0)]);
        assert_eq!(copied, [1, 2, 3, 0, 0, 0, 4, 5], "{device}");
        assert_eq!(copy(device, &[7; 3], &[1; 3], &[]), [7; 3], "{device}");
        assert_eq!(copy(device, &[], &[], &[(0, 0, 0)]), [0; 0], "{device}");
        let long: Vec<u8> = (0..100_000).map(|byte| (byte % 251) as u8).collect();
        let mut expected = vec![0; 100_001];
        expected[1..].copy_from_slice(&long);
        assert!(copy(device, &[0; 100_001], &long, &[(1, 0, 100_000)]) == expected, "{device}");
    });
}

#[test]
fn a_copy_that_leaves_its_buffers_is_not_done_in_part() {
    on_each_arm(|device| {
        for hostile in [
            (3, 0, 2),
            (0, 2, 2),
            (0, 0, 4),
            (-1, 0, 2),
            (0, -1, 2),
            (0, 0, -1),
            (i64::MAX, 0, 1),
            (0, i64::MAX, i64::MAX),
            (i64::MIN, i64::MIN, i64::MAX),
            (1, 1, i64::MIN),
            (4, 0, 1),
        ] {
            // It neither writes, nor keeps an earlier copy from writing.
            assert_eq!(
                copy(device, &[0; 4], &[1, 2, 3], &[(1, 0, 3), hostile]),
                [0, 1, 2, 3],
                "{hostile:?} on {device}"
            );
        }
    });
}

#[test]
fn where_copies_overlap_the_last_wins() {
    on_each_arm(|device| {
        let source = [1, 2, 3, 4, 5, 6];
        assert_eq!(copy(device, &[0; 6], &source, &[(0, 0, 4), (2, 0, 4)]), [1, 2, 1, 2, 3, 4], "{device}");
        assert_eq!(copy(device, &[0; 6], &source, &[(2, 0, 4), (0, 0, 4)]), [1, 2, 3, 4, 3, 4], "{device}");
        let many: Vec<(i64, i64, i64)> = (0..1500).map(|copy| (copy % 5, copy % 4, 2)).collect();
        assert_eq!(copy(device, &[0; 6], &source, &many), in_order(&[0; 6], &source, &many), "{device}");
        let mut draw = Draw(2);
        for _ in 0..60 {
            let mut any = |below| i64::from(draw.below(below)) - 1;
            let copies: Vec<_> = (0..any(9)).map(|_| (any(20), any(12), any(12))).collect();
            let (destination, source) = ([0; 20], std::array::from_fn::<u8, 14, _>(|byte| byte as u8 + 1));
            let expected = in_order(&destination, &source, &copies);
            assert_eq!(copy(device, &destination, &source, &copies), expected, "{copies:?} on {device}");
        }
    });
}

/// Byte after byte, copy after copy.
fn in_order(destination: &[u8], source: &[u8], copies: &[(i64, i64, i64)]) -> Vec<u8> {
    let mut destination = destination.to_vec();
    for &(to, from, size) in copies {
        let whole = to >= 0 && from >= 0 && to + size <= destination.len() as i64 && from + size <= source.len() as i64;
        for byte in 0..if whole { size } else { 0 } {
            destination[(to + byte) as usize] = source[(from + byte) as usize];
        }
    }
    destination
}
