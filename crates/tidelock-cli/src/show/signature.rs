//! Everything that the run-time table says of a kernel, in words; the keys of the JSON are these.

use serde::Serialize;
use tidelock::Kernel;
use tidelock::kernel::{Constant, ElementType, Param, ParamKind, Place, Variant};
use tidelock_codegen::facts;

use crate::describe;

/// A kernel.
#[derive(Serialize)]
pub struct Signature {
    pub name: &'static str,
    pub family: &'static str,
    pub doc: &'static str,
    /// Where it is declared.
    pub signature: String,
    /// Where its GPU arm is, and the function there.
    pub gpu: String,
    pub gpu_function: &'static str,
    /// Where its CPU arm is.
    pub cpu: String,
    /// Blocks in x, y and z.
    pub grid: Vec<String>,
    /// Bytes of dynamic shared memory of a block, where the registry says them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_memory: Option<String>,
    /// Sizes that shapes name.
    pub dims: Vec<DimRow>,
    pub params: Vec<ParamRow>,
    pub constants: Vec<ConstantRow>,
    pub variants: Vec<VariantRow>,
}

/// A size that shapes name.
#[derive(Serialize)]
pub struct DimRow {
    pub name: &'static str,
    /// The parameter whose shape gives it.
    pub param: &'static str,
    pub axis: usize,
    /// The axis is this much longer.
    pub offset: i64,
}

/// A run-time argument.
#[derive(Serialize)]
pub struct ParamRow {
    pub name: &'static str,
    pub doc: &'static str,
    /// Where it is declared.
    pub at: String,
    #[serde(skip)]
    pub line: u32,
    /// Its type, or all that it can have with `|` between them.
    #[serde(rename = "type")]
    pub element: String,
    /// What chooses among several types.
    pub type_by: Option<&'static str>,
    /// Extents of a tensor; nothing for a scalar.
    pub shape: Option<Vec<String>>,
    /// What the kernel does with a tensor.
    pub access: Option<&'static str>,
    /// When a tensor is given, where it can be absent.
    pub optional: Option<String>,
    /// Rows may be further apart than they are long.
    pub strided: bool,
    /// What values it may hold; nothing where it may hold any.
    pub domain: Option<String>,
    /// The only arm that uses it, or the arm that refuses it and why.
    pub arms: Option<String>,
    /// Largest value a launch accepts.
    pub max: Option<i64>,
    /// Where a value comes from.
    pub from: String,
    /// The aligned variants promise that it is divisible by 16, a tensor's address in bytes.
    pub divisible_by_16: bool,
}

/// A compile-time constant.
#[derive(Serialize)]
pub struct ConstantRow {
    pub name: &'static str,
    #[serde(rename = "type")]
    pub dtype: &'static str,
    /// Its value, or what says it.
    pub value: String,
    /// It changes no result and never reaches the CPU arm.
    pub tuning: bool,
}

/// A compiled form.
#[derive(Serialize)]
pub struct VariantRow {
    pub name: &'static str,
    /// Path of its PTX.
    pub ptx: String,
    pub ptx_bytes: usize,
    pub sha256: &'static str,
    pub entry: &'static str,
    /// Bytes of each parameter slot, the compiler's own at the end.
    pub slots: &'static [u8],
    pub threads: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Least compute capability, as major * 10 + minor.
    pub capability: u32,
    pub ptx_version: &'static str,
    /// It promises divisibility by 16.
    pub aligned: bool,
}

impl Signature {
    /// What the table says of `kernel`.
    pub fn new(kernel: &Kernel) -> Signature {
        let dims = kernel.dims.iter().map(|dim| DimRow {
            name: dim.name,
            param: kernel.params.get(dim.param).map_or("?", |param| param.name),
            axis: dim.axis,
            offset: dim.offset,
        });
        Signature {
            name: kernel.name,
            family: kernel.family,
            doc: kernel.doc,
            signature: describe::place(kernel.signature),
            gpu: describe::place(kernel.gpu),
            gpu_function: kernel.gpu_function,
            cpu: describe::place(kernel.cpu),
            grid: describe::extents(kernel, kernel.grid),
            shared_memory: kernel.shared_memory.map(|bytes| kernel.display(bytes)),
            dims: dims.collect(),
            params: kernel.params.iter().map(|entry| param(kernel, entry)).collect(),
            constants: kernel.constants.iter().map(|entry| constant(kernel, entry)).collect(),
            variants: kernel.variants.iter().map(|entry| variant(kernel, entry)).collect(),
        }
    }
}

fn param(kernel: &Kernel, param: &Param) -> ParamRow {
    let element = match &param.kind {
        ParamKind::Tensor { element, .. } | ParamKind::Scalar { element, .. } => Some(*element),
        ParamKind::Struct { .. } => None,
    };
    let row = ParamRow {
        name: param.name,
        doc: param.doc,
        at: describe::place(Place { line: param.line, ..kernel.signature }),
        line: param.line,
        element: element.map(|element| describe::element(kernel, element)).unwrap_or_default(),
        type_by: match element {
            None | Some(ElementType::Fixed(_)) => None,
            Some(ElementType::Variable(index)) => kernel.types.get(index).map(|variable| variable.name),
        },
        shape: None,
        access: None,
        optional: None,
        strided: false,
        domain: describe::domain(kernel, param.domain),
        arms: describe::arms(param),
        max: None,
        from: "the caller".into(),
        divisible_by_16: param.divisible_by_16,
    };
    match &param.kind {
        ParamKind::Struct { name, fields, .. } => {
            ParamRow { element: (*name).into(), domain: Some(describe::fields(fields)), ..row }
        }
        ParamKind::Tensor { shape, access, presence, strided, .. } => ParamRow {
            shape: Some(describe::extents(kernel, shape)),
            access: Some(describe::access(*access)),
            optional: describe::presence(kernel, *presence),
            strided: *strided,
            ..row
        },
        ParamKind::Scalar { source, max, .. } => ParamRow { max: *max, from: describe::source(kernel, *source), ..row },
    }
}

fn constant(kernel: &Kernel, constant: &Constant) -> ConstantRow {
    ConstantRow {
        name: constant.name,
        dtype: constant.dtype.name(),
        value: describe::constant(kernel, constant),
        tuning: constant.tuning,
    }
}

fn variant(kernel: &Kernel, variant: &Variant) -> VariantRow {
    VariantRow {
        name: variant.name,
        ptx: facts::ptx_path(kernel.family, variant.name),
        ptx_bytes: variant.ptx.len(),
        sha256: variant.sha256,
        entry: variant.entry,
        slots: variant.slots,
        threads: variant.threads,
        shared: variant.shared,
        capability: variant.capability,
        ptx_version: variant.ptx_version,
        aligned: variant.aligned,
    }
}
