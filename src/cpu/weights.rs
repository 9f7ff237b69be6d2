//! What tokens weigh in a race: a target's probabilities, and what the draft model has had of them already.

use super::Logit;
use super::softmax::Share;

/// Tokens that are looked at side by side.
pub(super) const SPAN: usize = 512;

/// One row of the target's probabilities.
pub(super) trait Target: Copy + Send + Sync {
    /// The probability of a token, which must be one of the row.
    fn prob(self, token: usize) -> f32;
    /// Writes the probabilities from token `start` on, at most a span, and says how many there are.
    fn write(self, start: usize, probs: &mut [f32; SPAN]) -> usize;
}

/// Probabilities that are given.
impl Target for &[f32] {
    #[inline(always)]
    fn prob(self, token: usize) -> f32 {
        self[token]
    }

    #[inline(always)]
    fn write(self, start: usize, probs: &mut [f32; SPAN]) -> usize {
        let given = &self[start..];
        for (prob, &p) in probs.iter_mut().zip(given) {
            *prob = p;
        }
        given.len().min(SPAN)
    }
}

/// What the softmax of a row of logits is; all 0 for a row without a distribution.
#[derive(Debug)]
pub(super) struct Softmax<'a, L> {
    logits: &'a [L],
    share: Option<Share>,
}

impl<L> Clone for Softmax<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Softmax<'_, L> {}

impl<'a, L: Logit> Softmax<'a, L> {
    /// The row is read once, for its sum.
    pub(super) fn of(logits: &'a [L], temperature: f32) -> Softmax<'a, L> {
        Softmax { logits, share: Share::of(logits, temperature) }
    }
}

impl<L: Logit> Target for Softmax<'_, L> {
    #[inline(always)]
    fn prob(self, token: usize) -> f32 {
        self.share.map_or(0.0, |share| share.prob(self.logits[token].to_f32()))
    }

    #[inline(always)]
    fn write(self, start: usize, probs: &mut [f32; SPAN]) -> usize {
        let (logits, mut wide) = (&self.logits[start..], [0.0; SPAN]);
        let logits = L::widen(&logits[..logits.len().min(SPAN)], &mut wide);
        match self.share {
            Some(share) => {
                for (prob, &x) in probs.iter_mut().zip(logits) {
                    *prob = share.prob(x);
                }
            }
            None => probs.fill(0.0),
        }
        logits.len()
    }
}

/// What is taken out of a target.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taken<'a> {
    Nothing,
    /// What the draft model gave each token.
    Probs(&'a [f32]),
    /// The drafted token, if it is one of the row.
    Token(i32),
}

/// What is left of a target; a token that is not above 0 does not run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights<'a, T> {
    pub(super) target: T,
    pub(super) taken: Taken<'a>,
}

impl<T: Target> Weights<'_, T> {
    /// Writes the weights from token `start` on, at most a span, and says how many there are.
    #[inline(always)]
    pub(super) fn write(self, start: usize, weights: &mut [f32; SPAN]) -> usize {
        let count = self.target.write(start, weights);
        match self.taken {
            Taken::Probs(draft) => {
                for (weight, &q) in weights.iter_mut().zip(&draft[start..]) {
                    *weight = if *weight > q { *weight - q } else { 0.0 };
                }
            }
            Taken::Nothing | Taken::Token(_) => {
                for weight in weights.iter_mut() {
                    *weight = if *weight > 0.0 { *weight } else { 0.0 };
                }
            }
        }
        if let Taken::Token(draft) = self.taken {
            let within = usize::try_from(draft).ok().and_then(|draft| draft.checked_sub(start));
            if let Some(weight) = within.and_then(|within| weights.get_mut(within)) {
                *weight = 0.0;
            }
        }
        count
    }
}
