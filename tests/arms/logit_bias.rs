//! Logit bias and min tokens: what a request's own lists of ids do to its logits.

use std::collections::BTreeMap;

use half::f16;
use tidelock::kernels::{ApplyLogitBias, ApplyLogitBiasL, ApplyMinTokens, ApplyMinTokensL};
use tidelock::{AsView, AsViewMut, Device};

use crate::logits::{Draw, Logit, Ragged, bits, expected, logits, on_each_type};
use crate::support::{on, on_each_arm};

const REMOVED: f32 = f32::NEG_INFINITY;

/// The bits of rows of logits after their biases.
fn bias<L: Logit + ApplyLogitBiasL>(device: &Device, row: &[L], biases: &[&[(i32, f32)]]) -> Vec<u32> {
    let list = Ragged::new(biases);
    bias_of_parts(device, row, &list.values, &list.ends)
}

fn bias_of_parts<L: Logit + ApplyLogitBiasL>(
    device: &Device,
    row: &[L],
    list: &[(i32, f32)],
    ends: &[i32],
) -> Vec<u32> {
    let mut logits = on(device, row);
    let ids = on(device, &list.iter().map(|bias| bias.0).collect::<Vec<_>>());
    let values = on(device, &list.iter().map(|bias| bias.1).collect::<Vec<_>>());
    let (rows, ends) = (ends.len(), on(device, ends));
    ApplyLogitBias {
        logits: logits.view_mut().matrix(rows, row.len() / rows).expect("it fits"),
        bias_token_ids: ids.view(),
        logit_bias: values.view(),
        cu_logit_bias: ends.view(),
    }
    .launch(device)
    .expect("the arguments fit");
    bits(&logits)
}

fn biases<L: Logit + ApplyLogitBiasL>(device: &Device) {
    let row = logits::<L>(&[0.0, 1.0, 2.0, REMOVED, 4.0, f32::INFINITY]);
    let run = |list: &[(i32, f32)]| bias(device, &row, &[list]);
    let infinity = f32::INFINITY;
    let after = expected::<L>(&[-3.0, 1.0, 2.5, REMOVED, 4.0, infinity]);
    assert_eq!(run(&[(2, 0.5), (0, -3.0), (5, 1.0)]), after, "{device}");
    let after = expected::<L>(&[0.0, 1.0, 2.0, REMOVED, REMOVED, f32::NAN]);
    assert_eq!(run(&[(4, -infinity), (5, -infinity), (3, infinity)]), after, "{device}");
    let outside = [(-1, 9.0), (6, 9.0), (i32::MAX, 9.0), (i32::MIN, 9.0)];
    assert_eq!(run(&outside), row.iter().map(|x| x.bits()).collect::<Vec<_>>(), "{device}");
    // In the list's order: any other gives 1 or 2.
    let repeated = [(0, 1e9), (1, 0.5), (0, 1.0), (0, -1e9), (0, 0.25), (1, 0.5)];
    assert_eq!(run(&repeated), expected::<L>(&[0.25, 2.0, 2.0, REMOVED, 4.0, infinity]), "{device}");
    let nan = L::from_f32(-f32::NAN);
    assert_eq!(bias(device, &[nan], &[&[(0, 1.0)]]), [nan.bits()], "{device}");
}

#[test]
fn biases_are_added_in_the_order_of_the_list() {
    on_each_type!(biases);
}

#[test]
fn the_sum_of_biases_is_rounded_once() {
    on_each_arm(|device| {
        let after = bias(device, &logits::<f16>(&[2048.0]), &[&[(0, 1.0), (0, 1.0)]]);
        assert_eq!(after, expected::<f16>(&[2050.0]), "{device}");
    });
}

fn hostile_biases<L: Logit + ApplyLogitBiasL>(device: &Device) {
    let list = [(0, 1.0), (1, 2.0), (0, 4.0)];
    let run = |ends: &[i32]| bias_of_parts(device, &logits::<L>(&[0.0; 4]), &list, ends);
    assert_eq!(run(&[2, 3]), expected::<L>(&[1.0, 2.0, 4.0, 0.0]), "{device}");
    assert_eq!(run(&[i32::MAX, 1]), expected::<L>(&[5.0, 2.0, 0.0, 0.0]), "{device}");
    assert_eq!(run(&[-7, 1]), expected::<L>(&[0.0, 0.0, 1.0, 0.0]), "biases of nobody, on {device}");
}

#[test]
fn hostile_biases_stay_inside_their_lists() {
    on_each_type!(hostile_biases);
}

fn random_biases<L: Logit + ApplyLogitBiasL>(device: &Device) {
    let mut draw = Draw(31);
    for vocab_size in [1, 7, 400] {
        let lists: Vec<Vec<(i32, f32)>> =
            [0, 1, 300, 40].map(|length| (0..length).map(|_| (draw.token(vocab_size), draw.logit())).collect()).into();
        let before: Vec<L> = (0..4 * vocab_size).map(|_| L::from_f32(draw.logit())).collect();
        let mut after: Vec<f32> = before.iter().map(|x| x.to_f32()).collect();
        for (row, list) in lists.iter().enumerate() {
            let mut sums = BTreeMap::new();
            for &(token, bias) in list.iter().filter(|entry| (0..vocab_size as i32).contains(&entry.0)) {
                let token = row * vocab_size + token as usize;
                *sums.entry(token).or_insert(after[token]) += bias;
            }
            sums.retain(|&token, _| after[token] > REMOVED);
            sums.into_iter().for_each(|(token, sum)| after[token] = sum);
        }
        let lists: Vec<&[(i32, f32)]> = lists.iter().map(|list| &list[..]).collect();
        assert!(bias(device, &before, &lists) == expected::<L>(&after), "{vocab_size} tokens on {device}");
    }
}

#[test]
fn random_biases_as_the_rule_says() {
    on_each_type!(random_biases);
}

/// One row: how long its output is and has to be, and whether its stop tokens stay when no other is left.
type Length = (i32, i32, bool);

/// The bits of rows of logits after their stop tokens were removed.
fn min_tokens<L: Logit + ApplyMinTokensL>(
    device: &Device,
    row: &[L],
    lengths: &[Length],
    stops: &[i32],
    ends: &[i32],
) -> Vec<u32> {
    let mut logits = on(device, row);
    let rows = lengths.len();
    let lens = on(device, &lengths.iter().map(|length| length.0).collect::<Vec<_>>());
    let min = on(device, &lengths.iter().map(|length| length.1).collect::<Vec<_>>());
    let restore = on(device, &lengths.iter().map(|length| length.2).collect::<Vec<_>>());
    let (stops, ends) = (on(device, stops), on(device, ends));
    ApplyMinTokens {
        logits: logits.view_mut().matrix(rows, row.len() / rows).expect("it fits"),
        min_tokens: min.view(),
        output_lens: lens.view(),
        stop_token_ids: stops.view(),
        cu_stop_token_ids: ends.view(),
        restore_when_all_masked: restore.view(),
    }
    .launch(device)
    .expect("the arguments fit");
    bits(&logits)
}

fn stops<L: Logit + ApplyMinTokensL>(device: &Device) {
    let all = [1.0, 2.0, 3.0, 4.0];
    let run = |values: [f32; 4], length: Length, stops: &[i32]| {
        min_tokens(device, &logits::<L>(&values), &[length], stops, &[stops.len() as i32])
    };
    let masked = expected::<L>(&[1.0, REMOVED, 3.0, REMOVED]);
    assert_eq!(run(all, (4, 5, false), &[3, 1]), masked, "below, on {device}");
    assert_eq!(run(all, (5, 5, false), &[3, 1]), expected::<L>(&all), "long enough, on {device}");
    assert_eq!(run(all, (0, 0, false), &[3, 1]), expected::<L>(&all), "no demand, on {device}");
    assert_eq!(run(all, (4, 5, true), &[3, 1]), masked, "others are left, on {device}");
    assert_eq!(run(all, (4, 5, false), &[-1, 4, i32::MAX, i32::MIN]), expected::<L>(&all), "{device}");

    let only_stops = [REMOVED, 2.0, REMOVED, 4.0];
    assert_eq!(run(only_stops, (4, 5, true), &[3, 1, 3]), expected::<L>(&only_stops), "they stay, on {device}");
    assert_eq!(run(only_stops, (4, 5, false), &[3, 1, 3]), expected::<L>(&[REMOVED; 4]), "they do not, on {device}");
    let one_more = expected::<L>(&[REMOVED, 2.0, REMOVED, REMOVED]);
    assert_eq!(run(only_stops, (4, 5, true), &[3]), one_more, "token 1 is left, on {device}");
}

#[test]
fn stop_tokens_wait_for_the_minimum() {
    on_each_type!(stops);
}

#[test]
fn hostile_stop_lists_stay_inside() {
    on_each_arm(|device| {
        let below: [Length; 2] = [(0, 1, false), (i32::MIN, i32::MAX, true)];
        let run = |ends: &[i32]| min_tokens(device, &[1f32; 4], &below, &[0, 1], ends);
        let removed = |values: [f32; 4]| expected::<f32>(&values);
        assert_eq!(run(&[i32::MAX, 0]), removed([REMOVED, REMOVED, 1.0, 1.0]), "{device}");
        assert_eq!(run(&[-5, 1]), removed([1.0, 1.0, REMOVED, 1.0]), "{device}");
    });
}

fn random_stops<L: Logit + ApplyMinTokensL>(device: &Device) {
    let mut draw = Draw(41);
    for vocab_size in [1, 40, 2100] {
        let rows = 6;
        let lists: Vec<Vec<i32>> =
            (0..rows).map(|row| (0..row * 40).map(|_| draw.token(vocab_size)).collect()).collect();
        let lengths: Vec<Length> =
            (0..rows).map(|_| (draw.of(&[0, 3]), draw.of(&[2, 9]), draw.below(2) == 0)).collect();
        let mut before: Vec<f32> = (0..rows * vocab_size).map(|_| draw.logit()).collect();
        let row = rows - 1; // here a grammar allows nothing but the stop tokens
        let others = (0..vocab_size).filter(|&token| !lists[row].contains(&(token as i32)));
        others.for_each(|token| before[row * vocab_size + token] = REMOVED);
        let before = logits::<L>(&before);
        let mut after: Vec<f32> = before.iter().map(|x| x.to_f32()).collect();
        for (row, (list, (len, min, restore))) in lists.iter().zip(&lengths).enumerate() {
            let row = &mut after[row * vocab_size..][..vocab_size];
            let saved = row.to_vec();
            if len < min {
                list.iter()
                    .filter(|&&token| (0..vocab_size as i32).contains(&token))
                    .for_each(|&t| row[t as usize] = REMOVED);
            }
            if *restore && row.iter().all(|&x| x == REMOVED) {
                row.copy_from_slice(&saved);
            }
        }
        let lists = Ragged::new(&lists);
        let got = min_tokens(device, &before, &lengths, &lists.values, &lists.ends);
        assert!(got == expected::<L>(&after), "{vocab_size} tokens on {device}");
    }
}

#[test]
fn random_stop_lists_as_the_rule_says() {
    on_each_type!(random_stops);
}
