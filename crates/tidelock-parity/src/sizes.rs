//! What the sizes of a kernel mean, and sizes to try it with.
//!
//! A *column* dimension is how long the rows of a matrix are, such as a vocabulary: tried at sizes that matter to block
//! loops and alignment. Of the others, one that a running count ends at is a number of tokens, and what the count has one
//! entry for is a number of requests.

use tidelock::kernel::{Domain, ElementType, Op, ParamKind, ScalarSource};
use tidelock::{Kernel, Scalar};

use crate::random::Random;

/// Dimensions that are by themselves the second extent of a matrix, and never the first.
pub(crate) fn columns(kernel: &Kernel) -> Vec<usize> {
    let shapes = || {
        kernel.params.iter().filter_map(|param| match param.kind {
            ParamKind::Tensor { shape: [rows, columns], .. } => Some((rows, columns)),
            _ => None,
        })
    };
    let is_columns = |dim: &usize| {
        shapes().any(|(_, columns)| matches!(columns, [Op::Dim(other)] if other == dim))
            && !shapes().any(|(rows, _)| rows.contains(&Op::Dim(*dim)))
    };
    (0..kernel.dims.len()).filter(is_columns).collect()
}

/// Running counts: the dimension that each ends at, and the one it has an entry for.
fn counts(kernel: &Kernel) -> impl Iterator<Item = (usize, usize)> {
    kernel.params.iter().filter_map(|param| match (param.domain, &param.kind) {
        (Domain::InclusiveCumsum(total), ParamKind::Tensor { shape: [[Op::Dim(entries)]], .. }) => {
            Some((total, *entries))
        }
        _ => None,
    })
}

/// Most tokens that a request has: the smallest dimension that is nothing else, or 8.
pub(crate) fn longest_request(kernel: &Kernel, dims: &[i64]) -> i64 {
    let columns = columns(kernel);
    let other =
        |dim: &usize| !columns.contains(dim) && counts(kernel).all(|(total, entries)| total != *dim && entries != *dim);
    (0..dims.len()).filter(other).map(|dim| dims[dim]).min().unwrap_or(8)
}

/// Sizes with rows as long as `length`, and at most `rows` of anything else.
pub(crate) fn dims(kernel: &Kernel, length: i64, rows: i64, random: &mut Random) -> Vec<i64> {
    let columns = columns(kernel);
    let mut dims = vec![0; kernel.dims.len()];
    let mut first = true;
    for (index, dim) in dims.iter_mut().enumerate() {
        let total = counts(kernel).any(|(total, _)| total == index);
        *dim = if columns.contains(&index) {
            length
        } else if rows == 0 || (rows > 3 && !first && random.one_in(24)) {
            0
        } else if first && !total {
            random.between((rows + 1) / 2, rows)
        } else {
            let most = if random.one_in(2) { rows } else { rows.min(7) };
            random.between(1, most)
        };
        first &= columns.contains(&index) || total;
    }
    for (total, entries) in counts(kernel).filter(|(total, _)| !columns.contains(total)) {
        let most = dims[entries].saturating_mul(longest_request(kernel, &dims)).clamp(0, rows);
        let least = i64::from(!random.one_in(16)).min(most);
        dims[total] = random.between(least, most).max(random.between(least, most));
    }
    for (index, dim) in dims.iter_mut().enumerate() {
        while *dim > 0 && !fits(kernel, index, *dim) {
            *dim /= 2;
        }
    }
    dims
}

/// Whether every scalar that is derived from dimension `dim` can be `value`.
pub(crate) fn fits(kernel: &Kernel, dim: usize, value: i64) -> bool {
    kernel.params.iter().all(|param| match param.kind {
        ParamKind::Scalar { element, source: ScalarSource::Dim(other), max } if other == dim => {
            let holds = match element {
                ElementType::Fixed(dtype) => Scalar::from_integer(dtype, value).is_some(),
                ElementType::Variable(_) => true,
            };
            holds && max.is_none_or(|max| value <= max)
        }
        _ => true,
    })
}
