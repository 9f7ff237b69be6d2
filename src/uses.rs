//! The order of a launch among other uses of its memory.
//!
//! cudarc's owners order uses on different streams by events: a use waits for those before it and is recorded for those after
//! it. While a context has one stream, or its user has turned tracking off, they do neither, and asking each of them costs
//! more than the launch. So the context is asked once, and again after the launch, for the case that another thread has made
//! a second stream meanwhile.

use std::sync::Arc;

use cudarc::driver::{CudaStream, SyncOnDrop};

use crate::argument::{Argument, Memory};
use crate::check::{PerParam, places};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// The uses that one launch on `stream` makes. They are recorded when this is dropped, which is to be after the launch.
pub(crate) struct Uses<'a> {
    stream: &'a CudaStream,
    tracked: bool,
    /// Memory of an equal context may be tracked where this is not.
    foreign: bool,
    guards: PerParam<SyncOnDrop<'a>>,
}

impl<'a> Uses<'a> {
    /// None so far.
    pub(crate) fn on(stream: &'a CudaStream) -> Uses<'a> {
        let tracked = stream.context().is_managing_stream_synchronization();
        Uses { stream, tracked, foreign: false, guards: PerParam::new() }
    }

    /// Makes the stream wait for earlier uses of `memory`, which is that of parameter `index`. Its address.
    ///
    /// # Errors
    /// Where it is not memory of the stream's context.
    #[inline(always)] // into the one loop over the arguments of a launch
    pub(crate) fn add(&mut self, kernel: &Kernel, index: usize, memory: &'a mut Memory<'_>) -> Result<u64> {
        if !self.tracked {
            let (address, start) = match memory {
                Memory::Device(memory, start) => (memory.address(self.stream), *start),
                Memory::DeviceMut(memory, start) => (memory.address(self.stream), *start),
                _ => (None, 0),
            };
            if let Some(address) = address {
                return Ok(address + start as u64);
            }
        }
        self.add_any(kernel, index, memory)
    }

    /// As [`Uses::add`], of any memory.
    #[inline(never)]
    fn add_any(&mut self, kernel: &Kernel, index: usize, memory: &'a mut Memory<'_>) -> Result<u64> {
        let context = self.stream.context();
        let owner = match memory {
            Memory::Device(memory, _) => memory.stream().context(),
            Memory::DeviceMut(memory, _) => memory.stream().context(),
            Memory::Raw(raw) | Memory::RawMut(raw) if raw.ordinal == context.ordinal() => return Ok(raw.address),
            _ => return Err(places::elsewhere(kernel, &kernel.params[index], memory, context)),
        };
        if !Arc::ptr_eq(owner, context) {
            if owner != context {
                return Err(places::elsewhere(kernel, &kernel.params[index], memory, context));
            }
            self.foreign = true;
        }
        let ((address, guard), start) = match memory {
            Memory::Device(memory, start) => (memory.read(self.stream), *start),
            Memory::DeviceMut(memory, start) => (memory.write(self.stream), *start),
            _ => return Err(Error::generator(kernel)),
        };
        self.guards.push(guard);
        Ok(address + start as u64)
    }

    /// Adds those of all of `args`.
    fn add_all(&mut self, kernel: &Kernel, args: &'a mut [Argument<'_>]) -> Result<()> {
        for (index, argument) in args.iter_mut().enumerate() {
            if let Argument::Tensor(tensor) = argument {
                self.add(kernel, index, &mut tensor.memory)?;
            }
        }
        Ok(())
    }

    /// Whether cudarc orders the uses of this context's memory.
    pub(crate) fn tracked(&self) -> bool {
        self.tracked
    }

    /// Whether some memory is of an equal context that is not this one.
    pub(crate) fn foreign(&self) -> bool {
        self.foreign
    }
}

/// Runs `launch` after earlier uses of `args` and before later ones. `foreign` says what [`Uses::foreign`] said of them.
pub(crate) fn ordered(
    kernel: &Kernel,
    args: &mut [Argument<'_>],
    stream: &CudaStream,
    foreign: bool,
    launch: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let tracked = {
        let mut uses = Uses::on(stream);
        if uses.tracked || foreign {
            uses.add_all(kernel, args)?;
        }
        launch()?;
        uses.tracked
    };
    record_late(kernel, args, stream, tracked)
}

/// Records the uses of a launch that has been queued, where they were not `tracked` then and are now.
#[inline(always)]
pub(crate) fn record_late(
    kernel: &Kernel,
    args: &mut [Argument<'_>],
    stream: &CudaStream,
    tracked: bool,
) -> Result<()> {
    if !tracked && stream.context().is_managing_stream_synchronization() {
        return late(kernel, args, stream);
    }
    Ok(())
}

#[cold]
fn late(kernel: &Kernel, args: &mut [Argument<'_>], stream: &CudaStream) -> Result<()> {
    Uses::on(stream).add_all(kernel, args)
}
