//! Places: every view is on the device that the kernel runs on.

use std::sync::Arc;

use cudarc::driver::CudaContext;

use crate::argument::Memory;
use crate::error::Error;
use crate::kernel::{Kernel, Param};

/// What to say of memory of a GPU that was to be host memory.
#[cold]
pub(crate) fn not_on_host(kernel: &Kernel, param: &Param, memory: &Memory<'_>) -> Error {
    Error::argument(kernel.name, param.name, "host memory", name(memory))
}

/// What to say of memory that was to be of `context`.
#[cold]
pub(crate) fn elsewhere(kernel: &Kernel, param: &Param, memory: &Memory<'_>, context: &Arc<CudaContext>) -> Error {
    let (expected, got) = (gpu(context.ordinal()), name(memory));
    if expected != got {
        return Error::argument(kernel.name, param.name, expected, got);
    }
    let expected = format!("memory of the stream's own context on cuda:{}", context.ordinal());
    Error::argument(kernel.name, param.name, expected, "another context's")
}

fn name(memory: &Memory<'_>) -> String {
    match memory {
        Memory::Host(_) | Memory::HostMut(_) => "host memory".into(),
        Memory::Device(memory, _) => gpu(memory.stream().context().ordinal()),
        Memory::DeviceMut(memory, _) => gpu(memory.stream().context().ordinal()),
        Memory::Raw(raw) | Memory::RawMut(raw) => gpu(raw.ordinal),
    }
}

fn gpu(ordinal: usize) -> String {
    format!("memory of cuda:{ordinal}")
}
