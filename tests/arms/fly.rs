//! FLy, on both arms: which drafts are let through, and that rejection sampling then keeps them.

use crate::support::{Draw, on, on_each_arm, read};
use tidelock::kernels::{ApplyFlyGreedyAcceptance, ApplyFlyRandomAcceptance, RejectionGreedySample};
use tidelock::{AsView, AsViewMut, Device};

/// Drafts of a batch, and what the target has at each.
#[derive(Clone)]
struct Greedy {
    cu: Vec<i32>,
    drafts: Vec<i32>,
    argmax: Vec<i64>,
    /// A row a draft.
    logits: Vec<f32>,
    entropy: Vec<f32>,
    is_greedy: Option<Vec<bool>>,
    threshold: f32,
    window: i32,
}

impl Greedy {
    /// One request over a vocabulary of four, at every position unsure.
    fn new(drafts: &[i32], argmax: &[i64], window: i32) -> Greedy {
        Greedy {
            cu: vec![drafts.len() as i32],
            drafts: drafts.to_vec(),
            argmax: argmax.to_vec(),
            logits: vec![0.0; drafts.len() * 4],
            entropy: vec![1.0; drafts.len()],
            is_greedy: None,
            threshold: 0.5,
            window,
        }
    }

    /// The target's argmax afterwards.
    fn run(&self, device: &Device) -> Vec<i64> {
        let tokens = self.drafts.len();
        let mut argmax = on(device, &self.argmax);
        let (cu, drafts, logits) = (on(device, &self.cu), on(device, &self.drafts), on(device, &self.logits));
        let entropy = on(device, &self.entropy);
        let is_greedy = self.is_greedy.as_ref().map(|flags| on(device, flags));
        ApplyFlyGreedyAcceptance {
            cu_num_draft_tokens: cu.view(),
            draft_token_ids: drafts.view(),
            target_argmax: argmax.view_mut(),
            target_logits: logits.view().matrix(tokens, 4).expect("it fits"),
            fly_entropy: entropy.view(),
            is_greedy: is_greedy.as_ref().map(|flags| flags.view()),
            fly_entropy_threshold: self.threshold,
            fly_window_size: self.window,
        }
        .launch(device)
        .expect("the arguments fit");
        read(&argmax)
    }
}

#[test]
fn a_mismatch_before_a_window_of_matches_is_let_through() {
    on_each_arm(|device| {
        let run = |drafts: &[i32], argmax: &[i64], window| Greedy::new(drafts, argmax, window).run(device);
        assert_eq!(run(&[1, 2, 3], &[0, 2, 3], 2), [1, 2, 3], "{device}");
        assert_eq!(run(&[1, 2, 3], &[0, 2, 3], 3), [0, 2, 3], "the request ends within the window, on {device}");
        assert_eq!(run(&[1, 2, 3], &[0, 0, 3], 1), [0, 2, 3], "what was let through is no match, on {device}");
        assert_eq!(run(&[1, 2, 3], &[0, 2, 0], 2), [0, 2, 0], "{device}");
        assert_eq!(run(&[1, 2, 3], &[0, 0, 0], 0), [1, 2, 3], "a window of none, on {device}");
        assert_eq!(run(&[1, 2, 3], &[0, 0, 0], i32::MIN), [1, 2, 3], "{device}");
        assert_eq!(run(&[1, 1, 1], &[0, 1, 1], i32::MAX), [0, 1, 1], "{device}");
    });
}

/// A placeholder of -1 is neither let through nor a match, even where the target has -1 as well.
#[test]
fn placeholders_and_other_ids_are_not_let_through() {
    on_each_arm(|device| {
        for draft in [-1, i32::MIN, 4, i32::MAX] {
            assert_eq!(Greedy::new(&[draft, 2], &[0, 2], 1).run(device), [0, 2], "{draft} on {device}");
        }
        assert_eq!(Greedy::new(&[1, -1], &[0, -1], 1).run(device), [0, -1], "{device}");
    });
}

#[test]
fn a_sure_target_and_a_removed_token_stay() {
    on_each_arm(|device| {
        let base = Greedy::new(&[1, 2], &[0, 2], 1);
        for (entropy, argmax) in [(0.5, 1), (0.499, 0), (f32::NAN, 0), (f32::INFINITY, 1), (-1.0, 0)] {
            let case = Greedy { entropy: vec![entropy, 0.0], ..base.clone() };
            assert_eq!(case.run(device), [argmax, 2], "entropy {entropy} on {device}");
        }
        assert_eq!(Greedy { threshold: f32::NAN, ..base.clone() }.run(device), [0, 2], "{device}");
        for (logit, argmax) in [(f32::NEG_INFINITY, 0), (f32::NAN, 0), (f32::MIN, 1), (f32::INFINITY, 1)] {
            let case = Greedy { logits: vec![0.0, logit, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], ..base.clone() };
            assert_eq!(case.run(device), [argmax, 2], "logit {logit} on {device}");
        }
    });
}

/// Windows end with their request, an empty request disturbs nobody, and the other kind of rows is left alone.
#[test]
fn requests_do_not_see_each_other() {
    on_each_arm(|device| {
        let mut case = Greedy::new(&[1, 2, 1, 2], &[0, 2, 0, 2], 1);
        case.cu = vec![2, 2, 4];
        assert_eq!(case.run(device), [1, 2, 1, 2], "{device}");
        case.cu = vec![1, 1, 4];
        assert_eq!(case.run(device), [0, 2, 1, 2], "{device}");
        case.cu = vec![2, 2, 4];
        case.is_greedy = Some(vec![false, true, true]);
        assert_eq!(case.run(device), [0, 2, 1, 2], "{device}");
    });
}

#[test]
fn greedy_verification_keeps_what_was_let_through() {
    on_each_arm(|device| {
        let argmax = on(device, &Greedy::new(&[1, 2, 3], &[0, 2, 3], 2).run(device));
        let mut output = on(device, &[-77; 4]);
        let (cu, drafts, bonus) = (on(device, &[3]), on(device, &[1, 2, 3]), on(device, &[9]));
        RejectionGreedySample {
            output_token_ids: output.view_mut().matrix(1, 4).expect("it fits"),
            cu_num_draft_tokens: cu.view(),
            draft_token_ids: drafts.view(),
            target_argmax: argmax.view(),
            bonus_token_ids: bonus.view(),
            is_greedy: None,
            uniform_probs: None,
            synthetic_conditional_rates: None,
        }
        .launch(device)
        .expect("the arguments fit");
        assert_eq!(read(&output), [1, 2, 3, 9], "{device}");
    });
}

/// The text of the kernel read forwards: every window is looked at with what the target had at first.
#[test]
fn greedy_is_what_looking_forwards_gives() {
    on_each_arm(|device| {
        let mut draw = Draw(3);
        let mut let_through = 0;
        for _ in 0..400 {
            let tokens = draw.below(9) as usize;
            let cut = draw.below(tokens as i32 + 1);
            let mut case = Greedy::new(&vec![0; tokens], &vec![0; tokens], draw.below(4));
            case.cu = vec![cut, tokens as i32];
            case.drafts.fill_with(|| draw.below(6) - 1);
            case.argmax.fill_with(|| i64::from(draw.below(3)));
            (0..tokens)
                .filter(|_| draw.below(2) == 0)
                .for_each(|token| case.argmax[token] = i64::from(case.drafts[token]));
            case.entropy.fill_with(|| draw.below(4) as f32 * 0.3);
            case.logits.fill_with(|| if draw.below(8) == 0 { f32::NEG_INFINITY } else { 1.0 });
            let matches = |token: usize| case.drafts[token] >= 0 && i64::from(case.drafts[token]) == case.argmax[token];
            let mut expected = case.argmax.clone();
            for (token, expected) in expected.iter_mut().enumerate() {
                let end = if token < cut as usize { cut as usize } else { tokens };
                let (draft, window) = (case.drafts[token], token + 1..token + 1 + case.window as usize);
                if (0..4).contains(&draft)
                    && window.end <= end
                    && window.into_iter().all(matches)
                    && case.entropy[token] >= 0.5
                    && case.logits[token * 4 + draft as usize] > f32::NEG_INFINITY
                {
                    let_through += usize::from(!matches(token));
                    *expected = i64::from(draft);
                }
            }
            assert_eq!(case.run(device), expected, "{device}");
        }
        assert!(let_through > 40, "{let_through} mismatches were let through");
    });
}

/// One request over a vocabulary of two, whose drafts are all token 0: (p, q, uniform) of each.
fn random(
    device: &Device,
    drafts: &[i32],
    given: &[(f32, f32, f64)],
    with_q: bool,
    window: i32,
    entropy: f32,
) -> Vec<f64> {
    let tokens = drafts.len();
    let mut uniforms = on(device, &given.iter().map(|draft| draft.2).collect::<Vec<_>>());
    let p = on(device, &given.iter().flat_map(|draft| [draft.0, 0.5]).collect::<Vec<_>>());
    let q = on(device, &given.iter().flat_map(|draft| [draft.1, 0.5]).collect::<Vec<_>>());
    let (cu, drafts, entropy) = (on(device, &[tokens as i32]), on(device, drafts), on(device, &vec![entropy; tokens]));
    ApplyFlyRandomAcceptance {
        cu_num_draft_tokens: cu.view(),
        draft_token_ids: drafts.view(),
        draft_probs: with_q.then(|| q.view().matrix(tokens, 2).expect("it fits")),
        target_probs: p.view().matrix(tokens, 2).expect("it fits"),
        uniform_probs: uniforms.view_mut(),
        fly_entropy: entropy.view(),
        is_greedy: None,
        fly_entropy_threshold: 0.5,
        fly_window_size: window,
    }
    .launch(device)
    .expect("the arguments fit");
    read(&uniforms)
}

#[test]
fn a_rejected_draft_before_accepted_ones_gets_uniform_0() {
    on_each_arm(|device| {
        let drafts = [(0.1, 0.5, 0.9), (0.5, 0.5, 0.9), (0.4, 0.5, 0.7)];
        let run = |with_q, window, entropy| random(device, &[0; 3], &drafts, with_q, window, entropy);
        assert_eq!(run(true, 2, 1.0), [0.0, 0.9, 0.7], "{device}");
        assert_eq!(run(true, 3, 1.0), [0.9, 0.9, 0.7], "{device}");
        assert_eq!(run(true, 2, 0.4), [0.9, 0.9, 0.7], "the target was sure, on {device}");
        assert_eq!(run(true, 2, f32::NAN), [0.9, 0.9, 0.7], "{device}");
        // Without draft probabilities q is 1, and 0.5 and 0.4 are rejected as well.
        assert_eq!(run(false, 1, 1.0), [0.9, 0.9, 0.7], "{device}");
        assert_eq!(run(false, 0, 1.0), [0.0, 0.0, 0.0], "{device}");
    });
}

#[test]
fn uniforms_are_compared_in_f64() {
    on_each_arm(|device| {
        let after = |uniform| random(device, &[0; 2], &[(0.1, 0.5, 0.9), (0.25, 0.5, uniform)], true, 1, 1.0)[0];
        assert_eq!(after(0.5), 0.0, "{device}");
        assert_eq!(after(0.5 + 1e-12), 0.9, "{device}");
    });
}

#[test]
fn a_draft_without_probability_is_not_let_through() {
    on_each_arm(|device| {
        for (p, q) in [(0.0, 0.5), (f32::NAN, 0.5), (-1.0, 0.5), (0.1, 0.0), (0.1, f32::NAN), (-0.1, -0.5)] {
            let uniforms = random(device, &[0, 0], &[(p, q, 0.9), (0.5, 0.5, 0.9)], true, 1, 1.0);
            assert_eq!(uniforms, [0.9, 0.9], "p = {p}, q = {q} on {device}");
        }
        for draft in [-1, 2, i32::MAX, i32::MIN] {
            let uniforms = random(device, &[draft, 0], &[(0.1, 0.5, 0.9), (0.5, 0.5, 0.9)], true, 1, 1.0);
            assert_eq!(uniforms, [0.9, 0.9], "{draft} on {device}");
            let uniforms = random(device, &[0, draft], &[(0.1, 0.5, 0.9), (0.5, 0.5, 0.0)], true, 1, 1.0);
            assert_eq!(uniforms, [0.9, 0.0], "{draft} is accepted by nobody, on {device}");
        }
    });
}

/// As for greedy requests: forwards, with the uniforms that there were at first.
#[test]
fn random_is_what_looking_forwards_gives() {
    on_each_arm(|device| {
        let mut draw = Draw(5);
        let mut let_through = 0;
        for _ in 0..400 {
            let (tokens, window) = (draw.below(9) as usize, draw.below(4) as usize);
            let drafts: Vec<i32> = (0..tokens).map(|_| (draw.below(12) - 1) % 3 % 2).collect();
            let tenth = |number: i32| f64::from(number) * 0.1;
            let given: Vec<_> = (0..tokens)
                .map(|_| (tenth(draw.below(6)) as f32, tenth(draw.below(6)) as f32, tenth(draw.below(9))))
                .collect();
            // Token 1 has p = q = 0.5, and a placeholder nothing.
            let pair = |token: usize| match drafts[token] {
                0 => (given[token].0, given[token].1),
                1 => (0.5, 0.5),
                _ => (0.0, 0.0),
            };
            let possible = |token: usize| pair(token).0 > 0.0 && pair(token).1 > 0.0;
            let accepted = |token: usize| possible(token) && f64::from(pair(token).0 / pair(token).1) >= given[token].2;
            let mut expected: Vec<f64> = given.iter().map(|draft| draft.2).collect();
            for (token, expected) in expected.iter_mut().enumerate() {
                let mut following = token + 1..token + 1 + window;
                if possible(token) && !accepted(token) && following.end <= tokens && following.all(accepted) {
                    let_through += 1;
                    *expected = 0.0;
                }
            }
            assert_eq!(random(device, &drafts, &given, true, window as i32, 1.0), expected, "{device}");
        }
        assert!(let_through > 40, "{let_through} drafts were let through");
    });
}
