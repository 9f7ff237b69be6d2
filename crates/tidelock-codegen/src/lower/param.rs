//! One entry under `params`, read key by key.

use super::context::{Context, Fields};
use super::draft::{KernelDraft, KindDraft, ParamDraft, Placed, ScalarDraft, TensorDraft};
use super::kernel::{named_in, only_key};
use super::words::{is_identifier, quoted};
use super::{element, expression, literal};
use crate::expr;
use crate::model::{Access, Arm, Domain, Presence, ScalarSource, Spanned, Struct};
use crate::yaml::{Kind, Node};

const KEYS: [&str; 14] = [
    "tensor", "scalar", "struct", "shape", "access", "optional", "domain", "doc", "as", "from", "default", "max",
    "only", "refused",
];

pub(super) fn read(cx: &mut Context, kernel: &mut KernelDraft, name: &Spanned<String>, node: &Node) -> ParamDraft {
    cx.snake_name(name, "parameter");
    cx.entry = Some(format!("parameter {}", quoted(&name.value)));
    let mut param = ParamDraft {
        name: name.clone(),
        kernel_name: name.clone(),
        doc: None,
        kind: KindDraft::Broken,
        domain: None,
        only: None,
        refused: None,
    };
    let Some(fields) = cx.fields(node, &name.span, &KEYS) else { return param };
    param.doc = cx.required(&fields, "doc", "What it means.").and_then(|node| cx.prose(node, "doc"));
    if let Some(node) = fields.get("as") {
        param.kernel_name = kernel_name(cx, node).unwrap_or(param.kernel_name);
    }
    param.domain = fields.get("domain").and_then(|node| domain(cx, node));
    param.only = fields.get("only").and_then(|node| arm(cx, node, "only"));
    param.refused = fields.get("refused").and_then(|node| arm(cx, node, "refused"));
    let can_be_left_out = fields.get("optional").is_some_and(|node| matches!(node.kind, Kind::Bool(true)));
    if !can_be_left_out {
        let help = "add `optional: true`, or remove it; what every call gives cannot be refused";
        cx.misplaced(&fields, &["refused"], "only a tensor with `optional: true` can be refused", help);
    }
    if let Some(node) = fields.get("struct") {
        param.kind = structure(cx, &fields, node).map_or(KindDraft::Broken, KindDraft::Struct);
        return param;
    }
    param.kind = match (fields.get("tensor"), fields.get("scalar")) {
        (Some(node), None) => KindDraft::Tensor(tensor(cx, kernel, &name.value, &fields, node)),
        (None, Some(node)) => KindDraft::Scalar(scalar(cx, kernel, &fields, node)),
        (Some(_), Some(_)) => {
            cx.misplaced(
                &fields,
                &["scalar"],
                "it is a tensor already",
                "a parameter is a tensor or a scalar; remove one",
            );
            KindDraft::Broken
        }
        (None, None) => {
            let message = format!("{} is neither a tensor, a scalar nor a struct", cx.place());
            cx.error(
                "TL0104",
                message,
                &name.span,
                "no type",
                "add `tensor: TYPE` and `shape: […]`, `scalar: TYPE`, or `struct: kernels/FILE.h:NAME`",
            );
            KindDraft::Broken
        }
    };
    param
}

/// The value of `as`.
pub(super) fn kernel_name(cx: &mut Context, node: &Node) -> Option<Spanned<String>> {
    let text = cx.text(node, "as")?;
    if is_identifier(text) {
        return Some(Spanned { value: text.to_string(), span: node.span.clone() });
    }
    let message = format!("{} cannot be a name in a kernel, in {}", quoted(text), cx.place());
    cx.error("TL0107", message, &node.span, "not an identifier", "write the name exactly as the kernel's source does");
    None
}

fn domain(cx: &mut Context, node: &Node) -> Option<Placed<Domain>> {
    let text = cx.text(node, "domain")?;
    let tree = expr::domain(text).map_err(|mistake| expression::report(cx, node, text, "domain", mistake)).ok()?;
    Some(Placed::new(tree, node.span.clone(), |range| node.at(range)))
}

/// `{gpu: REASON}` or `{cpu: REASON}`.
fn arm(cx: &mut Context, node: &Node, key: &'static str) -> Option<(Arm, String)> {
    let Some((arm, reason)) = only_key(node, &["gpu", "cpu"]) else {
        let place = format!("`{key}` of {}", cx.place());
        cx.wrong_kind(node, &place, "`{gpu: REASON}` or `{cpu: REASON}`");
        return None;
    };
    let reason = cx.prose(reason, key)?;
    Some((if arm == "gpu" { Arm::Gpu } else { Arm::Cpu }, reason))
}

fn tensor(cx: &mut Context, kernel: &mut KernelDraft, name: &str, fields: &Fields, node: &Node) -> TensorDraft {
    cx.misplaced(
        fields,
        &["from", "default", "max"],
        "only a scalar has this",
        "remove it, or make the parameter a scalar",
    );
    let words = [("read", Access::Read), ("write", Access::Write), ("update", Access::Update)];
    let span = node.span.clone();
    TensorDraft {
        element: element::tensor(cx, kernel, name, node),
        shape: cx
            .required(fields, "shape", "[num_tokens]")
            .and_then(|node| expression::list(cx, node, "shape", 2, "length of an axis, rows first")),
        access: fields.get("access").map_or(Some(Access::Read), |node| cx.word(node, "access", &words)),
        presence: match fields.get("optional") {
            None => Some(Spanned { value: Presence::Required, span }),
            Some(node) => presence(cx, node),
        },
    }
}

fn presence(cx: &mut Context, node: &Node) -> Option<Spanned<Presence>> {
    let (value, span) = match (&node.kind, only_key(node, &["with"])) {
        (Kind::Bool(true), _) => (Presence::Optional, &node.span),
        (Kind::Bool(false), _) => (Presence::Required, &node.span),
        (_, Some((_, other))) => (Presence::With(cx.text(other, "with")?.to_string()), &other.span),
        _ => {
            let place = format!("`optional` of {}", cx.place());
            cx.wrong_kind(node, &place, "true, false or `{with: TENSOR}`");
            return None;
        }
    };
    Some(Spanned { value, span: span.clone() })
}

/// `kernels/quantization.h:Quantization`.
fn structure(cx: &mut Context, fields: &Fields, node: &Node) -> Option<Struct> {
    let others = ["tensor", "scalar", "shape", "access", "optional", "from", "default", "max", "domain"];
    cx.misplaced(fields, &others, "it is a struct", "remove it; a struct is passed by value, whole, by the caller");
    let text = cx.text(node, "struct")?;
    match named_in(text, "kernels/", &[".h"]) {
        Ok((header, name)) if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
            let span = node.at(header.len() + 1..text.len());
            Some(Struct { header: header.to_string(), name: Spanned { value: name.to_string(), span } })
        }
        named => {
            let message = format!("{} does not name a struct of a header, in {}", quoted(text), cx.place());
            let label = match named {
                Ok(_) => "a struct's name begins with an upper-case letter, as its type in Rust does",
                Err(true) => "no name after the path",
                Err(false) => "not a .h file under kernels/",
            };
            cx.error("TL0114", message, &node.span, label, "write `kernels/FILE.h:NAME`, relative to the crate");
            None
        }
    }
}

fn scalar(cx: &mut Context, kernel: &KernelDraft, fields: &Fields, node: &Node) -> ScalarDraft {
    let of_tensors = ["shape", "access", "optional"];
    cx.misplaced(fields, &of_tensors, "only a tensor has this", "remove it, or make the parameter a tensor");
    if fields.get("from").is_some() {
        let help = "remove it; a derived value is what the shapes say, and `max` limits it";
        cx.misplaced(fields, &["default", "domain"], "its value is derived", help);
    }
    let element = element::scalar(cx, kernel, node);
    let choices = element.as_ref().map_or(vec![], |element| kernel.choices(&element.value));
    let source = match (fields.get("from"), fields.get("default")) {
        (Some(node), _) => from(cx, node),
        (None, Some(node)) => literal::read(cx, node, "default", &choices)
            .map(|literal| Spanned { value: ScalarSource::Default(literal), span: node.span.clone() }),
        (None, None) => Some(Spanned { value: ScalarSource::Caller, span: node.span.clone() }),
    };
    ScalarDraft { element, source, max: fields.get("max").and_then(|node| literal::maximum(cx, node, &choices)) }
}

fn from(cx: &mut Context, node: &Node) -> Option<Spanned<ScalarSource>> {
    let (_, tensor) = cx.derivation(node, &[("dim", false), ("stride", true)])?;
    Some(match tensor {
        None => Spanned { value: ScalarSource::Dim, span: node.span.clone() },
        Some(tensor) => Spanned { value: ScalarSource::Stride(tensor.value), span: tensor.span },
    })
}
