//! The run-time table: everything the registry says of a kernel, as constants.
//!
//! The generator emits one [`Kernel`] an entry. Checks, launches, the parity cases and `tidelock list` read this table, so
//! none of them can know another argument list than the wrapper does.

use std::any::{Any, TypeId};

use arrayvec::ArrayVec;

use crate::argument::Argument;
use crate::bound::Bound;
use crate::element::{DType, Element, Scalar};
use crate::error::Error;
use crate::expr;
pub use crate::expr::{Expr, Op, evaluate};
pub use crate::functions::VariantId;
pub use crate::recent::KernelId;

/// Most parameters a kernel can have.
pub const MAX_PARAMS: usize = 64;
/// Most dimensions a kernel can name.
pub const MAX_DIMS: usize = 8;
/// Most type variables a kernel can have.
pub const MAX_TYPES: usize = 4;

/// One kernel of the registry.
///
/// ```
/// let kernel = tidelock::REGISTRY.iter().find(|kernel| kernel.name == "argmax").expect("it is in the registry");
/// assert_eq!((kernel.family, kernel.signature.file), ("race", "signatures/race.yaml"));
/// assert_eq!(kernel.params[0].name, "output_token_ids");
/// ```
#[derive(Debug)]
pub struct Kernel {
    /// Its name in the registry.
    pub name: &'static str,
    /// The registry file's stem.
    pub family: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Where its signature is.
    pub signature: Place,
    /// Where its GPU arm's source is.
    pub gpu: Place,
    /// The function there.
    pub gpu_function: &'static str,
    /// Where its CPU arm is.
    pub cpu: Place,
    /// Blocks in x, y and z.
    pub grid: &'static [Expr],
    /// Bytes of dynamic shared memory of a block, where the registry says them; else they are the variant's own.
    pub shared_memory: Option<Expr>,
    /// Element types that a launch chooses.
    pub types: &'static [TypeVariable],
    /// Sizes that shapes name.
    pub dims: &'static [Dim],
    /// Run-time arguments, in order.
    pub params: &'static [Param],
    /// Compile-time constants.
    pub constants: &'static [Constant],
    /// Indices of the parameters of which a variant is compiled with each and without.
    pub switches: &'static [usize],
    /// Compiled forms, in the order that [`Kernel::variant_index`] counts.
    pub variants: &'static [Variant],
    /// Runs the CPU arm on checked arguments.
    pub run_cpu: fn(&mut [Argument<'_>], &Bound) -> Result<(), Error>,
    /// Where threads keep its calls once it is launched.
    pub id: KernelId,
}

/// A line of a file of the crate that declares the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Path relative to that crate.
    pub file: &'static str,
    /// Line, counted from 1.
    pub line: u32,
}

/// An element type chosen at launch.
#[derive(Debug)]
pub struct TypeVariable {
    /// Its name.
    pub name: &'static str,
    /// What it can be.
    pub choices: &'static [DType],
}

/// A size that shapes name.
#[derive(Debug)]
pub struct Dim {
    /// Its name.
    pub name: &'static str,
    /// Index of the parameter whose shape gives it.
    pub param: usize,
    /// Axis of that shape.
    pub axis: usize,
    /// The axis is this much longer than the dimension.
    pub offset: i64,
}

/// A run-time argument.
#[derive(Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Line of its declaration.
    pub line: u32,
    /// Tensor, scalar or struct.
    pub kind: ParamKind,
    /// What values it may hold.
    pub domain: Domain,
    /// The only arm that uses it, where it is not both.
    pub only: Option<Arm>,
    /// The arm that refuses calls which give it, and why.
    pub refused: Option<(Arm, &'static str)>,
    /// The aligned variants promise that it is divisible by 16, a tensor's address in bytes.
    pub divisible_by_16: bool,
}

/// Who executes a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// The compiled kernel.
    Gpu,
    /// The fallback.
    Cpu,
}

/// What kind of argument it is.
#[derive(Debug)]
pub enum ParamKind {
    /// Memory.
    Tensor {
        /// Element type.
        element: ElementType,
        /// One or two extents.
        shape: &'static [Expr],
        /// What the kernel does with it.
        access: Access,
        /// Whether it can be absent.
        presence: Presence,
        /// Rows may be further apart than they are long.
        strided: bool,
    },
    /// One value.
    Scalar {
        /// Its type.
        element: ElementType,
        /// Where its value comes from.
        source: ScalarSource,
        /// Largest value a launch accepts.
        max: Option<i64>,
    },
    /// A struct of C, passed by value.
    Struct {
        /// Its name.
        name: &'static str,
        /// Its type in Rust.
        id: fn() -> TypeId,
        /// Its fields, in order.
        fields: &'static [Field],
        /// A value whose fields are drawn one after the other.
        make: fn(&mut Draw<'_>) -> Box<ByValue>,
    },
}

/// A field of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type, or that of its elements.
    pub dtype: DType,
    /// Elements of an array; 1 for a single value.
    pub count: usize,
}

/// Any struct that a kernel takes by value. What is `Send` and `Sync` holds no bare pointers, which a GPU could not follow.
pub type ByValue = dyn Any + Send + Sync;

/// Where the fields of a generated struct come from.
pub struct Draw<'a>(pub &'a mut dyn FnMut(DType) -> Scalar);

impl Draw<'_> {
    /// The next value.
    pub fn value<T: Element>(&mut self) -> T {
        T::from_scalar((self.0)(T::DTYPE)).unwrap_or_default()
    }
}

/// An element type, fixed or chosen at launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// Always this one.
    Fixed(DType),
    /// That of the type variable with this index.
    Variable(usize),
}

/// What a kernel does with a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes all of it and reads none.
    Write,
    /// Reads and writes it, or writes a part.
    Update,
}

/// Whether a tensor can be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always given.
    Required,
    /// The caller chooses.
    Optional,
    /// Given exactly when the parameter with this index is.
    With(usize),
}

/// Where a scalar's value comes from.
#[derive(Clone, Copy, Debug)]
pub enum ScalarSource {
    /// The caller.
    Caller,
    /// The caller, or this value.
    Default(Literal),
    /// The dimension with this index.
    Dim(usize),
    /// The row stride of the tensor with this index, 0 where it is absent.
    Stride(usize),
}

/// A literal of the registry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// A Boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

/// A compile-time constant.
#[derive(Debug)]
pub struct Constant {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub dtype: DType,
    /// Where its value comes from.
    pub value: ConstantValue,
    /// It never changes a result.
    pub tuning: bool,
}

/// Where a constant's value comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConstantValue {
    /// The registry.
    Fixed(Literal),
    /// Whether the parameter with this index is given.
    Present(usize),
    /// Whether it is not.
    Absent(usize),
    /// Which of two element types the parameter with this index has: false the first, true the second.
    Chosen(usize),
}

/// What values a parameter may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// Every value of the type.
    Any,
    /// From the first to below the second.
    Range(Expr, Expr),
    /// -1 or any token id.
    TokenIds,
    /// Non-decreasing, from at least 0 to exactly this dimension.
    InclusiveCumsum(usize),
    /// Each row is non-negative and sums to 1.
    Probabilities,
    /// Greater than 0, infinity included.
    Positive,
    /// At least 0, finite.
    NonNegative,
    /// From 0 to 1, both included.
    Unit,
    /// Between 0 and 1, neither included.
    OpenUnit,
    /// Finite, or -inf.
    Logits,
}

/// One compiled form of a kernel.
#[derive(Debug)]
pub struct Variant {
    /// Its name, the stem of its PTX file.
    pub name: &'static str,
    /// Its PTX.
    pub ptx: &'static str,
    /// SHA-256 of the PTX, in hexadecimal.
    pub sha256: &'static str,
    /// Name of the entry point.
    pub entry: &'static str,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Bytes of each parameter slot; what follows the kernel's own is pointers that the compiler adds, all null.
    pub slots: &'static [u8],
    /// Least compute capability, as major * 10 + minor.
    pub capability: u32,
    /// PTX version.
    pub ptx_version: &'static str,
    /// It promises divisibility by 16.
    pub aligned: bool,
    /// Where contexts keep it once it is loaded.
    pub id: VariantId,
}

impl Literal {
    /// The literal as a scalar of type `dtype`. The generator has checked that it fits; what does not is `None`.
    pub fn to_scalar(self, dtype: DType) -> Option<Scalar> {
        match (self, dtype) {
            (Literal::Bool(value), DType::Bool) => Some(Scalar::Bool(value)),
            (Literal::Int(value), DType::F32) => Some(Scalar::F32(value as f32)),
            (Literal::Int(value), DType::F64) => Some(Scalar::F64(value as f64)),
            (Literal::Int(value), _) => Scalar::from_integer(dtype, value),
            (Literal::Float(value), DType::F32) => Some(Scalar::F32(value as f32)),
            (Literal::Float(value), DType::F64) => Some(Scalar::F64(value)),
            (Literal::Float(value), DType::F16) => Some(Scalar::F16(half::f16::from_f64(value))),
            (Literal::Float(value), DType::BF16) => Some(Scalar::BF16(half::bf16::from_f64(value))),
            _ => None,
        }
    }
}

impl Kernel {
    /// Index of the parameter of this name.
    pub fn param_index(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|param| param.name == name)
    }

    /// Extent of the last axis of tensor `param` where sizes have these values; `None` without such a tensor, or where other sizes say it.
    pub fn columns(&self, param: &str, sizes: &[(&str, usize)]) -> Option<usize> {
        let ParamKind::Tensor { shape, .. } = &self.params[self.param_index(param)?].kind else { return None };
        let columns = *shape.last()?;
        let mut dims = ArrayVec::<i64, MAX_DIMS>::new();
        for (index, dim) in self.dims.iter().enumerate() {
            match sizes.iter().find(|(name, _)| *name == dim.name) {
                Some(&(_, size)) => dims.push(i64::try_from(size).ok()?),
                None if columns.contains(&Op::Dim(index)) => return None,
                None => dims.push(0),
            }
        }
        usize::try_from(evaluate(columns, &dims)?).ok()
    }

    /// Number of the variant for these types, presence of parameters and alignment; the generator counts alike.
    #[inline]
    pub fn variant_index(&self, types: &[DType], given: impl Fn(usize) -> bool, aligned: bool) -> Option<usize> {
        let mut index = 0;
        for (variable, dtype) in self.types.iter().zip(types) {
            index = index * variable.choices.len() + variable.choices.iter().position(|choice| choice == dtype)?;
        }
        for &param in self.switches {
            index = index * 2 + usize::from(given(param));
        }
        // Where parameters promise divisibility, every other variant relies on it, the last among them.
        if self.variants.last().is_some_and(|variant| variant.aligned) {
            index = index * 2 + usize::from(aligned);
        }
        Some(index)
    }

    /// An expression as the registry writes it.
    pub fn display(&self, expr: Expr) -> String {
        expr::display(expr, |dim| self.dims[dim].name)
    }
}
