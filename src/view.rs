//! Borrowed tensor memory: where it is, what it holds and how it is laid out.
//!
//! A launch on a GPU outlives the borrow of its views. So the safe constructors take owners that order their own frees,
//! reads and writes: host slices, on which only the CPU arm works and which it is done with when it returns, and cudarc's
//! slices, whose events the launch waits for and records. Every other constructor is `unsafe` and says what the caller owes.

use std::marker::PhantomData;
use std::ops::Range;

use cudarc::driver::{CudaSlice, CudaView, CudaViewMut};

use crate::argument::{Argument, Memory, Tensor};
use crate::device_memory::{DeviceRead, DeviceWrite, RawMemory};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::layout::Layout;

/// Memory that a kernel reads.
///
/// ```
/// use tidelock::AsView;
///
/// let padded = [0.5f32, 2.0, 0.0, 7.0, -1.0, 0.0];
/// let logits = padded.view().strided(2, 2, 3)?;
/// assert_eq!(logits.layout().to_string(), "[2, 2] with row stride 3");
/// assert!(padded.view().matrix(2, 4).is_err()); // 8 elements of 6
/// # Ok::<(), tidelock::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct View<'a, T> {
    memory: ReadMemory<'a, T>,
    layout: Layout,
}

/// Memory that a kernel writes.
pub struct ViewMut<'a, T> {
    memory: WriteMemory<'a, T>,
    layout: Layout,
}

/// Of device memory, also the byte at which the view begins.
#[derive(Clone, Copy)]
enum ReadMemory<'a, T> {
    Host(&'a [T]),
    Device(&'a dyn DeviceRead, usize),
    Raw(RawMemory),
}

enum WriteMemory<'a, T> {
    Host(&'a mut [T]),
    Device(&'a mut dyn DeviceWrite, usize),
    Raw(RawMemory, PhantomData<&'a mut [T]>),
}

impl<T> ReadMemory<'_, T> {
    /// Elements `range`, which must lie within the memory.
    fn slice(self, range: Range<usize>) -> Self {
        let bytes = range.start * size_of::<T>();
        match self {
            ReadMemory::Host(slice) => ReadMemory::Host(&slice[range]),
            ReadMemory::Device(memory, start) => ReadMemory::Device(memory, start + bytes),
            ReadMemory::Raw(raw) => ReadMemory::Raw(raw.offset(bytes)),
        }
    }
}

impl<T> WriteMemory<'_, T> {
    /// Elements `range`, which must lie within the memory.
    fn slice(self, range: Range<usize>) -> Self {
        let bytes = range.start * size_of::<T>();
        match self {
            WriteMemory::Host(slice) => WriteMemory::Host(&mut slice[range]),
            WriteMemory::Device(memory, start) => WriteMemory::Device(memory, start + bytes),
            WriteMemory::Raw(raw, owner) => WriteMemory::Raw(raw.offset(bytes), owner),
        }
    }
}

/// What can be viewed: slices, vectors and cudarc's device slices.
pub trait AsView<T> {
    /// All of it, as one axis.
    fn view(&self) -> View<'_, T>;
}

/// What can be viewed for writing: slices, vectors and cudarc's device slices.
pub trait AsViewMut<T> {
    /// All of it, as one axis.
    fn view_mut(&mut self) -> ViewMut<'_, T>;
}

impl<T: Element> AsView<T> for [T] {
    fn view(&self) -> View<'_, T> {
        View { memory: ReadMemory::Host(self), layout: Layout::vector(self.len()) }
    }
}

impl<T: Element> AsViewMut<T> for [T] {
    fn view_mut(&mut self) -> ViewMut<'_, T> {
        let layout = Layout::vector(self.len());
        ViewMut { memory: WriteMemory::Host(self), layout }
    }
}

macro_rules! device_owners {
    ($($read:ty)*; $($write:ty)*) => {
        $(impl<T: Element> AsView<T> for $read {
            fn view(&self) -> View<'_, T> {
                View { memory: ReadMemory::Device(self, 0), layout: Layout::vector(cudarc::driver::DeviceSlice::len(self)) }
            }
        })*
        $(impl<T: Element> AsViewMut<T> for $write {
            fn view_mut(&mut self) -> ViewMut<'_, T> {
                let layout = Layout::vector(cudarc::driver::DeviceSlice::len(self));
                ViewMut { memory: WriteMemory::Device(self, 0), layout }
            }
        })*
    };
}

device_owners! {
    CudaSlice<T> CudaView<'_, T> CudaViewMut<'_, T>;
    CudaSlice<T> CudaViewMut<'_, T>
}

/// Checks that `layout` needs no more than `available` elements.
#[inline]
fn fits(layout: Layout, available: usize) -> Result<Layout> {
    if layout.span() <= available { Ok(layout) } else { Err(too_short(layout, available)) }
}

#[cold]
fn too_short(layout: Layout, available: usize) -> Error {
    Error::view(format!("at least {} elements for {layout}", layout.span()), available.to_string())
}

macro_rules! reshape {
    ($view:ident) => {
        impl<'a, T: Element> $view<'a, T> {
            /// The same memory as `rows` rows of `columns` elements, one after the other.
            ///
            /// # Errors
            /// When the memory is shorter than that.
            pub fn matrix(self, rows: usize, columns: usize) -> Result<Self> {
                self.strided(rows, columns, columns)
            }

            /// The same memory as `rows` rows of `columns` elements, each `row_stride` elements after the one before.
            ///
            /// # Errors
            /// When rows would overlap or the memory is shorter than that.
            pub fn strided(self, rows: usize, columns: usize, row_stride: usize) -> Result<Self> {
                let layout = fits(Layout::matrix(rows, columns, row_stride)?, self.layout.span())?;
                Ok($view { layout, ..self })
            }

            /// Elements `range` of the memory, as one axis.
            ///
            /// # Errors
            /// When the memory is shorter than that.
            pub fn slice(self, range: Range<usize>) -> Result<Self> {
                if range.start > range.end || range.end > self.layout.span() {
                    let expected = format!("a range within {} elements", self.layout.span());
                    return Err(Error::view(expected, format!("{range:?}")));
                }
                let layout = Layout::vector(range.len());
                Ok($view { memory: self.memory.slice(range), layout })
            }

            /// Its shape.
            pub fn layout(&self) -> Layout {
                self.layout
            }
        }
    };
}

reshape!(View);
reshape!(ViewMut);

impl<'a, T: Element> View<'a, T> {
    /// `length` elements of device memory at `address` on GPU `ordinal`, as one axis.
    ///
    /// # Safety
    /// The address must be that of `length` initialised elements of `T` in memory that GPU `ordinal` can read, aligned for
    /// `T`. They must stay there, and nothing may write them, until the work that was launched with this view has
    /// finished on its stream; writes made before must already be ordered before that stream.
    #[allow(unsafe_code)]
    pub unsafe fn from_raw_device(address: u64, length: usize, ordinal: usize) -> View<'a, T> {
        View { memory: ReadMemory::Raw(RawMemory { address, ordinal }), layout: Layout::vector(length) }
    }

    pub(crate) fn erase(self) -> Argument<'a> {
        let memory = match self.memory {
            ReadMemory::Host(slice) => Memory::Host(T::erase(slice)),
            ReadMemory::Device(memory, start) => Memory::Device(memory, start),
            ReadMemory::Raw(memory) => Memory::Raw(memory),
        };
        Argument::Tensor(Tensor { dtype: T::DTYPE, layout: self.layout, memory })
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// `length` elements of device memory at `address` on GPU `ordinal`, as one axis.
    ///
    /// # Safety
    /// The address must be that of `length` initialised elements of `T` in memory that GPU `ordinal` can write, aligned
    /// for `T`. They must stay there, and nothing else may read or write them, until the work that was launched with this
    /// view has finished on its stream; uses made before must already be ordered before that stream.
    #[allow(unsafe_code)]
    pub unsafe fn from_raw_device(address: u64, length: usize, ordinal: usize) -> ViewMut<'a, T> {
        ViewMut {
            memory: WriteMemory::Raw(RawMemory { address, ordinal }, PhantomData),
            layout: Layout::vector(length),
        }
    }

    /// The same memory to be read, until the next write.
    pub fn as_view(&self) -> View<'_, T> {
        let memory = match &self.memory {
            WriteMemory::Host(slice) => ReadMemory::Host(slice),
            WriteMemory::Device(memory, start) => ReadMemory::Device(memory.as_read(), *start),
            WriteMemory::Raw(raw, _) => ReadMemory::Raw(*raw),
        };
        View { memory, layout: self.layout }
    }

    /// The same view, borrowed for one more use before the next.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        let memory = match &mut self.memory {
            WriteMemory::Host(slice) => WriteMemory::Host(slice),
            WriteMemory::Device(memory, start) => WriteMemory::Device(&mut **memory, *start),
            WriteMemory::Raw(raw, _) => WriteMemory::Raw(*raw, PhantomData),
        };
        ViewMut { memory, layout: self.layout }
    }

    pub(crate) fn erase(self) -> Argument<'a> {
        let memory = match self.memory {
            WriteMemory::Host(slice) => Memory::HostMut(T::erase_mut(slice)),
            WriteMemory::Device(memory, start) => Memory::DeviceMut(memory, start),
            WriteMemory::Raw(memory, _) => Memory::RawMut(memory),
        };
        Argument::Tensor(Tensor { dtype: T::DTYPE, layout: self.layout, memory })
    }
}
