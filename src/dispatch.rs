//! The one way into a kernel: the shared check, then the arm of the device.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::argument::{Argument, Memory};
use crate::bound::Bound;
use crate::call::{Call, Structs, grid, shared_memory};
use crate::check::addresses::Extents;
use crate::check::{self, places};
use crate::device::{CudaDevice, Device};
use crate::error::{Error, Result};
use crate::kernel::{Arm, Kernel};
use crate::prepared::{Prepared, Queue, Work};
use crate::recent;
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
        match device {
            Device::Cpu => {
                let mut bound = Bound::default();
                check_cpu(self, args, &mut bound)?;
                run_cpu(self, args, &bound)
            }
            Device::Cuda(cuda) => recent::with_call(self, args, cuda, queue),
        }
    }

    /// Checks `args` as [`Kernel::launch`] does and keeps them, so that each launch of what comes back is checked already. On
    /// a GPU the kernel is loaded now.
    ///
    /// # Errors
    /// As [`Kernel::launch`].
    pub fn prepare<'a>(&'static self, args: impl Into<Vec<Argument<'a>>>, device: &Device) -> Result<Prepared<'a>> {
        let mut args = args.into();
        let work = match device {
            Device::Cpu => {
                let mut bound = Box::<Bound>::default();
                check_cpu(self, &args, &mut bound)?;
                Work::Cpu(bound)
            }
            Device::Cuda(cuda) => {
                let mut call = Call::none(self);
                call.check(&args, cuda)?;
                let (mut uses, mut structs) = (Uses::on(cuda.stream()), Structs::new());
                call.place(&mut args, cuda, &mut uses, &mut structs)?;
                let (foreign, structs) = (uses.foreign(), ManuallyDrop::new(structs));
                Work::Gpu(cuda.clone(), Box::new(Queue { call, foreign, structs }))
            }
        };
        Ok(Prepared { kernel: self, args, work })
    }
}

/// Queues `call`, which `args` are like.
fn queue(call: &mut Call, args: &mut [Argument<'_>], device: &CudaDevice) -> Result<()> {
    let stream = device.stream();
    let tracked = {
        let (mut uses, mut structs) = (Uses::on(stream), Structs::new());
        call.place(args, device, &mut uses, &mut structs)?;
        call.launch(stream, &structs)?;
        uses.tracked()
    };
    record_late(call.kernel(), args, stream, tracked)
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
