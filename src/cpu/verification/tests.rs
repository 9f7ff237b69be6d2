//! The fused verification against the kernels that it stands for.

use super::*;
use crate::kernels::{
    DrawInverseExponential, DrawUniformProbs, RejectionRandomSample, SampleRecoveredTokens, Softmax as SoftmaxKernel,
};
use crate::layout::Layout;
use crate::sampling::Scratch;
use crate::{AsView, AsViewMut, Device};

const VOCAB: usize = 200;
const MOST: usize = 4;

/// A batch with whatever in it.
struct Batch {
    ends: Vec<i32>,
    drafts: Vec<i32>,
    logits: Vec<f32>,
    draft_probs: Vec<f32>,
    bonus: Vec<i32>,
    seeds: Vec<i64>,
    positions: Vec<i64>,
    first_positions: Vec<i64>,
    temperature: Vec<f32>,
    is_greedy: Vec<bool>,
}

impl Batch {
    fn new(number: usize) -> Batch {
        let scattered = |i: usize| ((i + number * 1013) as u32).wrapping_mul(0x9e37_79b9) as f32 / 4294967296.0;
        let requests = 5;
        let ends = match number % 4 {
            0 => vec![2, 2, 6, 7, 12],
            1 => vec![4, 1, 3, 12, 12],
            2 => vec![-3, 3, i32::MAX, 5, i32::MIN],
            _ => vec![3, 6, 9, 11, 12],
        };
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0];
        let spoilt = |i: usize, x: f32| if number % 3 == 2 && i.is_multiple_of(37) { special[i % 4] } else { x };
        let all = 12 * VOCAB;
        let exponential = |i: usize| (scattered(i) * 6.0).exp2() / 64.0 / VOCAB as f32 * 4.0;
        Batch {
            drafts: (0..12).map(|i| (scattered(i * 77) * (VOCAB + 2) as f32) as i32 - 1).collect(),
            logits: (0..all).map(|i| spoilt(i + i / VOCAB, scattered(i * 3) * 5.0)).collect(),
            draft_probs: (0..all).map(|i| spoilt(i, exponential(i * 5))).collect(),
            bonus: (0..requests as i32).collect(),
            seeds: (0..requests).map(|i| (i * number) as i64 - 3).collect(),
            positions: (0..12).map(|i| i + 1_000_000_000_000).collect(),
            first_positions: (0..requests as i64).map(|i| i * 3 + 1_000_000_000_000).collect(),
            temperature: [1.0, 0.5, 0.0, f32::INFINITY, -1.0].into_iter().cycle().skip(number % 5).take(5).collect(),
            is_greedy: (0..requests).map(|i| (i + number).is_multiple_of(4)).collect(),
            ends,
        }
    }

    /// For each token its request's, as `expand` has it; `beyond` where it has none.
    fn expanded<T: Copy>(&self, values: &[T], beyond: T) -> Vec<T> {
        let mut all = vec![beyond; 12];
        for (tokens, &value) in request_tokens(&self.ends, 12).zip(values) {
            all[tokens].fill(value);
        }
        all
    }
}

macro_rules! check {
    ($noise:ty) => {
        for number in 0..120 {
            let batch = Batch::new(number);
            let with_draft = number % 2 == 0;
            let greedy = number % 5 == 1;
            let is_greedy = if greedy { batch.is_greedy.clone() } else { vec![false; 5] };
            // One after the other.
            let device = Device::Cpu;
            let (mut probs, mut uniform) = (vec![0.0_f32; 12 * VOCAB], vec![0.0_f64; 12]);
            let (mut inv_q, mut recovered) = (vec![0.0 as $noise; 5 * VOCAB], vec![0; 12]);
            let mut expected = vec![-7; 5 * (MOST + 1)];
            let mut scratch = Scratch::new("softmax", 12, VOCAB, &device).unwrap();
            SoftmaxKernel {
                probs: probs.view_mut().matrix(12, VOCAB).unwrap(),
                scratch: scratch.rows(12).unwrap(),
                logits: batch.logits.view().matrix(12, VOCAB).unwrap(),
                temperature: batch.expanded(&batch.temperature, 1.0).view(),
            }
            .launch(&device)
            .unwrap();
            DrawUniformProbs {
                output: uniform.view_mut(),
                seeds: batch.expanded(&batch.seeds, 0).view(),
                positions: batch.positions.view(),
                purpose: Purpose::Acceptance.into(),
            }
            .launch(&device)
            .unwrap();
            DrawInverseExponential {
                output: inv_q.view_mut().matrix(5, VOCAB).unwrap(),
                seeds: batch.seeds.view(),
                positions: batch.first_positions.view(),
                purpose: Purpose::Recovery.into(),
            }
            .launch(&device)
            .unwrap();
            let draft_probs = with_draft.then(|| batch.draft_probs.view().matrix(12, VOCAB).unwrap());
            SampleRecoveredTokens {
                output_token_ids: recovered.view_mut(),
                cu_num_draft_tokens: batch.ends.view(),
                draft_token_ids: batch.drafts.view(),
                draft_probs,
                target_probs: probs.view().matrix(12, VOCAB).unwrap(),
                inv_q: inv_q.view().matrix(5, VOCAB).unwrap(),
            }
            .launch(&device)
            .unwrap();
            RejectionRandomSample {
                output_token_ids: expected.view_mut().matrix(5, MOST + 1).unwrap(),
                cu_num_draft_tokens: batch.ends.view(),
                draft_token_ids: batch.drafts.view(),
                draft_probs,
                target_probs: probs.view().matrix(12, VOCAB).unwrap(),
                bonus_token_ids: batch.bonus.view(),
                recovered_token_ids: recovered.view(),
                uniform_probs: uniform.view(),
                is_greedy: greedy.then(|| batch.is_greedy.view()),
                synthetic_conditional_rates: None,
            }
            .launch(&device)
            .unwrap();
            // In one go.
            let matrix = |rows, columns| Layout::matrix(rows, columns, columns).unwrap();
            let drafts = Drafts {
                cu_num_draft_tokens: &batch.ends,
                draft_token_ids: &batch.drafts,
                draft_probs: with_draft.then(|| Rows::new(&batch.draft_probs, matrix(12, VOCAB))),
                bonus_token_ids: &batch.bonus,
                seeds: &batch.seeds,
                positions: &batch.positions,
                first_positions: &batch.first_positions,
                is_greedy: &is_greedy,
                max_spec_len: MOST as i32,
                num_tokens: 12,
                vocab_size: VOCAB as i32,
            };
            let mut tokens = vec![-7; 5 * (MOST + 1)];
            let mut noise = vec![-1.0 as $noise; 5];
            let output = RowsMut::new(&mut tokens, matrix(5, MOST + 1));
            let probs = Rows::new(&probs, matrix(12, VOCAB));
            drafts.verify(output, &mut noise, |_, token| &probs.row(token)[..VOCAB]);
            assert_eq!(tokens, expected, "batch {number}");
            let (mut again, mut noise_again) = (vec![-7; 5 * (MOST + 1)], vec![-1.0 as $noise; 5]);
            let output = RowsMut::new(&mut again, matrix(5, MOST + 1));
            let logits = Rows::new(&batch.logits, matrix(12, VOCAB));
            drafts.verify(output, &mut noise_again, |request, token| {
                Softmax::of(&logits.row(token)[..VOCAB], batch.temperature[request])
            });
            assert_eq!((&again, &noise_again), (&expected, &noise), "batch {number}, from logits");
            for (request, tokens) in request_tokens(&batch.ends, 12).enumerate() {
                let row = &expected[request * (MOST + 1)..][..MOST + 1];
                let written = row.iter().position(|&id| id < 0).unwrap_or(MOST + 1);
                let whole = written > at_most(tokens.clone(), MOST as i32).len();
                let judged = !greedy || !batch.is_greedy[request];
                if noise[request] != 0.0 {
                    let token = row[written - 1] as usize;
                    assert!(judged && !whole && noise[request] == inv_q[request * VOCAB + token], "batch {number}");
                } else {
                    assert!(!judged || whole || recovered[tokens.start + written] == -1, "batch {number}");
                }
            }
        }
    };
}

#[test]
fn one_go_gives_what_one_after_the_other_gives() {
    check!(f64);
    check!(f32);
}
