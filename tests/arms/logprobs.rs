//! Logprobs of a row, of one token and of the most likely ones.

use crate::filter::{in_order, normals};
use crate::support::{on, on_each_arm, read};
use half::{bf16, f16};
use tidelock::kernels::{GatherLogprobs, GatherLogprobsL, LogSoftmax, LogSoftmaxL, TopLogprobs, TopLogprobsL};
use tidelock::sampling::Scratch;
use tidelock::{AsView, AsViewMut, Device};

const INF: f32 = f32::INFINITY;

fn scratch(kernel: &str, rows: usize, vocab: usize, device: &Device) -> Scratch {
    Scratch::new(kernel, rows, vocab, device).expect("the device has memory")
}

/// The logprobs of every token of one row.
fn log_softmax<L: LogSoftmaxL>(device: &Device, logits: &[L]) -> Vec<f32> {
    let vocab = logits.len();
    let mut logprobs = on(device, &vec![77.0; vocab]);
    let mut scratch = scratch("log_softmax", 1, vocab, device);
    let logits = on(device, logits);
    LogSoftmax {
        logprobs: logprobs.view_mut().matrix(1, vocab).expect("it fits"),
        scratch: scratch.rows(1).expect("it fits"),
        logits: logits.view().matrix(1, vocab).expect("it fits"),
    }
    .launch(device)
    .expect("the arguments fit");
    read(&logprobs)
}

/// Logprob and rank of each of these tokens of one row.
fn gather<L: GatherLogprobsL>(device: &Device, logits: &[L], token_ids: &[i32]) -> Vec<(f32, i32)> {
    let (rows, vocab) = (token_ids.len(), logits.len());
    let (mut logprobs, mut ranks) = (on(device, &vec![77.0; rows]), on(device, &vec![-77; rows]));
    let (logits, token_ids) = (on(device, &logits.repeat(rows)), on(device, token_ids));
    let mut scratch = scratch("gather_logprobs", rows, vocab, device);
    GatherLogprobs {
        logprobs: logprobs.view_mut(),
        ranks: ranks.view_mut(),
        scratch: scratch.rows(rows).expect("it fits"),
        logits: logits.view().matrix(rows, vocab).expect("it fits"),
        token_ids: token_ids.view(),
    }
    .launch(device)
    .expect("the arguments fit");
    read(&logprobs).into_iter().zip(read(&ranks)).collect()
}

/// The `count` most likely tokens of one row, with their logprobs.
fn top<L: TopLogprobsL>(device: &Device, logits: &[L], count: usize) -> Vec<(i32, f32)> {
    let (mut logprobs, mut token_ids) = (on(device, &vec![77.0; count]), on(device, &vec![-77; count]));
    let vocab = logits.len();
    let logits = on(device, logits);
    let mut scratch = scratch("top_logprobs", 1, vocab, device);
    TopLogprobs {
        logprobs: logprobs.view_mut().matrix(1, count).expect("it fits"),
        token_ids: token_ids.view_mut().matrix(1, count).expect("it fits"),
        scratch: scratch.rows(1).expect("it fits"),
        logits: logits.view().matrix(1, vocab).expect("it fits"),
    }
    .launch(device)
    .expect("the arguments fit");
    read(&token_ids).into_iter().zip(read(&logprobs)).collect()
}

#[test]
fn log_softmax_is_the_logarithm_of_the_probabilities() {
    on_each_arm(|device| {
        assert_eq!(log_softmax(device, &[2.5f32; 4]), [-(4f64.ln()) as f32; 4], "{device}");
        assert_eq!(log_softmax(device, &[-7.0f32]), [0.0], "{device}");
        assert_eq!(log_softmax(device, &[0.0, f32::NEG_INFINITY]), [0.0, f32::NEG_INFINITY], "{device}");
        // A token that is almost certain: its probability is 1 in f32, its logprob is not 0.
        let certain = log_softmax(device, &[20.0f32, 0.0]);
        let exact = -f64::ln_1p(f64::exp(-20.0));
        assert!((f64::from(certain[0]) / exact - 1.0).abs() < 1e-3, "{certain:?} for {exact:e} on {device}");
        assert_eq!(certain[1], -20.0, "{device}");
        for spread in [1e-8, 1.0, 20.0] {
            let row: Vec<f32> = normals(5, 9001).iter().map(|x| x * spread).collect();
            let largest = row.iter().copied().fold(f32::MIN, f32::max);
            let sum: f64 = row.iter().map(|&x| f64::from(x - largest).exp()).sum();
            for (&x, logprob) in row.iter().zip(log_softmax(device, &row)) {
                let exact = f64::from(x) - f64::from(largest) - sum.ln();
                // Roundings of f32, and what each token loses in the sum.
                let allowed = 2e-7 * exact.abs() + 9001.0 / (1_u64 << 40) as f64;
                assert!((f64::from(logprob) - exact).abs() < allowed, "{logprob} for {exact} on {device}");
            }
        }
    });
}

#[test]
fn gather_has_the_bits_of_log_softmax_in_every_type() {
    fn same<L: LogSoftmaxL + GatherLogprobsL + TopLogprobsL>(device: &Device, row: &[L], order: &[usize]) {
        let all = log_softmax(device, row);
        let tokens: Vec<i32> = (0..40).map(|index| order[index * index] as i32).collect();
        let gathered = gather(device, row, &tokens);
        for (&token, (logprob, _)) in tokens.iter().zip(gathered) {
            assert_eq!(logprob.to_bits(), all[token as usize].to_bits(), "token {token} on {device}");
        }
        let expected = order[..40].iter().map(|&token| (token as i32, all[token])).collect::<Vec<_>>();
        assert_eq!(top(device, row, 40), expected, "{device}");
    }
    on_each_arm(|device| {
        let row: Vec<f32> = normals(6, 8200);
        same(device, &row, &in_order(&row));
        // In halves there are many ties.
        let half: Vec<f16> = row.iter().map(|&x| f16::from_f32(x)).collect();
        same(device, &half, &in_order(&half.iter().map(|x| x.to_f32()).collect::<Vec<_>>()));
        let half: Vec<bf16> = row.iter().map(|&x| bf16::from_f32(x)).collect();
        same(device, &half, &in_order(&half.iter().map(|x| x.to_f32()).collect::<Vec<_>>()));
    });
}

#[test]
fn a_rank_counts_the_tokens_at_least_as_likely() {
    on_each_arm(|device| {
        let ranks = |logits: &[f32]| {
            let tokens: Vec<i32> = (0..logits.len() as i32).collect();
            gather(device, logits, &tokens).into_iter().map(|(_, rank)| rank).collect::<Vec<_>>()
        };
        assert_eq!(ranks(&[1.0, 4.0, 2.0, 3.0]), [4, 1, 3, 2], "{device}");
        assert_eq!(ranks(&[1.0, 2.0, 2.0, 1.0]), [4, 2, 2, 4], "ties have the last of their ranks, on {device}");
        assert_eq!(ranks(&[0.0, -0.0, f32::NEG_INFINITY, INF]), [3, 3, 4, 1], "{device}");
        assert_eq!(ranks(&[0.0, f32::MIN, -1e9, 1e-8]), [2, 4, 3, 1], "{device}");
        let row = normals(7, 8193);
        let order = in_order(&row);
        let rank_of = |place: usize| gather(device, &row, &[order[place] as i32])[0].1;
        assert_eq!([rank_of(0), rank_of(4999), rank_of(8192)], [1, 5000, 8193], "{device}");
    });
}

#[test]
fn tokens_outside_the_vocabulary_and_rows_without_a_distribution() {
    const NONE: (f32, i32) = (f32::NEG_INFINITY, 0);
    on_each_arm(|device| {
        let tokens = [-1, i32::MIN, 3, 4, i32::MAX];
        assert_eq!(gather(device, &[1.0f32, 2.0, 3.0], &tokens), [NONE; 5], "{device}");
        for row in [[1.0, f32::NAN, INF], [f32::NEG_INFINITY; 3], [f32::NAN; 3]] {
            assert_eq!(log_softmax(device, &row), [f32::NEG_INFINITY; 3], "{row:?} on {device}");
            assert_eq!(gather(device, &row, &[0, 1, 2]), [NONE; 3], "{row:?} on {device}");
            assert_eq!(top(device, &row, 2), [(-1, f32::NEG_INFINITY); 2], "{row:?} on {device}");
        }
        let half = -(2f64.ln()) as f32;
        assert_eq!(log_softmax(device, &[INF, 0.0, INF]), [half, f32::NEG_INFINITY, half], "{device}");
    });
}

#[test]
fn top_logprobs_descend_and_leave_out_what_is_removed() {
    on_each_arm(|device| {
        let third = -(3f64.ln()) as f32;
        let rest = (-1, f32::NEG_INFINITY);
        let tied = [5.0, f32::NEG_INFINITY, 5.0, f32::NEG_INFINITY, 5.0];
        assert_eq!(top(device, &tied, 2), [(0, third), (2, third)], "{device}");
        assert_eq!(top(device, &tied, 5), [(0, third), (2, third), (4, third), rest, rest], "{device}");
        assert_eq!(top(device, &[5.0f32; 3], 7)[3..], [rest; 4], "more than the vocabulary, on {device}");
        assert_eq!(top(device, &[5.0f32; 3], 0), [], "{device}");
        let zeros = top(device, &[-1e-45, -0.0, 0.0, 1e-45], 4);
        assert_eq!(zeros.iter().map(|&(token, _)| token).collect::<Vec<_>>(), [3, 1, 2, 0], "{device}");
        // The last tile of a vocabulary, of which one token is inside.
        let mut row = vec![f32::MIN; 8193];
        (row[8192], row[4095]) = (-1e9, -2e9);
        let tokens: Vec<i32> = top(device, &row, 3).into_iter().map(|(token, _)| token).collect();
        assert_eq!(tokens, [8192, 4095, 0], "{device}");
    });
}

/// Columns of a padded vocabulary (field-bugs 27), and outputs that are columns of a larger table.
#[test]
fn strides_are_honoured() {
    on_each_arm(|device| {
        for padding in [1e9, INF, f32::NAN] {
            let logits = on(device, &[0.0, 9.0, padding, padding, 9.0, 0.0, padding, padding]);
            let logits = || logits.view().strided(2, 2, 4).expect("it fits");
            let [mut top, mut all_scratch, mut gather] =
                ["top_logprobs", "log_softmax", "gather_logprobs"].map(|kernel| scratch(kernel, 2, 2, device));
            let (mut logprobs, mut token_ids) = (on(device, &[77.0; 6]), on(device, &[-77; 8]));
            TopLogprobs {
                logprobs: logprobs.view_mut().strided(2, 1, 3).expect("it fits"),
                token_ids: token_ids.view_mut().slice(1..8).and_then(|v| v.strided(2, 3, 4)).expect("it fits"),
                scratch: top.rows(2).expect("it fits"),
                logits: logits(),
            }
            .launch(device)
            .expect_err("outputs of different extents");
            TopLogprobs {
                logprobs: logprobs.view_mut().strided(2, 2, 3).expect("it fits"),
                token_ids: token_ids.view_mut().slice(1..8).and_then(|v| v.strided(2, 2, 4)).expect("it fits"),
                scratch: top.rows(2).expect("it fits"),
                logits: logits(),
            }
            .launch(device)
            .expect("the arguments fit");
            assert_eq!(read(&token_ids), [-77, 1, 0, -77, -77, 0, 1, -77], "{padding} on {device}");
            let logprobs = read(&logprobs);
            assert_eq!((logprobs[2], logprobs[5], logprobs[0]), (77.0, 77.0, logprobs[3]), "{padding} on {device}");
            let (mut all, mut ranks) = (on(device, &[77.0; 6]), on(device, &[-77; 2]));
            LogSoftmax {
                logprobs: all.view_mut().strided(2, 2, 3).expect("it fits"),
                scratch: all_scratch.rows(2).expect("it fits"),
                logits: logits(),
            }
            .launch(device)
            .expect("the arguments fit");
            let all = read(&all);
            assert_eq!((all[1], all[2], all[0]), (logprobs[0], 77.0, logprobs[1]), "{padding} on {device}");
            let (mut chosen, token_ids) = (on(device, &[77.0; 2]), on(device, &[1, 1]));
            GatherLogprobs {
                logprobs: chosen.view_mut(),
                ranks: ranks.view_mut(),
                scratch: gather.rows(2).expect("it fits"),
                logits: logits(),
                token_ids: token_ids.view(),
            }
            .launch(device)
            .expect("the arguments fit");
            assert_eq!((read(&chosen), read(&ranks)), (logprobs[..2].to_vec(), vec![1, 2]), "{padding} on {device}");
        }
    });
}
