//! Penalties, and the counts and sets that they rest on.

use tidelock::kernels::{ApplyPenalties, ApplyPenaltiesL, CountTokens, MarkTokens};
use tidelock::{AsView, AsViewMut, Device};

use crate::logits::{Draw, Logit, Ragged, bits, expected, logits, on_each_type};
use crate::support::{on, on_each_arm, read};

/// Counts after the lists were counted, in rows of `vocab_size` tokens.
fn count(device: &Device, counts: &[i32], lists: &Ragged<i32>, clear: &[bool]) -> Vec<i32> {
    let (rows, vocab_size) = (clear.len(), counts.len() / clear.len());
    let mut counts = on(device, counts);
    let (ids, ends, clear) = (on(device, &lists.values), on(device, &lists.ends), on(device, clear));
    CountTokens {
        counts: counts.view_mut().matrix(rows, vocab_size).expect("it fits"),
        token_ids: ids.view(),
        cu_token_ids: ends.view(),
        clear: clear.view(),
    }
    .launch(device)
    .expect("the arguments fit");
    read(&counts)
}

/// The sets of the lists, in rows of `words` words.
fn mark(device: &Device, words: usize, lists: &Ragged<i32>, initial: &[i32]) -> Vec<i32> {
    let rows = initial.len();
    let mut bitmask = on(device, &vec![77; words * rows]);
    let (ids, ends, initial) = (on(device, &lists.values), on(device, &lists.ends), on(device, initial));
    MarkTokens {
        bitmask: bitmask.view_mut().matrix(rows, words).expect("it fits"),
        token_ids: ids.view(),
        cu_token_ids: ends.view(),
        initial: initial.view(),
    }
    .launch(device)
    .expect("the arguments fit");
    read(&bitmask)
}

/// Repetition, frequency and presence penalty of one row.
type Penalties = (f32, f32, f32);

/// The bits of logits after the penalties, of one row for each of `penalties`.
fn penalize<L: Logit + ApplyPenaltiesL>(
    device: &Device,
    logits: &[L],
    counts: &[i32],
    prompt: &[i32],
    penalties: &[Penalties],
) -> Vec<u32> {
    let (rows, vocab_size) = (penalties.len(), logits.len() / penalties.len());
    let mut logits = on(device, logits);
    let (counts, prompt) = (on(device, counts), on(device, prompt));
    let column = |pick: fn(&Penalties) -> f32| on(device, &penalties.iter().map(pick).collect::<Vec<_>>());
    let (repetition, frequency, presence) = (column(|p| p.0), column(|p| p.1), column(|p| p.2));
    ApplyPenalties {
        logits: logits.view_mut().matrix(rows, vocab_size).expect("it fits"),
        output_token_counts: counts.view().matrix(rows, vocab_size).expect("it fits"),
        prompt_bitmask: prompt.view().matrix(rows, vocab_size.div_ceil(32)).expect("it fits"),
        repetition_penalties: repetition.view(),
        frequency_penalties: frequency.view(),
        presence_penalties: presence.view(),
    }
    .launch(device)
    .expect("the arguments fit");
    bits(&logits)
}

#[test]
fn tokens_are_counted_onto_what_was_there_or_anew() {
    on_each_arm(|device| {
        let lists = Ragged::new(&[vec![2, 0, 2, 2], vec![], vec![1, 1]]);
        let counts = [5, 5, 5, 1, 1, 1, 7, 7, 7];
        assert_eq!(count(device, &counts, &lists, &[true, true, false]), [1, 0, 3, 0, 0, 0, 7, 9, 7], "{device}");
    });
}

#[test]
fn ids_outside_the_vocabulary_are_not_counted() {
    on_each_arm(|device| {
        let lists = Ragged::new(&[[-1, 3, i32::MAX, i32::MIN, 2, -2]]);
        assert_eq!(count(device, &[9, 9, 9], &lists, &[true]), [0, 0, 1], "{device}");
        let once = Ragged::new(&[[0]]);
        assert_eq!(count(device, &[i32::MAX], &once, &[false]), [i32::MIN], "a count wraps around, on {device}");
    });
}

#[test]
fn hostile_ends_stay_inside_the_lists() {
    on_each_arm(|device| {
        let lists = Ragged { values: vec![0, 0, 1], ends: vec![2, -9, i32::MAX, 1] };
        assert_eq!(count(device, &[0; 8], &lists, &[true; 4]), [2, 0, 0, 0, 0, 1, 0, 0], "{device}");
        assert_eq!(mark(device, 1, &lists, &[0; 4]), [1, 0, 2, 0], "{device}");
    });
}

#[test]
fn tokens_are_marked_bit_by_bit() {
    on_each_arm(|device| {
        let lists = Ragged::new(&[vec![0, 31, 32, 63, 31], vec![], vec![-1, 64, i32::MAX, i32::MIN, 5], vec![]]);
        let marked = mark(device, 2, &lists, &[0, 0, 0, -1]);
        assert_eq!(marked, [i32::MIN + 1, i32::MIN + 1, 0, 0, 32, 0, -1, -1], "{device}");
    });
}

#[test]
fn counts_and_sets_of_a_whole_vocabulary() {
    on_each_arm(|device| {
        let (rows, vocab_size) = (3, 5000);
        let mut draw = Draw(7);
        let lists: Vec<Vec<i32>> = (0..rows).map(|_| (0..9000).map(|_| draw.token(vocab_size)).collect()).collect();
        let words = vocab_size.div_ceil(32);
        let (mut counts, mut sets) = (vec![0; rows * vocab_size], vec![0; rows * words]);
        for (row, list) in lists.iter().enumerate() {
            for &token in list.iter().filter(|&&token| token >= 0) {
                let token = token as usize;
                if token < vocab_size {
                    counts[row * vocab_size + token] += 1;
                }
                if token < words * 32 {
                    sets[row * words + token / 32] |= 1 << (token % 32);
                }
            }
        }
        let lists = Ragged::new(&lists);
        assert!(count(device, &vec![3; rows * vocab_size], &lists, &[true; 3]) == counts, "{device}");
        assert!(mark(device, words, &lists, &[0; 3]) == sets, "{device}");
    });
}

fn each_penalty_has_its_tokens<L: Logit + ApplyPenaltiesL>(device: &Device) {
    let row = logits::<L>(&[4.0, -4.0, 4.0, -4.0, 0.0, 4.0]);
    let (counts, prompt) = ([0, 0, 2, 1, 1, 0], [0b11]);
    let run = |penalties: Penalties| penalize(device, &row, &counts, &prompt, &[penalties]);
    let all = expected::<L>(&[2.0, -8.0, 0.75, -8.75, -0.75, 4.0]);
    assert_eq!(run((2.0, 0.5, 0.25)), all, "repetition, then frequency, then presence, on {device}");
    assert_eq!(run((2.0, 0.0, 0.0)), expected::<L>(&[2.0, -8.0, 2.0, -8.0, 0.0, 4.0]), "repetition, on {device}");
    assert_eq!(run((1.0, 0.5, 0.0)), expected::<L>(&[4.0, -4.0, 3.0, -4.5, -0.5, 4.0]), "frequency, on {device}");
    assert_eq!(run((1.0, 0.0, -1.0)), expected::<L>(&[4.0, -4.0, 5.0, -3.0, 1.0, 4.0]), "presence, on {device}");
}

#[test]
fn each_penalty_applies_to_its_tokens() {
    on_each_type!(each_penalty_has_its_tokens);
}

fn odd_numbers<L: Logit + ApplyPenaltiesL>(device: &Device) {
    let (infinity, nan) = (f32::INFINITY, L::from_f32(-f32::NAN));
    let run = |x: L, count: i32, penalties| penalize(device, &[x], &[count], &[1], &[penalties])[0];
    let x = |x: f32| L::from_f32(x);
    // What is removed stays removed, and a NaN keeps its bits.
    for penalties in [(0.0, 0.0, 0.0), (-1.0, -infinity, 0.0), (f32::NAN, 1.0, 1.0), (2.0, 1.0, -infinity)] {
        assert_eq!(run(x(-infinity), 1, penalties), x(-infinity).bits(), "{penalties:?} on {device}");
        assert_eq!(run(nan, 1, penalties), nan.bits(), "{penalties:?} on {device}");
    }
    // A NaN that is calculated is the quiet one.
    for (logit, penalties) in
        [(infinity, (1.0, infinity, 0.0)), (1.0, (-f32::NAN, 0.0, 0.0)), (0.0, (infinity, 0.0, 0.0))]
    {
        assert_eq!(run(x(logit), 1, penalties), L::QUIET_NAN, "{logit}, {penalties:?} on {device}");
    }
    // No penalty: not even the sign of a zero changes.
    assert_eq!(run(x(-0.0), 1, (1.0, -0.0, -0.0)), x(-0.0).bits(), "{device}");
    // A count below 1 is none.
    assert_eq!(run(x(3.0), -2, (2.0, 1.0, 1.0)), x(1.5).bits(), "only the prompt has it, on {device}");
}

#[test]
fn nan_and_infinity_have_rules() {
    on_each_type!(odd_numbers);
}

/// Two roundings would leave 2048, since the first takes 2049 back to it.
#[test]
fn f16_is_rounded_once() {
    on_each_arm(|device| {
        let run = |x, penalties| penalize(device, &logits::<half::f16>(&[x]), &[1], &[0], &[penalties]);
        assert_eq!(run(2048.0, (1.0, -1.0, -1.0)), expected::<half::f16>(&[2050.0]), "{device}");
        assert_eq!(run(2048.0, (1.0, -1.0, 0.0)), expected::<half::f16>(&[2048.0]), "a tie goes to even, on {device}");
        assert_eq!(run(60000.0, (0.5, 0.0, 0.0)), expected::<half::f16>(&[f32::INFINITY]), "{device}");
        assert_eq!(run(-60000.0, (2.0, 0.0, 0.0)), expected::<half::f16>(&[f32::NEG_INFINITY]), "{device}");
    });
}

fn penalties_as_the_rule_says<L: Logit + ApplyPenaltiesL>(device: &Device) {
    let mut draw = Draw(3);
    for vocab_size in [1, 31, 33, 700, 2049] {
        let pool = [1.0, 1.5, 0.1, 3.0];
        let rows: Vec<Penalties> =
            (0..5).map(|_| (draw.of(&pool), draw.of(&[0.0, 0.3, -1.7]), draw.of(&[0.0, 0.7, -2.0]))).collect();
        let (size, words) = (rows.len() * vocab_size, vocab_size.div_ceil(32));
        let before: Vec<L> = (0..size).map(|_| L::from_f32(draw.logit())).collect();
        let counts: Vec<i32> = (0..size).map(|_| draw.of(&[0, 0, 0, 1, 2, 17, -3])).collect();
        let prompt: Vec<i32> = (0..rows.len() * words).map(|_| draw.below(1 << 32) as u32 as i32).collect();
        let mut after = Vec::new();
        for (row, &(repetition, frequency, presence)) in rows.iter().enumerate() {
            for token in 0..vocab_size {
                let mut x = before[row * vocab_size + token].to_f32();
                let count = counts[row * vocab_size + token];
                let in_prompt = prompt[row * words + token / 32] as u32 & (1 << (token % 32)) != 0;
                if in_prompt || count > 0 {
                    x = if x > 0.0 { x / repetition } else { x * repetition };
                }
                if count > 0 {
                    x -= frequency * count as f32;
                    x -= presence;
                }
                after.push(x);
            }
        }
        let got = penalize(device, &before, &counts, &prompt, &rows);
        assert!(got == expected::<L>(&after), "{vocab_size} tokens on {device}");
    }
}

#[test]
fn random_rows_are_penalized_as_the_rule_says() {
    on_each_type!(penalties_as_the_rule_says);
}
