//! An argument whose element type is known at run time only: what the shared check and both arms are given.

use crate::device_memory::{DeviceRead, DeviceWrite, RawMemory};
use crate::element::{DType, Element, HostSlice, HostSliceMut, Scalar};
use crate::error::Error;
use crate::kernel::{ByValue, Kernel};
use crate::layout::Layout;
use crate::rows::{Rows, RowsMut};
use crate::view::{View, ViewMut};

/// One argument of a kernel.
pub enum Argument<'a> {
    /// Memory.
    Tensor(Tensor<'a>),
    /// A value that the caller passes.
    Scalar(Scalar),
    /// A struct that the caller passes, of the type that the registry names.
    Struct(&'a ByValue),
    /// An optional tensor that is left out, or a scalar that is derived or has its default.
    Absent,
}

/// A view without its element type.
pub struct Tensor<'a> {
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    pub(crate) memory: Memory<'a>,
}

/// Where a view's memory is and who answers for it.
pub(crate) enum Memory<'a> {
    Host(HostSlice<'a>),
    HostMut(HostSliceMut<'a>),
    /// With the byte at which the view begins, as below.
    Device(&'a dyn DeviceRead, usize),
    DeviceMut(&'a mut dyn DeviceWrite, usize),
    Raw(RawMemory),
    RawMut(RawMemory),
}

impl Memory<'_> {
    pub(crate) fn is_writable(&self) -> bool {
        matches!(self, Memory::HostMut(_) | Memory::DeviceMut(..) | Memory::RawMut(_))
    }
}

impl<'a, T: Element> From<View<'a, T>> for Argument<'a> {
    fn from(view: View<'a, T>) -> Self {
        view.erase()
    }
}

impl<'a, T: Element> From<ViewMut<'a, T>> for Argument<'a> {
    fn from(view: ViewMut<'a, T>) -> Self {
        view.erase()
    }
}

impl<'a, V: Into<Argument<'a>>> From<Option<V>> for Argument<'a> {
    fn from(view: Option<V>) -> Self {
        view.map_or(Argument::Absent, Into::into)
    }
}

impl Argument<'_> {
    /// Whether it is given.
    pub fn is_given(&self) -> bool {
        !matches!(self, Argument::Absent)
    }

    /// The same argument, borrowed for one more use before the next.
    pub(crate) fn reborrow(&mut self) -> Argument<'_> {
        let tensor = match self {
            Argument::Tensor(tensor) => tensor,
            Argument::Scalar(scalar) => return Argument::Scalar(*scalar),
            Argument::Struct(value) => return Argument::Struct(*value),
            Argument::Absent => return Argument::Absent,
        };
        let memory = match &mut tensor.memory {
            Memory::Host(slice) => Memory::Host(*slice),
            Memory::HostMut(slice) => Memory::HostMut(slice.reborrow()),
            Memory::Device(memory, start) => Memory::Device(*memory, *start),
            Memory::DeviceMut(memory, start) => Memory::DeviceMut(&mut **memory, *start),
            Memory::Raw(raw) => Memory::Raw(*raw),
            Memory::RawMut(raw) => Memory::RawMut(*raw),
        };
        Argument::Tensor(Tensor { dtype: tensor.dtype, layout: tensor.layout, memory })
    }
}

/// A CPU arm's view of checked arguments. The generated code takes each argument apart with these.
///
/// They fail only where the generated code and the check disagree, which is a bug of the generator; it is reported as an
/// error rather than a panic.
impl<'a> Argument<'a> {
    fn take(&mut self) -> Argument<'a> {
        std::mem::replace(self, Argument::Absent)
    }

    /// A vector that is read.
    pub fn take_slice<T: Element>(&mut self, kernel: &Kernel) -> Result<&'a [T], Error> {
        self.take_rows(kernel).map(|rows: Rows<'a, T>| if rows.rows() == 0 { &[][..] } else { rows.row(0) })
    }

    /// A vector that is written.
    pub fn take_slice_mut<T: Element>(&mut self, kernel: &Kernel) -> Result<&'a mut [T], Error> {
        match self.take() {
            Argument::Tensor(Tensor { layout, memory: Memory::HostMut(slice), .. }) => T::recover_mut(slice)
                .and_then(|slice| slice.get_mut(..layout.columns()))
                .ok_or_else(|| Error::generator(kernel)),
            _ => Err(Error::generator(kernel)),
        }
    }

    /// A matrix that is read.
    pub fn take_rows<T: Element>(&mut self, kernel: &Kernel) -> Result<Rows<'a, T>, Error> {
        let Argument::Tensor(Tensor { layout, memory, .. }) = self.take() else { return Err(Error::generator(kernel)) };
        let slice = match memory {
            Memory::Host(slice) => T::recover(&slice),
            _ => None,
        };
        slice.map(|slice| Rows::new(slice, layout)).ok_or_else(|| Error::generator(kernel))
    }

    /// A matrix that is written.
    pub fn take_rows_mut<T: Element>(&mut self, kernel: &Kernel) -> Result<RowsMut<'a, T>, Error> {
        match self.take() {
            Argument::Tensor(Tensor { layout, memory: Memory::HostMut(slice), .. }) => {
                T::recover_mut(slice).map(|slice| RowsMut::new(slice, layout)).ok_or_else(|| Error::generator(kernel))
            }
            _ => Err(Error::generator(kernel)),
        }
    }

    /// A struct.
    pub fn take_struct<T: Copy + 'static>(&mut self, kernel: &Kernel) -> Result<T, Error> {
        match self.take() {
            Argument::Struct(value) => value.downcast_ref().copied().ok_or_else(|| Error::generator(kernel)),
            _ => Err(Error::generator(kernel)),
        }
    }

    /// An optional argument: `None` where it is absent, otherwise what `take` makes of it.
    pub fn take_optional<V>(&mut self, take: impl FnOnce(&mut Self) -> Result<V, Error>) -> Result<Option<V>, Error> {
        if self.is_given() { take(self).map(Some) } else { Ok(None) }
    }
}
