//! Places: every view is on the device that the kernel runs on.

use cudarc::driver::CudaContext;
use std::sync::Arc;

use crate::argument::{Argument, Memory, Tensor};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// All views are in host memory.
pub(crate) fn host(kernel: &'static Kernel, args: &[Argument<'_>]) -> Result<()> {
    tensors(kernel, args, |tensor| match &tensor.memory {
        Memory::Host(_) | Memory::HostMut(_) => None,
        Memory::Device(memory, _) => Some(("host memory".into(), gpu(memory.stream().context().ordinal()))),
        Memory::DeviceMut(memory, _) => Some(("host memory".into(), gpu(memory.stream().context().ordinal()))),
        Memory::Raw(raw) | Memory::RawMut(raw) => Some(("host memory".into(), gpu(raw.ordinal))),
    })
}

/// All views are in memory of `context`'s GPU, and of that context where they know theirs.
pub(crate) fn device(kernel: &'static Kernel, args: &[Argument<'_>], context: &Arc<CudaContext>) -> Result<()> {
    let ordinal = context.ordinal();
    let expected = || gpu(ordinal);
    let of = |other: &Arc<CudaContext>| match other {
        other if Arc::ptr_eq(other, context) || other == context => None,
        other if other.ordinal() != ordinal => Some((expected(), gpu(other.ordinal()))),
        _ => Some((format!("memory of the stream's own context on cuda:{ordinal}"), "another context's".to_string())),
    };
    tensors(kernel, args, |tensor| match &tensor.memory {
        Memory::Host(_) | Memory::HostMut(_) => Some((expected(), "host memory".into())),
        Memory::Device(memory, _) => of(memory.stream().context()),
        Memory::DeviceMut(memory, _) => of(memory.stream().context()),
        Memory::Raw(raw) | Memory::RawMut(raw) if raw.ordinal != ordinal => Some((expected(), gpu(raw.ordinal))),
        Memory::Raw(_) | Memory::RawMut(_) => None,
    })
}

fn gpu(ordinal: usize) -> String {
    format!("memory of cuda:{ordinal}")
}

fn tensors(
    kernel: &'static Kernel,
    args: &[Argument<'_>],
    wrong: impl Fn(&Tensor<'_>) -> Option<(String, String)>,
) -> Result<()> {
    for (param, argument) in kernel.params.iter().zip(args) {
        if let Argument::Tensor(tensor) = argument
            && let Some((expected, got)) = wrong(tensor)
        {
            return Err(Error::argument(kernel.name, param.name, expected, got));
        }
    }
    Ok(())
}
