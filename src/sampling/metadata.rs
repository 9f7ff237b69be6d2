//! What a step is told of its rows, all of it on the device: one value a row, so that greedy, seeded, filtered and unfiltered
//! requests share a batch.

use crate::view::View;

/// The rows of a step.
#[derive(Clone, Copy)]
pub struct SamplingMetadata<'a> {
    /// f32 `[num_rows]`; 0 is greedy.
    pub temperature: View<'a, f32>,
    /// Every row is greedy, which saves the noise.
    pub all_greedy: bool,
    /// i32 `[num_rows]`; off for 0 or less and for the vocabulary's size or more. Absent: off for all.
    pub top_k: Option<View<'a, i32>>,
    /// f32 `[num_rows]`; off for 1 or more, one token for 0 or less. Absent: off for all.
    pub top_p: Option<View<'a, f32>>,
    /// f32 `[num_rows]`; off for 0 or less. Absent: off for all.
    pub min_p: Option<View<'a, f32>>,
    /// Seed of each row's request: i64 `[num_rows]`.
    pub seeds: View<'a, i64>,
    /// Position in the request's sequence of the token that is drawn: i64 `[num_rows]`.
    pub positions: View<'a, i64>,
}

impl SamplingMetadata<'_> {
    /// Whether any row may lose tokens to top-k, top-p or min-p.
    pub fn filters(&self) -> bool {
        self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some()
    }
}
