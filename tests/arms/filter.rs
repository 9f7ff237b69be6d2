//! Top-k, top-p and min-p: which tokens are kept, and that what is written is their distribution.

use crate::support::{on, on_each_arm, read};
use half::{bf16, f16};
use tidelock::kernels::{FilterLogits, FilterLogitsL, Softmax};
use tidelock::sampling::Scratch;
use tidelock::{AsView, AsViewMut, Device};

const INF: f32 = f32::INFINITY;

/// What is asked of a row; without a word, nothing.
#[derive(Clone, Copy, Debug)]
struct Limits {
    temperature: f32,
    top_k: i32,
    top_p: f32,
    min_p: f32,
}

const OFF: Limits = Limits { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0 };

/// Rows of logits, each filtered by its own limits.
fn filter<L: FilterLogitsL>(device: &Device, logits: &[L], limits: &[Limits]) -> Vec<f32> {
    let (rows, vocab) = (limits.len(), logits.len() / limits.len());
    let mut output = on(device, &vec![-77.0; logits.len()]);
    let logits = on(device, logits);
    let temperature = on(device, &limits.iter().map(|limits| limits.temperature).collect::<Vec<_>>());
    let top_k = on(device, &limits.iter().map(|limits| limits.top_k).collect::<Vec<_>>());
    let top_p = on(device, &limits.iter().map(|limits| limits.top_p).collect::<Vec<_>>());
    let min_p = on(device, &limits.iter().map(|limits| limits.min_p).collect::<Vec<_>>());
    FilterLogits {
        output: output.view_mut().matrix(rows, vocab).expect("it fits"),
        logits: logits.view().matrix(rows, vocab).expect("it fits"),
        temperature: temperature.view(),
        top_k: top_k.view(),
        top_p: top_p.view(),
        min_p: min_p.view(),
    }
    .launch(device)
    .expect("the arguments fit");
    read(&output)
}

fn kept(row: &[f32]) -> Vec<usize> {
    (0..row.len()).filter(|&token| row[token] > f32::NEG_INFINITY).collect()
}

/// The tokens of one row that are kept.
fn keep<L: FilterLogitsL>(device: &Device, logits: &[L], limits: Limits) -> Vec<usize> {
    kept(&filter(device, logits, &[limits]))
}

fn softmax(device: &Device, logits: &[f32], temperature: f32) -> Vec<f32> {
    let vocab = logits.len();
    let mut probs = on(device, &vec![-77.0; vocab]);
    let (logits, temperature) = (on(device, logits), on(device, &[temperature]));
    let mut scratch = Scratch::new("softmax", 1, vocab, device).expect("the device has memory");
    Softmax {
        probs: probs.view_mut().matrix(1, vocab).expect("it fits"),
        scratch: scratch.rows(1).expect("it fits"),
        logits: logits.view().matrix(1, vocab).expect("it fits"),
        temperature: temperature.view(),
    }
    .launch(device)
    .expect("the arguments fit");
    read(&probs)
}

/// Logits that have these probabilities.
fn logits_of<const N: usize>(probs: [f32; N]) -> [f32; N] {
    probs.map(f32::ln)
}

/// `count` random numbers from `start..end`.
pub fn uniforms(seed: u64, count: usize, start: f64, end: f64) -> Vec<f64> {
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let bits = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        start + (end - start) * ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..count).map(|_| draw()).collect()
}

/// `count` random numbers, near enough to a standard normal distribution.
pub fn normals(seed: u64, count: usize) -> Vec<f32> {
    uniforms(seed, 12 * count, -0.5, 0.5).chunks(12).map(|twelve| twelve.iter().sum::<f64>() as f32).collect()
}

/// The tokens from the largest logit to the smallest, ties by the lowest id.
pub fn in_order(logits: &[f32]) -> Vec<usize> {
    let mut tokens: Vec<usize> = (0..logits.len()).collect();
    tokens.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).expect("no NaN"));
    tokens
}

/// FlashInfer keeps any of three, attention.rs the tokens 0, 4, 8, 12 (field-bugs 14 and 29).
#[test]
fn top_k_keeps_exactly_k_and_the_lowest_ids_of_a_tie() {
    on_each_arm(|device| {
        let probs = logits_of([0.4, 0.3, 0.3, 0.0]);
        assert_eq!(keep(device, &probs, Limits { top_k: 2, ..OFF }), [0, 1], "{device}");
        let falling: Vec<f32> = (0..1024).map(|token| -(token as f32)).collect();
        assert_eq!(keep(device, &falling, Limits { top_k: 4, ..OFF }), [0, 1, 2, 3], "{device}");
        // Ties across tiles, among them 0 with -0.
        let mut signs = vec![0.0; 10_000];
        signs.iter_mut().step_by(3).for_each(|x| *x = -0.0);
        (signs[9_999], signs[0]) = (1.0, -1.0);
        let expected: Vec<usize> = (1..5_000).chain([9_999]).collect();
        assert_eq!(keep(device, &signs, Limits { top_k: 5_000, ..OFF }), expected, "{device}");
        for top_k in [i32::MIN, -1, 0, 4, 5, i32::MAX] {
            assert_eq!(keep(device, &[0.0, 1.0, 2.0, 1.0], Limits { top_k, ..OFF }), [0, 1, 2, 3], "{top_k}, {device}");
        }
    });
}

/// vLLM 0.33's kernel keeps 74, 32,000, 154, 559, 141, 32,000, 32,000 and 47 of these (field-bugs 17).
#[test]
fn top_k_keeps_50_of_32000_whatever_the_other_logits_are() {
    let normal = normals(17, 32_000);
    let with = |change: &dyn Fn(&mut Vec<f32>)| {
        let mut row = normal.clone();
        change(&mut row);
        row
    };
    let rows = [
        ("normal", normal.clone()),
        ("one -1e9", with(&|row| row[0] = -1e9)),
        ("one f32::MIN", with(&|row| row[0] = f32::MIN)),
        ("first 9000 -1e9", with(&|row| row[..9000].fill(-1e9))),
        ("one 1e9", with(&|row| row[4321] = 1e9)),
        ("a spread of 1e-7", (0..32_000).map(|token| 1.0 + 1e-7 * token as f32 / 32_000.0).collect()),
        ("all equal", vec![0.5; 32_000]),
        ("one +inf", with(&|row| row[31_999] = INF)),
        ("times 1e-8", with(&|row| row.iter_mut().for_each(|x| *x *= 1e-8))),
        ("a late -1e9", with(&|row| row[9000] = -1e9)),
        ("all but 50 f32::MIN", with(&|row| row[50..].fill(f32::MIN))),
        ("40 above -1e9", with(&|row| row[40..].fill(-1e9))),
    ];
    on_each_arm(|device| {
        for temperature in [1.0, 0.01, 1e-30, 1e30, INF] {
            let logits = rows.iter().flat_map(|(_, row)| row.clone()).collect::<Vec<_>>();
            let limits = [Limits { top_k: 50, temperature, ..OFF }; 12];
            let output = filter(device, &logits, &limits);
            for ((name, row), output) in rows.iter().zip(output.chunks(32_000)) {
                let mut expected = in_order(row)[..50].to_vec();
                expected.sort_unstable();
                assert_eq!(kept(output), expected, "{name} at {temperature} on {device}");
            }
        }
        let mut few = vec![f32::NEG_INFINITY; 32_000];
        few[1000..1007].copy_from_slice(&normal[..7]);
        assert_eq!(keep(device, &few, Limits { top_k: 50, ..OFF }).len(), 7, "no more than there are, on {device}");
    });
}

#[test]
fn top_p_keeps_the_fewest_tokens_that_have_the_mass() {
    on_each_arm(|device| {
        let p = |top_p| keep(device, &[2.0, 2.0, 2.0, 2.0], Limits { top_p, ..OFF }).len();
        assert_eq!([0.25, 0.5, 0.75].map(p), [1, 2, 3], "{device}");
        assert_eq!([0.25, 0.5, 0.75].map(|mass: f32| p(mass.next_up())), [2, 3, 4], "{device}");
        assert_eq!([-INF, -1.0, 0.0, 1e-45].map(p), [1; 4], "at least one, on {device}");
        assert_eq!([1.0_f32.next_down(), 1.0, 2.0, INF].map(p), [4; 4], "{device}");
        let probs = logits_of([0.1, 0.5, 0.15, 0.25]);
        let p = |top_p| keep(device, &probs, Limits { top_p, ..OFF });
        assert_eq!([p(0.49), p(0.51), p(0.74), p(0.76)], [vec![1], vec![1, 3], vec![1, 3], vec![1, 2, 3]], "{device}");
        // What has no mass is kept only where top-p is off.
        let faint = [0.0, -100.0, f32::MIN, f32::NEG_INFINITY];
        assert_eq!(keep(device, &faint, Limits { top_p: 1.0_f32.next_down(), ..OFF }), [0], "{device}");
        assert_eq!(keep(device, &faint, OFF), [0, 1, 2], "{device}");
    });
}

#[test]
fn the_order_is_temperature_top_k_renormalise_top_p_min_p() {
    on_each_arm(|device| {
        let probs = logits_of([0.4, 0.3, 0.2, 0.1]);
        let keep = |top_k, top_p, min_p, temperature| keep(device, &probs, Limits { temperature, top_k, top_p, min_p });
        // Of two tokens the first has 4/7 of the mass.
        assert_eq!(keep(2, 0.56, 0.0, 1.0), [0], "top-p sees what top-k left, on {device}");
        assert_eq!(keep(0, 0.56, 0.0, 1.0), [0, 1], "{device}");
        // Were min-p first, the first token would have 4/7 of the mass, too.
        assert_eq!(keep(0, 0.56, 0.7, 1.0), [0, 1], "min-p comes last, on {device}");
        // At temperature 1/2 the probabilities are as 16, 9, 4, 1.
        assert_eq!(keep(0, 0.53, 0.0, 0.5), [0], "temperature comes first, on {device}");
        assert_eq!(keep(0, 0.54, 0.0, 0.5), [0, 1], "{device}");
        assert_eq!(keep(0, 1.0, 0.24, 0.5), [0, 1, 2], "{device}");
        assert_eq!(keep(0, 1.0, 0.26, 0.5), [0, 1], "{device}");
    });
}

#[test]
fn min_p_is_a_part_of_the_largest_probability() {
    on_each_arm(|device| {
        let probs = logits_of([0.2, 0.1, 0.2, 0.4, 0.1]);
        let keep = |min_p| keep(device, &probs, Limits { min_p, ..OFF });
        assert_eq!(keep(0.24), [0, 1, 2, 3, 4], "{device}");
        assert_eq!(keep(0.26), [0, 2, 3], "{device}");
        assert_eq!(keep(0.51), [3], "{device}");
        assert_eq!([-INF, -1.0, -0.0, 0.0].map(|min_p| keep(min_p).len()), [5; 4], "{device}");
        assert_eq!([1.0, 2.0, INF].map(|min_p| keep(min_p).len()), [1; 3], "the largest stays, on {device}");
        let tied = Limits { min_p: 2.0, ..OFF };
        assert_eq!(self::keep(device, &[1.0, 3.0, 3.0], tied), [1, 2], "and what ties with it, on {device}");
    });
}

/// vLLM and FlashInfer give NaN, infinities or uniform probabilities here (field-bugs 18 and 20).
#[test]
fn tiny_temperatures_give_the_most_likely_token() {
    on_each_arm(|device| {
        let logits = [3.0f32, 8.0, 7.9375, 8.0, -57_344.0];
        for temperature in [0.0, -0.0] {
            for limits in [OFF, Limits { top_k: 3, top_p: 0.9, min_p: 0.1, ..OFF }] {
                let output = filter(device, &logits, &[Limits { temperature, ..limits }]);
                let removed = f32::NEG_INFINITY;
                assert_eq!(output, [removed, 0.0, removed, removed, removed], "{temperature} on {device}");
            }
        }
        for temperature in [f32::from_bits(1), 1e-38, 1e-12, 1e-5] {
            let limits = [Limits { temperature, ..OFF }];
            let halves = filter(device, &logits.map(f16::from_f32), &limits);
            assert_eq!(halves, filter(device, &logits.map(bf16::from_f32), &limits), "{temperature} on {device}");
            assert_eq!(softmax(device, &halves, 1.0), [0.0, 0.5, 0.0, 0.5, 0.0], "{temperature} on {device}");
            assert_eq!(kept(&halves).len(), 5, "nothing was asked to be removed, {temperature} on {device}");
        }
    });
}

#[test]
fn softmax_of_the_output_is_the_distribution_at_the_temperature() {
    let mut logits = normals(3, 5000);
    (logits[7], logits[4099], logits[11]) = (f32::NEG_INFINITY, f32::MIN, 1e9);
    on_each_arm(|device| {
        for row in [&logits[12..], &logits[..], &[f32::NEG_INFINITY, INF, 3.0, INF], &[f32::MAX, f32::MIN]] {
            for temperature in [1e-45, 1e-5, 0.3, 1.0, 7.0, 1e30, INF] {
                let output = filter(device, row, &[Limits { temperature, ..OFF }]);
                let expected = softmax(device, row, temperature);
                // The output is rounded once more: by 2^-24 of up to 87 / ln 2 halvings.
                for (p, expected) in softmax(device, &output, 1.0).into_iter().zip(expected) {
                    let near = (p - expected).abs() <= 1e-5 * expected || p.max(expected) < 1e-36;
                    assert!(near, "{p:e} instead of {expected:e}, temperature {temperature} on {device}");
                }
                let first: Vec<usize> = (0..row.len()).filter(|&token| row[token] > f32::NEG_INFINITY).collect();
                assert_eq!(kept(&output), first, "{temperature} on {device}");
            }
        }
    });
}

#[test]
fn a_row_without_a_distribution_keeps_nothing() {
    on_each_arm(|device| {
        let (good, nan, masked) = ([1.0, 2.0, 3.0], [INF, f32::NAN, 3.0], [f32::NEG_INFINITY; 3]);
        let bad = [
            (good, Limits { temperature: -1.0, ..OFF }),
            (good, Limits { temperature: f32::NAN, ..OFF }),
            (good, Limits { temperature: -INF, ..OFF }),
            (good, Limits { top_p: f32::NAN, ..OFF }),
            (good, Limits { min_p: f32::NAN, top_k: 2, ..OFF }),
            (nan, OFF),
            (nan, Limits { temperature: 0.0, top_k: 1, top_p: 0.5, min_p: 0.5 }),
            (masked, OFF),
            (masked, Limits { temperature: 0.0, top_k: 2, top_p: 0.5, min_p: 0.5 }),
        ];
        for (logits, limits) in bad {
            let output = filter(device, &[good, logits, good].concat(), &[OFF, limits, OFF]);
            assert_eq!(output[3..6], [f32::NEG_INFINITY; 3], "{logits:?} {limits:?} on {device}");
            assert_eq!([&output[..3], &output[6..]], [[-2.0, -1.0, 0.0]; 2], "{limits:?} on {device}");
        }
        assert_eq!(filter(device, &[f32::NAN, 5.0], &[OFF; 2]), [f32::NEG_INFINITY, 0.0], "{device}");
    });
}

/// A padded vocabulary whose last columns were never masked (field-bugs 27).
#[test]
fn columns_outside_the_view_are_neither_kept_nor_written() {
    on_each_arm(|device| {
        for padding in [1e9, INF, f32::NAN] {
            let mut output = on(device, &[-77.0; 10]);
            let logits = on(device, &[1.0, 2.0, 3.0, padding, padding, 3.0, 2.0, 1.0, padding, padding]);
            let (ones, k, zeros) = (on(device, &[1.0; 2]), on(device, &[2; 2]), on(device, &[0.0; 2]));
            FilterLogits {
                output: output.view_mut().strided(2, 3, 5).expect("it fits"),
                logits: logits.view().strided(2, 3, 5).expect("it fits"),
                temperature: ones.view(),
                top_k: k.view(),
                top_p: ones.view(),
                min_p: zeros.view(),
            }
            .launch(device)
            .expect("the arguments fit");
            let (out, around) = (f32::NEG_INFINITY, -77.0);
            let expected = [out, -1.0, 0.0, around, around, 0.0, -1.0, out, around, around];
            assert_eq!(read(&output), expected, "{padding} on {device}");
        }
    });
}

/// Limits that lie between two tokens, so that f64 arithmetic finds the tokens to keep beyond doubt.
fn oracle(logits: &[f32], seed: u64) -> (Limits, Vec<usize>) {
    let random = uniforms(seed, 5, 0.0, 1.0);
    let below = |index: usize, count: usize| (random[index] * count as f64) as usize;
    let temperature = [0.25, 0.7, 1.0, 3.0][below(0, 4)];
    let mut order = in_order(logits);
    let top_k = below(1, 2 * order.len() + 1);
    if top_k > 0 {
        order.truncate(top_k);
    }
    let top = f64::from(logits[order[0]]);
    let weight = |token: usize| ((f64::from(logits[token]) - top) / f64::from(temperature)).exp();
    let total: f64 = order.iter().map(|&token| weight(token)).sum();
    let mut top_p = 1.0;
    let count = below(2, 2 * order.len()) + 1;
    if count < order.len() && weight(order[count - 1]) > 1e-3 * total {
        order.truncate(count);
        top_p = (order.iter().map(|&token| weight(token)).sum::<f64>() - 0.5 * weight(order[count - 1])) / total;
    }
    let mut min_p = 0.0;
    let count = below(3, 2 * order.len()) + 1;
    if count < order.len() && weight(order[count]) < 0.999 * weight(order[count - 1]) {
        min_p = (weight(order[count]) * weight(order[count - 1])).sqrt();
        order.truncate(count);
    }
    order.sort_unstable();
    (Limits { temperature, top_k: top_k as i32, top_p: top_p as f32, min_p: min_p as f32 }, order)
}

#[test]
fn an_oracle_in_f64_agrees() {
    on_each_arm(|device| {
        let mut filtered = [0; 3];
        for (vocab, rows) in [(1, 20), (2, 40), (7, 200), (100, 200), (2049, 20), (8193, 10)] {
            let mut logits = normals(vocab as u64, vocab * rows);
            // Every other row has many ties.
            logits.chunks_mut(vocab).step_by(2).flatten().for_each(|x| *x = (*x * 2.0).round());
            let cases =
                logits.chunks(vocab).enumerate().map(|(row, logits)| oracle(logits, (vocab * 1000 + row) as u64));
            let (limits, expected): (Vec<_>, Vec<_>) = cases.unzip();
            let output = filter(device, &logits, &limits);
            for ((output, expected), limits) in output.chunks(vocab).zip(expected).zip(limits) {
                assert_eq!(kept(output), expected, "{vocab} tokens, {limits:?} on {device}");
                let on = [(1..vocab as i32).contains(&limits.top_k), limits.top_p < 1.0, limits.min_p > 0.0];
                filtered.iter_mut().zip(on).for_each(|(count, on)| *count += i32::from(on));
            }
        }
        assert!(filtered.iter().all(|&count| count > 40), "each filter was tried: {filtered:?}");
    });
}
