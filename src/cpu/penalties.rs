//! Penalties for tokens that were there before, and the counts they rest on. Its twin is `kernels/penalties.py`.

use rayon::prelude::*;

use super::logits::{WritableLogit, bit_is_set};
use super::ragged::request_tokens;
use crate::CpuArm;
use crate::kernels::{ApplyPenaltiesCpu, ApplyPenaltiesL, CountTokensCpu, MarkTokensCpu};

impl CpuArm for CountTokensCpu<'_> {
    fn run(self) {
        let Self { counts, token_ids, cu_token_ids, clear, num_token_ids, vocab_size } = self;
        let lists = request_tokens(cu_token_ids, num_token_ids);
        for ((counts, list), &clear) in counts.into_rows().zip(lists).zip(clear) {
            if clear {
                counts.fill(0);
            }
            for &token in token_ids[list].iter().filter(|token| (0..vocab_size).contains(token)) {
                counts[token as usize] = counts[token as usize].wrapping_add(1);
            }
        }
    }
}

impl CpuArm for MarkTokensCpu<'_> {
    fn run(self) {
        let Self { bitmask, token_ids, cu_token_ids, initial, num_token_ids, num_words } = self;
        let lists = request_tokens(cu_token_ids, num_token_ids);
        for ((bitmask, list), &initial) in bitmask.into_rows().zip(lists).zip(initial) {
            bitmask.fill(initial);
            for &token in token_ids[list].iter().filter(|&&token| token >= 0 && token / 32 < num_words) {
                bitmask[token as usize / 32] |= 1 << (token % 32);
            }
        }
    }
}

/// The penalties of one row.
#[derive(Clone, Copy)]
struct Penalties {
    repetition: f32,
    frequency: f32,
    presence: f32,
}

impl Penalties {
    fn are_none(self) -> bool {
        self.repetition == 1.0 && self.frequency == 0.0 && self.presence == 0.0
    }

    fn apply<L: WritableLogit>(self, logits: &mut [L], counts: &[i32], prompt: &[i32]) {
        let Penalties { repetition, frequency, presence } = self;
        for (token, (logit, &count)) in logits.iter_mut().zip(counts).enumerate() {
            let in_output = count > 0;
            if in_output || bit_is_set(prompt, token) {
                logit.change(|x| {
                    let x = if x > 0.0 { x / repetition } else { x * repetition };
                    if in_output { x - frequency * count as f32 - presence } else { x }
                });
            }
        }
    }
}

impl<L: ApplyPenaltiesL + WritableLogit> CpuArm for ApplyPenaltiesCpu<'_, L> {
    fn run(self) {
        let Self {
            logits,
            output_token_counts,
            prompt_bitmask,
            repetition_penalties,
            frequency_penalties,
            presence_penalties,
            vocab_size,
        } = self;
        let vocab_size = vocab_size as usize;
        logits.into_par_rows().enumerate().for_each(|(row, logits)| {
            let penalties = Penalties {
                repetition: repetition_penalties[row],
                frequency: frequency_penalties[row],
                presence: presence_penalties[row],
            };
            if !penalties.are_none() {
                let counts = output_token_counts.row(row);
                penalties.apply(&mut logits[..vocab_size], counts, prompt_bitmask.row(row));
            }
        });
    }
}
