//! A kernel's entry in the run-time table.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::{Compiled, Linked, c, types};
use crate::bindings::Bindings;
use crate::model::{
    Access, Arm, Constant, ConstantValue, Domain, Element, Expr, Kernel, Literal, Param, ParamKind, Presence,
    ScalarSource,
};
use crate::names;

pub fn emit(linked: &Linked<'_>, bindings: &Bindings) -> TokenStream {
    let kernel = linked.kernel;
    let (table, name, family, doc) = (names::table(kernel), &kernel.name.value, linked.family, &kernel.doc);
    let signature = place(linked.signature.0, linked.signature.1);
    let gpu = place(&kernel.gpu.value.file, linked.gpu_line);
    let cpu = place(&linked.cpu.0, linked.cpu.1);
    let function = &kernel.gpu.value.function;
    let grid = kernel.grid.iter().map(|expr| expression(kernel, &expr.value));
    let shared_memory = match &kernel.shared_memory {
        Some(bytes) => {
            let bytes = expression(kernel, &bytes.value);
            quote!(Some(#bytes))
        }
        None => quote!(None),
    };
    let type_variables = kernel.types.iter().map(|variable| {
        let (name, choices) = (&variable.name.value, variable.choices.iter().map(|&choice| types::dtype(choice)));
        quote!(TypeVariable { name: #name, choices: &[#(#choices),*] })
    });
    let dims = kernel.dims.iter().map(|dim| {
        let (name, param, axis, offset) = (&dim.name.value, index_of(kernel, &dim.bound_by), dim.axis, dim.offset);
        quote!(Dim { name: #name, param: #param, axis: #axis, offset: #offset })
    });
    let params =
        kernel.params.iter().zip(&linked.param_lines).map(|(entry, &line)| param(kernel, entry, line, bindings));
    let constants = kernel.constants.iter().map(|entry| constant(kernel, entry));
    let switches = crate::variants::switches(kernel).map(|param| index_of(kernel, &param.name.value));
    let (count, variants) = (linked.variants.len(), linked.variants.iter().map(variant));
    let run_cpu = names::run_cpu(kernel);
    quote! {
        static #table: ::tidelock::Kernel = {
            #[allow(unused_imports)]
            use ::tidelock::kernel::*;
            static VARIANTS: [Variant; #count] = [#(#variants),*];
            Kernel {
                name: #name,
                family: #family,
                doc: #doc,
                signature: #signature,
                gpu: #gpu,
                gpu_function: #function,
                cpu: #cpu,
                grid: &[#(#grid),*],
                shared_memory: #shared_memory,
                types: &[#(#type_variables),*],
                dims: &[#(#dims),*],
                params: &[#(#params),*],
                constants: &[#(#constants),*],
                switches: &[#(#switches),*],
                variants: &VARIANTS,
                run_cpu: #run_cpu,
                id: KernelId::new(),
            }
        };
    }
}

fn place(file: &str, line: usize) -> TokenStream {
    let line = line as u32;
    quote!(Place { file: #file, line: #line })
}

fn index_of(kernel: &Kernel, param: &str) -> usize {
    kernel.params.iter().position(|other| other.name.value == param).unwrap_or(usize::MAX)
}

fn param(kernel: &Kernel, param: &Param, line: usize, bindings: &Bindings) -> TokenStream {
    let (name, doc, line) = (&param.name.value, &param.doc, line as u32);
    let (kind, domain) = (kind(kernel, param, bindings), domain(kernel, &param.domain));
    let divisible_by_16 = kernel.divisible_by_16.iter().any(|other| other.value == param.name.value);
    let only = match param.only {
        None => quote!(None),
        Some((Arm::Gpu, _)) => quote!(Some(Arm::Gpu)),
        Some((Arm::Cpu, _)) => quote!(Some(Arm::Cpu)),
    };
    let refused = match &param.refused {
        None => quote!(None),
        Some((Arm::Gpu, reason)) => quote!(Some((Arm::Gpu, #reason))),
        Some((Arm::Cpu, reason)) => quote!(Some((Arm::Cpu, #reason))),
    };
    quote! {
        Param {
            name: #name,
            doc: #doc,
            line: #line,
            kind: #kind,
            domain: #domain,
            only: #only,
            refused: #refused,
            divisible_by_16: #divisible_by_16,
        }
    }
}

fn kind(kernel: &Kernel, param: &Param, bindings: &Bindings) -> TokenStream {
    match &param.kind {
        ParamKind::Struct(value) => c::kind(value, bindings),
        ParamKind::Tensor(tensor) => {
            let element = element(kernel, &tensor.element.value);
            let shape = tensor.shape.iter().map(|extent| expression(kernel, &extent.value));
            let access = match tensor.access {
                Access::Read => quote!(Access::Read),
                Access::Write => quote!(Access::Write),
                Access::Update => quote!(Access::Update),
            };
            let presence = match &tensor.presence {
                Presence::Required => quote!(Presence::Required),
                Presence::Optional => quote!(Presence::Optional),
                Presence::With(other) => {
                    let other = index_of(kernel, other);
                    quote!(Presence::With(#other))
                }
            };
            let strided = tensor.stride_param.is_some();
            quote! {
                ParamKind::Tensor {
                    element: #element, shape: &[#(#shape),*], access: #access, presence: #presence, strided: #strided,
                }
            }
        }
        ParamKind::Scalar(scalar) => {
            let element = element(kernel, &scalar.element.value);
            let source = match &scalar.source {
                ScalarSource::Caller => quote!(ScalarSource::Caller),
                ScalarSource::Default(value) => {
                    let value = literal(value);
                    quote!(ScalarSource::Default(#value))
                }
                ScalarSource::Dim => {
                    let dim = dim_index(kernel, &param.name.value);
                    quote!(ScalarSource::Dim(#dim))
                }
                ScalarSource::Stride(tensor) => {
                    let tensor = index_of(kernel, tensor);
                    quote!(ScalarSource::Stride(#tensor))
                }
            };
            let max = match scalar.max {
                Some(max) => quote!(Some(#max)),
                None => quote!(None),
            };
            quote!(ParamKind::Scalar { element: #element, source: #source, max: #max })
        }
    }
}

fn element(kernel: &Kernel, element: &Element) -> TokenStream {
    match element {
        Element::Fixed(dtype) => {
            let dtype = types::dtype(*dtype);
            quote!(ElementType::Fixed(#dtype))
        }
        Element::Variable(name) => {
            let index = kernel.types.iter().position(|variable| variable.name.value == *name).unwrap_or(usize::MAX);
            quote!(ElementType::Variable(#index))
        }
    }
}

fn dim_index(kernel: &Kernel, name: &str) -> usize {
    kernel.dims.iter().position(|dim| dim.name.value == name).unwrap_or(usize::MAX)
}

/// An expression in postfix order. A constant is written as its value, so the runtime needs to know dimensions only.
fn expression(kernel: &Kernel, expr: &Expr) -> TokenStream {
    fn push(kernel: &Kernel, expr: &Expr, ops: &mut Vec<TokenStream>) {
        let (left, right, op) = match expr {
            Expr::Int(value) => return ops.push(quote!(Op::Int(#value))),
            Expr::Name(name) => return ops.push(self::name(kernel, name)),
            Expr::Add(left, right) => (left, right, quote!(Op::Add)),
            Expr::Sub(left, right) => (left, right, quote!(Op::Sub)),
            Expr::Mul(left, right) => (left, right, quote!(Op::Mul)),
            Expr::CeilDiv(left, right) => (left, right, quote!(Op::CeilDiv)),
            Expr::Min(left, right) => (left, right, quote!(Op::Min)),
            Expr::Max(left, right) => (left, right, quote!(Op::Max)),
        };
        push(kernel, left, ops);
        push(kernel, right, ops);
        ops.push(op);
    }
    let mut ops = Vec::new();
    push(kernel, expr, &mut ops);
    quote!(&[#(#ops),*])
}

fn name(kernel: &Kernel, name: &str) -> TokenStream {
    let constant = kernel.constants.iter().find(|constant| constant.name.value == name);
    match constant.map(|constant| &constant.value) {
        Some(ConstantValue::Fixed(Literal::Int(value))) => quote!(Op::Int(#value)),
        _ => {
            let dim = dim_index(kernel, name);
            quote!(Op::Dim(#dim))
        }
    }
}

fn domain(kernel: &Kernel, domain: &Domain) -> TokenStream {
    match domain {
        Domain::Range(low, high) => {
            let (low, high) = (expression(kernel, low), expression(kernel, high));
            quote!(Domain::Range(#low, #high))
        }
        Domain::InclusiveCumsum(total) => {
            let dim = dim_index(kernel, total);
            quote!(Domain::InclusiveCumsum(#dim))
        }
        plain => {
            let name = format_ident!("{}", format!("{plain:?}"));
            quote!(Domain::#name)
        }
    }
}

fn constant(kernel: &Kernel, constant: &Constant) -> TokenStream {
    let (name, dtype, tuning) = (&constant.name.value, types::dtype(constant.dtype), constant.tuning);
    let value = match &constant.value {
        ConstantValue::Fixed(value) => {
            let value = literal(value);
            quote!(ConstantValue::Fixed(#value))
        }
        ConstantValue::Present(param) => {
            let param = index_of(kernel, param);
            quote!(ConstantValue::Present(#param))
        }
        ConstantValue::Absent(param) => {
            let param = index_of(kernel, param);
            quote!(ConstantValue::Absent(#param))
        }
        ConstantValue::DType(param) => {
            let param = index_of(kernel, param);
            quote!(ConstantValue::Chosen(#param))
        }
    };
    quote!(Constant { name: #name, dtype: #dtype, value: #value, tuning: #tuning })
}

fn literal(literal: &Literal) -> TokenStream {
    match literal {
        Literal::Bool(value) => quote!(Literal::Bool(#value)),
        Literal::Int(value) => quote!(Literal::Int(#value)),
        Literal::Float(value) => quote!(Literal::Float(#value)),
    }
}

fn variant(variant: &Compiled) -> TokenStream {
    let Compiled { name, path, sha256, entry, threads, shared, slots, capability, ptx_version, aligned } = variant;
    let path = format!("/{path}");
    quote! {
        Variant {
            name: #name,
            ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), #path)),
            sha256: #sha256,
            entry: #entry,
            threads: #threads,
            shared: #shared,
            slots: &[#(#slots),*],
            capability: #capability,
            ptx_version: #ptx_version,
            aligned: #aligned,
            id: VariantId::new(),
        }
    }
}
