//! A step at temperature 0: a draft is kept when it is the target's most likely token.

use tidelock::kernels::RejectionGreedySample;
use tidelock::{AsView, AsViewMut, Buffer, Result};

use super::Step;
use super::batch::Batch;
use super::file::Speculation;
use crate::logits::Logits;

/// The step and its memory.
pub struct Greedy {
    batch: Batch,
    target_logits: Logits,
    bonus_logits: Logits,
    target_argmax: Buffer<i64>,
    bonus_token_ids: Buffer<i32>,
}

impl Greedy {
    /// Takes the memory that the step needs.
    pub fn new(batch: Batch, speculation: Speculation) -> Result<Greedy> {
        Ok(Greedy {
            target_argmax: Buffer::zeros(&batch.device, batch.num_tokens)?,
            bonus_token_ids: Buffer::zeros(&batch.device, batch.batch_size)?,
            target_logits: speculation.target_logits,
            bonus_logits: speculation.bonus_logits,
            batch,
        })
    }
}

impl Step for Greedy {
    fn run(&mut self) -> Result<()> {
        self.target_logits.argmax(&mut self.target_argmax, &self.batch.device)?;
        self.bonus_logits.argmax(&mut self.bonus_token_ids, &self.batch.device)?;
        if self.batch.synthetic_rates.is_some() {
            self.batch.draw_uniform_probs()?;
        }
        let batch = &mut self.batch;
        RejectionGreedySample {
            output_token_ids: batch.output_token_ids.view_mut().matrix(batch.batch_size, batch.max_spec_len + 1)?,
            cu_num_draft_tokens: batch.cu_num_draft_tokens.view(),
            draft_token_ids: batch.draft_token_ids.view(),
            target_argmax: self.target_argmax.view(),
            bonus_token_ids: self.bonus_token_ids.view(),
            is_greedy: None,
            uniform_probs: batch.synthetic_rates.as_ref().map(|_| batch.uniform_probs.view()),
            synthetic_conditional_rates: batch.synthetic_rates.as_ref().map(Buffer::view),
        }
        .launch(&batch.device)
    }

    fn output(&self) -> Result<Vec<i32>> {
        self.batch.output_token_ids.to_vec()
    }
}
