//! The schema holds every kernel of vLLM's samplers: each parameter list, as it is, becomes an entry by the same few rules,
//! and the reader takes it. What a rule cannot say is counted here, so that it is known.

use std::collections::BTreeMap;

use tidelock_codegen::lower;
use tidelock_codegen::model::{ParamKind, ScalarSource};

const FACTS: &str = include_str!("vllm_kernels.txt");

struct Kernel<'a> {
    id: &'a str,
    function: &'a str,
    params: Vec<Param<'a>>,
}

struct Param<'a> {
    name: &'a str,
    kind: Kind<'a>,
}

#[derive(PartialEq)]
enum Kind<'a> {
    /// Element type and number of axes, `?` where they are not known.
    Tensor(&'a str, &'a str),
    Scalar,
    Constant,
}

fn kernels() -> Vec<Kernel<'static>> {
    let mut kernels: Vec<Kernel> = Vec::new();
    for line in FACTS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let kind = match words[..] {
            [id, place] if place.contains(':') => {
                kernels.push(Kernel { id, function: place.split_once(':').unwrap().1, params: vec![] });
                continue;
            }
            [_] => Kind::Scalar,
            [_, "="] => Kind::Constant,
            [_, element, axes] => Kind::Tensor(element.strip_prefix('*').unwrap(), axes),
            _ => panic!("{line}"),
        };
        kernels.last_mut().unwrap().params.push(Param { name: words[0], kind });
    }
    kernels
}

/// A name in snake case, without what says that it is a pointer.
fn snake(name: &str) -> String {
    let name = name.trim_start_matches('_').to_lowercase().replace('.', "_");
    name.strip_suffix("_ptr").or(name.strip_suffix("_ptrs")).unwrap_or(&name).to_string()
}

/// The tensor whose stride `name` is, as vLLM calls strides: `logits_stride`, `steps_stride_1`, `stride_base_r`.
fn owner<'a>(name: &str, tensors: &[&'a str]) -> Option<&'a str> {
    let name = snake(name);
    let (before, after) = name.split_once("stride")?;
    let whole = if before.is_empty() { after.trim_matches('_') } else { before.trim_end_matches('_') };
    let whole = ["_row", "_col", "_r"].iter().find_map(|axis| whole.strip_suffix(axis)).unwrap_or(whole);
    let alike = |tensor: &&&str| snake(tensor).starts_with(whole) || whole.starts_with(&snake(tensor));
    tensors.iter().find(|tensor| snake(tensor) == whole).or_else(|| tensors.iter().find(alike)).copied()
}

/// The entry of a kernel.
fn entry(kernel: &Kernel) -> String {
    let tensors: Vec<&str> =
        kernel.params.iter().filter(|p| matches!(p.kind, Kind::Tensor(..))).map(|p| p.name).collect();
    let mut strides: BTreeMap<&str, &str> = BTreeMap::new();
    for param in kernel.params.iter().filter(|param| param.kind == Kind::Scalar) {
        if let Some(tensor) = owner(param.name, &tensors) {
            // One stride a tensor: that of its rows. A further one is passed by the caller.
            strides.entry(tensor).or_insert(param.name);
        }
    }
    let alias = |name: &str, ours: &str| if name == ours { String::new() } else { format!(", as: {name}") };
    let (mut params, mut constants) = (String::new(), String::new());
    for param in &kernel.params {
        let name = snake(param.name);
        let stride_of = strides.iter().find(|(_, stride)| **stride == param.name).map(|(tensor, _)| snake(tensor));
        let (name, said) = match (&param.kind, stride_of) {
            (Kind::Tensor(element, axes), _) => {
                let rows = strides.contains_key(param.name) || axes.parse().is_ok_and(|axes: usize| axes > 1);
                let element = if *element == "?" { "i32" } else { element };
                let shape = if rows { "[some_rows, some_columns]" } else { "[some_items]" };
                (name, format!("tensor: {element}, shape: {shape}, access: update"))
            }
            (Kind::Scalar, Some(tensor)) => (name, format!("scalar: i64, from: stride({tensor})")),
            (Kind::Scalar, None) => (name, "scalar: i32".to_string()),
            (Kind::Constant, _) => {
                // What is called a block changes speed alone, and so never reaches the CPU arm.
                let tuning = if param.name.starts_with("BLOCK") { ", tuning: true" } else { "" };
                (name.to_uppercase(), format!("type: i32, value: 1{tuning}"))
            }
        };
        let alias = alias(param.name, &name);
        let list = if param.kind == Kind::Constant { &mut constants } else { &mut params };
        *list += &format!("      {name}: {{{said}{alias}, doc: D.}}\n");
    }
    if !constants.is_empty() {
        constants.insert_str(0, "    constants:\n");
    }
    let name = format!("{}_{}", kernel.id.to_lowercase(), snake(kernel.function));
    let function = kernel.function;
    format!(
        "  {name}:\n    doc: D.\n    gpu: kernels/vllm.py:{function}\n    grid: [1]\n    params:\n{params}{constants}"
    )
}

#[test]
fn every_kernel_is_held() {
    let kernels = kernels();
    assert_eq!(kernels.len(), 71);
    let yaml = "kernels:\n".to_string() + &kernels.iter().map(entry).collect::<String>();
    let files = [("signatures/vllm.yaml".to_string(), yaml)];
    let registry =
        lower::read(&files).unwrap_or_else(|errors| panic!("{}", errors.render(&files.into_iter().collect(), false)));
    for (kernel, held) in kernels.iter().zip(&registry.families[0].kernels) {
        let names = |constant| {
            let of_kind = kernel.params.iter().filter(move |param| (param.kind == Kind::Constant) == constant);
            of_kind.map(|param| param.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(held.params.iter().map(|param| param.kernel_name.clone()).collect::<Vec<_>>(), names(false));
        assert_eq!(held.constants.iter().map(|constant| constant.kernel_name.clone()).collect::<Vec<_>>(), names(true));
        assert_eq!(held.gpu.value.function, kernel.function);
    }
}

/// A tensor with a third axis is held as rows and columns. Its further strides are then scalars that the caller passes.
#[test]
fn what_is_held_as_rows_and_columns() {
    let (mut further, mut axes) = (Vec::new(), Vec::new());
    for kernel in kernels() {
        let yaml = format!("kernels:\n{}", entry(&kernel));
        let registry = lower::read(&[("signatures/vllm.yaml".to_string(), yaml)]).unwrap();
        for param in &registry.families[0].kernels[0].params {
            let by_caller = matches!(&param.kind, ParamKind::Scalar(scalar) if scalar.source == ScalarSource::Caller);
            if by_caller && param.name.value.contains("stride") {
                further.push(format!("{} {}", kernel.id, param.name.value));
            }
        }
        let many = |param: &&Param| matches!(param.kind, Kind::Tensor(_, axes) if axes.parse().is_ok_and(|axes: usize| axes > 2));
        axes.extend(kernel.params.iter().filter(many).map(|param| format!("{} {}", kernel.id, param.name)));
    }
    insta::assert_snapshot!(
        "vllm",
        format!(
            "strides that the caller passes (the second of a tensor, or of a name that does not tell the tensor):\n{}\n\nmore than two axes:\n{}",
            further.join("\n"),
            axes.join("\n")
        )
    );
}
