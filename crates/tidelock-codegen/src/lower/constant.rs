//! One entry under `constants`, read key by key.

use super::context::Context;
use super::draft::ConstantDraft;
use super::words::{listed, quoted};
use super::{literal, param, types};
use crate::model::{ConstantValue, DType, Spanned};
use crate::yaml::Node;

const TYPES: [DType; 4] = [DType::Bool, DType::I32, DType::I64, DType::F32];

pub(super) fn read(cx: &mut Context, name: &Spanned<String>, node: &Node) -> ConstantDraft {
    cx.constant_name(name);
    cx.entry = Some(format!("constant {}", quoted(&name.value)));
    let mut constant = ConstantDraft {
        name: name.clone(),
        kernel_name: name.clone(),
        doc: None,
        dtype: None,
        value: None,
        tuning: false,
    };
    let Some(fields) = cx.fields(node, &name.span, &["type", "value", "from", "tuning", "doc", "as"]) else {
        return constant;
    };
    constant.dtype = cx.required(&fields, "type", "bool").and_then(|node| dtype(cx, node));
    constant.tuning = fields.get("tuning").and_then(|node| cx.boolean(node, "tuning")).unwrap_or(false);
    if let Some(node) = fields.get("as") {
        constant.kernel_name = param::kernel_name(cx, node).unwrap_or(constant.kernel_name);
    }
    constant.doc = fields.get("doc").and_then(|node| cx.prose(node, "doc"));
    match (fields.get("value"), fields.get("from")) {
        (Some(node), None) => {
            cx.required(&fields, "doc", "What it means.");
            let choices: Vec<DType> = constant.dtype.into_iter().collect();
            constant.value = literal::read(cx, node, "value", &choices)
                .map(|literal| Spanned { value: ConstantValue::Fixed(literal), span: node.span.clone() });
        }
        (value, Some(node)) => {
            if value.is_some() {
                cx.misplaced(&fields, &["value"], "its value is derived", "keep `value` or `from`, not both");
            }
            let help = "remove it; a constant that follows from an argument is part of what the kernel means";
            cx.misplaced(&fields, &["tuning"], "its value is derived", help);
            if constant.dtype.is_some_and(|dtype| dtype != DType::Bool) {
                let message = format!("{} has `from` and so must be a `bool`", cx.place());
                let span = fields.get("type").map_or(&name.span, |node| &node.span);
                cx.error("TL0124", message, span, "not bool", "write `type: bool`; what it derives is true or false");
            }
            constant.value = from(cx, node);
            constant.doc = constant.doc.or_else(|| constant.value.as_ref().map(|value| derived_doc(&value.value)));
        }
        (None, None) => {
            let message = format!("{} has no value", cx.place());
            let help = "add `value: LITERAL`, or `from: present(TENSOR)`, `absent(TENSOR)` or `dtype(TENSOR)`";
            cx.error("TL0104", message, &name.span, "`value` or `from` is missing", help);
        }
    }
    constant
}

fn dtype(cx: &mut Context, node: &Node) -> Option<DType> {
    let dtype = types::fixed(cx, node)?;
    if TYPES.contains(&dtype) {
        return Some(dtype);
    }
    let message = format!("{} cannot be of type `{}`", cx.place(), dtype.name());
    let help = format!("write {}", listed(TYPES.map(DType::name), "or"));
    cx.error("TL0118", message, &node.span, "not a type of constants", &help);
    None
}

fn from(cx: &mut Context, node: &Node) -> Option<Spanned<ConstantValue>> {
    let (word, tensor) = cx.derivation(node, &[("present", true), ("absent", true), ("dtype", true)])?;
    let Spanned { value: tensor, span } = tensor?;
    let value = match word.as_str() {
        "present" => ConstantValue::Present(tensor),
        "absent" => ConstantValue::Absent(tensor),
        _ => ConstantValue::DType(tensor),
    };
    Some(Spanned { value, span })
}

fn derived_doc(value: &ConstantValue) -> String {
    match value {
        ConstantValue::Present(tensor) => format!("Whether `{tensor}` is given."),
        ConstantValue::Absent(tensor) => format!("Whether `{tensor}` is absent."),
        ConstantValue::DType(tensor) => format!("Whether `{tensor}` has the type that `true` stands for."),
        ConstantValue::Fixed(_) => String::new(),
    }
}
