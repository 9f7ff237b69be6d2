//! Sizes: which tensor gives each, and what is derived from them.

use super::context::Context;
use super::draft::KernelDraft;
use super::expression::{Constants, check as check_names, check_positive};
use super::words::{did_you_mean, quoted};
use crate::diagnostic::Diagnostic;
use crate::model::{DType, Dim, Element, Expr, ScalarSource};

/// The size that an extent gives and how much longer it is than the size: `n` or `n + 1`.
fn binding(extent: &Expr) -> Option<(&str, i64)> {
    match extent {
        Expr::Name(name) => Some((name, 0)),
        Expr::Add(left, right) => match (&**left, &**right) {
            (Expr::Name(name), Expr::Int(offset @ 0..)) => Some((name, *offset)),
            _ => None,
        },
        _ => None,
    }
}

/// The sizes that required tensors give, in the order in which they do.
pub(super) fn bind(kernel: &KernelDraft) -> Vec<Dim> {
    let mut dims: Vec<Dim> = Vec::new();
    for (param, tensor) in kernel.tensors().filter(|(_, tensor)| tensor.is_required() == Some(true)) {
        for (axis, extent) in tensor.shape.iter().flatten().enumerate() {
            let Some((name, offset)) = binding(&extent.value.value) else { continue };
            if dims.iter().any(|dim| dim.name.value == name) {
                continue;
            }
            if let Some(name) = extent.names.first() {
                dims.push(Dim { name: name.clone(), bound_by: param.name.value.clone(), axis, offset });
            }
        }
    }
    dims
}

pub(super) fn check(cx: &mut Context, kernel: &KernelDraft) {
    cx.entry = None;
    for blocks in kernel.grid.iter().flatten() {
        check_names(cx, kernel, "grid", blocks, Constants::All);
        check_positive(cx, kernel, "grid", blocks);
    }
    if let Some(bytes) = &kernel.shared_memory {
        check_names(cx, kernel, "shared_memory", bytes, Constants::All);
        check_positive(cx, kernel, "shared_memory", bytes);
    }
    for (param, tensor) in kernel.tensors() {
        cx.entry = Some(format!("parameter {}", quoted(&param.name.value)));
        for extent in tensor.shape.iter().flatten() {
            check_names(cx, kernel, "shape", extent, Constants::No);
            check_positive(cx, kernel, "shape", extent);
        }
    }
    cx.entry = None;
    unbound(cx, kernel);
    for (param, scalar) in kernel.scalars() {
        cx.entry = Some(format!("parameter {}", quoted(&param.name.value)));
        match scalar.source.as_ref().map(|source| (&source.value, &source.span)) {
            Some((ScalarSource::Dim, span)) => {
                derived_type(cx, scalar.element.as_ref());
                if kernel.dim_names().iter().all(|name| name.value != param.name.value) && kernel.shapes_are_whole() {
                    let message = format!("`from: dim` of {}, but no shape names that size", cx.place());
                    let dims = kernel.dim_names().into_iter().map(|name| name.value.as_str());
                    let help = did_you_mean(&param.name.value, dims, "the parameter must be called like a size:");
                    cx.error("TL0134", message, span, "no such size", &help);
                }
            }
            Some((ScalarSource::Stride(_), _)) => derived_type(cx, scalar.element.as_ref()),
            _ => {}
        }
    }
    cx.entry = None;
}

/// Every size must come from the shape of a tensor that is always given.
fn unbound(cx: &mut Context, kernel: &KernelDraft) {
    let bound = bind(kernel);
    let presences_known = kernel.tensors().all(|(_, tensor)| tensor.is_required().is_some());
    if !kernel.shapes_are_whole() || !presences_known {
        return;
    }
    for name in kernel.dim_names() {
        if bound.iter().any(|dim| dim.name.value == name.value) {
            continue;
        }
        let message = format!("no required tensor gives size {}{}", quoted(&name.value), cx.inside());
        let mut error = Diagnostic::new("TL0133", message, name.span.clone(), "its value cannot be told");
        let optional = kernel.tensors().find(|(_, tensor)| {
            let gives = |extent: &Expr| binding(extent).is_some_and(|(given, _)| given == name.value);
            tensor.shape.iter().flatten().any(|extent| gives(&extent.value.value))
        });
        if let Some((param, _)) = optional {
            error = error.label(param.name.span.clone(), "this tensor gives it, and can be absent");
        }
        let help =
            "let the shape of a tensor that is not optional have the size, or the size plus a number, as an extent";
        cx.push(error.help(help));
    }
}

/// What is derived from a shape is an `i32` or an `i64`.
fn derived_type(cx: &mut Context, element: Option<&crate::model::Spanned<Element>>) {
    let Some(element) = element else { return };
    if matches!(element.value, Element::Fixed(DType::I32 | DType::I64)) {
        return;
    }
    let message = format!("{} is derived from a shape and cannot have this type", cx.place());
    cx.error("TL0135", message, &element.span, "not `i32` or `i64`", "write `scalar: i32` or `scalar: i64`");
}
