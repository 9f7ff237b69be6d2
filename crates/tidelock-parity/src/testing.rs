//! Kernels of this crate's own tests, so that no change of a registry can disturb them.

use std::sync::atomic::{AtomicI32, Ordering};

use tidelock::kernel::{
    Access, Dim, Domain, ElementType, KernelId, Op, Param, ParamKind, Place, Presence, TypeVariable, Variant, VariantId,
};
use tidelock::{DType, Kernel};

const NOWHERE: Place = Place { file: "", line: 0 };
const ROWS: &[Op] = &[Op::Dim(0)];
const COLUMNS: &[Op] = &[Op::Dim(1)];

const fn tensor(
    name: &'static str,
    element: ElementType,
    shape: &'static [&'static [Op]],
    access: Access,
    domain: Domain,
) -> Param {
    let kind = ParamKind::Tensor { element, shape, access, presence: Presence::Required, strided: shape.len() == 2 };
    Param { name, doc: "", line: 0, kind, domain, only: None, refused: None, divisible_by_16: shape.len() == 2 }
}

const fn variant(name: &'static str, aligned: bool) -> Variant {
    Variant {
        name,
        ptx: "",
        sha256: "0123",
        entry: "",
        threads: 32,
        shared: 0,
        slots: &[],
        capability: 80,
        ptx_version: "",
        aligned,
        id: VariantId::new(),
    }
}

static VARIANTS: [Variant; 4] = [
    variant("draws-f32-generic", false),
    variant("draws-f32-aligned", true),
    variant("draws-bf16-generic", false),
    variant("draws-bf16-aligned", true),
];

/// A kernel with a choice of types, rows of any length, every domain, and compiled variants.
pub(crate) static DRAWS: Kernel = Kernel {
    name: "draws",
    family: "test",
    doc: "",
    signature: NOWHERE,
    gpu: NOWHERE,
    gpu_function: "",
    cpu: NOWHERE,
    grid: &[ROWS],
    shared_memory: None,
    types: &[TypeVariable { name: "L", choices: &[DType::F32, DType::BF16] }],
    dims: &[Dim { name: "rows", param: 0, axis: 0, offset: 0 }, Dim { name: "length", param: 1, axis: 1, offset: 0 }],
    params: &[
        tensor("output", ElementType::Fixed(DType::I64), &[ROWS], Access::Write, Domain::Any),
        tensor("logits", ElementType::Variable(0), &[ROWS, COLUMNS], Access::Read, Domain::Logits),
        tensor("probs", ElementType::Fixed(DType::F32), &[ROWS, COLUMNS], Access::Read, Domain::Probabilities),
        tensor("noise", ElementType::Fixed(DType::F64), &[ROWS, COLUMNS], Access::Read, Domain::Positive),
        tensor("tokens", ElementType::Fixed(DType::I32), &[ROWS], Access::Read, Domain::TokenIds),
        tensor(
            "choices",
            ElementType::Fixed(DType::I32),
            &[ROWS],
            Access::Read,
            Domain::Range(&[Op::Int(-1)], COLUMNS),
        ),
        tensor("temperature", ElementType::Fixed(DType::F32), &[ROWS], Access::Read, Domain::NonNegative),
        tensor("rates", ElementType::Fixed(DType::F32), &[ROWS], Access::Read, Domain::Unit),
        tensor("uniforms", ElementType::Fixed(DType::F64), &[ROWS], Access::Read, Domain::OpenUnit),
        tensor("ends", ElementType::Fixed(DType::I32), &[ROWS], Access::Read, Domain::InclusiveCumsum(1)),
        tensor("seeds", ElementType::Fixed(DType::I64), &[ROWS], Access::Read, Domain::Any),
    ],
    constants: &[],
    switches: &[],
    variants: &VARIANTS,
    run_cpu: |arguments, _| arguments[0].take_slice_mut::<i64>(&DRAWS).map(|output| output.fill(7)),
    id: KernelId::new(),
};

/// A kernel whose arm gives another result each time.
pub(crate) static COUNTS: Kernel = Kernel {
    name: "counts",
    family: "test",
    doc: "",
    signature: NOWHERE,
    gpu: NOWHERE,
    gpu_function: "",
    cpu: NOWHERE,
    grid: &[ROWS],
    shared_memory: None,
    types: &[],
    dims: &[Dim { name: "n", param: 0, axis: 0, offset: 0 }],
    params: &[tensor("output", ElementType::Fixed(DType::I32), &[ROWS], Access::Write, Domain::Any)],
    constants: &[],
    switches: &[],
    variants: &[],
    run_cpu: |arguments, _| {
        static RUNS: AtomicI32 = AtomicI32::new(0);
        if let Some(last) = arguments[0].take_slice_mut::<i32>(&COUNTS)?.last_mut() {
            *last = RUNS.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    },
    id: KernelId::new(),
};
