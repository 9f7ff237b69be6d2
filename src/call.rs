//! A call of the GPU arm: checked arguments as the driver takes them.

use std::mem::ManuallyDrop;

use cudarc::driver::{CudaStream, SyncOnDrop};

use crate::argument::{Argument, Memory};
use crate::bound::Bound;
use crate::check::addresses::{self, Extents};
use crate::check::{self, PerParam};
use crate::device::CudaDevice;
use crate::error::{Error, Result};
use crate::kernel::{Arm, ByValue, Kernel, Param, ParamKind, Variant, evaluate};
use crate::launch::{self, Function, Grid, Slot, Slots};

/// Most blocks of a grid in x, y and z; the same for every GPU that CUDA supports.
const MAX_GRID: [i64; 3] = [i32::MAX as i64, u16::MAX as i64, u16::MAX as i64];

/// What a launch queues. Its addresses are good for as long as the arguments that it was made of are borrowed, its function
/// for as long as the device. It borrows the structs that are passed by value.
#[derive(Debug)]
pub(crate) struct Call<'v> {
    kernel: &'static Kernel,
    variant: &'static Variant,
    function: Function,
    grid: Grid,
    /// Nothing in it has to be dropped. So a borrow ends with the last launch of a `Prepared`, and not with its scope.
    slots: ManuallyDrop<Slots<'v>>,
}

impl<'v> Call<'v> {
    /// Checks places and addresses, and finds the variant; `None` where the grid has no blocks and there is nothing to do.
    ///
    /// The stream waits now for earlier uses of the memory, and each of `guards` records this one when it is dropped, which
    /// is to be after the launch.
    pub(crate) fn new<'a>(
        kernel: &'static Kernel,
        args: &'a mut [Argument<'v>],
        bound: &Bound,
        device: &'a CudaDevice,
        guards: &mut PerParam<SyncOnDrop<'a>>,
    ) -> Result<Option<Call<'v>>> {
        let grid = grid(kernel, bound)?;
        check::places::device(kernel, args, device.stream().context())?;
        let mut extents = Extents::new();
        addresses::fill(&mut extents, kernel, args);
        let structs = structs(kernel, args);
        order(args, device.stream(), |index, address, guard| {
            extents[index].address = address;
            guards.push(guard);
        });
        addresses::check(kernel, &extents)?;
        let Some(grid) = grid else { return Ok(None) };
        let aligned = addresses::divisible_by_16(kernel, &extents, bound);
        let index = kernel.variant_index(bound.types(), |param| extents[param].given, aligned);
        let Some(variant) = index.and_then(|index| kernel.variants.get(index)) else {
            return Err(Error::launch(kernel.name, "no variant was compiled for these arguments"));
        };
        let function = device.functions.get(kernel, variant)?;
        let slots = ManuallyDrop::new(slots(kernel, variant, &extents, &structs, bound));
        Ok(Some(Call { kernel, variant, function, grid, slots }))
    }

    /// Queues it on `stream`, which is that of the device that it was made for.
    pub(crate) fn launch(&self, stream: &CudaStream) -> Result<()> {
        launch::launch(self.kernel, self.variant, self.function, self.grid, stream, &self.slots)
    }
}

/// Makes `stream` wait for earlier uses of what `args` are in memory whose owner orders its uses. `each` is told the
/// argument's index, where it begins, and the guard that records this use when it is dropped.
pub(crate) fn order<'a>(
    args: &'a mut [Argument<'_>],
    stream: &'a CudaStream,
    mut each: impl FnMut(usize, u64, SyncOnDrop<'a>),
) {
    for (index, argument) in args.iter_mut().enumerate() {
        let Argument::Tensor(tensor) = argument else { continue };
        let ((address, guard), start) = match &mut tensor.memory {
            Memory::Device(memory, start) => (memory.read(stream), *start),
            Memory::DeviceMut(memory, start) => (memory.write(stream), *start),
            Memory::Host(_) | Memory::HostMut(_) | Memory::Raw(_) | Memory::RawMut(_) => continue,
        };
        each(index, address + start as u64, guard);
    }
}

/// The grid, or `None` where it has no blocks and there is nothing to do.
pub(crate) fn grid(kernel: &'static Kernel, bound: &Bound) -> Result<Option<Grid>> {
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

/// The structs that the kernel is passed, in its order.
fn structs<'v>(kernel: &Kernel, args: &[Argument<'v>]) -> PerParam<&'v ByValue> {
    let by_value = |(param, argument): (&Param, &Argument<'v>)| match argument {
        Argument::Struct(value) if reaches_gpu(param) => Some(*value),
        _ => None,
    };
    kernel.params.iter().zip(args).filter_map(by_value).collect()
}

fn reaches_gpu(param: &Param) -> bool {
    param.only != Some(Arm::Cpu)
}

/// The kernel's parameter slots. A tensor that is absent has none in Triton, and a null pointer in CUDA C++; what the compiler
/// adds at the end is null.
fn slots<'v>(
    kernel: &Kernel,
    variant: &Variant,
    extents: &Extents,
    structs: &[&'v ByValue],
    bound: &Bound,
) -> Slots<'v> {
    let keeps_absent = kernel.gpu.file.ends_with(".cu");
    let mut structs = structs.iter();
    let mut slots = Slots::new();
    for (index, param) in kernel.params.iter().enumerate().filter(|(_, param)| reaches_gpu(param)) {
        match param.kind {
            ParamKind::Tensor { .. } if extents[index].given => slots.push(Slot::Bits(extents[index].address)),
            ParamKind::Tensor { .. } if keeps_absent => slots.push(Slot::Bits(0)),
            ParamKind::Tensor { .. } => {}
            ParamKind::Scalar { .. } => slots.push(Slot::Bits(bound.scalars[index])),
            ParamKind::Struct { .. } => slots.extend(structs.next().copied().map(Slot::Struct)),
        }
    }
    slots.extend(std::iter::repeat_n(Slot::Bits(0), variant.slots.len().saturating_sub(slots.len())));
    slots
}
