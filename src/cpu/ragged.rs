//! Which tokens are whose, given where each request's tokens end. Its twins are `kernels/ragged.py` and `kernels/ragged.cuh`.
//!
//! A request begins where the furthest earlier one ended, so a token belongs to the first request that ends after it.
//! For counts that only grow this is the usual meaning. For any other it is still defined: requests never overlap, and
//! none reaches outside `0..num_tokens`, whatever the counts say.

use std::ops::Range;

/// The furthest end so far, request by request.
fn furthest(ends: &[i32]) -> impl Iterator<Item = i32> {
    ends.iter().scan(0, |furthest, &end| {
        *furthest = end.max(*furthest);
        Some(*furthest)
    })
}

/// The tokens of each request.
pub(super) fn request_tokens(ends: &[i32], num_tokens: i32) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    furthest(ends).map(move |furthest| {
        let end = furthest.min(num_tokens).max(0) as usize;
        std::mem::replace(&mut start, end)..end
    })
}

/// Answers which request a token belongs to.
pub(super) struct Requests(Vec<i32>);

impl Requests {
    pub(super) fn new(ends: &[i32]) -> Requests {
        Requests(furthest(ends).collect())
    }

    /// The request of a token, or how many there are where it belongs to none.
    pub(super) fn of(&self, token: usize) -> usize {
        self.0.partition_point(|&end| end as usize <= token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ends: &[i32], num_tokens: i32) -> Vec<Range<usize>> {
        request_tokens(ends, num_tokens).collect()
    }

    #[test]
    fn growing_counts_mean_what_they_say() {
        assert_eq!(all(&[2, 2, 5], 5), [0..2, 2..2, 2..5]);
    }

    #[test]
    fn hostile_counts_are_disjoint_and_inside() {
        assert_eq!(all(&[3, 1, 4, i32::MAX, i32::MIN, 5], 5), [0..3, 3..3, 3..4, 4..5, 5..5, 5..5]);
        assert_eq!(all(&[-7, i32::MIN, 2], 5), [0..0, 0..0, 0..2]);
    }

    #[test]
    fn both_views_agree() {
        for ends in [vec![], vec![-1, 3, 2, 4], vec![9, 1], vec![0, 0, 2, 1, 6, 5]] {
            let requests = Requests::new(&ends);
            for token in 0..5 {
                let owner = all(&ends, 5).iter().position(|tokens| tokens.contains(&token)).unwrap_or(ends.len());
                assert_eq!(requests.of(token), owner, "{ends:?}, token {token}");
            }
        }
    }
}
