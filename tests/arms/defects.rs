//! What vLLM 0.33's CPU fallbacks get wrong today, each as the smallest input and the right answer, on both arms.

use crate::support::{on, on_each_arm, read};
use tidelock::kernels::{Expand, RejectionGreedySample, RejectionRandomSample, SampleRecoveredTokens};
use tidelock::{AsView, AsViewMut, Device, Element};

/// One or more requests to verify, with what most tests leave alone already filled in.
struct Verification<'a> {
    cu: &'a [i32],
    drafts: &'a [i32],
    draft_probs: Option<&'a [f32]>,
    target_probs: &'a [f32],
    uniforms: &'a [f64],
    rates: Option<&'a [f32]>,
    max_spec_len: usize,
}

impl Verification<'_> {
    /// The output rows. Request r recovers tokens 7, 8, … and its bonus token is 9.
    fn run(&self, device: &Device) -> Vec<i32> {
        let (requests, tokens) = (self.cu.len(), self.drafts.len());
        let vocab = self.target_probs.len() / tokens;
        let columns = self.max_spec_len + 1;
        let mut output = on(device, &vec![-77; requests * columns]);
        let (cu, drafts, uniforms) = (on(device, self.cu), on(device, self.drafts), on(device, self.uniforms));
        let draft_probs = self.draft_probs.map(|probs| on(device, probs));
        let (target_probs, rates) = (on(device, self.target_probs), self.rates.map(|rates| on(device, rates)));
        let recovered = on(device, &(7..).take(tokens).collect::<Vec<i32>>());
        let bonus = on(device, &vec![9; requests]);
        RejectionRandomSample {
            output_token_ids: output.view_mut().matrix(requests, columns).expect("it fits"),
            cu_num_draft_tokens: cu.view(),
            draft_token_ids: drafts.view(),
            draft_probs: draft_probs.as_ref().map(|probs| probs.view().matrix(tokens, vocab).expect("it fits")),
            target_probs: target_probs.view().matrix(tokens, vocab).expect("it fits"),
            bonus_token_ids: bonus.view(),
            recovered_token_ids: recovered.view(),
            uniform_probs: uniforms.view(),
            is_greedy: None,
            synthetic_conditional_rates: rates.as_ref().map(|rates| rates.view()),
        }
        .launch(device)
        .expect("the arguments fit");
        read(&output)
    }
}

/// The recovered tokens of drafts that all belong to one request.
fn recover<Q: tidelock::kernels::SampleRecoveredTokensInvQ>(
    device: &Device,
    drafts: &[i32],
    draft_probs: Option<&[f32]>,
    target_probs: &[f32],
    inv_q: &[Q],
) -> Vec<i32> {
    let (tokens, vocab) = (drafts.len(), inv_q.len());
    let mut output = on(device, &vec![-77; tokens]);
    let (cu, drafts, inv_q) = (on(device, &[tokens as i32]), on(device, drafts), on(device, inv_q));
    let draft_probs = draft_probs.map(|probs| on(device, probs));
    let target_probs = on(device, target_probs);
    SampleRecoveredTokens {
        output_token_ids: output.view_mut(),
        cu_num_draft_tokens: cu.view(),
        draft_token_ids: drafts.view(),
        draft_probs: draft_probs.as_ref().map(|probs| probs.view().matrix(tokens, vocab).expect("it fits")),
        target_probs: target_probs.view().matrix(tokens, vocab).expect("it fits"),
        inv_q: inv_q.view().matrix(1, vocab).expect("it fits"),
    }
    .launch(device)
    .expect("the arguments fit");
    read(&output)
}

/// vLLM's CPU fallback reads the entry before the row and may accept the placeholder.
#[test]
fn a_placeholder_draft_is_rejected_and_recovered() {
    on_each_arm(|device| {
        // The entry before the second row is 1, which a fallback that indexes with -1 would find.
        let target_probs = [0.0, 1.0, 0.0, 1.0, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25];
        let verification = Verification {
            cu: &[3],
            drafts: &[1, -1, 2],
            draft_probs: None,
            target_probs: &target_probs,
            uniforms: &[0.5; 3],
            rates: None,
            max_spec_len: 3,
        };
        assert_eq!(verification.run(device), [1, 8, -1, -1], "{device}");
        let synthetic = Verification { rates: Some(&[1.0, 1.0, 1.0]), ..verification };
        assert_eq!(synthetic.run(device), [1, 8, -1, -1], "{device}");
    });
}

#[test]
fn drafts_outside_the_vocabulary_are_rejected() {
    on_each_arm(|device| {
        for draft in [-2, i32::MIN, 4, i32::MAX] {
            let verification = Verification {
                cu: &[1],
                drafts: &[draft],
                draft_probs: Some(&[1.0; 4]),
                target_probs: &[1.0; 4],
                uniforms: &[f64::MIN_POSITIVE],
                rates: None,
                max_spec_len: 2,
            };
            assert_eq!(verification.run(device), [7, -1, -1], "{draft} on {device}");
            assert_eq!(recover(device, &[draft], None, &[0.1, 0.2, 0.3, 0.4], &[1f64; 4]), [3], "{draft} on {device}");
        }
    });
}

fn expand<T: tidelock::kernels::ExpandT>(device: &Device, input: [T; 3], from: T, to: T) -> Vec<T> {
    let (input, cu) = (on(device, &input), on(device, &[2, 2, 6]));
    let mut output = on(device, &[input_like(&input); 6]);
    Expand { output: output.view_mut(), input: input.view(), cu_num_tokens: cu.view() }
        .replace_from(from)
        .replace_to(to)
        .launch(device)
        .expect("the arguments fit");
    read(&output)
}

fn input_like<T: Element>(_: &tidelock::Buffer<T>) -> T {
    T::default()
}

/// vLLM's CPU fallback never writes back what is no i64, and cuts f32 to an integer before it compares.
#[test]
fn expand_writes_every_type_and_compares_in_it() {
    on_each_arm(|device| {
        let temperatures = expand(device, [0.0, 0.7, 0.5], 0.0, 1.0);
        assert_eq!(temperatures, [1.0f32, 1.0, 0.5, 0.5, 0.5, 0.5], "{device}");
        assert_eq!(expand(device, [0, 5, 50], 0, 1000), [1000i32, 1000, 50, 50, 50, 50], "{device}");
        assert_eq!(expand(device, [1i64 << 40, 5, 0], 0, -1), [1 << 40, 1 << 40, -1, -1, -1, -1], "{device}");
    });
}

#[test]
fn expand_drops_no_token_of_a_long_request() {
    on_each_arm(|device| {
        let (input, cu) = (on(device, &[3.5f32]), on(device, &[1000]));
        let mut output = on(device, &[0f32; 1000]);
        let call = Expand { output: output.view_mut(), input: input.view(), cu_num_tokens: cu.view() };
        call.launch(device).expect("the arguments fit");
        assert_eq!(read(&output), [3.5; 1000], "{device}");
    });
}

/// vLLM's CPU fallback casts f64 noise to f32, so that the flag USE_FP64_GUMBEL changes nothing there.
#[test]
fn fp64_noise_decides_what_f32_noise_cannot() {
    on_each_arm(|device| {
        let (target, near_tie) = ([0.25f32, 0.25, 0.25, 0.25], [1.0, 1.0 + 1e-9, 1.0, 0.5]);
        assert_eq!(recover(device, &[3], None, &target, &near_tie), [1], "{device}");
        let narrowed = near_tie.map(|noise| noise as f32);
        assert_eq!(recover(device, &[3], None, &target, &narrowed), [0], "f32 sees a tie, on {device}");
    });
}

/// vLLM's CPU fallback casts the uniforms to f32, too.
#[test]
fn fp64_uniforms_decide_what_f32_cannot() {
    on_each_arm(|device| {
        let at = |uniform| Verification {
            cu: &[1],
            drafts: &[0],
            draft_probs: Some(&[1.0, 0.0]),
            target_probs: &[0.5, 0.5],
            uniforms: uniform,
            rates: None,
            max_spec_len: 1,
        };
        assert_eq!(at(&[0.5 + 1e-12]).run(device), [7, -1], "{device}");
        assert_eq!(at(&[0.5]).run(device), [0, 9], "{device}");
        assert_eq!(at(&[0.5 - 1e-12]).run(device), [0, 9], "{device}");
    });
}

/// vLLM's CPU fallback accepts a draft of probability 0 when the uniform is 0.
#[test]
fn a_draft_without_probability_is_rejected_whatever_the_uniform() {
    on_each_arm(|device| {
        for (q, p) in [(0.0, 0.5), (0.5, 0.0), (0.0, 0.0), (f32::NAN, 0.5), (0.5, f32::NAN), (-0.5, -0.5)] {
            let verification = Verification {
                cu: &[1],
                drafts: &[0],
                draft_probs: Some(&[q, 0.5]),
                target_probs: &[p, 0.5],
                uniforms: &[0.0],
                rates: None,
                max_spec_len: 1,
            };
            assert_eq!(verification.run(device), [7, -1], "q = {q}, p = {p} on {device}");
        }
    });
}

/// 0 times infinity is NaN: torch's argmax takes it, vLLM's CPU fallback skips it, and here it never wins either.
#[test]
fn a_nan_score_never_wins() {
    on_each_arm(|device| {
        let noise = [1.0, 1.0, f64::INFINITY, 1.0];
        assert_eq!(recover(device, &[0], None, &[0.4, 0.3, 0.0, 0.3], &noise), [1], "{device}");
        let nan = [f32::NAN, 0.3, 0.3, 0.4];
        assert_eq!(recover(device, &[-1], None, &nan, &[1f32; 4]), [3], "{device}");
        assert_eq!(
            recover(device, &[-1], None, &[f32::NAN; 4], &[1f32; 4]),
            [-1],
            "no token can be drawn, on {device}"
        );
    });
}

#[test]
fn recovery_never_leaves_the_support() {
    on_each_arm(|device| {
        // p equals q but for one token, and that one has the smallest noise of all.
        let (q, p) = ([0.5f32, 0.25, 0.25, 0.0], [0.5f32, 0.25, 0.125, 0.125]);
        let noise = [1e30f64, 1e30, 1e30, 1e-30];
        assert_eq!(recover(device, &[0], Some(&q), &p, &noise), [3], "{device}");
        // No residual at all: the target's own distribution.
        assert_eq!(recover(device, &[0], Some(&p), &p, &[1.0, 9.0, 1.0, 1.0]), [1], "{device}");
        // A last tile without weight, which must not win by its padding.
        let mut target = vec![0f32; 8193];
        target[17] = 1.0;
        assert_eq!(recover(device, &[-1], None, &target, &vec![1f32; 8193]), [17], "{device}");
    });
}

/// vLLM's CPU fallback refuses synthetic mode.
#[test]
fn synthetic_mode_accepts_by_rate_alone() {
    on_each_arm(|device| {
        let verification = Verification {
            cu: &[2, 4],
            drafts: &[3, 2, 1, 0],
            draft_probs: None,
            target_probs: &[0.0; 16],
            uniforms: &[0.89, 0.49, 0.89, 0.5],
            rates: Some(&[0.9, 0.5]),
            max_spec_len: 2,
        };
        assert_eq!(verification.run(device), [3, 2, 9, 1, 10, -1], "{device}");

        let mut output = on(device, &[-77; 6]);
        let (cu, drafts, target) = (on(device, &[2, 4]), on(device, &[3, 2, 1, 0]), on(device, &[5i64, 6, 7, 8]));
        let (bonus, uniforms, rates) =
            (on(device, &[9, 9]), on(device, &[0.89, 0.49, 0.89, 0.5]), on(device, &[0.9f32, 0.5]));
        RejectionGreedySample {
            output_token_ids: output.view_mut().matrix(2, 3).expect("it fits"),
            cu_num_draft_tokens: cu.view(),
            draft_token_ids: drafts.view(),
            target_argmax: target.view(),
            bonus_token_ids: bonus.view(),
            is_greedy: None,
            uniform_probs: Some(uniforms.view()),
            synthetic_conditional_rates: Some(rates.view()),
        }
        .launch(device)
        .expect("the arguments fit");
        assert_eq!(read(&output), [3, 2, 9, 1, 8, -1], "{device}");
    });
}

/// Requests without drafts take their bonus token at once; greedy rows are left to the other kernel.
#[test]
fn empty_and_greedy_requests_share_a_batch_with_others() {
    on_each_arm(|device| {
        let mut output = on(device, &[-77; 12]);
        let (cu, drafts, target) = (on(device, &[2, 2, 4]), on(device, &[5, 6, 5, 9]), on(device, &[5i64, 6, 5, 6]));
        let (bonus, is_greedy) = (on(device, &[1, 2, 3]), on(device, &[true, true, true]));
        let mut verify = |is_greedy: Option<&tidelock::Buffer<bool>>| {
            RejectionGreedySample {
                output_token_ids: output.view_mut().matrix(3, 4).expect("it fits"),
                cu_num_draft_tokens: cu.view(),
                draft_token_ids: drafts.view(),
                target_argmax: target.view(),
                bonus_token_ids: bonus.view(),
                is_greedy: is_greedy.map(|flags| flags.view()),
                uniform_probs: None,
                synthetic_conditional_rates: None,
            }
            .launch(device)
            .expect("the arguments fit");
            read(&output)
        };
        assert_eq!(verify(Some(&is_greedy)), [5, 6, 1, -1, 2, -1, -1, -1, 5, 6, -1, -1], "{device}");
        let second = on(device, &[false, true, false]);
        assert_eq!(verify(Some(&second)), [5, 6, 1, -1, 2, -1, -1, -1, 5, 6, -1, -1], "{device}");
        assert_eq!(verify(None), [5, 6, 1, -1, 2, -1, -1, -1, 5, 6, -1, -1], "{device}");
    });
}

/// Counts that decrease, are negative or reach beyond the tokens have a defined meaning: a request begins where the furthest
/// earlier one ended, and none leaves the tokens that there are.
#[test]
fn hostile_counts_stay_inside_the_tokens() {
    on_each_arm(|device| {
        let run = |cu: &[i32]| {
            let mut output = on(device, &[0f32; 4]);
            let (input, cu) = (on(device, &[1.0, 2.0, 3.0]), on(device, cu));
            let call = Expand { output: output.view_mut(), input: input.view(), cu_num_tokens: cu.view() };
            call.launch(device).expect("the arguments fit");
            read(&output)
        };
        assert_eq!(run(&[1, 2, 4]), [1.0, 2.0, 3.0, 3.0], "{device}");
        assert_eq!(run(&[3, 1, 4]), [1.0, 1.0, 1.0, 3.0], "a count that decreases, on {device}");
        assert_eq!(run(&[-5, 2, i32::MAX]), [2.0, 2.0, 3.0, 3.0], "{device}");
        assert_eq!(run(&[i32::MIN, 0, 1]), [3.0, 0.0, 0.0, 0.0], "tokens of nobody are left alone, on {device}");
    });
}
