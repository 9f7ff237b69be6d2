//! The element type of a parameter: a name, a type variable, or a choice by a constant.

use super::context::Context;
use super::draft::{Chosen, KernelDraft};
use super::types;
use crate::model::{DType, Element, Spanned};
use crate::yaml::{Kind, Node};

/// Reads the type of a tensor, which a constant may choose.
pub(super) fn tensor(cx: &mut Context, kernel: &mut KernelDraft, name: &str, node: &Node) -> Option<Spanned<Element>> {
    if !matches!(node.kind, Kind::Map(_)) {
        return named(cx, kernel, node);
    }
    let fields = cx.fields(node, &node.span, &["by", "true", "false"])?;
    let constant = cx.required(&fields, "by", "CONSTANT").and_then(|by| {
        let text = cx.text(by, "by")?;
        Some(Spanned { value: text.to_string(), span: by.span.clone() })
    });
    let if_true = cx.required(&fields, "true", "f64").and_then(|node| types::fixed(cx, node));
    let if_false = cx.required(&fields, "false", "f32").and_then(|node| types::fixed(cx, node));
    let (constant, if_true, if_false) = (constant?, if_true?, if_false?);
    if if_true == if_false {
        let message = format!("both types of {} are `{}`", cx.place(), if_true.name());
        cx.error("TL0119", message, &node.span, "no choice", "name two different types, or write the one type alone");
        return None;
    }
    let element = Element::Variable(constant.value.clone());
    let span = node.span.clone();
    kernel.chosen.push(Chosen { constant, choices: [if_false, if_true], tensor: name.to_string(), span: span.clone() });
    Some(Spanned { value: element, span })
}

/// Reads the type of a scalar.
pub(super) fn scalar(cx: &mut Context, kernel: &KernelDraft, node: &Node) -> Option<Spanned<Element>> {
    if let Kind::Map(_) = node.kind {
        let message = format!("the type of {} cannot be chosen by a constant", cx.place());
        let help = "a constant follows a tensor's type; use a fixed type, or a type variable under `types`";
        cx.error("TL0106", message, &node.span, "a scalar's type is a name", help);
        return None;
    }
    named(cx, kernel, node)
}

fn named(cx: &mut Context, kernel: &KernelDraft, node: &Node) -> Option<Spanned<Element>> {
    let Kind::Str(name) = &node.kind else {
        let place = format!("the type of {}", cx.place());
        cx.wrong_kind(node, &place, "the name of a type");
        return None;
    };
    let variable = kernel.types.iter().find(|variable| variable.name.value == *name);
    let element = match (DType::from_name(name), variable) {
        (Some(dtype), _) => Element::Fixed(dtype),
        (None, Some(_)) => Element::Variable(name.clone()),
        (None, None) => {
            if !kernel.broken_types.contains(name) {
                let variables = kernel.types.iter().map(|variable| variable.name.value.as_str()).collect();
                types::unknown(cx, node, name, variables);
            }
            return None;
        }
    };
    Some(Spanned { value: element, span: node.span.clone() })
}
