//! What EAGLE carries from one of its steps to the next, on both arms.

use crate::support::{on, on_each_arm, read};
use tidelock::kernels::{EaglePrepareInputsPadded, EaglePrepareNextTokenPadded, EagleStepSlotMappingMetadata};
use tidelock::{AsView, AsViewMut, Device};

/// Positions, slots and lengths after a step of requests with the blocks 3 and 5, of four tokens each.
fn step(device: &Device, positions: &[i64], lens: &[i32], padded: usize, limit: i32) -> (Vec<i64>, Vec<i64>, Vec<i32>) {
    let requests = positions.len();
    let (positions, mut lens) = (on(device, positions), on(device, lens));
    let blocks = on(device, &[3, 5].repeat(requests));
    let mut clamped = on(device, &vec![-77; requests]);
    let mut slots = on(device, &vec![-77; padded]);
    EagleStepSlotMappingMetadata {
        positions: positions.view(),
        block_table: blocks.view().matrix(requests, 2).expect("it fits"),
        seq_lens: lens.view_mut(),
        out_clamped_positions: clamped.view_mut(),
        out_slot_mapping: slots.view_mut(),
        block_size: 4,
        max_model_len: limit,
    }
    .launch(device)
    .expect("the arguments fit");
    (read(&clamped), read(&slots), read(&lens))
}

#[test]
fn a_step_moves_each_request_on() {
    on_each_arm(|device| {
        let (positions, slots, lens) = step(device, &[0, 3, 6, 7], &[1, 4, 7, 8], 6, 8);
        assert_eq!(positions, [1, 4, 7, 0], "{device}");
        assert_eq!(slots, [13, 20, 23, -1, -1, -1], "the last is at the model's end, on {device}");
        assert_eq!(lens, [2, 5, 8, 1], "{device}");
        let (positions, slots, lens) = step(device, &[0, 3], &[8, 4], 1, 8);
        assert_eq!(
            (positions, slots, lens),
            (vec![1, 4], vec![13], vec![8, 5]),
            "no length exceeds the model, on {device}"
        );
    });
}

#[test]
fn a_step_from_a_bad_position_has_no_slot() {
    on_each_arm(|device| {
        let (positions, slots, lens) =
            step(device, &[i64::MAX, i64::MIN, -2, -1, 8], &[i32::MAX, 3, 3, i32::MIN, 9], 5, 100);
        assert_eq!(positions, [0, 0, 0, 0, 9], "{device}");
        assert_eq!(slots, [-1, -1, -1, 12, -1], "9 is in the model but not in the table, on {device}");
        assert_eq!(lens, [1, 1, 1, i32::MIN + 1, 10], "{device}");
        assert_eq!(step(device, &[0], &[1], 2, 0), (vec![0], vec![-1, -1], vec![0]), "{device}");
    });
}

/// Indices to sample and rejected tokens.
fn prepare(device: &Device, cu: &[i32], valid: &[i32], starts: &[i32]) -> (Vec<i32>, Vec<i32>) {
    let mut indices = on(device, &vec![-77; cu.len()]);
    let mut rejected = on(device, &vec![-77; cu.len()]);
    let (cu, valid, starts) = (on(device, cu), on(device, valid), on(device, starts));
    EaglePrepareInputsPadded {
        cu_num_draft_tokens: cu.view(),
        valid_sampled_tokens_count: valid.view(),
        query_start_loc: starts.view(),
        token_indices_to_sample: indices.view_mut(),
        num_rejected_tokens: rejected.view_mut(),
    }
    .launch(device)
    .expect("the arguments fit");
    (read(&indices), read(&rejected))
}

/// The second request has no drafts.
#[test]
fn drafting_goes_on_from_the_last_token_that_was_kept() {
    on_each_arm(|device| {
        let prepared = prepare(device, &[3, 3, 5], &[2, 1, 3], &[0, 4, 5, 8]);
        assert_eq!(prepared, (vec![1, 4, 7], vec![2, 0, 0]), "{device}");
    });
}

#[test]
fn an_index_never_is_another_requests() {
    on_each_arm(|device| {
        // Counts of none, of too many, below none; the first token is not rejected.
        let prepared = prepare(device, &[3, 6, 9], &[0, 9, i32::MIN], &[0, 4, 8, 12]);
        assert_eq!(prepared, (vec![0, 7, 8], vec![3, 0, 3]), "{device}");
        let prepared = prepare(device, &[3, 3, 3], &[1, 1, 1], &[0, 2, 2, 3]);
        assert_eq!(prepared, (vec![0, -1, 2], vec![3, 0, 0]), "fewer tokens than drafts, and no token, on {device}");
        let prepared = prepare(device, &[i32::MAX, 0, -4], &[i32::MIN, 1, 1], &[-3, i32::MAX, 7, 9]);
        assert_eq!(prepared, (vec![0, -1, -1], vec![i32::MAX, 0, 0]), "counts that fall, on {device}");
    });
}

#[test]
fn the_next_token_is_the_last_valid_one() {
    on_each_arm(|device| {
        let rows = [[1, 2, 3], [4, -1, -1], [-1, -1, -1], [5, 6, 7], [100, -2, i32::MAX], [0, 99, 100]];
        let sampled = on(device, rows.as_flattened());
        let discard = on(device, &[false, false, false, true, false, false]);
        let backup = on(device, &[10, 11, 12, 13, 14, 15]);
        let (mut next, mut count) = (on(device, &[-77; 6]), on(device, &[-77; 6]));
        EaglePrepareNextTokenPadded {
            sampled_token_ids: sampled.view().matrix(6, 3).expect("it fits"),
            discard_request_mask: discard.view(),
            backup_next_token_ids: backup.view(),
            next_token_ids: next.view_mut(),
            valid_sampled_tokens_count: count.view_mut(),
            vocab_size: 100,
        }
        .launch(device)
        .expect("the arguments fit");
        assert_eq!(read(&next), [3, 4, 12, 13, 14, 99], "{device}");
        assert_eq!(read(&count), [3, 1, 0, 0, 0, 2], "{device}");
    });
}

/// A row of many tokens, which take several steps, with the valid ones apart.
#[test]
fn a_long_row_has_one_last_token() {
    on_each_arm(|device| {
        let mut row = vec![-1; 200];
        (row[3], row[70], row[131]) = (5, 6, 7);
        let (sampled, discard, backup) = (on(device, &row), on(device, &[false]), on(device, &[9]));
        let (mut next, mut count) = (on(device, &[-77]), on(device, &[-77]));
        EaglePrepareNextTokenPadded {
            sampled_token_ids: sampled.view().matrix(1, 200).expect("it fits"),
            discard_request_mask: discard.view(),
            backup_next_token_ids: backup.view(),
            next_token_ids: next.view_mut(),
            valid_sampled_tokens_count: count.view_mut(),
            vocab_size: 100,
        }
        .launch(device)
        .expect("the arguments fit");
        assert_eq!((read(&next), read(&count)), (vec![7], vec![3]), "{device}");
    });
}
