//! The C header of a family: its CUDA C++ kernels as the registry declares them.
//!
//! nvcc compiles a kernel together with this header. A definition with other parameters is then an error of nvcc, at the
//! line of the definition, since two functions with C linkage cannot share a name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::bindings::{self, Bindings};
use crate::check::Artifacts;
use crate::model::{Access, DType, Element, Family, Kernel, Param, ParamKind, Registry};
use crate::plan::{dtype, gpu_params};
use crate::variants::Variant;

/// Path of the header of `family`.
pub fn path(family: &str) -> String {
    format!("ptx/{family}.h")
}

/// Whether `kernel` is CUDA C++.
pub fn is_cuda(kernel: &Kernel) -> bool {
    kernel.gpu.value.file.ends_with(".cu")
}

/// The macro that says which element type `param` has in the variant that is compiled.
fn type_macro(param: &Param) -> String {
    format!("T_{}", param.kernel_name)
}

/// What each macro of [`type_macro`] is in `variant`, as a Triton type; nothing for a Triton kernel.
pub fn macros(kernel: &Kernel, variant: &Variant) -> BTreeMap<String, String> {
    let params = gpu_params(kernel).filter(|_| is_cuda(kernel));
    let typed = params.filter_map(|param| Some((type_macro(param), dtype(kernel, variant, param.element()?)?)));
    typed.map(|(name, dtype)| (name, dtype.triton_name().to_string())).collect()
}

/// The header of each family of `registry` that has one, by the family's name.
pub fn emit_all(registry: &Registry, artifacts: &Artifacts) -> BTreeMap<String, String> {
    // Bindings that cannot be read are reported by the check.
    let text = artifacts.bindings.as_ref().map(|content| String::from_utf8_lossy(content));
    let bindings = text.and_then(|text| bindings::read(&text).ok()).unwrap_or_default();
    let headers = registry.families.iter().map(|family| Some((family.name.clone(), emit(family, &bindings)?)));
    headers.flatten().collect()
}

/// The header of `family`; `None` where it has no CUDA C++ kernel.
pub fn emit(family: &Family, bindings: &Bindings) -> Option<String> {
    let kernels: Vec<&Kernel> = family.kernels.iter().filter(|kernel| is_cuda(kernel)).collect();
    if kernels.is_empty() {
        return None;
    }
    let mut text = format!(
        "// The CUDA C++ kernels of {}, as the registry declares them: nvcc refuses a definition that differs.\n\
         // Made by tidelock, never edited: change the registry, and run `tidelock header` or `tidelock compile`.\n\
         #pragma once\n\n#include <stddef.h>\n#include <stdint.h>\n",
        family.path
    );
    let uses =
        |dtype| kernels.iter().any(|kernel| gpu_params(kernel).any(|param| dtypes(kernel, param).contains(&dtype)));
    for (dtype, header) in [(DType::F16, "cuda_fp16.h"), (DType::BF16, "cuda_bf16.h")] {
        if uses(dtype) {
            _ = writeln!(text, "#include <{header}>");
        }
    }
    let structs: Vec<_> = kernels.iter().flat_map(|kernel| bindings::structs(kernel)).map(|(_, value)| value).collect();
    let headers: BTreeSet<&str> = structs.iter().map(|value| value.header.as_str()).collect();
    text += if headers.is_empty() { "" } else { "\n" };
    for header in headers {
        _ = writeln!(text, "#include \"{}\"", header.strip_prefix("kernels/").unwrap_or(header));
    }
    let structs: BTreeSet<&str> = structs.iter().map(|value| value.name.value.as_str()).collect();
    structs.into_iter().for_each(|name| layout(&mut text, name, bindings));
    kernels.into_iter().for_each(|kernel| declare(&mut text, kernel));
    Some(text)
}

/// The layout that Rust has for a struct, asserted in C++.
fn layout(text: &mut String, name: &str, bindings: &Bindings) {
    let Some(Ok(layout)) = bindings.structs.get(name) else { return };
    let wrong = format!("\"{name} was bound to Rust with another layout: run `tidelock bind`\"");
    _ = writeln!(
        text,
        "\nstatic_assert(sizeof({name}) == {} && alignof({name}) == {}, {wrong});",
        layout.size, layout.align
    );
    for field in &layout.fields {
        _ = writeln!(text, "static_assert(offsetof({name}, {}) == {}, {wrong});", field.name, field.offset);
    }
}

fn declare(text: &mut String, kernel: &Kernel) {
    let constants: Vec<_> = kernel.constants.iter().map(|constant| constant.name.value.as_str()).collect();
    _ = writeln!(text, "\n// `{}`.", kernel.name.value);
    if !constants.is_empty() {
        _ = writeln!(text, "// Its constants are macros: {}.", constants.join(", "));
    }
    // Without its types a kernel cannot be declared; they are there where it is compiled.
    let chosen: Vec<_> = gpu_params(kernel).filter(|param| dtypes(kernel, param).len() > 1).collect();
    for param in &chosen {
        let choices: Vec<_> = dtypes(kernel, param).into_iter().map(c_type).collect();
        _ = writeln!(text, "// {} is {}.", type_macro(param), choices.join(" or "));
    }
    let defined: Vec<_> = chosen.iter().map(|param| format!("defined({})", type_macro(param))).collect();
    if !defined.is_empty() {
        _ = writeln!(text, "#if {}", defined.join(" && "));
    }
    let params: Vec<String> = gpu_params(kernel).map(|param| format!("    {}", parameter(param))).collect();
    let function = &kernel.gpu.value.function;
    _ = writeln!(text, "extern \"C\" __global__ void {function}(\n{});", params.join(",\n"));
    text.push_str(if defined.is_empty() { "" } else { "#endif\n" });
}

fn parameter(param: &Param) -> String {
    let name = &param.kernel_name;
    match &param.kind {
        ParamKind::Scalar(scalar) => format!("{} {name}", element(param, &scalar.element.value)),
        ParamKind::Struct(value) => format!("{} {name}", value.name.value),
        ParamKind::Tensor(tensor) => {
            let constant = if tensor.access == Access::Read { "const " } else { "" };
            format!("{constant}{} *{name}", element(param, &tensor.element.value))
        }
    }
}

fn element(param: &Param, element: &Element) -> String {
    match element {
        Element::Fixed(dtype) => c_type(*dtype).to_string(),
        Element::Variable(_) => type_macro(param),
    }
}

fn dtypes(kernel: &Kernel, param: &Param) -> Vec<DType> {
    match param.element() {
        None => vec![],
        Some(Element::Fixed(dtype)) => vec![*dtype],
        Some(Element::Variable(name)) => kernel.type_variable(name).map_or(vec![], |variable| variable.choices.clone()),
    }
}

/// The type in CUDA C++.
pub fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::I64 => "int64_t",
        DType::U8 => "uint8_t",
        DType::U16 => "uint16_t",
        DType::U32 => "uint32_t",
        DType::U64 => "uint64_t",
        DType::F16 => "__half",
        DType::BF16 => "__nv_bfloat16",
        DType::F32 => "float",
        DType::F64 => "double",
    }
}
