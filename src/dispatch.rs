//! The one way into a kernel: the shared check, then the arm of the device.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::argument::{Argument, Memory};
use crate::bound::Bound;
use crate::call::{Call, grid, shared_memory};
use crate::check::addresses::Extents;
use crate::check::{self, places};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::{Arm, Kernel};
use crate::launch::Slots;
use crate::prepared::{Prepared, Queue, Work};
use crate::uses::{Uses, record_late};

impl Kernel {
    /// Checks `args`, one for each parameter in order, and runs the kernel on `device`.
    ///
    /// The generated wrappers call this; their fields make most mistakes impossible. Scalars that are derived are
    /// [`Argument::Absent`], as are optional tensors that are left out.
    ///
    /// # Errors
    /// What does not fit the signature, naming the parameter; nothing has been launched or written then. On a GPU, also
    /// what the driver says. Errors of the kernel's own work come later, from [`Device::synchronize`].
    pub fn launch(&'static self, args: &mut [Argument<'_>], device: &Device) -> Result<()> {
        let mut bound = Bound::default();
        match device {
            Device::Cpu => {
                check_cpu(self, args, &mut bound)?;
                run_cpu(self, args, &bound)
            }
            Device::Cuda(cuda) => {
                check::arguments(self, args, Arm::Gpu, &mut bound)?;
                let tracked = {
                    let mut uses = Uses::on(cuda.stream());
                    let mut slots = Slots::new();
                    let call = Call::new(self, args, &bound, cuda, &mut uses, &mut slots)?;
                    call.map_or(Ok(()), |call| call.launch(cuda.stream(), &slots))?;
                    uses.tracked()
                };
                record_late(self, args, cuda.stream(), tracked)
            }
        }
    }

    /// Checks `args` as [`Kernel::launch`] does and keeps them, so that each launch of what comes back is checked already. On
    /// a GPU the kernel is loaded now.
    ///
    /// # Errors
    /// As [`Kernel::launch`].
    pub fn prepare<'a>(&'static self, args: impl Into<Vec<Argument<'a>>>, device: &Device) -> Result<Prepared<'a>> {
        let (mut args, mut bound) = (args.into(), Box::<Bound>::default());
        let work = match device {
            Device::Cpu => {
                check_cpu(self, &args, &mut bound)?;
                Work::Cpu(bound)
            }
            Device::Cuda(cuda) => {
                check::arguments(self, &args, Arm::Gpu, &mut bound)?;
                let mut uses = Uses::on(cuda.stream());
                let mut slots = Slots::new();
                let call = Call::new(self, &mut args, &bound, cuda, &mut uses, &mut slots)?;
                let foreign = uses.foreign();
                Work::Gpu(
                    cuda.clone(),
                    call.map(|call| Box::new(Queue { call, foreign, slots: ManuallyDrop::new(slots) })),
                )
            }
        };
        Ok(Prepared { kernel: self, args, work })
    }
}

/// Everything that has to hold before the CPU arm runs.
fn check_cpu(kernel: &'static Kernel, args: &[Argument<'_>], bound: &mut Bound) -> Result<()> {
    check::arguments(kernel, args, Arm::Cpu, bound)?;
    // What one arm refuses, the other does as well.
    grid(kernel, bound)?;
    shared_memory(kernel, bound)?;
    let mut extents = Extents::default();
    for (index, (param, argument)) in kernel.params.iter().zip(args).enumerate() {
        let Argument::Tensor(tensor) = argument else { continue };
        let address = match &tensor.memory {
            Memory::Host(slice) => slice.address(),
            Memory::HostMut(slice) => slice.address(),
            memory => return Err(places::not_on_host(kernel, param, memory)),
        };
        extents.add(index, param, tensor.dtype, tensor.layout, address as u64);
    }
    extents.check(kernel)
}

/// Runs the CPU arm on arguments that have been checked. It is meant to be total; should it panic all the same, its caller
/// gets an error.
pub(crate) fn run_cpu(kernel: &'static Kernel, args: &mut [Argument<'_>], bound: &Bound) -> Result<()> {
    catch_unwind(AssertUnwindSafe(|| (kernel.run_cpu)(args, bound)))
        .unwrap_or_else(|panic| Err(Error::launch(kernel.name, format!("the CPU arm panicked: {}", message(&*panic)))))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
