//! A kernel with a parameter of each kind, in variants for each thing that chooses one.

use std::any::TypeId;

use tidelock::kernel::{
    Access, Dim, Domain, ElementType, KernelId, Literal, Op, Param, ParamKind, Place, Presence, ScalarSource,
    TypeVariable, Variant, VariantId,
};
use tidelock::{DType, Kernel};

/// A struct of C, which only the driver reads.
#[expect(dead_code)]
pub struct First(pub [u32; 2]);

/// Another one, of the same bytes.
#[expect(dead_code)]
pub struct Second(pub [u32; 2]);

macro_rules! variants {
    ($($name:literal, $mask:literal, $aligned:literal, $slots:expr;)*) => {
        [$(Variant {
            name: $name,
            ptx: concat!(
                ".visible .entry ", $name, "(\n\t.param .u64 values,\n", $mask, "\t.param .f32 scale,\n\t.param .u32 columns,\n",
                "\t.param .u64 stride,\n\t.param .u32 limit,\n\t.param .align 4 .b8 first[8],\n\t.param .align 4 .b8 second[8],\n",
                "\t.param .u64 added\n)\n{ ret; }\n"
            ),
            sha256: "",
            entry: $name,
            threads: 128,
            shared: 0,
            slots: $slots,
            capability: 80,
            ptx_version: "8.0",
            aligned: $aligned,
            id: VariantId::new(),
        }),*]
    };
}

const MASKED: &[u8] = &[8, 8, 4, 4, 8, 4, 8, 8, 8];
const BARE: &[u8] = &[8, 4, 4, 8, 4, 8, 8, 8];

static VARIANTS: [Variant; 8] = variants! {
    "mixed_f32", "", false, BARE;
    "mixed_f32_aligned", "", true, BARE;
    "mixed_f32_mask", "\t.param .u64 mask,\n", false, MASKED;
    "mixed_f32_mask_aligned", "\t.param .u64 mask,\n", true, MASKED;
    "mixed_f16", "", false, BARE;
    "mixed_f16_aligned", "", true, BARE;
    "mixed_f16_mask", "\t.param .u64 mask,\n", false, MASKED;
    "mixed_f16_mask_aligned", "\t.param .u64 mask,\n", true, MASKED;
};

const fn param(name: &'static str, kind: ParamKind) -> Param {
    let divisible_by_16 = matches!(kind, ParamKind::Tensor { access: Access::Update, .. });
    Param { name, doc: "", line: 1, kind, domain: Domain::Any, only: None, refused: None, divisible_by_16 }
}

const fn scalar(dtype: DType, source: ScalarSource, max: Option<i64>) -> ParamKind {
    ParamKind::Scalar { element: ElementType::Fixed(dtype), source, max }
}

/// `values` is `[num_rows, columns]` in f32 or f16, the optional `mask` `[num_rows]` in f32.
pub static MIXED: Kernel = Kernel {
    name: "mixed",
    family: "mixed",
    doc: "",
    signature: Place { file: "signatures/mixed.yaml", line: 1 },
    gpu: Place { file: "kernels/mixed.py", line: 1 },
    gpu_function: "mixed_kernel",
    cpu: Place { file: "src/cpu/mixed.rs", line: 1 },
    grid: &[&[Op::Dim(0)]],
    shared_memory: None,
    types: &[TypeVariable { name: "T", choices: &[DType::F32, DType::F16] }],
    dims: &[
        Dim { name: "num_rows", param: 0, axis: 0, offset: 0 },
        Dim { name: "columns", param: 0, axis: 1, offset: 0 },
    ],
    params: &[
        param(
            "values",
            ParamKind::Tensor {
                element: ElementType::Variable(0),
                shape: &[&[Op::Dim(0)], &[Op::Dim(1)]],
                access: Access::Update,
                presence: Presence::Required,
                strided: true,
            },
        ),
        param(
            "mask",
            ParamKind::Tensor {
                element: ElementType::Fixed(DType::F32),
                shape: &[&[Op::Dim(0)]],
                access: Access::Read,
                presence: Presence::Optional,
                strided: false,
            },
        ),
        param("scale", scalar(DType::F32, ScalarSource::Caller, None)),
        param("columns", scalar(DType::I32, ScalarSource::Dim(1), None)),
        param("stride", scalar(DType::I64, ScalarSource::Stride(0), None)),
        param("limit", scalar(DType::I32, ScalarSource::Default(Literal::Int(7)), Some(100))),
        param(
            "first",
            ParamKind::Struct {
                name: "First",
                id: TypeId::of::<First>,
                fields: &[],
                make: |_| Box::new(First([0; 2])),
            },
        ),
        param(
            "second",
            ParamKind::Struct {
                name: "Second",
                id: TypeId::of::<Second>,
                fields: &[],
                make: |_| Box::new(Second([0; 2])),
            },
        ),
    ],
    constants: &[],
    switches: &[1],
    variants: &VARIANTS,
    run_cpu: |_, _| Ok(()),
    id: KernelId::new(),
};
