//! Where a case's tensors lie in their buffers.

use std::ops::Range;

use tidelock::DType;
use tidelock::kernel::{ElementType, Op, ParamKind, evaluate};

use crate::case::{Case, Layout};

/// Elements of a buffer after its tensor, where a write would be seen.
const TAIL: usize = 19;

/// Where a tensor lies in its buffer, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Elements before the first.
    pub lead: usize,
    /// Whether it has two axes.
    pub matrix: bool,
    /// Rows; 1 for a vector.
    pub rows: usize,
    /// Elements of a row, or of the vector.
    pub columns: usize,
    /// Elements from one row to the next.
    pub row_stride: usize,
    /// Elements of the buffer.
    pub length: usize,
}

impl Placement {
    /// The elements of row `row`.
    pub fn row(&self, row: usize) -> Range<usize> {
        let start = self.lead + row * self.row_stride;
        start..start + self.columns
    }

    /// Row and column of element `index` of the buffer; `None` where it lies outside the tensor.
    pub fn position(&self, index: usize) -> Option<(usize, usize)> {
        let index = index.checked_sub(self.lead)?;
        let position = (index / self.row_stride.max(1), index % self.row_stride.max(1));
        (position.0 < self.rows && position.1 < self.columns).then_some(position)
    }
}

impl Case {
    /// The element type of parameter `param`; of a struct, bytes.
    pub fn dtype(&self, param: usize) -> DType {
        let element = match self.kernel.params[param].kind {
            ParamKind::Tensor { element, .. } | ParamKind::Scalar { element, .. } => element,
            ParamKind::Struct { .. } => ElementType::Fixed(DType::U8),
        };
        match element {
            ElementType::Fixed(dtype) => dtype,
            ElementType::Variable(index) => self.types[index],
        }
    }

    /// Where parameter `param` lies in its buffer; `None` for a scalar, and for a tensor that is absent.
    pub fn placement(&self, param: usize) -> Option<Placement> {
        let ParamKind::Tensor { shape, strided, .. } = self.kernel.params[param].kind else { return None };
        if !self.given[param] {
            return None;
        }
        // A case whose extents are not all sizes is not possible, and never run.
        let extents: Vec<usize> =
            shape.iter().map(|expr| evaluate(expr, &self.dims).and_then(|n| n.try_into().ok()).unwrap_or(0)).collect();
        let (matrix, rows, columns) = match extents[..] {
            [rows, columns] => (true, rows, columns),
            ref extents => (false, 1, extents.first().copied().unwrap_or(0)),
        };
        let row_stride = match self.layout {
            Layout::Padded if strided && matrix => (columns + 1 + 2 * param) | 1,
            Layout::PaddedBy16 if strided && matrix => (columns / 16 + 1 + param % 3) * 16,
            _ => columns,
        };
        let lead = usize::from(self.layout == Layout::Misaligned);
        Some(Placement { lead, matrix, rows, columns, row_stride, length: lead + rows * row_stride + TAIL })
    }

    /// Whether every extent is a size, and every type variable is told by something that is given.
    pub(crate) fn is_possible(&self) -> bool {
        let mut told = vec![false; self.types.len()];
        let mut sizes = self.dims.iter().all(|&dim| dim >= 0);
        for (index, param) in self.kernel.params.iter().enumerate().filter(|(index, _)| self.given[*index]) {
            if let ParamKind::Tensor { element, shape, .. } = param.kind {
                sizes &= shape.iter().all(|expr| evaluate(expr, &self.dims).is_some_and(|extent| extent >= 0));
                if let ElementType::Variable(variable) = element {
                    told[variable] = true;
                }
            } else if let ParamKind::Scalar { element: ElementType::Variable(variable), .. } = param.kind {
                told[variable] |= crate::values::scalar(self, index).is_some();
            }
        }
        sizes && told.iter().all(|&told| told)
    }

    /// Elements of all buffers together.
    pub fn elements(&self) -> usize {
        (0..self.kernel.params.len()).filter_map(|param| self.placement(param)).map(|placement| placement.length).sum()
    }

    /// Rows of the longest tensor: how many things the kernel is asked to do. A vector's elements are its rows, unless
    /// they are as many as a matrix has columns.
    pub fn rows(&self) -> u64 {
        let columns = crate::sizes::columns(self.kernel);
        let mut most = 0;
        for (index, param) in self.kernel.params.iter().enumerate().filter(|(index, _)| self.given[*index]) {
            let ParamKind::Tensor { shape, .. } = param.kind else { continue };
            let across = matches!(shape, [[Op::Dim(dim)]] if columns.contains(dim));
            if let (false, Some(placement)) = (across, self.placement(index)) {
                most = most.max(if placement.matrix { placement.rows } else { placement.columns });
            }
        }
        most as u64
    }
}
