//! Matrices in host memory as a CPU arm sees them: equally long rows that may be further apart than they are long.

use rayon::iter::IndexedParallelIterator;
use rayon::slice::ParallelSliceMut;

use crate::layout::Layout;
use rayon::iter::ParallelIterator;

/// A matrix that is read.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, T> {
    data: &'a [T],
    layout: Layout,
}

/// A matrix that is written.
#[derive(Debug)]
pub struct RowsMut<'a, T> {
    data: &'a mut [T],
    layout: Layout,
}

impl<'a, T> Rows<'a, T> {
    /// `layout` has been checked to lie within `data`.
    pub(crate) fn new(data: &'a [T], layout: Layout) -> Rows<'a, T> {
        Rows { data, layout }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.layout.rows()
    }

    /// Elements of a row.
    pub fn columns(&self) -> usize {
        self.layout.columns()
    }

    /// The address of the first element. Rows are the row stride apart, which the kernel's signature says.
    pub fn as_ptr(&self) -> *const T {
        self.data.as_ptr()
    }

    /// Row `index`, which must be below [`Rows::rows`].
    pub fn row(&self, index: usize) -> &'a [T] {
        &self.data[self.layout.row(index)]
    }
}

impl<'a, T: Send> RowsMut<'a, T> {
    /// `layout` has been checked to lie within `data`.
    pub(crate) fn new(data: &'a mut [T], layout: Layout) -> RowsMut<'a, T> {
        let end = layout.span();
        RowsMut { data: &mut data[..end], layout }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.layout.rows()
    }

    /// Elements of a row.
    pub fn columns(&self) -> usize {
        self.layout.columns()
    }

    /// The address of the first element. Rows are the row stride apart, which the kernel's signature says.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.data.as_mut_ptr()
    }

    /// Row `index`, which must be below [`RowsMut::rows`].
    pub fn row_mut(&mut self, index: usize) -> &mut [T] {
        &mut self.data[self.layout.row(index)]
    }

    /// The rows, one after the other. Of a matrix without columns there are none.
    pub fn into_rows(self) -> impl Iterator<Item = &'a mut [T]> {
        let columns = self.layout.columns();
        self.data.chunks_mut(self.layout.row_stride().max(1)).map(move |chunk| &mut chunk[..columns])
    }

    /// The rows, for several threads. Of a matrix without columns there are none.
    pub fn into_par_rows(self) -> impl IndexedParallelIterator<Item = &'a mut [T]> {
        let columns = self.layout.columns();
        self.data.par_chunks_mut(self.layout.row_stride().max(1)).map(move |chunk| &mut chunk[..columns])
    }
}
