//! Type variables: those under `types`, and those that a constant chooses.

use super::context::Context;
use super::draft::{Chosen, KernelDraft};
use super::words::{did_you_mean, quoted};
use crate::diagnostic::Diagnostic;
use crate::model::{ConstantValue, DType, Element, Spanned, TypeVariable};
use crate::yaml::Node;

/// Reads the key `types`.
pub(super) fn read(cx: &mut Context, node: &Node, kernel: &mut KernelDraft) {
    let place = format!("`types` of {}", cx.place());
    for (name, node) in cx.entries(node, &place).unwrap_or_default() {
        cx.type_name(name);
        cx.entry = Some(format!("type {}", quoted(&name.value)));
        match choices(cx, node) {
            Some(choices) => kernel.types.push(TypeVariable { name: name.clone(), choices, chosen_by: None }),
            None => kernel.broken_types.push(name.value.clone()),
        }
        cx.entry = None;
    }
}

fn choices(cx: &mut Context, node: &Node) -> Option<Vec<DType>> {
    let items = cx.list(node, "choices")?;
    let mut choices = Vec::new();
    for item in items {
        let choice = fixed(cx, item)?;
        if choices.contains(&choice) {
            let message = format!("{} has the choice `{}` twice", cx.place(), choice.name());
            cx.error("TL0119", message, &item.span, "again here", "remove it");
            return None;
        }
        choices.push(choice);
    }
    if choices.len() < 2 {
        let message = format!("{} has too few choices", cx.place());
        let help = "name two element types or more; where there is one only, write it in the parameter";
        cx.error("TL0119", message, &node.span, "fewer than two", help);
        return None;
    }
    Some(choices)
}

/// The name of an element type.
pub(super) fn fixed(cx: &mut Context, node: &Node) -> Option<DType> {
    let name = cx.text(node, "type")?;
    let found = DType::from_name(name);
    if found.is_none() {
        unknown(cx, node, name, vec![]);
    }
    found
}

/// Says that there is no such element type.
pub(super) fn unknown(cx: &mut Context, node: &Node, name: &str, variables: Vec<&str>) {
    let message = format!("unknown element type {} in {}", quoted(name), cx.place());
    let known = variables.into_iter().chain(DType::ALL.iter().map(|row| row.1));
    let help = match other_name(name) {
        Some(ours) => format!("write `{ours}`"),
        None => did_you_mean(name, known, "the element types are"),
    };
    cx.error("TL0118", message, &node.span, "unknown type", &help);
}

/// Our name of a type that Triton, torch or C call so.
fn other_name(name: &str) -> Option<&'static str> {
    // `torch.float32`, `tl.int64`, `*fp32`.
    let name = name.trim_start_matches('*').rsplit('.').next().unwrap_or(name);
    let triton = DType::ALL.iter().find(|row| row.2 == name || row.1 == name).map(|row| row.1);
    triton.or(match name {
        "float16" | "half" => Some("f16"),
        "bfloat16" => Some("bf16"),
        "float32" | "float" => Some("f32"),
        "float64" | "double" => Some("f64"),
        "int8" => Some("i8"),
        "int16" => Some("i16"),
        "int32" | "int" => Some("i32"),
        "int64" | "long" => Some("i64"),
        "uint8" => Some("u8"),
        "uint16" => Some("u16"),
        "uint32" | "unsigned" => Some("u32"),
        "uint64" | "size_t" => Some("u64"),
        "int1" => Some("bool"),
        _ => None,
    })
}

/// Checks that every type variable is used, and that constants and the types they choose fit each other.
pub(super) fn check(cx: &mut Context, kernel: &KernelDraft) {
    cx.entry = None;
    for variable in &kernel.types {
        check_used(cx, kernel, &variable.name);
    }
    for (index, chosen) in kernel.chosen.iter().enumerate() {
        cx.entry = Some(format!("parameter {}", quoted(&chosen.tensor)));
        check_constant(cx, kernel, chosen);
        let first = kernel.chosen[..index].iter().find(|first| first.constant.value == chosen.constant.value);
        if let Some(first) = first.filter(|first| first.choices != chosen.choices) {
            let message =
                format!("constant {} chooses between different types{}", quoted(&chosen.constant.value), cx.inside());
            let pair = |chosen: &Chosen| format!("{} or {}", chosen.choices[1].name(), chosen.choices[0].name());
            let error = Diagnostic::new("TL0123", message, chosen.span.clone(), pair(chosen))
                .label(first.span.clone(), pair(first));
            cx.push(error.help("one constant stands for one pair of types; add a second constant"));
        }
    }
    cx.entry = None;
}

fn check_used(cx: &mut Context, kernel: &KernelDraft, name: &Spanned<String>) {
    let is_it = |element: &Option<Spanned<Element>>| match element {
        Some(element) => element.value == Element::Variable(name.value.clone()),
        None => true,
    };
    let by_required = kernel.tensors().any(|(_, t)| is_it(&t.element) && t.is_required() != Some(false));
    let broken = kernel.params.iter().any(|param| matches!(param.kind, super::draft::KindDraft::Broken));
    if by_required || broken {
        return;
    }
    let user = kernel.params.iter().find(|param| param.element().is_some() && is_it(&param.element().cloned()));
    let message = format!("type {} is not the type of a required tensor{}", quoted(&name.value), cx.inside());
    let mut error =
        Diagnostic::new("TL0120", message, name.span.clone(), if user.is_some() { "declared here" } else { "unused" });
    if let Some(element) = user.and_then(|param| param.element()) {
        error = error.label(element.span.clone(), "a launch cannot tell the type from this");
    }
    cx.push(error.help(match user {
        Some(_) => "give a required tensor this type, or name a fixed type instead",
        None => "use it as the type of a tensor, or remove it",
    }));
}

/// `by` must name a Boolean constant that is derived from an element type.
fn check_constant(cx: &mut Context, kernel: &KernelDraft, chosen: &Chosen) {
    let name = &chosen.constant;
    let Some(constant) = kernel.constant(&name.value) else {
        let message = format!("`by` of {} names no constant", cx.place());
        let known = kernel.constants.iter().map(|constant| constant.name.value.as_str());
        let mut help = did_you_mean(&name.value, known, "the constants are");
        if !help.starts_with("did") {
            help = format!("add `{}: {{type: bool, from: dtype({})}}` to `constants`", name.value, chosen.tensor);
        }
        cx.error("TL0121", message, &name.span, "no such constant", &help);
        return;
    };
    if constant.value.as_ref().is_some_and(|value| !matches!(value.value, ConstantValue::DType(_))) {
        let message = format!("`by` of {} names a constant that is not derived from a type", cx.place());
        let error = Diagnostic::new("TL0121", message, name.span.clone(), "this constant");
        let error = error.label(constant.name.span.clone(), "declared here");
        cx.push(error.help(format!("declare it as `{{type: bool, from: dtype({})}}`", chosen.tensor)));
    }
}
