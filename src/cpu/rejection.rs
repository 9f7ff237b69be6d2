//! Rejection sampling for speculative decoding. Its twin is `kernels/rejection.py`.

use std::ops::Range;

use rayon::prelude::*;

use super::exponential_race::{Noise, race};
use super::ragged::{Requests, request_tokens};
use super::weights::{Taken, Weights};
use crate::CpuArm;
use crate::kernels::{
    ExpandCpu, ExpandT, RejectionGreedySampleCpu, RejectionGreedySampleI, RejectionRandomSampleCpu,
    SampleRecoveredTokensCpu, SampleRecoveredTokensInvQ,
};

/// Judges a request's drafts in order until the first is rejected. `judge` is given a draft's position and token index,
/// and says whether it is accepted and what is written. A request whose drafts were all kept gets its bonus token.
pub(super) fn verify(
    row: &mut [i32],
    tokens: Range<usize>,
    bonus: i32,
    mut judge: impl FnMut(usize, usize) -> (bool, i32),
) {
    row.fill(-1);
    let num_drafts = tokens.len();
    for (position, token) in tokens.enumerate() {
        let (accepted, id) = judge(position, token);
        row[position] = id;
        if !accepted {
            return;
        }
    }
    row[num_drafts] = bonus;
}

/// No more tokens than `max_spec_len`.
pub(super) fn at_most(tokens: Range<usize>, max_spec_len: i32) -> Range<usize> {
    tokens.start..tokens.end.min(tokens.start + max_spec_len as usize)
}

impl<I: RejectionGreedySampleI + Into<i64>> CpuArm for RejectionGreedySampleCpu<'_, I> {
    fn run(self) {
        let Self {
            output_token_ids,
            cu_num_draft_tokens,
            draft_token_ids,
            target_argmax,
            bonus_token_ids,
            is_greedy,
            max_spec_len,
            num_tokens,
            uniform_probs,
            synthetic_conditional_rates,
        } = self;
        let synthetic = uniform_probs.zip(synthetic_conditional_rates);
        let requests = request_tokens(cu_num_draft_tokens, num_tokens).zip(bonus_token_ids);
        for (request, (row, (tokens, &bonus))) in output_token_ids.into_rows().zip(requests).enumerate() {
            if is_greedy.is_some_and(|is_greedy| !is_greedy[request]) {
                continue;
            }
            verify(row, at_most(tokens, max_spec_len), bonus, |position, token| {
                let (draft, target): (i32, i64) = (draft_token_ids[token], target_argmax[token].into());
                match synthetic {
                    None => (draft >= 0 && i64::from(draft) == target, target as i32),
                    Some((uniform, rates)) => {
                        let accepted = draft >= 0 && uniform[token] < f64::from(rates[position]);
                        (accepted, if accepted { draft } else { target as i32 })
                    }
                }
            });
        }
    }
}

impl CpuArm for RejectionRandomSampleCpu<'_> {
    fn run(self) {
        let Self {
            output_token_ids,
            cu_num_draft_tokens,
            draft_token_ids,
            draft_probs,
            target_probs,
            bonus_token_ids,
            recovered_token_ids,
            uniform_probs,
            is_greedy,
            max_spec_len,
            num_tokens,
            vocab_size,
            synthetic_conditional_rates,
        } = self;
        let requests = request_tokens(cu_num_draft_tokens, num_tokens).zip(bonus_token_ids);
        for (request, (row, (tokens, &bonus))) in output_token_ids.into_rows().zip(requests).enumerate() {
            if is_greedy.is_some_and(|is_greedy| is_greedy[request]) {
                continue;
            }
            verify(row, at_most(tokens, max_spec_len), bonus, |position, token| {
                let (draft, uniform) = (draft_token_ids[token], uniform_probs[token]);
                let accepted = (0..vocab_size).contains(&draft)
                    && match synthetic_conditional_rates {
                        Some(rates) => uniform < f64::from(rates[position]),
                        None => {
                            let p = target_probs.row(token)[draft as usize];
                            let q = draft_probs.map_or(1.0, |probs| probs.row(token)[draft as usize]);
                            p > 0.0 && q > 0.0 && f64::from(p / q) >= uniform
                        }
                    };
                (accepted, if accepted { draft } else { recovered_token_ids[token] })
            });
        }
    }
}

impl<T: ExpandT> CpuArm for ExpandCpu<'_, T> {
    fn run(self) {
        let Self { output, input, cu_num_tokens, replace_from, replace_to, num_tokens } = self;
        for (tokens, &value) in request_tokens(cu_num_tokens, num_tokens).zip(input) {
            output[tokens].fill(if value == replace_from { replace_to } else { value });
        }
    }
}

impl<Q: SampleRecoveredTokensInvQ + Noise> CpuArm for SampleRecoveredTokensCpu<'_, Q> {
    fn run(self) {
        let Self {
            output_token_ids,
            cu_num_draft_tokens,
            draft_token_ids,
            draft_probs,
            target_probs,
            inv_q,
            batch_size,
            vocab_size,
        } = self;
        let (batch_size, vocab_size) = (batch_size as usize, vocab_size as usize);
        let requests = Requests::new(cu_num_draft_tokens);
        output_token_ids.par_iter_mut().zip(draft_token_ids).enumerate().for_each(|(token, (output, &draft))| {
            let request = requests.of(token);
            *output = -1;
            if request < batch_size {
                let (target, inv_q) = (&target_probs.row(token)[..vocab_size], inv_q.row(request));
                let taken = draft_probs.map_or(Taken::Token(draft), |probs| Taken::Probs(probs.row(token)));
                *output = race(Weights { target, taken }, inv_q);
                if *output < 0 {
                    *output = race(Weights { target, taken: Taken::Nothing }, inv_q);
                }
            }
        });
    }
}
