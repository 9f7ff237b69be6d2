//! The one way into a kernel: the shared check, then the arm of the device.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::argument::Argument;
use crate::bound::Bound;
use crate::call::{Call, grid};
use crate::check::addresses::{self, Extents};
use crate::check::{self, PerParam};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::{Arm, Kernel};
use crate::prepared::{Prepared, Work};

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
                let mut guards = PerParam::new();
                let call = Call::new(self, args, &bound, cuda, &mut guards)?;
                call.map_or(Ok(()), |call| call.launch(cuda.stream()))
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
                let call = Call::new(self, &mut args, &bound, cuda, &mut PerParam::new())?;
                Work::Gpu(cuda.clone(), call.map(Box::new))
            }
        };
        Ok(Prepared { kernel: self, args, work })
    }
}

/// Everything that has to hold before the CPU arm runs.
fn check_cpu(kernel: &'static Kernel, args: &[Argument<'_>], bound: &mut Bound) -> Result<()> {
    check::arguments(kernel, args, Arm::Cpu, bound)?;
    grid(kernel, bound)?; // what one arm refuses, the other does as well
    check::places::host(kernel, args)?;
    let mut extents = Extents::new();
    addresses::fill(&mut extents, kernel, args);
    addresses::check(kernel, &extents)
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
