//! How the inputs of EAGLE and DFlash are laid out, on both arms.

use crate::support::{Draw, on, on_each_arm, read};
use tidelock::kernels::{CopyAndExpandDflashInputs, CopyAndExpandEagleInputs};
use tidelock::{AsView, AsViewMut, Device};

/// What a drafting step is laid out from: input tokens 10, 11, … at positions 20, 21, …; request r goes on with 100 + r, padding
/// is 0 and a token to be drafted 1.
struct Expansion {
    starts: Vec<i32>,
    /// Index of the last token of each request that is kept.
    ends: Vec<i32>,
    slots: usize,
    shift: bool,
    room: usize,
}

/// Ids, positions, rejected and masked as 1, new indices, mapping of hidden states; -77 (or 1) is what was there before.
#[derive(Debug, PartialEq)]
struct Expanded {
    ids: Vec<i32>,
    positions: Vec<i64>,
    rejected: Vec<u8>,
    masked: Vec<u8>,
    new: Vec<i32>,
    mapping: Vec<i32>,
}

impl Expansion {
    fn tokens(&self) -> usize {
        self.starts.last().copied().unwrap_or(0).max(0) as usize
    }

    fn run(&self, device: &Device, tokens: usize) -> Expanded {
        let requests = self.ends.len();
        let (starts, ends) = (on(device, &self.starts), on(device, &self.ends));
        let ids = on(device, &(10..).take(tokens).collect::<Vec<i32>>());
        let positions = on(device, &(20..).take(tokens).collect::<Vec<i64>>());
        let next = on(device, &(100..).take(requests).collect::<Vec<i32>>());
        let (mut out_ids, mut out_positions) = (on(device, &vec![-77; self.room]), on(device, &vec![-77; self.room]));
        let (mut rejected, mut masked) = (on(device, &vec![true; self.room]), on(device, &vec![true; self.room]));
        let (mut new, mut mapping) = (on(device, &vec![-77; requests * self.slots]), on(device, &vec![-77; tokens]));
        CopyAndExpandEagleInputs {
            target_token_ids: ids.view(),
            target_positions: positions.view(),
            next_token_ids: next.view(),
            out_input_ids: out_ids.view_mut(),
            out_positions: out_positions.view_mut(),
            out_is_rejected_token_mask: rejected.view_mut(),
            out_is_masked_token_mask: masked.view_mut(),
            out_new_token_indices: new.view_mut().matrix(requests, self.slots).expect("it fits"),
            out_hidden_state_mapping: mapping.view_mut(),
            query_start_loc: starts.view(),
            query_end_loc: ends.view(),
            padding_token_id: 0,
            parallel_drafting_token_id: 1,
            shift_input_ids: self.shift,
        }
        .launch(device)
        .expect("the arguments fit");
        Expanded {
            ids: read(&out_ids),
            positions: read(&out_positions),
            rejected: read(&rejected).into_iter().map(u8::from).collect(),
            masked: read(&masked).into_iter().map(u8::from).collect(),
            new: read(&new),
            mapping: read(&mapping),
        }
    }

    /// The same, one list after the other.
    fn naive(&self) -> Expanded {
        let mut out =
            Expanded { ids: vec![], positions: vec![], rejected: vec![], masked: vec![], new: vec![], mapping: vec![] };
        for (request, &end) in self.ends.iter().enumerate() {
            let tokens = self.starts[request] as usize..self.starts[request + 1] as usize;
            let total = tokens.len() + self.slots - usize::from(self.shift);
            let first = out.ids.len();
            let mut row: Vec<(i32, u8)> = vec![];
            if !tokens.is_empty() {
                row.extend(tokens.clone().filter(|&token| token as i32 <= end).map(|token| (10 + token as i32, 0)));
                if self.shift {
                    row.remove(0);
                }
                out.new.extend((first + row.len()..).take(self.slots).map(|place| place as i32));
                row.push((100 + request as i32, 0));
                row.extend(vec![(1, 1); self.slots - 1]);
            } else {
                out.new.extend(vec![-1; self.slots]);
            }
            for place in 0..total {
                let written = row.get(place);
                out.ids.push(written.map_or(0, |entry| entry.0));
                out.masked.push(written.map_or(0, |entry| entry.1));
                out.rejected.push(u8::from(written.is_none()));
                out.positions.push(written.map_or(0, |_| (20 + tokens.start + place) as i64));
            }
            let places = (first..).take(tokens.len()).map(|place| if self.shift { place as i32 } else { -77 });
            out.mapping.extend(places);
        }
        out
    }
}

/// Two requests of three tokens and two, of which the first's last was rejected.
#[test]
fn eagle_inputs_shift_left_and_take_the_next_token() {
    on_each_arm(|device| {
        let expansion = Expansion { starts: vec![0, 3, 5], ends: vec![1, 4], slots: 1, shift: true, room: 6 };
        let expected = Expanded {
            ids: vec![11, 100, 0, 14, 101, -77],
            positions: vec![20, 21, 0, 23, 24, -77],
            rejected: vec![0, 0, 1, 0, 0, 1],
            masked: vec![0, 0, 0, 0, 0, 1],
            new: vec![1, 4],
            mapping: vec![0, 1, 2, 3, 4],
        };
        assert_eq!(expansion.run(device, 5), expected, "{device}");
    });
}

#[test]
fn draft_model_inputs_grow_by_their_slots() {
    on_each_arm(|device| {
        let expansion = Expansion { starts: vec![0, 3, 5], ends: vec![1, 4], slots: 2, shift: false, room: 9 };
        let expected = Expanded {
            ids: vec![10, 11, 100, 1, 0, 13, 14, 101, 1],
            positions: vec![20, 21, 22, 23, 0, 23, 24, 25, 26],
            rejected: vec![0, 0, 0, 0, 1, 0, 0, 0, 0],
            masked: vec![0, 0, 0, 1, 0, 0, 0, 0, 1],
            new: vec![2, 3, 7, 8],
            mapping: vec![-77; 5],
        };
        assert_eq!(expansion.run(device, 5), expected, "{device}");
    });
}

#[test]
fn expanding_is_what_one_list_after_the_other_gives() {
    on_each_arm(|device| {
        let mut draw = Draw(4);
        for _ in 0..80 {
            let (mut starts, mut ends) = (vec![0], vec![]);
            for _ in 0..draw.below(5) {
                let (start, length) = (starts[ends.len()], draw.below(5));
                starts.push(start + length);
                ends.push(start + draw.below(length.max(1)));
            }
            let (slots, shift) = (draw.below(4) as usize + 1, draw.below(2) == 0);
            let mut expansion = Expansion { starts, ends, slots, shift, room: 0 };
            let expected = expansion.naive();
            expansion.room = expected.ids.len();
            assert_eq!(expansion.run(device, expansion.tokens()), expected, "{device}");
        }
    });
}

#[test]
fn hostile_ends_and_little_room_stay_inside() {
    on_each_arm(|device| {
        let expansion =
            Expansion { starts: vec![0, 3, 5], ends: vec![i32::MIN, i32::MAX], slots: 2, shift: false, room: 7 };
        let expanded = expansion.run(device, 5);
        assert_eq!(expanded.ids, [10, 100, 1, 0, 0, 13, 14], "the first token is not rejected, on {device}");
        assert_eq!(expanded.new, [1, 2, -1, -1], "{device}");
        let falling = Expansion { starts: vec![3, 1, 9], ends: vec![2, 4], slots: 1, shift: true, room: 4 };
        let expanded = falling.run(device, 5);
        assert_eq!(expanded.ids, [-77, -77, -77, 14], "{device}");
        assert_eq!((expanded.new, expanded.mapping), (vec![-1, -1], vec![-77, -77, -77, 3, -1]), "{device}");
        let none = Expansion { starts: vec![0, 2], ends: vec![1], slots: 0, shift: true, room: 3 };
        assert_eq!(none.run(device, 2).ids, [11, 0, -77], "no slots, so the next token has no place, on {device}");
    });
}

/// The outputs of a DFlash step: ids, context positions and slots, query positions and slots, token indices. Request r has
/// the blocks 2r + 1 and 2r + 2 of four tokens; -77 is what was there before.
fn dflash(
    device: &Device,
    starts: &[i32],
    positions: &[i64],
    rejected: Option<&[i32]>,
    (queries, drafts): (usize, usize),
) -> (Vec<i32>, [Vec<i64>; 4], Vec<i32>) {
    let (requests, tokens) = (starts.len() - 1, positions.len());
    let next = on(device, &(100..).take(requests).collect::<Vec<i32>>());
    let (starts, positions) = (on(device, starts), on(device, positions));
    let rejected = rejected.map(|rejected| on(device, rejected));
    let blocks = on(device, &(1..).take(requests * 2).collect::<Vec<i32>>());
    let mut ids = on(device, &vec![-77; requests * queries]);
    let (mut context_positions, mut context_slots) = (on(device, &vec![-77; tokens]), on(device, &vec![-77; tokens]));
    let mut query_positions = on(device, &vec![-77; requests * queries]);
    let mut query_slots = on(device, &vec![-77; requests * queries]);
    let mut indices = on(device, &vec![-77; requests * drafts]);
    CopyAndExpandDflashInputs {
        next_token_ids: next.view(),
        target_positions: positions.view(),
        out_input_ids: ids.view_mut().matrix(requests, queries).expect("it fits"),
        out_context_positions: context_positions.view_mut(),
        out_query_positions: query_positions.view_mut().matrix(requests, queries).expect("it fits"),
        out_context_slot_mapping: context_slots.view_mut(),
        out_query_slot_mapping: query_slots.view_mut().matrix(requests, queries).expect("it fits"),
        out_token_indices: indices.view_mut().matrix(requests, drafts).expect("it fits"),
        block_table: blocks.view().matrix(requests, 2).expect("it fits"),
        query_start_loc: starts.view(),
        num_rejected_tokens: rejected.as_ref().map(|rejected| rejected.view()),
        parallel_drafting_token_id: 1,
        block_size: 4,
    }
    .launch(device)
    .expect("the arguments fit");
    let wide = [read(&context_positions), read(&context_slots), read(&query_positions), read(&query_slots)];
    (read(&ids), wide, read(&indices))
}

#[test]
fn dflash_queries_follow_the_context() {
    on_each_arm(|device| {
        let (ids, [context, context_slots, queries, query_slots], indices) =
            dflash(device, &[0, 2, 5], &[0, 1, 3, 4, 5], Some(&[0, 1]), (3, 2));
        assert_eq!(ids, [100, 1, 1, 101, 1, 1], "{device}");
        assert_eq!(context, [0, 1, 3, 4, 5], "{device}");
        assert_eq!(context_slots, [4, 5, 15, 16, 17], "{device}");
        assert_eq!(queries, [2, 3, 4, 5, 6, 7], "{device}");
        assert_eq!(query_slots, [6, 7, 8, 17, 18, 19], "{device}");
        assert_eq!(indices, [1, 2, 4, 5], "{device}");
        let (_, [.., queries, query_slots], indices) = dflash(device, &[0, 2, 5], &[0, 1, 3, 4, 5], None, (1, 2));
        assert_eq!((queries, query_slots, indices), (vec![2, 6], vec![6, 18], vec![-1; 4]), "{device}");
    });
}

/// vLLM's GPU arm reads the previous request's position when all of a context is rejected.
#[test]
fn dflash_queries_stay_with_their_own_request() {
    on_each_arm(|device| {
        for rejected in [2, 3, 4, i32::MAX] {
            let (_, [.., queries, _], _) = dflash(device, &[0, 2, 5], &[0, 1, 3, 4, 5], Some(&[0, rejected]), (1, 0));
            assert_eq!(queries, [2, 4], "{rejected} on {device}");
        }
        let (_, [.., queries, _], _) = dflash(device, &[0, 2, 5], &[0, 1, 3, 4, 5], Some(&[-1, i32::MIN]), (1, 0));
        assert_eq!(queries, [2, 6], "{device}");
    });
}

#[test]
fn dflash_without_context_or_place_has_no_slots() {
    on_each_arm(|device| {
        let (ids, [context, context_slots, queries, query_slots], _) =
            dflash(device, &[1, 1, 4], &[5, 7, 8, -1], None, (2, 0));
        assert_eq!(ids, [100, 1, 101, 1], "{device}");
        assert_eq!(context, [-77, 7, 8, -1], "the first token is nobody's, on {device}");
        assert_eq!(context_slots, [-77, 19, -1, -1], "{device}");
        assert_eq!((queries, query_slots), (vec![0, 0, 0, 1], vec![-1, -1, 12, 13]), "{device}");
        let (_, [.., queries, query_slots], _) = dflash(device, &[0, 1], &[i64::MAX], None, (2, 0));
        assert_eq!((queries, query_slots), (vec![i64::MIN, i64::MIN + 1], vec![-1, -1]), "{device}");
    });
}

/// Request after request, with the positions that each would count to.
#[test]
fn dflash_is_what_counting_on_gives() {
    on_each_arm(|device| {
        let mut draw = Draw(6);
        for _ in 0..80 {
            let (queries, drafts) = (draw.below(4) as usize, draw.below(4) as usize);
            let (mut starts, mut positions, mut rejected) = (vec![0], vec![], vec![]);
            let (mut ids, mut wide, mut indices) = (vec![], [const { Vec::<i64>::new() }; 4], vec![]);
            for request in 0..draw.below(5) as i64 {
                let (first, length) = (i64::from(draw.below(7)), i64::from(draw.below(5)));
                let slot = |position: i64| match position {
                    0..4 => (2 * request + 1) * 4 + position,
                    4..8 => (2 * request + 2) * 4 + position - 4,
                    _ => -1,
                };
                rejected.push(draw.below(length.max(1) as i32));
                positions.extend(first..first + length);
                starts.push(positions.len() as i32);
                wide[0].extend(first..first + length);
                wide[1].extend((first..first + length).map(slot));
                let next = first + length - i64::from(rejected[request as usize]);
                for query in 0..queries as i64 {
                    ids.push(if query == 0 { 100 + request as i32 } else { 1 });
                    wide[2].push(if length == 0 { 0 } else { next + query });
                    wide[3].push(if length == 0 { -1 } else { slot(next + query) });
                }
                let own = (ids.len() - queries) as i32 + 1..ids.len() as i32;
                indices.extend(own.chain(std::iter::repeat(-1)).take(drafts));
            }
            let step = dflash(device, &starts, &positions, Some(&rejected), (queries, drafts));
            assert_eq!(step, (ids, wide, indices), "{device}");
        }
    });
}
