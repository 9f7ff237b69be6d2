//! Device memory whose owner orders its uses: what a launch needs of it once the element type is forgotten.

use std::sync::Arc;

use cudarc::driver::{
    CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice, SyncOnDrop,
};

/// Device memory that is read.
pub trait DeviceRead: Sync {
    /// The stream it was made on.
    fn stream(&self) -> &Arc<CudaStream>;
    /// Its address, where it is of the stream's own context. Nothing is recorded, so it is for contexts that track no uses.
    fn address(&self, stream: &CudaStream) -> Option<u64>;
    /// Makes `stream` wait for writes; what comes back records the read when it is dropped.
    fn read<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>);
}

/// Device memory that is written.
pub trait DeviceWrite: Send + Sync {
    /// The stream it was made on.
    fn stream(&self) -> &Arc<CudaStream>;
    /// Its address, where it is of the stream's own context. Nothing is recorded, so it is for contexts that track no uses.
    fn address(&mut self, stream: &CudaStream) -> Option<u64>;
    /// The same memory, to be read.
    fn as_read(&self) -> &dyn DeviceRead;
    /// Makes `stream` wait for reads and writes; what comes back records the write when it is dropped.
    fn write<'a>(&'a mut self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>);
}

/// Device memory that nobody here owns; an `unsafe` constructor's caller answers for it.
#[derive(Clone, Copy, Debug)]
pub struct RawMemory {
    /// Its address.
    pub address: u64,
    /// The GPU it is on.
    pub ordinal: usize,
}

impl RawMemory {
    /// The memory from `bytes` on.
    pub(crate) fn offset(self, bytes: usize) -> RawMemory {
        RawMemory { address: self.address + bytes as u64, ..self }
    }
}

/// The address of memory whose guard would find out for itself that there is nothing to record.
fn untracked((address, guard): (u64, SyncOnDrop<'_>)) -> u64 {
    std::mem::forget(guard);
    address
}

macro_rules! read {
    ($($owner:ty)*) => {
        $(impl<T: DeviceRepr + Sync> DeviceRead for $owner {
            fn stream(&self) -> &Arc<CudaStream> {
                DeviceSlice::stream(self)
            }

            fn address(&self, stream: &CudaStream) -> Option<u64> {
                let is_its = Arc::ptr_eq(DeviceSlice::stream(self).context(), stream.context());
                is_its.then(|| untracked(self.device_ptr(stream)))
            }

            fn read<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
                self.device_ptr(stream)
            }
        })*
    };
}

macro_rules! write {
    ($($owner:ty)*) => {
        $(impl<T: DeviceRepr + Send + Sync> DeviceWrite for $owner {
            fn stream(&self) -> &Arc<CudaStream> {
                DeviceSlice::stream(self)
            }

            fn address(&mut self, stream: &CudaStream) -> Option<u64> {
                let is_its = Arc::ptr_eq(DeviceSlice::stream(self).context(), stream.context());
                is_its.then(|| untracked(self.device_ptr_mut(stream)))
            }

            fn as_read(&self) -> &dyn DeviceRead {
                self
            }

            fn write<'a>(&'a mut self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
                self.device_ptr_mut(stream)
            }
        })*
    };
}

read!(CudaSlice<T> CudaView<'_, T> CudaViewMut<'_, T>);
write!(CudaSlice<T> CudaViewMut<'_, T>);
