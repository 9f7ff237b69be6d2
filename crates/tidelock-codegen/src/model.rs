//! The validated registry: plain data that every later stage may trust.
//!
//! Only [`crate::lower`] builds it, and only from a registry without errors. Every name that a reader may be pointed at
//! keeps the span it was read from, so that a check made much later can still show the line to change.

mod dtype;
mod expression;

use crate::source::Span;
pub use dtype::DType;
pub use expression::Expr;

/// A value and the place in a registry file that says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub span: Span,
}

/// All signatures of one crate.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// Families in the order of their file names.
    pub families: Vec<Family>,
}

/// The kernels of one registry file.
#[derive(Clone, Debug)]
pub struct Family {
    /// The stem of the file, which names the family in every folder.
    pub name: String,
    /// Path of the file, relative to the crate, such as `signatures/rejection.yaml`.
    pub path: String,
    /// Kernels in the order of the file.
    pub kernels: Vec<Kernel>,
}

/// One kernel's signature.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Name of the kernel in the registry, in snake case.
    pub name: Spanned<String>,
    /// What the kernel does.
    pub doc: String,
    /// The kernel's source.
    pub gpu: Spanned<GpuSource>,
    /// The CPU arm in C or C++; without one it is in Rust.
    pub cpu: Option<Spanned<CpuSource>>,
    /// Number of blocks in x, y and z; one to three expressions.
    pub grid: Vec<Spanned<Expr>>,
    /// Warps a block has.
    pub num_warps: u32,
    /// Bytes of dynamic shared memory that a block of a CUDA C++ kernel gets.
    pub shared_memory: Option<Spanned<Expr>>,
    /// Element types that a launch chooses.
    pub types: Vec<TypeVariable>,
    /// Sizes that shapes name, each bound by a required tensor.
    pub dims: Vec<Dim>,
    /// Run-time arguments in the kernel's order.
    pub params: Vec<Param>,
    /// Compile-time constants in the order of the file.
    pub constants: Vec<Constant>,
    /// Names of parameters that the aligned variant promises to be divisible by 16 (pointers in bytes).
    pub divisible_by_16: Vec<Spanned<String>>,
}

/// Where a kernel's source is: `kernels/rejection.py:expand_kernel`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuSource {
    /// Path relative to the crate.
    pub file: String,
    /// Name of the function.
    pub function: String,
}

/// Where a CPU arm in C or C++ is: `cpu/quantize.cpp:dequantize_rows`. Beside it lies its header, `cpu/quantize.h`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSource {
    /// Path relative to the crate.
    pub file: String,
    /// Name of the function.
    pub function: String,
}

impl CpuSource {
    /// Path of the header that declares the function.
    pub fn header(&self) -> String {
        let stem = self.file.rsplit_once('.').map_or(self.file.as_str(), |(stem, _)| stem);
        format!("{stem}.h")
    }
}

/// An element type that a launch chooses among several.
#[derive(Clone, Debug)]
pub struct TypeVariable {
    /// `T` where declared under `types`; the constant's name where a constant chooses (`by: USE_FP64_GUMBEL`).
    pub name: Spanned<String>,
    /// The types in the order of the file; for one chosen by a constant, the type for `false`, then for `true`.
    pub choices: Vec<DType>,
    /// The Boolean constant that says which of two types it is.
    pub chosen_by: Option<String>,
}

/// A named size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Name, as shapes write it.
    pub name: Spanned<String>,
    /// Parameter whose shape gives it.
    pub bound_by: String,
    /// Which axis of that parameter.
    pub axis: usize,
    /// The axis is this much longer than the dimension (1 for `max_spec_len + 1`).
    pub offset: i64,
}

/// A run-time argument.
#[derive(Clone, Debug)]
pub struct Param {
    /// Name in the registry and in the wrapper.
    pub name: Spanned<String>,
    /// Name in the kernel's source, the same unless `as` says otherwise.
    pub kernel_name: String,
    /// What it means.
    pub doc: String,
    /// Tensor, scalar or struct.
    pub kind: ParamKind,
    /// What values it may hold; checked by nobody at launch, promised by the caller, and defined in both arms beyond.
    pub domain: Domain,
    /// Only this arm uses it, for the given reason.
    pub only: Option<(Arm, String)>,
    /// This arm refuses calls that give it, for the given reason.
    pub refused: Option<(Arm, String)>,
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
#[derive(Clone, Debug)]
pub enum ParamKind {
    /// Memory.
    Tensor(Tensor),
    /// One value.
    Scalar(Scalar),
    /// A struct of C, passed by value.
    Struct(Struct),
}

/// A struct of C that a kernel takes by value: `kernels/quantization.h:Quantization`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struct {
    /// The header that defines it, relative to the crate.
    pub header: String,
    /// Its name in C and in Rust.
    pub name: Spanned<String>,
}

/// Memory that a kernel reads or writes.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Element type, with the span of its declaration.
    pub element: Spanned<Element>,
    /// One or two extents.
    pub shape: Vec<Spanned<Expr>>,
    /// What is done with it.
    pub access: Access,
    /// Whether it can be absent.
    pub presence: Presence,
    /// The scalar parameter that carries its row stride; without one its rows must be contiguous.
    pub stride_param: Option<String>,
}

/// An element type, fixed or chosen at launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// Always this type.
    Fixed(DType),
    /// The type that the kernel's type variable of this name has.
    Variable(String),
}

/// Whether a tensor can be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is always given.
    Required,
    /// The caller chooses.
    Optional,
    /// It is given exactly when the named tensor is.
    With(String),
}

/// What a kernel does with a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    Read,
    /// Every element is written, none is read.
    Write,
    /// Read and written, or written in part.
    Update,
}

/// One value.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// Its type, with the span of its declaration.
    pub element: Spanned<Element>,
    /// Where its value comes from.
    pub source: ScalarSource,
    /// Largest value a launch accepts.
    pub max: Option<i64>,
}

/// Where a scalar's value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ScalarSource {
    /// The caller passes it.
    Caller,
    /// The caller may pass it; otherwise it has this value.
    Default(Literal),
    /// The dimension of the parameter's own name.
    Dim,
    /// The row stride of the named tensor in elements, 0 where it is absent.
    Stride(String),
}

/// A compile-time constant.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Name in the registry.
    pub name: Spanned<String>,
    /// Name in the kernel's source, the same unless `as` says otherwise.
    pub kernel_name: String,
    /// What it means.
    pub doc: String,
    /// Its type.
    pub dtype: DType,
    /// Where its value comes from.
    pub value: ConstantValue,
    /// It changes speed, never results, and so never reaches the CPU arm.
    pub tuning: bool,
}

/// Where a constant's value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstantValue {
    /// Fixed in the registry.
    Fixed(Literal),
    /// True when the named tensor is given.
    Present(String),
    /// True when the named tensor is not given.
    Absent(String),
    /// True when the named tensor has the element type that its `true` stands for.
    DType(String),
}

/// A literal of the registry.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

/// What values a parameter may hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// Every value of the type.
    Any,
    /// From the first to below the second, integers.
    Range(Expr, Expr),
    /// -1 or any token id.
    TokenIds,
    /// Non-decreasing, from at least 0 to exactly the dimension: where each request ends.
    InclusiveCumsum(String),
    /// Each row is non-negative and sums to 1.
    Probabilities,
    /// Greater than 0, infinity included.
    Positive,
    /// At least 0 and finite.
    NonNegative,
    /// From 0 to 1, both included.
    Unit,
    /// Between 0 and 1, neither included.
    OpenUnit,
    /// Finite, or -inf for a token that is removed.
    Logits,
}

impl Param {
    /// Its element type; none for a struct.
    pub fn element(&self) -> Option<&Element> {
        match &self.kind {
            ParamKind::Tensor(tensor) => Some(&tensor.element.value),
            ParamKind::Scalar(scalar) => Some(&scalar.element.value),
            ParamKind::Struct(_) => None,
        }
    }

    /// Whether the CPU arm takes it: all but strides, which its matrices carry, what only the kernel uses, and what the arm
    /// refuses.
    pub fn reaches_cpu(&self) -> bool {
        let stride =
            matches!(&self.kind, ParamKind::Scalar(scalar) if matches!(scalar.source, ScalarSource::Stride(_)));
        !stride && !matches!(self.only, Some((Arm::Gpu, _))) && !matches!(self.refused, Some((Arm::Cpu, _)))
    }
}

impl Constant {
    /// The value that the CPU arm takes, where it takes one: tuning constants change nothing there, and one that follows from
    /// a tensor's presence or type is the `Option` or the type itself.
    pub fn cpu_value(&self) -> Option<&Literal> {
        match &self.value {
            ConstantValue::Fixed(literal) if !self.tuning => Some(literal),
            _ => None,
        }
    }
}

impl Kernel {
    /// The parameter of this name.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name.value == name)
    }

    /// The type variable of this name.
    pub fn type_variable(&self, name: &str) -> Option<&TypeVariable> {
        self.types.iter().find(|variable| variable.name.value == name)
    }
}
