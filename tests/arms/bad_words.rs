//! Bad words.

use tidelock::kernels::{ApplyBadWords, ApplyBadWordsL};
use tidelock::{AsView, AsViewMut, Device};

use crate::logits::{Draw, Logit, Ragged, bits, expected, on_each_type};
use crate::support::{on, on_each_arm};

const REMOVED: f32 = f32::NEG_INFINITY;

/// A row's words, and its output.
type BadWords<'a> = (&'a [&'a [i32]], &'a [i32]);

/// Logits of 0 after the bad words of each row, told by which became -inf: (row, token).
fn bad_words<L: Logit + ApplyBadWordsL>(
    device: &Device,
    vocab_size: usize,
    rows: &[BadWords<'_>],
) -> Vec<(usize, usize)> {
    let words = Ragged::new(&rows.iter().map(|row| row.0).collect::<Vec<_>>());
    let tokens = Ragged::new(&words.values);
    let outputs = Ragged::new(&rows.iter().map(|row| row.1).collect::<Vec<_>>());
    let ends = [&words.ends, &tokens.ends, &outputs.ends];
    bad_words_of_parts::<L>(device, (rows.len(), vocab_size), ends, &tokens.values, &outputs.values)
}

fn bad_words_of_parts<L: Logit + ApplyBadWordsL>(
    device: &Device,
    (rows, vocab_size): (usize, usize),
    ends: [&Vec<i32>; 3],
    word_tokens: &[i32],
    outputs: &[i32],
) -> Vec<(usize, usize)> {
    let mut logits = on(device, &vec![L::from_f32(0.0); rows * vocab_size]);
    let [cu_words, cu_tokens, cu_outputs] = ends.map(|ends| on(device, ends));
    let (word_tokens, outputs) = (on(device, word_tokens), on(device, outputs));
    ApplyBadWords {
        logits: logits.view_mut().matrix(rows, vocab_size).expect("it fits"),
        cu_bad_words: cu_words.view(),
        cu_bad_word_tokens: cu_tokens.view(),
        bad_word_token_ids: word_tokens.view(),
        cu_output_tokens: cu_outputs.view(),
        output_token_ids: outputs.view(),
    }
    .launch(device)
    .expect("the arguments fit");
    let removed = expected::<L>(&[REMOVED])[0];
    let bits = bits(&logits).into_iter().enumerate();
    bits.filter(|&(_, bits)| bits != 0)
        .map(|(index, bits)| {
            assert_eq!(bits, removed, "{device}");
            (index / vocab_size, index % vocab_size)
        })
        .collect()
}

fn words<L: Logit + ApplyBadWordsL>(device: &Device) {
    let run = |words: &[&[i32]], output: &[i32]| -> Vec<usize> {
        let removed = bad_words::<L>(device, 8, &[(&[&[7]], &[]), (words, output), (&[], &[1, 2, 3])]);
        assert_eq!(removed[0], (0, 7), "{device}");
        assert!(removed[1..].iter().all(|&(row, _)| row == 1), "{removed:?} on {device}");
        removed[1..].iter().map(|&(_, token)| token).collect()
    };
    assert_eq!(run(&[&[3]], &[]), [3], "a word of one id, on {device}");
    assert_eq!(run(&[&[1, 2, 3]], &[5, 1, 2]), [3], "its beginning is the output's end, on {device}");
    assert_eq!(run(&[&[1, 2, 3]], &[1, 2]), [3], "and all of the output, on {device}");
    assert_eq!(run(&[&[1, 2, 3]], &[2]), [], "the output is too short, on {device}");
    assert_eq!(run(&[&[1, 2, 3]], &[1, 2, 5]), [], "it is not the end, on {device}");
    assert_eq!(run(&[&[1, 2, 3]], &[0, 2]), [], "only a part matches, on {device}");
    assert_eq!(run(&[&[5, 6], &[], &[5, 4], &[4, 5], &[6, 5, 2]], &[6, 5]), [2, 4, 6], "several words, on {device}");
    assert_eq!(run(&[&[8], &[-1], &[i32::MIN], &[5, i32::MAX]], &[5]), [], "outside the vocabulary, on {device}");
    let long: Vec<i32> = (0..300).map(|index| index % 5).collect();
    let mut word = long[40..].to_vec();
    word.push(6);
    assert_eq!(run(&[&word], &long), [6], "a long word, on {device}");
    word[0] += 1;
    assert_eq!(run(&[&word], &long), [], "whose first id differs, on {device}");
}

#[test]
fn the_last_token_of_a_bad_word_is_removed() {
    on_each_type!(words);
}

#[test]
fn hostile_words_stay_inside_their_lists() {
    on_each_arm(|device| {
        let run = |words: &[i32], tokens: &[i32], outputs: &[i32]| {
            let ends = [&words.to_vec(), &tokens.to_vec(), &outputs.to_vec()];
            bad_words_of_parts::<f32>(device, (2, 4), ends, &[0, 1, 2], &[0, 1])
        };
        assert_eq!(run(&[1, 2], &[2, 3], &[1, 2]), [(0, 1), (1, 2)], "{device}");
        assert_eq!(run(&[i32::MAX, 0], &[i32::MAX, 1], &[5, -1]), [(0, 2)], "one word of all ids, on {device}");
        assert_eq!(run(&[-1, 1], &[1, 0], &[0, 0]), [(1, 0)], "a word of nobody, on {device}");
        assert_eq!(run(&[i32::MIN, i32::MIN], &[1, 2], &[2, 2]), [], "{device}");
    });
}

#[test]
fn random_bad_words_as_the_rule_says() {
    on_each_arm(|device| {
        let (mut draw, mut removed) = (Draw(5), 0);
        for _ in 0..20 {
            let mut list =
                |most: usize| -> Vec<i32> { (0..draw.below(most)).map(|_| draw.below(3) as i32 - 1).collect() };
            let rows: Vec<(Vec<Vec<i32>>, Vec<i32>)> =
                (0..4).map(|row| ((0..row * 2).map(|_| list(5)).collect(), list(12))).collect();
            let mut expected = Vec::new();
            for (row, (words, output)) in rows.iter().enumerate() {
                for word in words.iter().filter(|word| !word.is_empty()) {
                    let (prefix, last) = (&word[..word.len() - 1], word[word.len() - 1]);
                    if last >= 0 && output.len() >= prefix.len() && output[output.len() - prefix.len()..] == *prefix {
                        expected.push((row, last as usize));
                    }
                }
            }
            expected.sort_unstable();
            expected.dedup();
            removed += expected.len();
            let slices: Vec<Vec<&[i32]>> =
                rows.iter().map(|(words, _)| words.iter().map(|word| &word[..]).collect()).collect();
            let rows: Vec<BadWords<'_>> =
                slices.iter().zip(&rows).map(|(words, row)| (&words[..], &row.1[..])).collect();
            assert_eq!(bad_words::<f32>(device, 2, &rows), expected, "{device}");
        }
        assert!(removed > 20, "{removed}");
    });
}
