//! Memory owned on either device, so that code above the kernels is written once.

use cudarc::driver::CudaSlice;

use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::view::{AsView, AsViewMut, View, ViewMut};

/// Memory of one device, as one axis.
///
/// ```
/// use tidelock::{AsView, Buffer, Device};
///
/// let noise = Buffer::from_slice(&Device::Cpu, &[1.0f64, 0.5, 2.0, 4.0])?;
/// assert_eq!(noise.view().matrix(2, 2)?.layout().row_stride(), 2);
/// assert_eq!(noise.to_vec()?, [1.0, 0.5, 2.0, 4.0]);
/// # Ok::<(), tidelock::Error>(())
/// ```
#[derive(Debug)]
pub enum Buffer<T> {
    /// Host memory.
    Host(Vec<T>),
    /// Memory of a GPU.
    Cuda(CudaSlice<T>),
}

impl<T: Element> Buffer<T> {
    /// `length` zeros on `device`.
    ///
    /// # Errors
    /// Where the GPU has no memory left.
    pub fn zeros(device: &Device, length: usize) -> Result<Buffer<T>> {
        match device {
            Device::Cpu => Ok(Buffer::Host(vec![T::default(); length])),
            Device::Cuda(cuda) => {
                // The driver refuses to allocate nothing.
                let slice = if length == 0 { cuda.stream().null() } else { cuda.stream().alloc_zeros(length) };
                slice.map(Buffer::Cuda).map_err(|error| Error::driver(format!("allocate {length} elements"), error))
            }
        }
    }

    /// A copy of `values` on `device`.
    ///
    /// # Errors
    /// Where the GPU has no memory left.
    pub fn from_slice(device: &Device, values: &[T]) -> Result<Buffer<T>> {
        match device {
            Device::Cpu => Ok(Buffer::Host(values.to_vec())),
            Device::Cuda(cuda) => {
                if values.is_empty() {
                    return Buffer::zeros(device, 0);
                }
                let slice = cuda.stream().clone_htod(values);
                slice
                    .map(Buffer::Cuda)
                    .map_err(|error| Error::driver(format!("upload {} elements", values.len()), error))
            }
        }
    }

    /// A copy in host memory, made when all work queued before it is done.
    ///
    /// # Errors
    /// What went wrong in that work, as the driver tells it.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        match self {
            Buffer::Host(values) => Ok(values.clone()),
            Buffer::Cuda(slice) if slice.is_empty() => Ok(Vec::new()),
            Buffer::Cuda(slice) => {
                slice.stream().clone_dtoh(slice).map_err(|error| Error::driver("copy to the host", error))
            }
        }
    }
}

impl<T: Element> AsView<T> for Buffer<T> {
    fn view(&self) -> View<'_, T> {
        match self {
            Buffer::Host(values) => values.as_slice().view(),
            Buffer::Cuda(slice) => slice.view(),
        }
    }
}

impl<T: Element> AsViewMut<T> for Buffer<T> {
    fn view_mut(&mut self) -> ViewMut<'_, T> {
        match self {
            Buffer::Host(values) => values.as_mut_slice().view_mut(),
            Buffer::Cuda(slice) => slice.view_mut(),
        }
    }
}
