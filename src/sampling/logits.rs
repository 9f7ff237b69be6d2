//! Logits of any type, and what is made of them by one kernel.

use half::{bf16, f16};

use crate::device::Device;
use crate::error::Result;
use crate::kernels::{Argmax, ArgmaxI, Softmax};
use crate::view::{View, ViewMut};

/// Logits, `[num_rows, vocab_size]` with any row stride, read as they are: no copy in f32 is made.
#[derive(Clone, Copy)]
pub enum Logits<'a> {
    /// f32.
    F32(View<'a, f32>),
    /// f16.
    F16(View<'a, f16>),
    /// bf16.
    BF16(View<'a, bf16>),
}

/// Runs an expression with the view of whichever type the logits have.
macro_rules! for_each_type {
    ($logits:expr, $view:ident => $body:expr) => {
        match $logits {
            Logits::F32($view) => $body,
            Logits::F16($view) => $body,
            Logits::BF16($view) => $body,
        }
    };
}

impl<'a> From<View<'a, f32>> for Logits<'a> {
    fn from(view: View<'a, f32>) -> Self {
        Logits::F32(view)
    }
}

impl<'a> From<View<'a, f16>> for Logits<'a> {
    fn from(view: View<'a, f16>) -> Self {
        Logits::F16(view)
    }
}

impl<'a> From<View<'a, bf16>> for Logits<'a> {
    fn from(view: View<'a, bf16>) -> Self {
        Logits::BF16(view)
    }
}

impl<'a> Logits<'a> {
    /// Rows.
    pub fn num_rows(&self) -> usize {
        for_each_type!(self, view => view.layout().rows())
    }

    /// Tokens of a row.
    pub fn vocab_size(&self) -> usize {
        for_each_type!(self, view => view.layout().columns())
    }

    /// Probabilities at each row's temperature. `probs` is f32 `[num_rows, vocab_size]`, `temperature` f32 `[num_rows]`.
    ///
    /// # Errors
    /// Where the views do not fit each other or the device.
    pub fn softmax(self, mut probs: ViewMut<'_, f32>, temperature: View<'_, f32>, device: &Device) -> Result<()> {
        for_each_type!(self, logits => Softmax { probs: probs.reborrow(), logits, temperature }.launch(device))
    }

    /// The most likely token of each row, -1 where a row has none.
    ///
    /// # Errors
    /// Where the views do not fit each other or the device.
    pub fn argmax<I: ArgmaxI>(self, mut output_token_ids: ViewMut<'_, I>, device: &Device) -> Result<()> {
        for_each_type!(self, logits => Argmax { output_token_ids: output_token_ids.reborrow(), logits }.launch(device))
    }
}
