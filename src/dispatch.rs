//! The one way into a kernel: the shared check, then the arm of the device.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cudarc::driver::SyncOnDrop;

use crate::argument::{Argument, Memory};
use crate::bound::Bound;
use crate::check::addresses::Extent;
use crate::check::{self, PerParam};
use crate::device::{CudaDevice, Device};
use crate::error::{Error, Result};
use crate::kernel::{Arm, ByValue, Kernel, ParamKind, Variant, evaluate};
use crate::launch::{self, Grid, Slot, Slots};

/// Most blocks of a grid in x, y and z; the same for every GPU that CUDA supports.
const MAX_GRID: [i64; 3] = [i32::MAX as i64, u16::MAX as i64, u16::MAX as i64];

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
        let bound = check::arguments(self, args)?;
        let grid = grid(self, &bound)?;
        match device {
            Device::Cpu => {
                refused(self, args, Arm::Cpu)?;
                cpu(self, args, &bound)
            }
            Device::Cuda(cuda) => {
                refused(self, args, Arm::Gpu)?;
                gpu(self, args, &bound, grid, cuda)
            }
        }
    }
}

/// Nothing is given that the registry says `arm` cannot honour.
fn refused(kernel: &'static Kernel, args: &[Argument<'_>], arm: Arm) -> Result<()> {
    for (param, argument) in kernel.params.iter().zip(args) {
        match param.refused {
            Some((refusing, reason)) if refusing == arm && argument.is_given() => {
                let expected = format!(
                    "none, since the {} arm refuses it ({reason})",
                    if arm == Arm::Gpu { "GPU" } else { "CPU" }
                );
                return Err(Error::argument(kernel.name, param.name, expected, "a view"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn cpu(kernel: &'static Kernel, args: &mut [Argument<'_>], bound: &Bound) -> Result<()> {
    check::places::host(kernel, args)?;
    check::addresses::check(kernel, &extents(kernel, args))?;
    // An arm is meant to be total; should one panic all the same, its caller gets an error.
    catch_unwind(AssertUnwindSafe(|| (kernel.run_cpu)(args, bound)))
        .unwrap_or_else(|panic| Err(Error::launch(kernel.name, format!("the CPU arm panicked: {}", message(&*panic)))))
}

fn gpu(
    kernel: &'static Kernel,
    args: &mut [Argument<'_>],
    bound: &Bound,
    grid: Option<Grid>,
    device: &CudaDevice,
) -> Result<()> {
    let stream = device.stream();
    check::places::device(kernel, args, stream.context())?;
    let mut extents = extents(kernel, args);
    let structs: PerParam<Option<&ByValue>> = args.iter().map(by_value).collect();
    // Each guard makes the stream wait now, and records this launch when it is dropped at the end of this function.
    let mut guards = PerParam::<SyncOnDrop<'_>>::new();
    for (argument, extent) in args.iter_mut().zip(&mut extents) {
        let Argument::Tensor(tensor) = argument else { continue };
        let ((address, guard), start) = match &mut tensor.memory {
            Memory::Device(memory, start) => (memory.read(stream), *start),
            Memory::DeviceMut(memory, start) => (memory.write(stream), *start),
            Memory::Host(_) | Memory::HostMut(_) | Memory::Raw(_) | Memory::RawMut(_) => continue,
        };
        extent.address = address + start as u64;
        guards.push(guard);
    }
    check::addresses::check(kernel, &extents)?;
    let Some(grid) = grid else { return Ok(()) };
    let aligned = check::addresses::divisible_by_16(kernel, &extents, bound);
    let index = kernel.variant_index(bound.types(), |param| extents[param].given, aligned);
    let Some(variant) = index.and_then(|index| kernel.variants.get(index)) else {
        return Err(Error::launch(kernel.name, "no variant was compiled for these arguments"));
    };
    let slots = slots(kernel, variant, &extents, &structs, bound);
    let function = device.functions.get(kernel, variant)?;
    launch::launch(kernel, variant, function, grid, stream, slots)
}

fn extents(kernel: &Kernel, args: &[Argument<'_>]) -> PerParam<Extent> {
    args.iter().enumerate().map(|(index, argument)| Extent::new(kernel, index, argument)).collect()
}

/// The grid, or `None` where it has no blocks and there is nothing to do.
fn grid(kernel: &'static Kernel, bound: &Bound) -> Result<Option<Grid>> {
    let mut grid = [1; 3];
    for ((blocks, expr), limit) in grid.iter_mut().zip(kernel.grid).zip(MAX_GRID) {
        match evaluate(expr, bound.dims()) {
            Some(0) => return Ok(None),
            Some(value @ 1..) if value <= limit => *blocks = value as u32,
            value => {
                let got = value.map_or("a number beyond 64 bits".into(), |value| value.to_string());
                let expr = kernel.display(expr);
                return Err(Error::launch(
                    kernel.name,
                    format!("grid {expr}: expected 1 to {limit} blocks, got {got}"),
                ));
            }
        }
    }
    Ok(Some(Grid(grid)))
}

fn by_value<'a>(argument: &Argument<'a>) -> Option<&'a ByValue> {
    match argument {
        Argument::Struct(value) => Some(*value),
        _ => None,
    }
}

/// The kernel's parameter slots. A tensor that is absent has none in Triton and a null pointer in CUDA C++; what the compiler
/// adds at the end is null.
fn slots<'a>(
    kernel: &Kernel,
    variant: &Variant,
    extents: &PerParam<Extent>,
    structs: &PerParam<Option<&'a ByValue>>,
    bound: &Bound,
) -> Slots<'a> {
    let keeps_absent = kernel.gpu.file.ends_with(".cu");
    let mut slots = Slots::new();
    for (index, param) in kernel.params.iter().enumerate().filter(|(_, param)| param.only != Some(Arm::Cpu)) {
        match param.kind {
            ParamKind::Tensor { .. } if extents[index].given => slots.push(Slot::Bits(extents[index].address)),
            ParamKind::Tensor { .. } if keeps_absent => slots.push(Slot::Bits(0)),
            ParamKind::Tensor { .. } => {}
            ParamKind::Scalar { .. } => {
                slots.push(Slot::Bits(bound.scalars[index].map_or(0, |scalar| scalar.bits())));
            }
            ParamKind::Struct { .. } => slots.push(structs[index].map_or(Slot::Bits(0), Slot::Struct)),
        }
    }
    slots.extend(std::iter::repeat_n(Slot::Bits(0), variant.slots.len().saturating_sub(slots.len())));
    slots
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
