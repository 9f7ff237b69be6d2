//! The shape of a view: one extent, or two and the distance between rows.

use std::fmt;

use crate::error::{Error, Result};

/// Extents and row stride of a view, in elements; the last axis is always contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    rank: usize,
    rows: usize,
    columns: usize,
    row_stride: usize,
}

impl Layout {
    /// One axis.
    #[inline]
    pub fn vector(length: usize) -> Layout {
        Layout { rank: 1, rows: 1, columns: length, row_stride: length }
    }

    /// Two axes, `row_stride` elements from one row to the next.
    #[inline]
    pub fn matrix(rows: usize, columns: usize, row_stride: usize) -> Result<Layout> {
        if rows > 1 && row_stride < columns {
            return Err(overlapping(columns, row_stride));
        }
        let layout = Layout { rank: 2, rows, columns, row_stride };
        match rows.saturating_sub(1).checked_mul(row_stride).and_then(|start| start.checked_add(columns)) {
            Some(span) if isize::try_from(span).is_ok() => Ok(layout),
            _ => Err(too_large(layout)),
        }
    }

    /// One or two.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Rows; 1 for a vector.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row, or of the vector.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Elements from one row to the next.
    pub fn row_stride(&self) -> usize {
        self.row_stride
    }

    /// The extent of one axis, which must be below the rank.
    pub fn extent(&self, axis: usize) -> usize {
        if axis == 0 && self.rank == 2 { self.rows } else { self.columns }
    }

    /// Elements from the first to one past the last; 0 when it holds none.
    #[inline]
    pub fn span(&self) -> usize {
        if self.rows == 0 || self.columns == 0 { 0 } else { (self.rows - 1) * self.row_stride + self.columns }
    }

    /// The elements of row `index`, which must be below the number of rows. Rows without columns have none, wherever they begin.
    pub(crate) fn row(&self, index: usize) -> std::ops::Range<usize> {
        let start = if self.columns == 0 { 0 } else { index * self.row_stride };
        start..start + self.columns
    }

    /// Rows follow each other without a gap.
    pub fn is_contiguous(&self) -> bool {
        self.rows <= 1 || self.row_stride == self.columns
    }
}

#[cold]
fn overlapping(columns: usize, row_stride: usize) -> Error {
    let expected = format!("a row stride of at least {columns} elements, so that rows do not overlap");
    Error::view(expected, row_stride.to_string())
}

#[cold]
fn too_large(layout: Layout) -> Error {
    Error::view("extents that memory can hold", layout.to_string())
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rank {
            1 => write!(f, "[{}]", self.columns),
            _ => write!(f, "[{}, {}]", self.rows, self.columns),
        }?;
        if self.is_contiguous() { Ok(()) } else { write!(f, " with row stride {}", self.row_stride) }
    }
}
