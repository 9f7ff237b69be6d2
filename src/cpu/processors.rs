//! Logits processors besides penalties: temperature, bitmask, bad words, bias, min tokens. Its twin is
//! `kernels/processors.py`.
//!
//! Lists of ids are ragged, and no id or length in them is trusted.

use rayon::prelude::*;

use super::logits::{WritableLogit, bit_is_set, remove};
use super::ragged::request_tokens;
use crate::CpuArm;
use crate::kernels::{
    ApplyBadWordsCpu, ApplyBadWordsL, ApplyLogitBiasCpu, ApplyLogitBiasL, ApplyMinTokensCpu, ApplyMinTokensL,
    ApplyTemperatureCpu, ApplyTemperatureL, ApplyTokenBitmaskCpu, ApplyTokenBitmaskL,
};

/// Divides a row by its temperature, after its largest logit was subtracted where the quotient of that is not finite.
fn scale<L: WritableLogit>(logits: &mut [L], temperature: f32) {
    if temperature == 0.0 || temperature == 1.0 {
        return;
    }
    if temperature.is_nan() || temperature < 0.0 {
        return logits.fill(L::rounded(f32::NAN));
    }
    let top = logits.iter().fold(f32::NEG_INFINITY, |top, logit| {
        let x = logit.to_f32();
        if x > top { x } else { top }
    });
    let fits = L::rounded(top / temperature).to_f32().is_finite();
    let base = if fits { 0.0 } else { top };
    for logit in logits {
        logit.change(|x| {
            let distance = x - base;
            if !fits && x == top {
                0.0
            } else if distance == f32::NEG_INFINITY {
                distance
            } else {
                distance / temperature
            }
        });
    }
}

impl<L: ApplyTemperatureL + WritableLogit> CpuArm for ApplyTemperatureCpu<'_, L> {
    fn run(self) {
        let Self { logits, temperature, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        let rows = logits.into_par_rows().zip(temperature);
        rows.for_each(|(logits, &temperature)| scale(&mut logits[..vocab_size], temperature));
    }
}

impl<L: ApplyTokenBitmaskL + WritableLogit> CpuArm for ApplyTokenBitmaskCpu<'_, L> {
    fn run(self) {
        let Self { logits, bitmask, vocab_size } = self;
        let vocab_size = vocab_size as usize;
        logits.into_par_rows().enumerate().for_each(|(row, logits)| {
            let bits = bitmask.row(row);
            for (token, logit) in logits[..vocab_size].iter_mut().enumerate() {
                if !bit_is_set(bits, token) {
                    *logit = L::REMOVED;
                }
            }
        });
    }
}

impl<L: ApplyBadWordsL + WritableLogit> CpuArm for ApplyBadWordsCpu<'_, L> {
    fn run(self) {
        let Self {
            logits,
            cu_bad_words,
            cu_bad_word_tokens,
            bad_word_token_ids,
            cu_output_tokens,
            output_token_ids,
            num_rows,
            num_bad_word_tokens,
            num_output_tokens,
            vocab_size,
        } = self;
        let words: Vec<_> = request_tokens(cu_bad_word_tokens, num_bad_word_tokens).collect();
        let words_of_rows = request_tokens(cu_bad_words, words.len() as i32);
        let outputs = request_tokens(cu_output_tokens, num_output_tokens);
        let rows = logits.into_rows().zip(words_of_rows).zip(outputs).take(num_rows as usize);
        for ((logits, own), output) in rows {
            for word in &words[own] {
                if let Some((&last, prefix)) = bad_word_token_ids[word.clone()].split_last()
                    && output_token_ids[output.clone()].ends_with(prefix)
                {
                    remove(&mut logits[..vocab_size as usize], last);
                }
            }
        }
    }
}

impl<L: ApplyLogitBiasL + WritableLogit> CpuArm for ApplyLogitBiasCpu<'_, L> {
    fn run(self) {
        let Self { logits, bias_token_ids, logit_bias, cu_logit_bias, num_rows, num_logit_bias, vocab_size } = self;
        let lists = request_tokens(cu_logit_bias, num_logit_bias);
        for (logits, list) in logits.into_rows().zip(lists).take(num_rows as usize) {
            let mut entries: Vec<usize> = list.collect();
            entries.retain(|&entry| (0..vocab_size).contains(&bias_token_ids[entry]));
            entries.sort_by_key(|&entry| bias_token_ids[entry]); // stable: each token keeps the order of the list
            for same in entries.chunk_by(|&one, &other| bias_token_ids[one] == bias_token_ids[other]) {
                let token = bias_token_ids[same[0]] as usize;
                logits[token].change(|x| same.iter().fold(x, |x, &entry| x + logit_bias[entry]));
            }
        }
    }
}

/// Whether a token that is no stop token has a logit other than -inf.
fn another_is_left<L: WritableLogit>(logits: &[L], stop_token_ids: &[i32]) -> bool {
    (0..).zip(logits).any(|(token, logit)| logit.to_f32() != f32::NEG_INFINITY && !stop_token_ids.contains(&token))
}

impl<L: ApplyMinTokensL + WritableLogit> CpuArm for ApplyMinTokensCpu<'_, L> {
    fn run(self) {
        let Self {
            logits,
            min_tokens,
            output_lens,
            stop_token_ids,
            cu_stop_token_ids,
            restore_when_all_masked,
            num_stop_token_ids,
            vocab_size,
        } = self;
        let lists = request_tokens(cu_stop_token_ids, num_stop_token_ids);
        for (row, (logits, list)) in logits.into_rows().zip(lists).enumerate() {
            let (logits, stops) = (&mut logits[..vocab_size as usize], &stop_token_ids[list]);
            let is_long_enough = output_lens[row] >= min_tokens[row];
            if is_long_enough || restore_when_all_masked[row] && !another_is_left(logits, stops) {
                continue;
            }
            stops.iter().for_each(|&token| remove(logits, token));
        }
    }
}
