//! What names a tensor or a parameter elsewhere: `with`, `stride`, `present`, `absent`, `dtype`, `divisible_by_16`.

use std::collections::BTreeMap;

use super::context::Context;
use super::draft::{KernelDraft, KindDraft, ParamDraft, TensorDraft};
use super::literal::integer_range;
use super::words::{did_you_mean, quoted};
use crate::diagnostic::Diagnostic;
use crate::model::{Arm, ConstantValue, Element, Presence, ScalarSource, Spanned};
use crate::source::Span;

pub(super) fn check(cx: &mut Context, kernel: &KernelDraft) {
    for (param, tensor) in kernel.tensors() {
        cx.entry = Some(format!("parameter {}", quoted(&param.name.value)));
        if let Some(Spanned { value: Presence::With(other), span }) = &tensor.presence {
            with(cx, kernel, other, span);
        }
    }
    strides(cx, kernel);
    for constant in &kernel.constants {
        cx.entry = Some(format!("constant {}", quoted(&constant.name.value)));
        match &constant.value {
            Some(Spanned { value: ConstantValue::Present(tensor) | ConstantValue::Absent(tensor), span }) => {
                presence(cx, kernel, tensor, span);
            }
            Some(Spanned { value: ConstantValue::DType(tensor), span }) => {
                dtype(cx, kernel, &constant.name, tensor, span);
            }
            _ => {}
        }
    }
    cx.entry = None;
    divisible(cx, kernel);
}

/// The tensor `name`, or an error; `None` too where the parameter is broken.
fn tensor<'k>(
    cx: &mut Context,
    kernel: &'k KernelDraft,
    name: &str,
    span: &Span,
) -> Option<(&'k ParamDraft, &'k TensorDraft)> {
    let param = kernel.param(name);
    let label = match param.map(|param| &param.kind) {
        Some(KindDraft::Tensor(tensor)) => return param.map(|param| (param, tensor)),
        Some(KindDraft::Broken) => return None,
        Some(KindDraft::Scalar(_)) => "a scalar",
        Some(KindDraft::Struct(_)) => "a struct",
        None => "no such parameter",
    };
    let message = format!("{} names no tensor, in {}", quoted(name), cx.place());
    let tensors = kernel.tensors().map(|(param, _)| param.name.value.as_str());
    let help = did_you_mean(name, tensors, "the tensors are");
    cx.error("TL0140", message, span, label, &help);
    None
}

/// `{with: OTHER}` needs a tensor that the caller gives or not.
fn with(cx: &mut Context, kernel: &KernelDraft, other: &str, span: &Span) {
    let Some((param, tensor)) = tensor(cx, kernel, other, span) else { return };
    if matches!(tensor.presence.as_ref().map(|presence| &presence.value), None | Some(Presence::Optional)) {
        return;
    }
    let message = format!("`with` of {} names a tensor that is not `optional: true`", cx.place());
    let error = Diagnostic::new("TL0142", message, span.clone(), "not optional by itself");
    let error = error.label(param.name.span.clone(), "this tensor");
    cx.push(error.help(format!("write `optional: true` in {}, or name another tensor", quoted(other))));
}

/// A stride is that of one tensor with rows, and each tensor has one at most.
fn strides(cx: &mut Context, kernel: &KernelDraft) {
    let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
    for (param, scalar) in kernel.scalars() {
        cx.entry = Some(format!("parameter {}", quoted(&param.name.value)));
        let Some(Spanned { value: ScalarSource::Stride(of), span }) = &scalar.source else { continue };
        let Some((_, tensor)) = tensor(cx, kernel, of, span) else { continue };
        if tensor.shape.as_ref().is_some_and(|shape| shape.len() < 2) {
            let message = format!("{} is the stride of a tensor without rows", cx.place());
            let help = "remove it: a tensor with one axis is contiguous";
            cx.error("TL0137", message, span, "this tensor has one axis", help);
        }
        if let Some(first) = seen.insert(of, span) {
            let message = format!("{} is a second stride of tensor {}", cx.place(), quoted(of));
            let error =
                Diagnostic::new("TL0138", message, span.clone(), "again here").label(first.clone(), "first here");
            cx.push(error.help("keep one of them"));
        }
    }
    cx.entry = None;
}

fn presence(cx: &mut Context, kernel: &KernelDraft, name: &str, span: &Span) {
    let Some((param, tensor)) = tensor(cx, kernel, name, span) else { return };
    if tensor.is_required() == Some(true) {
        let message = format!("{} asks whether a tensor is given that always is", cx.place());
        let error = Diagnostic::new("TL0141", message, span.clone(), "not optional");
        let error = error.label(param.name.span.clone(), "this tensor");
        cx.push(error.help(format!("write `optional: true` in {}, or remove the constant", quoted(name))));
    }
}

fn dtype(cx: &mut Context, kernel: &KernelDraft, constant: &Spanned<String>, name: &str, span: &Span) {
    let Some((param, tensor)) = tensor(cx, kernel, name, span) else { return };
    if tensor.is_required() == Some(false) {
        let message = format!("{} asks for the type of a tensor that can be absent", cx.place());
        let error = Diagnostic::new("TL0141", message, span.clone(), "optional");
        let error = error.label(param.name.span.clone(), "this tensor");
        cx.push(error.help("an absent tensor has no type; name one that is always given"));
    }
    if let Some(element) = tensor.element.as_ref().filter(|e| e.value != Element::Variable(constant.value.clone())) {
        let message = format!("{} does not choose the type of {}", cx.place(), quoted(name));
        let error = Diagnostic::new("TL0122", message, span.clone(), "the type of this tensor");
        let error = error.label(element.span.clone(), "is not chosen by the constant");
        cx.push(error.help(format!("write `tensor: {{by: {}, true: f64, false: f32}}` there", constant.value)));
    }
}

fn divisible(cx: &mut Context, kernel: &KernelDraft) {
    let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
    for name in &kernel.divisible_by_16 {
        let message = format!("{} cannot be in `divisible_by_16` of {}", quoted(&name.value), cx.place());
        if let Some(first) = seen.insert(&name.value, &name.span) {
            let error =
                Diagnostic::new("TL0145", message, name.span.clone(), "again here").label(first.clone(), "first here");
            cx.push(error.help("remove it"));
            continue;
        }
        let (label, help) = match kernel.param(&name.value) {
            None => {
                let names = kernel.params.iter().map(|param| param.name.value.as_str());
                ("no such parameter", did_you_mean(&name.value, names, "the parameters are"))
            }
            Some(param) if matches!(param.only, Some((Arm::Cpu, _))) => (
                "not an argument of the kernel",
                "remove it, since `only` gives the parameter to the CPU arm".to_string(),
            ),
            Some(param) => {
                let choices =
                    param.scalar().and_then(|s| s.element.as_ref()).map_or(vec![], |e| kernel.choices(&e.value));
                let is_struct = matches!(param.kind, KindDraft::Struct(_));
                if !is_struct && choices.iter().all(|dtype| integer_range(*dtype).is_some()) {
                    continue;
                }
                ("not an integer", "remove it; only tensors and integers can be divisible by 16".to_string())
            }
        };
        cx.error("TL0145", message, &name.span, label, &help);
    }
}
