//! FLy: accepts a draft that the target would reject where the drafts after it fit. Its twin is `kernels/fly.py`.
//!
//! A draft that rejection sampling would reject is let through when the target was unsure there, and would itself accept
//! each of the next drafts, as many as the window has. Drafts are looked at from the last to the first, counting how many
//! in a row would be accepted by themselves; so a draft that was let through never counts for one before it.

use std::ops::Range;

use super::Logit;
use super::ragged::request_tokens;
use crate::CpuArm;
use crate::kernels::{ApplyFlyGreedyAcceptanceCpu, ApplyFlyGreedyAcceptanceL, ApplyFlyRandomAcceptanceCpu};

/// Calls `judge` for each draft from the last to the first, with whether the window after it fits. It says whether the
/// draft is accepted by itself.
fn judge_backwards(tokens: Range<usize>, window: i32, mut judge: impl FnMut(usize, bool) -> bool) {
    let mut accepted_after = 0_i64;
    for token in tokens.rev() {
        let accepted = judge(token, accepted_after >= i64::from(window));
        accepted_after = if accepted { accepted_after + 1 } else { 0 };
    }
}

impl<L: ApplyFlyGreedyAcceptanceL + Logit> CpuArm for ApplyFlyGreedyAcceptanceCpu<'_, L> {
    fn run(self) {
        let Self {
            cu_num_draft_tokens,
            draft_token_ids,
            target_argmax,
            target_logits,
            fly_entropy,
            is_greedy,
            num_tokens,
            vocab_size,
            fly_entropy_threshold,
            fly_window_size,
        } = self;
        for (request, tokens) in request_tokens(cu_num_draft_tokens, num_tokens).enumerate() {
            if is_greedy.is_some_and(|is_greedy| !is_greedy[request]) {
                continue;
            }
            judge_backwards(tokens, fly_window_size, |token, window_fits| {
                let draft = draft_token_ids[token];
                let accepted = draft >= 0 && i64::from(draft) == target_argmax[token];
                if window_fits
                    && (0..vocab_size).contains(&draft)
                    && target_logits.row(token)[draft as usize].to_f32() > f32::NEG_INFINITY
                    && fly_entropy[token] >= fly_entropy_threshold
                {
                    target_argmax[token] = i64::from(draft);
                }
                accepted
            });
        }
    }
}

impl CpuArm for ApplyFlyRandomAcceptanceCpu<'_> {
    fn run(self) {
        let Self {
            cu_num_draft_tokens,
            draft_token_ids,
            draft_probs,
            target_probs,
            uniform_probs,
            fly_entropy,
            is_greedy,
            num_tokens,
            vocab_size,
            fly_entropy_threshold,
            fly_window_size,
        } = self;
        for (request, tokens) in request_tokens(cu_num_draft_tokens, num_tokens).enumerate() {
            if is_greedy.is_some_and(|is_greedy| is_greedy[request]) {
                continue;
            }
            judge_backwards(tokens, fly_window_size, |token, window_fits| {
                let draft = draft_token_ids[token];
                if !(0..vocab_size).contains(&draft) {
                    return false;
                }
                let p = target_probs.row(token)[draft as usize];
                let q = draft_probs.map_or(1.0, |probs| probs.row(token)[draft as usize]);
                let possible = p > 0.0 && q > 0.0;
                let accepted = possible && f64::from(p / q) >= uniform_probs[token];
                if possible && !accepted && window_fits && fly_entropy[token] >= fly_entropy_threshold {
                    uniform_probs[token] = 0.0;
                }
                accepted
            });
        }
    }
}
