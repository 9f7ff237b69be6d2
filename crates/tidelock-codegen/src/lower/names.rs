//! Names within a kernel: each stands for one thing, here and in the kernel's source.

use std::collections::BTreeMap;

use super::context::Context;
use super::draft::{ConstantDraft, KernelDraft};
use super::words::quoted;
use crate::diagnostic::Diagnostic;
use crate::model::{Arm, ConstantValue, DType, ScalarSource, Spanned};

pub(super) fn check(cx: &mut Context, kernel: &KernelDraft) {
    cx.entry = None;
    let params = kernel.params.iter().map(|param| (&param.name, "parameter"));
    let constants = kernel.constants.iter().map(|constant| (&constant.name, "constant"));
    let types = kernel.types.iter().map(|variable| (&variable.name, "type"));
    unique(cx, params.chain(constants).chain(types));

    let in_kernel = kernel.params.iter().filter(|param| !matches!(param.only, Some((Arm::Cpu, _))));
    let renamed = in_kernel.filter(|param| param.kernel_name.value != param.name.value);
    let kept = kernel.params.iter().filter(|param| param.kernel_name.value == param.name.value);
    let kept = kept.map(|param| (&param.name, "parameter"));
    let (same, other): (Vec<_>, Vec<_>) =
        kernel.constants.iter().partition(|constant| constant.kernel_name.value == constant.name.value);
    let kept = kept.chain(same.into_iter().map(|constant| (&constant.name, "constant")));
    let renamed = renamed.map(|param| (&param.kernel_name, "parameter in the kernel"));
    let renamed = renamed.chain(other.into_iter().map(|constant| (&constant.kernel_name, "constant in the kernel")));
    unique(cx, kept.chain(renamed));

    let reaches_cpu = |constant: &&ConstantDraft| {
        !constant.tuning && matches!(&constant.value, Some(value) if matches!(value.value, ConstantValue::Fixed(_)))
    };
    for constant in kernel.constants.iter().filter(reaches_cpu) {
        let Some(param) = kernel.param(&constant.name.value.to_lowercase()) else { continue };
        let message = format!(
            "constant {} and parameter {} have one name in the CPU arm{}",
            quoted(&constant.name.value),
            quoted(&param.name.value),
            cx.inside()
        );
        let error = Diagnostic::new("TL0111", message, constant.name.span.clone(), "this constant");
        let error = error.label(param.name.span.clone(), "and this parameter");
        cx.push(error.help("rename one of them; `as` says what the kernel calls it"));
    }

    for variable in kernel.types.iter().filter(|variable| DType::from_name(&variable.name.value).is_some()) {
        let message = format!("type {} of {} is an element type already", quoted(&variable.name.value), cx.place());
        cx.error("TL0111", message, &variable.name.span, "the name of a type", "choose another name, such as `T`");
    }
    for name in kernel.dim_names() {
        dim(cx, kernel, name);
    }
}

/// Reports each name that stands for two things, unless it was reported for the same place.
fn unique<'a>(cx: &mut Context, names: impl Iterator<Item = (&'a Spanned<String>, &'a str)>) {
    let mut seen: BTreeMap<&str, (&Spanned<String>, &str)> = BTreeMap::new();
    for (name, what) in names {
        let Some((first, first_what)) = seen.insert(&name.value, (name, what)) else { continue };
        if cx.out.0[cx.start..].iter().any(|error| error.code == "TL0111" && error.primary.span == name.span) {
            continue;
        }
        let message = format!("{} stands for two things{}", quoted(&name.value), cx.inside());
        let error = Diagnostic::new("TL0111", message, name.span.clone(), format!("this {what}"));
        let error = error.label(first.span.clone(), format!("and this {first_what}"));
        cx.push(error.help("rename one of them; `as` says what the kernel calls a parameter"));
    }
}

/// A size must be named so that it can be a variable, and can be a parameter only if derived.
fn dim(cx: &mut Context, kernel: &KernelDraft, name: &Spanned<String>) {
    cx.snake_name(name, "size");
    let Some(param) = kernel.param(&name.value) else { return };
    let derived =
        param.scalar().is_none_or(|scalar| scalar.source.as_ref().is_none_or(|s| s.value == ScalarSource::Dim));
    if derived && !matches!(param.kind, super::draft::KindDraft::Tensor(_)) {
        return;
    }
    let message =
        format!("{} is both a size and a parameter that the caller passes{}", quoted(&name.value), cx.inside());
    let error = Diagnostic::new("TL0136", message, param.name.span.clone(), "passed by the caller");
    let error = error.label(name.span.clone(), "a size that this shape gives");
    let scalar = "write `from: dim` in the parameter, since the shapes say its value already";
    cx.push(error.help(if param.tensor().is_some() { "rename the tensor or the size" } else { scalar }));
}
