//! Element types, and what each language calls them.

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl DType {
    /// Every element type, with its name in the registry, in Triton and its size in bytes.
    pub const ALL: [(DType, &'static str, &'static str, usize); 13] = [
        (DType::Bool, "bool", "i1", 1),
        (DType::I8, "i8", "i8", 1),
        (DType::I16, "i16", "i16", 2),
        (DType::I32, "i32", "i32", 4),
        (DType::I64, "i64", "i64", 8),
        (DType::U8, "u8", "u8", 1),
        (DType::U16, "u16", "u16", 2),
        (DType::U32, "u32", "u32", 4),
        (DType::U64, "u64", "u64", 8),
        (DType::F16, "f16", "fp16", 2),
        (DType::BF16, "bf16", "bf16", 2),
        (DType::F32, "f32", "fp32", 4),
        (DType::F64, "f64", "fp64", 8),
    ];

    /// The type that the registry calls `name`.
    pub fn from_name(name: &str) -> Option<DType> {
        Self::ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    fn row(self) -> &'static (DType, &'static str, &'static str, usize) {
        &Self::ALL[self as usize]
    }

    /// Its name in the registry and in Rust (`f32`; `f16` and `bf16` are those of the crate half).
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Its name in a Triton signature (`fp32`).
    pub fn triton_name(self) -> &'static str {
        self.row().2
    }

    /// Its size in bytes.
    pub fn size(self) -> usize {
        self.row().3
    }
}
