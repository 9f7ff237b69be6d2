//! What a source says of its kernels, the same for both languages. `None` is what it does not say.

use std::ops::Range;

use tidelock_codegen::model::{Access, DType, Literal};

/// A kernel as its source declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Its function; for a static method, `Class.method`.
    pub function: String,
    /// Line of its name, counted from 1.
    pub line: usize,
    /// The first words of its docstring, or of the comment above it.
    pub doc: Option<String>,
    /// How it is launched, in the source's own words.
    pub grid: Option<String>,
    /// Warps of a block.
    pub num_warps: Option<u32>,
    /// It declares shared memory whose size its launches give.
    pub dynamic_shared: bool,
    /// Parameters in order, constants included.
    pub params: Vec<Param>,
    /// What stands in the way of calling it as it is.
    pub notes: Vec<String>,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name in the source.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// The comment beside it.
    pub comment: Option<String>,
    /// What the author should know of it.
    pub note: Option<String>,
}

/// What a parameter is.
#[derive(Clone, Debug, PartialEq)]
pub enum Role {
    /// Memory.
    Tensor { element: Option<DType>, access: Option<Access> },
    /// One value at run time.
    Scalar { element: Option<DType>, default: Option<Literal> },
    /// Fixed when the kernel is compiled.
    Constant { dtype: Option<DType>, value: Option<Literal> },
}

/// Why a source cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Mistake {
    pub language: &'static str,
    pub message: String,
    pub span: Range<usize>,
}

/// What is done with a tensor that is loaded from, stored to, or both.
pub fn access(loaded: bool, stored: bool) -> Option<Access> {
    match (loaded, stored) {
        (true, true) => Some(Access::Update),
        (true, false) => Some(Access::Read),
        (false, true) => Some(Access::Write),
        (false, false) => None,
    }
}

/// The type that a literal has where nothing else says one, as Triton would have it.
pub fn dtype_of(literal: &Literal) -> DType {
    match literal {
        Literal::Bool(_) => DType::Bool,
        Literal::Int(value) if i32::try_from(*value).is_ok() => DType::I32,
        Literal::Int(_) => DType::I64,
        Literal::Float(_) => DType::F32,
    }
}

/// The element type that Triton, torch, numpy or C call `name`.
pub fn dtype(name: &str) -> Option<DType> {
    let name = name.trim().trim_start_matches(['*', '&']).rsplit(['.', ':']).next()?;
    if let Some(row) = DType::ALL.iter().find(|row| row.1 == name || row.2 == name) {
        return Some(row.0);
    }
    Some(match name {
        "bool" | "int1" => DType::Bool,
        "int8" | "char" | "int8_t" | "signed char" => DType::I8,
        "int16" | "short" | "int16_t" => DType::I16,
        "int32" | "int" | "int32_t" => DType::I32,
        "int64" | "long" | "long long" | "int64_t" | "ptrdiff_t" | "ssize_t" => DType::I64,
        "uint8" | "unsigned char" | "uint8_t" | "uchar" => DType::U8,
        "uint16" | "unsigned short" | "uint16_t" | "ushort" => DType::U16,
        "uint32" | "unsigned" | "unsigned int" | "uint32_t" | "uint" => DType::U32,
        "uint64" | "unsigned long" | "unsigned long long" | "uint64_t" | "size_t" | "ulong" => DType::U64,
        "float16" | "half" | "__half" => DType::F16,
        "bfloat16" | "__nv_bfloat16" | "nv_bfloat16" => DType::BF16,
        "float32" | "float" => DType::F32,
        "float64" | "double" => DType::F64,
        _ => return None,
    })
}
