//! Kernels in CUDA C++ give the bits of their CPU arms, seen without a GPU: the C++ compiler makes them for the CPU as well, and the
//! stand-in for libcuda runs them. `emulated/cuda.h` says how.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tidelock::{Device, Kernel, REGISTRY};
use tidelock_codegen::model::DType;
use tidelock_codegen::plan::variant_plan;
use tidelock_codegen::variants::variants;
use tidelock_codegen::{Project, header};
use tidelock_parity::{Case, compare, standard};

use crate::{alone, run, stand_in};

/// Elements of the tensors of a case that is run, since a kernel is slow there.
const MOST_ELEMENTS: usize = 1 << 16;
pub const KERNELS: &str = "STAND_IN_KERNELS";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Larger cases, of kernels that cut a row into tiles: one with many blocks, one with more tiles than blocks, and one that is hostile.
const LARGER: [(&str, &[&str]); 5] = [
    ("greedy_sample", &["num_rows=3,vocab_size=50257", "num_rows=2,vocab_size=81920", "num_rows=40,vocab_size=8192"]),
    ("softmax", &["num_rows=3,vocab_size=50257", "num_rows=1,vocab_size=270336", "num_rows=40,vocab_size=8192"]),
    ("log_softmax", &["num_rows=3,vocab_size=50257", "num_rows=1,vocab_size=270336", "num_rows=40,vocab_size=8192"]),
    (
        "gather_logprobs",
        &["num_rows=3,vocab_size=50257", "num_rows=1,vocab_size=270336", "num_rows=40,vocab_size=8192"],
    ),
    (
        "top_logprobs",
        &[
            "num_rows=3,num_logprobs=20,vocab_size=50257",
            "num_rows=1,num_logprobs=1,vocab_size=270336",
            "num_rows=20,num_logprobs=20,vocab_size=16384",
            "num_rows=3,num_logprobs=300,vocab_size=50256",
            "num_rows=3,num_logprobs=1024,vocab_size=50256",
        ],
    ),
];

/// Kernels in CUDA C++, and the variants that are built: the first and the last, which have nothing in common, and the second of those that
/// have larger cases.
fn chosen() -> impl Iterator<Item = (&'static Kernel, Vec<usize>)> {
    let cuda = REGISTRY.iter().filter(|kernel| kernel.gpu.file.ends_with(".cu"));
    let has_larger = |kernel: &Kernel| LARGER.iter().any(|(name, _)| *name == kernel.name);
    cuda.map(move |kernel| {
        let last = kernel.variants.len() - 1;
        (*kernel, if has_larger(kernel) { vec![0, 1, last] } else { vec![0, last] })
    })
}

/// The larger cases of a kernel, of every type.
fn larger(kernel: &'static Kernel) -> impl Iterator<Item = Case> {
    let sizes = LARGER.iter().filter(|(name, _)| *name == kernel.name).flat_map(|(_, sizes)| *sizes);
    let ids = sizes.flat_map(|sizes| {
        let layouts = ["packed/declared", "packed/hostile", "padded16/hostile/1", "misaligned/hostile/2"];
        layouts.into_iter().flat_map(move |layout| ["f32", "bf16"].map(|dtype| format!("{dtype}/{sizes}/{layout}")))
    });
    ids.map(move |id| Case::parse(kernel, &id).expect("it is a case"))
}

/// What CUDA C++ calls an element type of Triton's.
fn c_type(triton: &str) -> &'static str {
    let known = DType::ALL.into_iter().find(|row| row.2 == triton).expect("it is an element type");
    header::c_type(known.0)
}

/// The macros of each variant in CUDA C++, by its name.
fn macros() -> BTreeMap<String, Vec<String>> {
    let registry = Project::read(root()).expect("the project can be read").registry().expect("it is valid");
    let mut all = BTreeMap::new();
    for kernel in registry.families.iter().flat_map(|family| &family.kernels) {
        for variant in variants(kernel).iter().filter(|_| header::is_cuda(kernel)) {
            let plan = variant_plan(kernel, variant);
            let types = plan.types.iter().map(|(name, kind)| format!("-D{name}={}", c_type(kind)));
            let constants = plan.constants.iter().map(|(name, value)| format!("-D{name}={value}"));
            let warps = format!("-DNUM_WARPS={}", kernel.num_warps);
            let divisible = format!("-DDIVISIBLE_BY_16={}", !plan.divisible_by_16.is_empty());
            all.insert(plan.name.clone(), types.chain(constants).chain([warps, divisible]).collect());
        }
    }
    all
}

/// Starts to build a variant as a library for the CPU; nothing where there is no C++ compiler.
fn build(folder: &Path, kernel: &Kernel, index: usize, macros: &[String]) -> Option<std::process::Child> {
    let variant = &kernel.variants[index];
    fs::write(folder.join(variant.name).with_extension("ptx"), variant.ptx).expect("the folder can be written");
    let quoted = |name: &str, path: String| format!("-D{name}=\"{path}\"");
    let source = Path::new(kernel.gpu.file).file_name().expect("it has a name").to_string_lossy().into_owned();
    let header = root().join("ptx").join(kernel.family).with_extension("h");
    let own = root().join("tests/driver/emulated");
    let compiler = std::env::var_os("CXX").unwrap_or("g++".into());
    let mut command = Command::new(compiler);
    command.args(["-std=c++17", "-O1", "-w", "-pthread", "-ffp-contract=off", "-frounding-math"]);
    command.arg("-U_FORTIFY_SOURCE"); // or a jump to another stack is taken for an error
    // Libraries would share their inline variables otherwise, and with them shared memory of other sizes.
    command.args(["-shared", "-fPIC", "-fvisibility=hidden"]);
    command
        .args(macros)
        .arg(quoted("EMULATED_SOURCE", source))
        .arg(quoted("EMULATED_HEADER", header.display().to_string()));
    command.arg(format!("-DEMULATED_KERNEL={}", kernel.gpu_function)).arg("-I").arg(folder).arg("-I").arg(&own);
    command.arg("-o").arg(folder.join(variant.name).with_extension("so")).arg(own.join("kernel.cpp"));
    command.spawn().ok()
}

/// Whether the variant of a case is among them.
pub fn is_built(case: &Case) -> bool {
    let indices = chosen().find(|(kernel, _)| kernel.name == case.kernel.name).map(|(_, indices)| indices);
    case.variant_index().zip(indices).is_some_and(|(index, indices)| indices.contains(&index))
}

/// The libraries, and the kernels' sources with another ptx.cuh; nothing where there is no C++ compiler.
pub fn built() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(build_all).as_deref()
}

fn build_all() -> Option<PathBuf> {
    let folder = stand_in().join("emulated");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    for entry in fs::read_dir(root().join("kernels")).expect("the kernels can be read") {
        let path = entry.expect("the kernels can be read").path();
        fs::copy(&path, folder.join(path.file_name().expect("it has a name"))).expect("the folder can be written");
    }
    fs::copy(root().join("tests/driver/emulated/ptx.cuh"), folder.join("ptx.cuh")).expect("the folder can be written");
    let macros = macros();
    for (kernel, indices) in chosen() {
        let start = |index: usize| build(&folder, kernel, index, &macros[kernel.variants[index].name]);
        let builds: Vec<_> = indices.into_iter().map(start).collect();
        for child in builds {
            let status = child?.wait().expect("the compiler ends");
            assert!(status.success(), "{} compiles for the CPU", kernel.name);
        }
    }
    Some(folder)
}

#[test]
fn kernels_in_cuda_give_the_bits_of_their_cpu_arms() {
    let Some(folder) = built() else {
        return eprintln!("no C++ compiler here, so kernels in CUDA C++ are not run on the CPU");
    };
    let said = run("emulated::parity", &[(KERNELS, folder.as_os_str())]);
    assert!(said.contains("all cases agree"), "{said}");
}

#[test]
#[ignore = "a part of another test"]
fn parity() {
    if std::env::var_os(KERNELS).is_none() {
        return;
    }
    let device = alone();
    for (kernel, indices) in chosen() {
        let is_run = |case: &Case| is_built(case) && case.elements() <= MOST_ELEMENTS;
        let cases = standard(kernel).into_iter().filter(is_run).chain(larger(kernel).filter(is_built));
        let cases: Vec<Case> = cases.collect();
        for &index in &indices {
            let has_cases = cases.iter().any(|case| case.variant_index() == Some(index));
            assert!(has_cases, "{} has small cases", kernel.variants[index].name);
        }
        for case in &cases {
            match compare(case, &Device::Cpu, &device) {
                Ok(None) => {}
                Ok(Some(difference)) => panic!("{difference}"),
                Err(error) => panic!("{error}"),
            }
        }
        println!("{}: {} cases", kernel.name, cases.len());
    }
    println!("all cases agree");
}
