//! A call of the GPU arm: checked arguments as the driver takes them.
//!
//! What the check finds out about types, shapes and scalars holds for every call with the same of them on the same device, so
//! a call can be launched again with other memory; [`recent`](crate::recent) keeps some for that. Where the memory is and at
//! which address is looked at each time.

use arrayvec::ArrayVec;
use cudarc::driver::CudaStream;

use crate::argument::Argument;
use crate::bound::Bound;
use crate::check;
use crate::check::addresses::Extents;
use crate::device::CudaDevice;
use crate::error::{Error, Result};
use crate::form::Form;
use crate::functions::FunctionsId;
use crate::kernel::{Arm, ByValue, Expr, Kernel, MAX_PARAMS, Param, ParamKind, Variant, evaluate};
use crate::launch::{self, Function, Grid, Slots};
use crate::uses::Uses;

/// Most blocks of a grid in x, y and z; the same for every GPU that CUDA supports.
const MAX_GRID: [i64; 3] = [i32::MAX as i64, u16::MAX as i64, u16::MAX as i64];

/// More shared memory than any block has.
const MAX_SHARED: i64 = i32::MAX as i64;

/// The structs among the arguments of a call, in order.
pub(crate) type Structs<'a> = ArrayVec<&'a ByValue, MAX_PARAMS>;

/// A call that has passed the check, less the memory itself.
#[derive(Debug)]
pub(crate) struct Call {
    kernel: &'static Kernel,
    /// Those of the device that it was checked for. They own its function, which is good as long as they live.
    functions: Option<FunctionsId>,
    params: Vec<Passed>,
    /// `None` where it has no blocks.
    grid: Option<Grid>,
    /// Bytes of dynamic shared memory, where the registry says them.
    shared: Option<u32>,
    /// What is launched where the arguments are not aligned, and where they are.
    variants: [Option<&'static Variant>; 2],
    /// What is launched at the addresses in `params`; nothing where the grid is empty.
    ready: Option<Ready>,
    /// These addresses have passed the check, and `ready` is for them.
    is_placed: bool,
}

/// What was passed for a parameter.
#[derive(Debug)]
struct Passed {
    form: Form,
    /// An address or a value, in the low bytes.
    bits: u64,
    slot: Option<Slot>,
}

/// What the parameter's slot holds, where it has one.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Bits,
    Struct,
}

/// What is launched.
#[derive(Clone, Copy, Debug)]
struct Ready {
    variant: &'static Variant,
    function: Function,
    grid: Grid,
    /// Parameter slots.
    slots: usize,
    /// Bytes of dynamic shared memory.
    shared: u32,
}

impl Call {
    /// None yet; it is like no arguments.
    pub(crate) fn none(kernel: &'static Kernel) -> Call {
        let (params, variants) = (Vec::new(), [None; 2]);
        Call { kernel, functions: None, params, grid: None, shared: None, variants, ready: None, is_placed: false }
    }

    /// The kernel.
    pub(crate) fn kernel(&self) -> &'static Kernel {
        self.kernel
    }

    /// Whether there is nothing to launch, once it was placed: its grid has no blocks.
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_none()
    }

    /// Whether the check of `args` for `device` would find what it found for this call. Places and addresses are not looked at.
    #[inline]
    pub(crate) fn is_like(&self, args: &[Argument<'_>], device: &CudaDevice) -> bool {
        self.functions == Some(device.functions.id())
            && self.params.len() == args.len()
            && self.params.iter().zip(args).all(|(passed, argument)| passed.form.is_of(argument))
    }

    /// Checks `args` for `device`, all but places and addresses, and becomes their call. Where they are refused it stays
    /// what it was.
    pub(crate) fn check(&mut self, args: &[Argument<'_>], device: &CudaDevice) -> Result<()> {
        let (kernel, mut bound) = (self.kernel, Bound::default());
        check::arguments(kernel, args, Arm::Gpu, &mut bound)?;
        (self.grid, self.shared) = (grid(kernel, &bound)?, shared_memory(kernel, &bound)?);
        let given = |param: usize| matches!(args[param], Argument::Tensor(_));
        let variant = |aligned| kernel.variants.get(kernel.variant_index(bound.types(), given, aligned)?);
        self.variants = [false, true].map(variant);
        let passed = |(index, param): (usize, &Param)| {
            let is_scalar = matches!(param.kind, ParamKind::Scalar { .. });
            // A tensor that is absent has no slot in Triton, and a null pointer in CUDA C++.
            let is_there = is_scalar || args[index].is_given() || kernel.gpu.file.ends_with(".cu");
            let has_slot = is_there && param.only != Some(Arm::Cpu);
            let form = Form::of(&args[index]);
            let slot = if matches!(form, Form::Struct(_)) { Slot::Struct } else { Slot::Bits };
            Passed { form, bits: bound.scalars[index], slot: has_slot.then_some(slot) }
        };
        self.params.clear();
        self.params.extend(kernel.params.iter().enumerate().map(passed));
        (self.functions, self.is_placed) = (Some(device.functions.id()), false);
        Ok(())
    }

    /// Checks places and addresses of `args`, which this call is like, and finds the variant; notes the structs.
    ///
    /// The addresses are good for as long as `args` are borrowed. The stream waits now for earlier uses of the memory, and
    /// `uses` is to be dropped after the launch.
    #[inline]
    pub(crate) fn place<'a, 'v>(
        &mut self,
        args: &'a mut [Argument<'v>],
        device: &CudaDevice,
        uses: &mut Uses<'a>,
        structs: &mut Structs<'v>,
    ) -> Result<()> {
        let mut moved = !std::mem::replace(&mut self.is_placed, false);
        for (index, (passed, argument)) in self.params.iter_mut().zip(args).enumerate() {
            if let Argument::Tensor(tensor) = argument {
                let address = uses.add(self.kernel, index, &mut tensor.memory)?;
                moved |= passed.bits != address;
                passed.bits = address;
            } else if let Argument::Struct(value) = argument {
                structs.push(*value);
            }
        }
        if moved {
            self.ready = self.look(device)?;
        }
        self.is_placed = true;
        Ok(())
    }

    /// Checks the addresses and finds what to launch there, if anything.
    #[inline(never)] // they are mostly those of before
    fn look(&self, device: &CudaDevice) -> Result<Option<Ready>> {
        let (kernel, mut extents, mut aligned) = (self.kernel, Extents::default(), true);
        for (index, (param, passed)) in kernel.params.iter().zip(&self.params).enumerate() {
            if let Form::Tensor { dtype, layout, .. } = passed.form {
                extents.add(index, param, dtype, layout, passed.bits);
            }
            // Low bits say it of a number whatever its sign. Of a struct nothing is known, and what is absent promises nothing.
            let divisible = passed.bits.is_multiple_of(16) && !matches!(passed.form, Form::Struct(_));
            aligned &= !param.divisible_by_16 || divisible;
        }
        extents.check(kernel)?;
        let Some(grid) = self.grid else { return Ok(None) };
        let Some(variant) = self.variants[usize::from(aligned)] else {
            return Err(Error::launch(kernel.name, "no variant was compiled for these arguments"));
        };
        let function = device.functions.get(kernel, variant)?;
        let shared = self.shared.unwrap_or(variant.shared);
        if shared > function.most_shared() {
            return Err(too_much(kernel, Some(shared.into()), function.most_shared().into()));
        }
        Ok(Some(Ready { variant, function, grid, slots: variant.slots.len(), shared }))
    }

    /// Queues it on `stream`, which is that of the device that it was placed for, with the structs that were noted then.
    #[inline]
    pub(crate) fn launch(&self, stream: &CudaStream, structs: &[&ByValue]) -> Result<()> {
        let Some(ready) = &self.ready else { return Ok(()) };
        let (mut slots, mut structs) = (Slots::default(), structs.iter());
        for passed in &self.params {
            match passed.slot {
                Some(Slot::Bits) => slots.push_bits(&passed.bits),
                Some(Slot::Struct) => slots.push_struct(*structs.next().ok_or_else(|| Error::generator(self.kernel))?),
                None => {}
            }
        }
        // What the compiler adds is null.
        while slots.len() < ready.slots {
            slots.push_bits(&0);
        }
        launch::launch(self.kernel, ready.variant, ready.function, ready.grid, ready.shared, stream, &mut slots)
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
