//! Launches tidelock's kernels from a worker that lives in cust: on its stream, and on its buffers.
//!
//! cust and cudarc, which tidelock is built on, both work in a GPU's primary context, so a stream's handle and a buffer's
//! address mean the same to either. Nothing is copied and nothing is freed here. What one library cannot see of the other
//! is the order of their work: it is that of the one stream, and whoever shares it with other streams says so with events.

use std::error;
use std::fmt;

use cudarc::driver::{DriverError, sys};
use cust::context::CurrentContext;
use cust::error::CudaError;
use cust::memory::{DeviceCopy, DeviceSlice};
use cust::stream::Stream;
use tidelock::{Device, Element, View, ViewMut};

/// A stream of cust, as a device of tidelock.
#[derive(Clone, Debug)]
pub struct Worker {
    device: Device,
    ordinal: usize,
}

impl Worker {
    /// Takes `stream` and the context that is current on this thread, in which it was made.
    ///
    /// # Errors
    /// Where the current context is not its GPU's primary one, as `cust::context::Context::new` makes it, or the stream is
    /// another context's.
    ///
    /// # Safety
    /// `stream` must live as long as the worker, what is cloned from its device, and the work that is launched there.
    pub unsafe fn new(stream: &Stream) -> Result<Worker, Error> {
        let ordinal = CurrentContext::get_device().map_err(Error::Cust)?.as_raw();
        let ordinal = usize::try_from(ordinal).map_err(|_| Error::Context)?;
        let own = Device::cuda(ordinal).map_err(Error::Device)?;
        let Device::Cuda(cuda) = &own else { return Err(Error::Context) };
        let context = cuda.stream().context();
        let handle: sys::CUstream = stream.as_inner().cast();
        let mut of = std::ptr::null_mut();
        // SAFETY: the handle is that of a living stream, and the pointer is to a live handle.
        let status = unsafe { sys::cuStreamGetCtx(handle, &raw mut of) };
        if status != sys::CUresult::CUDA_SUCCESS {
            return Err(Error::Driver(DriverError(status)));
        }
        if of != context.cu_ctx() {
            return Err(Error::Context);
        }
        // SAFETY: the stream is of this context, as was just seen, and lives long enough by this function's contract. Work of
        // both libraries is ordered by the stream itself.
        let stream = unsafe { context.wrap_borrowed_stream(handle) };
        Ok(Worker { device: Device::from_stream(stream), ordinal })
    }

    /// The device to launch kernels on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A buffer, or a part of one, that kernels read.
    ///
    /// # Safety
    /// It must be memory of this worker's GPU. Nothing may write or free it until the work that is launched with the view
    /// has finished; writes made before must be ordered before this worker's stream.
    pub unsafe fn view<'a, T: Element + DeviceCopy>(&self, slice: &'a DeviceSlice<T>) -> View<'a, T> {
        // SAFETY: cust's slice says that the address is that of so many elements; the rest is this function's contract.
        unsafe { View::from_raw_device(slice.as_device_ptr().as_raw(), slice.len(), self.ordinal) }
    }

    /// A buffer, or a part of one, that kernels write.
    ///
    /// # Safety
    /// It must be memory of this worker's GPU. Nothing else may read, write or free it until the work that is launched with
    /// the view has finished; uses made before must be ordered before this worker's stream.
    pub unsafe fn view_mut<'a, T: Element + DeviceCopy>(&self, slice: &'a mut DeviceSlice<T>) -> ViewMut<'a, T> {
        // SAFETY: as in `view`, and the slice is borrowed exclusively.
        unsafe { ViewMut::from_raw_device(slice.as_device_ptr().as_raw(), slice.len(), self.ordinal) }
    }
}

/// Why there is no worker.
#[derive(Debug)]
pub enum Error {
    /// cust has no current context.
    Cust(CudaError),
    /// tidelock cannot use the GPU.
    Device(tidelock::Error),
    /// The driver refuses the stream.
    Driver(DriverError),
    /// The stream is not of the GPU's primary context.
    Context,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Cust(error) => write!(f, "expected a context of cust that is current on this thread: {error}"),
            Error::Device(error) => error.fmt(f),
            Error::Driver(error) => write!(f, "the driver does not know the stream: {error}"),
            Error::Context => f.write_str("expected a stream of the GPU's primary context, got one of another context"),
        }
    }
}

impl error::Error for Error {}
