//! `tidelock import`: what it takes from sources, and what it leaves to say.

mod common;

use std::collections::BTreeMap;
use std::fs;

use common::{folder, root, tidelock, tidelock_in};
use serde_json::Value;
use tidelock::REGISTRY;
use tidelock::kernel::{Access, ParamKind};
use tidelock_codegen::yaml::{self, Kind, Node};

const TRITON: &str = r#"
import triton
import triton.language as tl
from helpers import add as accumulate

@triton.jit
def _block_sum(pointers, width, BLOCK: tl.constexpr):
    return tl.sum(tl.load(pointers + tl.arange(0, BLOCK)))

@triton.autotune(configs=[], key=[])
@triton.jit
def _scale_rows_kernel(
    out_ptr,  # [num_rows, width] float32, the products
    X,  # *fp16
    row_sums_ptr: "*fp64",
    total_ptr,
    in_stride,
    X_row_stride,
    width,  # int64
    factor: tl.float32 = 2.0,
    in_place: tl.int1 = False,
    BLOCK: tl.constexpr = 128,
    USE_BIAS: tl.constexpr = None,
    top_k: tl.constexpr = 4,
):
    """Multiplies rows: each by a factor.

    More about it.
    """
    row = tl.program_id(0)
    rows = X + row * X_row_stride
    at = tl.arange(0, BLOCK)
    if USE_BIAS:
        factor += 1
    value = tl.load(rows + at, mask=at < width)
    total = _block_sum(row_sums_ptr + row, width, BLOCK)
    accumulate(total_ptr, total)
    target = out_ptr + row * width
    tl.store(target + at, value * factor)

class Holder:
    @staticmethod
    @triton.jit(do_not_specialize=["n"])
    def kernel(desc, type, n):
        desc.store([0], n)

def launch(x, out):
    _scale_rows_kernel[(x.shape[0], 2)](out, x, num_warps=8, BLOCK=256)
"#;

const HELPERS: &str = "
import triton
import triton.language as tl

@triton.jit
def add(pointer, value):
    tl.atomic_add(pointer, value)
";

#[test]
fn what_a_triton_source_says() {
    let folder = folder(&[("kernels/scale.py", TRITON), ("kernels/helpers.py", HELPERS)]);
    let run = tidelock_in(folder.path(), "import kernels/scale.py");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (0, "imported 2 kernels of kernels/scale.py; 28 places left to say (TODO)\n")
    );
    insta::assert_snapshot!("import_triton", run.stdout);
}

/// As tutorials write kernels: names without `_ptr`, pointers that move, block pointers, strides of every axis.
const TUTORIAL: &str = r#"
import triton
import triton.language as tl

@triton.jit
def fwd(X, Y, W, Lock, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    X += row * stride
    Y = Y + row * stride
    Lock += row
    Count = Lock + 8
    total = tl.zeros([BLOCK], tl.float32)
    for off in range(0, N, BLOCK):
        total += tl.load(X + off + cols, mask=cols < N)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    c = tl.load(Count)
    tl.store(Y + cols, total * tl.load(W + cols) + eps)

@triton.jit
def attn(Q, K, Out, sm_scale, Z, H, stride_qz, stride_qh, stride_qm, stride_qk, stride_kz, stride_kh, stride_kn, stride_kk,
         stride_oz, stride_oh, stride_om, stride_on, N_CTX, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr):
    q_offset = tl.program_id(0) * stride_qh
    Q_block = tl.make_block_ptr(base=Q + q_offset, shape=(N_CTX, BLOCK_D), strides=(stride_qm, stride_qk), offsets=(0, 0), block_shape=(BLOCK_M, BLOCK_D), order=(1, 0))
    K_block = tl.make_block_ptr(K, (N_CTX, BLOCK_D), (stride_kn, stride_kk), (0, 0), (BLOCK_M, BLOCK_D), (1, 0))
    q = tl.load(Q_block)
    for s in range(0, N_CTX, BLOCK_M):
        k = tl.load(K_block)
        K_block = tl.advance(K_block, (0, BLOCK_M))
    o_ptrs = Out + tl.arange(0, 64)[:, None] * stride_om + tl.arange(0, 64)[None, :] * stride_on
    tl.store(o_ptrs, q)

@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, BLOCK: tl.constexpr, ACTIVATION: tl.constexpr):
    offs = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) % M
    a_ptrs = a_ptr + (offs[:, None] * stride_am + offs[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs[:, None] * stride_bk + offs[None, :] * stride_bn)
    for k in range(0, tl.cdiv(K, BLOCK)):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        a_ptrs += BLOCK * stride_ak
    c_ptrs = c_ptr + stride_cm * offs[:, None] + stride_cn * offs[None, :]
    tl.store(c_ptrs, tl.dot(a, b))
"#;

#[test]
fn what_a_tutorial_says() {
    let folder = folder(&[("kernels/03-tutorial.py", TUTORIAL)]);
    let run = tidelock_in(folder.path(), "import kernels/03-tutorial.py --family tutorial");
    assert_eq!(run.code, 0, "{}", run.stderr);
    insta::assert_snapshot!("import_tutorial", run.stdout);
}

const CUDA: &str = r#"
#include <cuda_fp16.h>
typedef unsigned int word;
#define N 4 /* not a kernel: __global__ void f(int a); */

// Adds two vectors.
extern "C" __global__ void __launch_bounds__(256) addVectors(
    const float* __restrict__ a,   // [n], the first
    const __half *b,
    float *sum,                    // f32[n]
    double* history,
    word *counts, const unsigned long long n, bool checked = true, int in = -1)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = a[i] + __half2float(b[i]);
    history[i] += 1.0;
    atomicAdd(&counts[0], 1u);
}

template <typename T, int BLOCK>
__global__ void copy(T *to, const T **from, float4 color, cudaTextureObject_t image);

template <typename T, int BLOCK>
__global__ void copy(T *to, const T **from, float4 color, cudaTextureObject_t image) {
    to[0] = from[0][0];
}

typedef __SIZE_TYPE__ size_t;
extern "C" __attribute__((global)) void expanded(size_t *n) { extern __shared__ float cached[]; n[0] = 1; }

void run() { addVectors<<<dim3(4, 2), 256>>>(a, b, sum, h, c, n); }
"#;

#[test]
fn what_a_cuda_source_says() {
    let folder = folder(&[("vectors.cu", CUDA)]);
    let run = tidelock_in(folder.path(), "import vectors.cu --family add");
    let said = "imported 3 kernels of vectors.cu; 28 places left to say (TODO)\n\
                put the source at kernels/add.cu, where the entries say that it is\n";
    assert_eq!((run.code, run.stderr.as_str()), (0, said));
    insta::assert_snapshot!("import_cuda", run.stdout);
}

fn get<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    let Kind::Map(entries) = &node.kind else { panic!("{node:?}") };
    entries.iter().find(|(name, _)| name.value == key).map(|(_, node)| node)
}

fn text(node: &Node) -> &str {
    let Kind::Str(text) = &node.kind else { panic!("{node:?}") };
    text
}

/// The kernels of this repository, imported, are those of its registry: the same functions, parameters in the same order
/// and by the same names, tensors and scalars, and what is only read.
#[test]
fn the_kernels_of_this_repository() {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root().join("kernels")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if !file.ends_with(".py") {
            continue;
        }
        let run = tidelock(&format!("import kernels/{file}"));
        if run.stderr.contains("expected a kernel") {
            continue; // functions that kernels share
        }
        let tree = yaml::parse("imported", &run.stdout).unwrap();
        let Some(Kind::Map(kernels)) = get(&tree, "kernels").map(|node| node.kind.clone()) else { panic!("{tree:?}") };
        for (_, kernel) in kernels {
            found.insert(text(get(&kernel, "gpu").unwrap()).to_string(), kernel);
        }
    }
    let triton: Vec<_> = REGISTRY.iter().filter(|kernel| kernel.gpu.file.ends_with(".py")).collect();
    let functions: Vec<String> = triton.iter().map(|k| format!("{}:{}", k.gpu.file, k.gpu_function)).collect();
    for (function, kernel) in functions.iter().zip(&triton) {
        let imported = found.remove(function).unwrap_or_else(|| panic!("{function} was not found"));
        let Some(Kind::Map(params)) = get(&imported, "params").map(|node| node.kind.clone()) else { panic!() };
        let ours = kernel.params.iter().filter(|param| !tidelock_is_cpu_only(kernel.name, param.name));
        let ours: Vec<_> = ours.map(|param| (matches!(param.kind, ParamKind::Tensor { .. }), param.name)).collect();
        let theirs: Vec<_> =
            params.iter().map(|(name, param)| (get(param, "tensor").is_some(), name.value.as_str())).collect();
        assert_eq!(
            theirs.iter().map(|it| it.0).collect::<Vec<_>>(),
            ours.iter().map(|it| it.0).collect::<Vec<_>>(),
            "{function}: {theirs:?}"
        );
        for ((_, param), ours) in params.iter().zip(kernel.params) {
            if let ParamKind::Tensor { access, .. } = &ours.kind {
                let read = get(param, "access").is_none();
                assert_eq!(read, *access == Access::Read, "{function}: {}", ours.name);
            }
        }
    }
    assert!(found.is_empty(), "no kernels: {:?}", found.keys());
}

fn tidelock_is_cpu_only(kernel: &str, param: &str) -> bool {
    let json = tidelock(&format!("show {kernel} --format json")).json();
    let rows = json["params"].as_array().unwrap().iter();
    rows.filter(|row| row["name"] == param).any(|row| row["arms"].as_str().is_some_and(|arms| arms.contains("CPU")))
}

#[test]
fn an_import_is_refused_until_it_is_said() {
    let folder = folder(&[("kernels/scale.py", TRITON), ("kernels/helpers.py", HELPERS)]);
    let run = tidelock_in(folder.path(), "import kernels/scale.py --write");
    assert_eq!((run.code, run.stdout.as_str()), (0, "wrote  ./signatures/scale.yaml\n"));
    let check = tidelock_in(folder.path(), "check --format json");
    let json: Value = serde_json::from_str(&check.stdout).unwrap();
    let codes: Vec<_> = json["diagnostics"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect();
    assert_eq!((check.code, codes), (1, vec!["TL0150"; 28]));

    // Said, it is a registry: what is left is that nothing was compiled and there is no CPU arm.
    let path = folder.path().join("signatures/scale.yaml");
    let yaml = fs::read_to_string(&path).unwrap();
    let said = yaml
        .replace("shape: [TODO, TODO]", "shape: [num_rows, width]")
        .replace("shape: TODO", "shape: [num_rows]")
        .replace("grid: [TODO]", "grid: [num_rows]")
        .replace("value: TODO", "value: true")
        .replace("scalar: TODO", "scalar: i32")
        .replace("tensor: TODO", "tensor: f32")
        .replace("doc: TODO", "doc: Said.");
    fs::write(&path, said).unwrap();
    let check = tidelock_in(folder.path(), "check --format json");
    let json: Value = serde_json::from_str(&check.stdout).unwrap();
    let codes: Vec<_> = json["diagnostics"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert_eq!(codes, ["TL0201", "TL0401"], "{}", check.stdout);
}

#[test]
fn nothing_is_overwritten() {
    let folder = folder(&[("kernels/scale.py", TRITON), ("signatures/scale.yaml", "kernels:\n")]);
    let error = tidelock_in(folder.path(), "import kernels/scale.py --write").error();
    assert_eq!(error, "error: ./signatures/scale.yaml: expected no such file, and it is there; nothing was written");
    assert_eq!(fs::read_to_string(folder.path().join("signatures/scale.yaml")).unwrap(), "kernels:\n");
}

#[test]
fn what_cannot_be_read_is_shown() {
    let folder = folder(&[
        ("broken.py", "import triton\n\n@triton.jit\ndef kernel(a, b:\n    pass\n"),
        ("broken.cu", "__global__ void f(int a) {\n  int b = (1;\n}\n"),
        ("text.cu", "__global__ void f(int a) {\n  printf(\"no end);\n}\n"),
        ("none.py", "def f(a):\n    return a\n"),
        ("none.cu", "void f(int a) {}\n"),
        ("macro.cu", "#define ADD(T) \\\n  extern \"C\" __global__ void add_##T(T *a) {}\nADD(float)\n"),
        ("kernel.txt", ""),
    ]);
    let error = |arguments: &str| tidelock_in(folder.path(), arguments).error();
    let shown = ["broken.py", "broken.cu", "text.cu"].map(|file| error(&format!("import {file}")));
    insta::assert_snapshot!("import_broken", shown.join("\n\n"));
    let expected = "a function with @triton.jit that is launched";
    assert_eq!(error("import none.py"), format!("error: none.py: expected a kernel ({expected}), found none"));
    assert_eq!(error("import none.cu"), "error: none.cu: expected a kernel (a __global__ function), found none");
    let expanded = "import what `nvcc -E` makes of the file";
    assert_eq!(
        error("import macro.cu"),
        format!("error: macro.cu: its kernels are made by macros, which are not expanded here; {expanded}")
    );
    let either = "a Triton source, FILE.py, or a CUDA C++ source, FILE.cu";
    assert_eq!(error("import kernel.txt"), format!("error: kernel.txt: expected {either}"));
    assert!(error("import gone.py").starts_with("error: gone.py: "));
    let family = "expected a name in snake case, such as `rejection`, got";
    assert_eq!(error("import broken.cu --family Big"), format!("error: --family: {family} `Big`"));
    fs::write(folder.path().join("bytes.py"), b"x = 1\n\xff").unwrap();
    assert!(error("import bytes.py").contains("bytes.py is not UTF-8"));
}
