//! Dynamic shared memory, as the registry says it for kernels in CUDA C++.

use tidelock::kernel::{
    Access, Dim, Domain, ElementType, KernelId, Op, Param, ParamKind, Place, Presence, Variant, VariantId,
};
use tidelock::{AsViewMut, Buffer, DType, Kernel};

use crate::{alone, log, say, seen};

static SHARES_VARIANTS: [Variant; 1] = [Variant {
    name: "shares",
    ptx: ".visible .entry shares_kernel(\n\t.param .u64 shares_kernel_param_0\n)\n{ ret; }\n",
    sha256: "",
    entry: "shares_kernel",
    threads: 128,
    shared: 0,
    slots: &[8],
    capability: 80,
    ptx_version: "8.0",
    aligned: false,
    id: VariantId::new(),
}];

/// A kernel in CUDA C++ whose blocks get shared memory for the row that they work on.
static SHARES: Kernel = Kernel {
    name: "shares",
    family: "shares",
    doc: "",
    signature: Place { file: "signatures/shares.yaml", line: 1 },
    gpu: Place { file: "kernels/shares.cu", line: 1 },
    gpu_function: "shares_kernel",
    cpu: Place { file: "src/cpu/shares.rs", line: 1 },
    grid: &[&[Op::Dim(0)]],
    shared_memory: Some(&[Op::Int(4), Op::Dim(1), Op::Mul]),
    types: &[],
    dims: &[
        Dim { name: "num_rows", param: 0, axis: 0, offset: 0 },
        Dim { name: "width", param: 0, axis: 1, offset: 0 },
    ],
    params: &[Param {
        name: "rows",
        doc: "",
        line: 1,
        kind: ParamKind::Tensor {
            element: ElementType::Fixed(DType::F32),
            shape: &[&[Op::Dim(0)], &[Op::Dim(1)]],
            access: Access::Update,
            presence: Presence::Required,
            strided: false,
        },
        domain: Domain::Any,
        only: None,
        refused: None,
        divisible_by_16: false,
    }],
    constants: &[],
    switches: &[],
    variants: &SHARES_VARIANTS,
    run_cpu: |_, _| Ok(()),
    id: KernelId::new(),
};

#[test]
fn blocks_get_the_shared_memory_that_the_registry_says() {
    insta::assert_snapshot!(seen("shared_memory::shared"), @r"
    shares_kernel may have 231424 bytes
    stream 2 launches shares_kernel, 3750 x 1 x 1 blocks of 128, 64 bytes: #1
    stream 2 launches shares_kernel, 2 x 1 x 1 blocks of 128, 120000 bytes: #1
    kernel `shares`: shared memory 4 * width: expected 0 to 231424 bytes, got 240000
    ");
}

#[test]
#[ignore = "a part of another test"]
fn shared() {
    let Some(log) = log() else { return };
    let device = alone();
    let mut rows = Buffer::<f32>::zeros(&device, 60_000).expect("the stand-in has memory");
    for width in [16, 30_000, 60_000] {
        let rows = rows.view_mut().matrix(60_000 / width, width).expect("it fits");
        if let Err(error) = SHARES.launch(&mut [rows.into()], &device) {
            say(&log, &error.to_string());
        }
    }
}
