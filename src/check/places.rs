//! Places: every view is on the device that the kernel runs on.

use cudarc::driver::CudaContext;
use std::sync::Arc;

use crate::argument::{Argument, Memory};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// All views are in host memory.
pub(crate) fn host(kernel: &'static Kernel, args: &[Argument<'_>]) -> Result<()> {
    let is_host = |memory: &Memory<'_>| matches!(memory, Memory::Host(_) | Memory::HostMut(_));
    tensors(kernel, args, is_host, |memory| ("host memory".into(), name(memory)))
}

/// All views are in memory of `context`'s GPU, and of that context where they know theirs.
pub(crate) fn device(kernel: &'static Kernel, args: &[Argument<'_>], context: &Arc<CudaContext>) -> Result<()> {
    let same = |other: &Arc<CudaContext>| Arc::ptr_eq(other, context) || other == context;
    let is_there = |memory: &Memory<'_>| match memory {
        Memory::Host(_) | Memory::HostMut(_) => false,
        Memory::Device(memory, _) => same(memory.stream().context()),
        Memory::DeviceMut(memory, _) => same(memory.stream().context()),
        Memory::Raw(raw) | Memory::RawMut(raw) => raw.ordinal == context.ordinal(),
    };
    tensors(kernel, args, is_there, |memory| {
        let (expected, got) = (gpu(context.ordinal()), name(memory));
        if expected != got {
            return (expected, got);
        }
        (format!("memory of the stream's own context on cuda:{}", context.ordinal()), "another context's".into())
    })
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

/// Where one is not `there`, the error is what `wrong` says was expected and came.
#[inline]
fn tensors(
    kernel: &'static Kernel,
    args: &[Argument<'_>],
    there: impl Fn(&Memory<'_>) -> bool,
    wrong: impl Fn(&Memory<'_>) -> (String, String),
) -> Result<()> {
    for (param, argument) in kernel.params.iter().zip(args) {
        if let Argument::Tensor(tensor) = argument
            && !there(&tensor.memory)
        {
            let (expected, got) = wrong(&tensor.memory);
            return Err(Error::argument(kernel.name, param.name, expected, got));
        }
    }
    Ok(())
}
