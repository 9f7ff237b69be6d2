//! A call of the GPU arm: checked arguments as the driver takes them.

use cudarc::driver::CudaStream;

use crate::argument::Argument;
use crate::bound::Bound;
use crate::check::addresses::Extents;
use crate::device::CudaDevice;
use crate::error::{Error, Result};
use crate::kernel::{Arm, Expr, Kernel, ParamKind, Variant, evaluate};
use crate::launch::{self, Function, Grid, Slot, Slots};
use crate::uses::Uses;

/// Most blocks of a grid in x, y and z; the same for every GPU that CUDA supports.
const MAX_GRID: [i64; 3] = [i32::MAX as i64, u16::MAX as i64, u16::MAX as i64];

/// More shared memory than any block has.
const MAX_SHARED: i64 = i32::MAX as i64;

/// What a launch queues, less its parameter slots. Its function is good for as long as the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    kernel: &'static Kernel,
    variant: &'static Variant,
    function: Function,
    grid: Grid,
    /// Bytes of dynamic shared memory.
    shared: u32,
}

impl Call {
    /// Checks places and addresses, finds the variant, and fills `slots`; `None` where the grid has no blocks and there is
    /// nothing to do.
    ///
    /// The addresses in `slots` are good for as long as `args` are borrowed. The stream waits now for earlier uses of the
    /// memory, and `uses` is to be dropped after the launch.
    pub(crate) fn new<'a, 'v>(
        kernel: &'static Kernel,
        args: &'a mut [Argument<'v>],
        bound: &Bound,
        device: &'a CudaDevice,
        uses: &mut Uses<'a>,
        slots: &mut Slots<'v>,
    ) -> Result<Option<Call>> {
        let (grid, shared) = (grid(kernel, bound)?, shared_memory(kernel, bound)?);
        // A tensor that is absent has no slot in Triton, and a null pointer in CUDA C++.
        let keeps_absent = kernel.gpu.file.ends_with(".cu");
        let mut extents = Extents::default();
        let (mut given, mut aligned) = (0u64, true);
        for (index, (param, argument)) in kernel.params.iter().zip(args).enumerate() {
            let slot = match (argument, &param.kind) {
                (Argument::Tensor(tensor), _) => {
                    let (dtype, layout) = (tensor.dtype, tensor.layout);
                    let address = uses.add(kernel, param, &mut tensor.memory)?;
                    given |= 1 << index;
                    extents.add(index, param, dtype, layout, address);
                    Slot::Bits(address)
                }
                (Argument::Struct(value), _) => Slot::Struct(*value),
                (_, ParamKind::Scalar { .. }) => Slot::Bits(bound.scalars[index]),
                // It promises nothing.
                _ if keeps_absent => Slot::Bits(0),
                _ => continue,
            };
            aligned &= !param.divisible_by_16 || slot.is_divisible_by_16();
            if param.only != Some(Arm::Cpu) {
                slots.push(slot);
            }
        }
        extents.check(kernel)?;
        let Some(grid) = grid else { return Ok(None) };
        let index = kernel.variant_index(bound.types(), |param| given >> param & 1 == 1, aligned);
        let Some(variant) = index.and_then(|index| kernel.variants.get(index)) else {
            return Err(Error::launch(kernel.name, "no variant was compiled for these arguments"));
        };
        // What the compiler adds is null.
        while slots.len() < variant.slots.len() {
            slots.push(Slot::Bits(0));
        }
        let function = device.functions.get(kernel, variant)?;
        let shared = shared.unwrap_or(variant.shared);
        if shared > function.most_shared() {
            return Err(too_much(kernel, Some(shared.into()), function.most_shared().into()));
        }
        Ok(Some(Call { kernel, variant, function, grid, shared }))
    }

    /// Queues it on `stream`, which is that of the device that it was made for.
    pub(crate) fn launch(&self, stream: &CudaStream, slots: &Slots<'_>) -> Result<()> {
        launch::launch(self.kernel, self.variant, self.function, self.grid, self.shared, stream, slots)
    }
}

/// The grid, or `None` where it has no blocks and there is nothing to do.
pub(crate) fn grid(kernel: &'static Kernel, bound: &Bound) -> Result<Option<Grid>> {
    let mut grid = [1; 3];
    for ((blocks, expr), limit) in grid.iter_mut().zip(kernel.grid).zip(MAX_GRID) {
        match evaluate(expr, bound.dims()) {
            Some(0) => return Ok(None),
            Some(value @ 1..) if value <= limit => *blocks = value as u32,
            value => return Err(out_of_range(kernel, "grid", expr, value, &format!("1 to {limit} blocks"))),
        }
    }
    Ok(Some(Grid(grid)))
}

/// Bytes of dynamic shared memory, where the registry says them. How many a block can have depends on the GPU.
#[inline]
pub(crate) fn shared_memory(kernel: &'static Kernel, bound: &Bound) -> Result<Option<u32>> {
    let Some(expr) = kernel.shared_memory else { return Ok(None) };
    match evaluate(expr, bound.dims()) {
        Some(bytes @ 0..) if bytes <= MAX_SHARED => Ok(Some(bytes as u32)),
        bytes => Err(too_much(kernel, bytes, MAX_SHARED)),
    }
}

#[cold]
fn too_much(kernel: &Kernel, bytes: Option<i64>, most: i64) -> Error {
    let expr = kernel.shared_memory.unwrap_or_default();
    out_of_range(kernel, "shared memory", expr, bytes, &format!("0 to {most} bytes"))
}

#[cold]
fn out_of_range(kernel: &Kernel, what: &str, expr: Expr, value: Option<i64>, expected: &str) -> Error {
    let got = value.map_or("a number beyond 64 bits".into(), |value| value.to_string());
    Error::launch(kernel.name, format!("{what} {}: expected {expected}, got {got}", kernel.display(expr)))
}
