//! Verifying drafts and drawing what replaces the first that is rejected, in one go. Its twins are `kernels/verification.cu` and
//! `kernels/verification_logits.cu`.
//!
//! What comes out is what `draw_uniform_probs`, `draw_inverse_exponential`, `sample_recovered_tokens` and
//! `rejection_random_sample` give together. But a uniform is drawn where a draft is judged by it, a token is recovered
//! only where a draft is rejected, and rows after that are not read at all.

use std::cell::Cell;
use std::ops::Range;

use rayon::prelude::*;

use super::drawn_race::{DrawnNoise, noise_of, race};
use super::ragged::request_tokens;
use super::rejection::{at_most, verify};
use super::weights::{Softmax, Taken, Target, Weights};
use super::{Logit, scratch};
use crate::CpuArm;
use crate::kernels::{
    RejectionSampleCpu, RejectionSampleFromLogitsCpu, RejectionSampleFromLogitsL,
    RejectionSampleFromLogitsRecoveredNoise, RejectionSampleRecoveredNoise,
};
use crate::noise::uniform_f64;
use crate::philox::Stream;
use crate::purpose::Purpose;
use crate::rows::{Rows, RowsMut};

/// The drafts of a batch, and what they are judged with.
#[derive(Clone, Copy)]
pub(super) struct Drafts<'a> {
    pub(super) cu_num_draft_tokens: &'a [i32],
    pub(super) draft_token_ids: &'a [i32],
    pub(super) draft_probs: Option<Rows<'a, f32>>,
    pub(super) bonus_token_ids: &'a [i32],
    /// One a request.
    pub(super) seeds: &'a [i64],
    /// One a drafted token: that of its uniform.
    pub(super) positions: &'a [i64],
    /// One a request: that of its recovered token's noise.
    pub(super) first_positions: &'a [i64],
    pub(super) is_greedy: &'a [bool],
    pub(super) max_spec_len: i32,
    pub(super) num_tokens: i32,
    pub(super) vocab_size: i32,
}

impl<N: RejectionSampleRecoveredNoise + DrawnNoise> CpuArm for RejectionSampleCpu<'_, N> {
    fn run(self) {
        let Self {
            output_token_ids,
            recovered_noise,
            cu_num_draft_tokens,
            draft_token_ids,
            draft_probs,
            target_probs,
            bonus_token_ids,
            is_greedy,
            seeds,
            positions,
            first_positions,
            max_spec_len,
            num_tokens,
            vocab_size,
        } = self;
        let drafts = Drafts {
            cu_num_draft_tokens,
            draft_token_ids,
            draft_probs,
            bonus_token_ids,
            seeds,
            positions,
            first_positions,
            is_greedy,
            max_spec_len,
            num_tokens,
            vocab_size,
        };
        drafts.verify(output_token_ids, recovered_noise, |_, token| &target_probs.row(token)[..vocab_size as usize]);
    }
}

impl<L: RejectionSampleFromLogitsL + Logit, N: RejectionSampleFromLogitsRecoveredNoise + DrawnNoise> CpuArm
    for RejectionSampleFromLogitsCpu<'_, L, N>
{
    fn run(self) {
        let Self {
            output_token_ids,
            recovered_noise,
            cu_num_draft_tokens,
            draft_token_ids,
            draft_probs,
            target_logits,
            temperature,
            bonus_token_ids,
            is_greedy,
            seeds,
            positions,
            first_positions,
            max_spec_len,
            num_tokens,
            vocab_size,
        } = self;
        let drafts = Drafts {
            cu_num_draft_tokens,
            draft_token_ids,
            draft_probs,
            bonus_token_ids,
            seeds,
            positions,
            first_positions,
            is_greedy,
            max_spec_len,
            num_tokens,
            vocab_size,
        };
        drafts.verify(output_token_ids, recovered_noise, |request, token| {
            Softmax::of(&target_logits.row(token)[..vocab_size as usize], temperature[request])
        });
    }
}

thread_local! {
    static REQUESTS: Cell<Vec<Range<usize>>> = const { Cell::new(Vec::new()) };
}

impl Drafts<'_> {
    /// `target` gives the distribution for a request at a drafted token.
    fn verify<T: Target, N: DrawnNoise>(
        &self,
        output_token_ids: RowsMut<'_, i32>,
        recovered_noise: &mut [N],
        target: impl Fn(usize, usize) -> T + Sync,
    ) {
        scratch::with(&REQUESTS, |requests| {
            requests.extend(request_tokens(self.cu_num_draft_tokens, self.num_tokens));
            let outputs = output_token_ids.into_par_rows().zip(recovered_noise).zip(&*requests).enumerate();
            outputs.for_each(|(request, ((row, noise), tokens))| {
                *noise = N::START;
                if !self.is_greedy[request] {
                    *noise = self.verify_request(row, request, tokens.clone(), &target);
                }
            });
        });
    }

    fn verify_request<T: Target, N: DrawnNoise>(
        &self,
        row: &mut [i32],
        request: usize,
        tokens: Range<usize>,
        target: impl Fn(usize, usize) -> T,
    ) -> N {
        let mut noise = N::START;
        verify(row, at_most(tokens, self.max_spec_len), self.bonus_token_ids[request], |_, token| {
            let draft = self.draft_token_ids[token];
            let target = target(request, token);
            let accepted = (0..self.vocab_size).contains(&draft) && {
                let p = target.prob(draft as usize);
                let q = self.draft_probs.map_or(1.0, |probs| probs.row(token)[draft as usize]);
                p > 0.0 && q > 0.0 && f64::from(p / q) >= self.uniform(request, token)
            };
            if accepted {
                return (true, draft);
            }
            let recovered;
            (recovered, noise) = self.recover(target, request, token);
            (false, recovered)
        });
        noise
    }

    /// The uniform that a draft is judged by.
    fn uniform(&self, request: usize, token: usize) -> f64 {
        let stream = Stream::new(self.seeds[request], self.positions[token], Purpose::Acceptance.into());
        uniform_f64(stream.high_words(0)[0], stream.low_words(0)[0])
    }

    /// The token that replaces a draft, -1 where there is none, and its noise.
    fn recover<T: Target, N: DrawnNoise>(&self, target: T, request: usize, token: usize) -> (i32, N) {
        let stream = Stream::new(self.seeds[request], self.first_positions[request], Purpose::Recovery.into());
        let length = self.vocab_size as usize;
        let taken = match self.draft_probs {
            Some(probs) => Taken::Probs(probs.row(token)),
            None => Taken::Token(self.draft_token_ids[token]),
        };
        let mut winner = race::<T, N>(Weights { target, taken }, length, stream);
        if winner < 0 {
            winner = race::<T, N>(Weights { target, taken: Taken::Nothing }, length, stream);
        }
        (winner, usize::try_from(winner).map_or(N::START, |winner| noise_of(&stream, winner)))
    }
}

#[cfg(test)]
mod tests;
