//! Expressions of a registry: from text to a tree with spans, and what their names and numbers must be.

use super::context::Context;
use super::draft::{KernelDraft, Placed};
use super::words::{did_you_mean, quoted};
use crate::expr::{self, Mistake, Tree, Value};
use crate::model::{DType, Expr};
use crate::yaml::{self, Kind, Node};

/// Reads 1 to `most` expressions.
pub(super) fn list(cx: &mut Context, node: &Node, key: &str, most: usize, what: &str) -> Option<Vec<Placed<Expr>>> {
    let items = yaml::whole_expressions(cx.list(node, key)?);
    if items.is_empty() || items.len() > most {
        let message = format!("`{key}` of {} has {} entries", cx.place(), items.len());
        let help = format!("write 1 to {most}, each a {what}");
        cx.error("TL0116", message, &node.span, &format!("not 1 to {most}"), &help);
        return None;
    }
    let read: Vec<_> = items.iter().map(|item| one(cx, item, key)).collect();
    read.into_iter().collect()
}

pub(super) fn one(cx: &mut Context, node: &Node, key: &str) -> Option<Placed<Expr>> {
    if let Kind::Int(value) = node.kind {
        let tree = Tree { value: Expr::Int(value), names: vec![], divisors: vec![] };
        return Some(Placed::new(tree, node.span.clone(), |_| node.span.clone()));
    }
    let Kind::Str(text) = &node.kind else {
        let place = format!("an entry of `{key}` of {}", cx.place());
        cx.wrong_kind(node, &place, "an expression");
        return None;
    };
    let tree = expr::expression(text).map_err(|mistake| report(cx, node, text, key, mistake)).ok()?;
    Some(Placed::new(tree, node.span.clone(), |range| node.at(range)))
}

/// Says why `text` is no expression or domain.
pub(super) fn report(cx: &mut Context, node: &Node, text: &str, key: &str, mistake: Mistake) {
    let message = format!("{} is not right for `{key}` of {}", quoted(text), cx.place());
    cx.error("TL0130", message, &node.at(mistake.range), &mistake.label, &mistake.help);
}

/// Which names an expression may use besides sizes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Constants {
    /// None.
    No,
    /// Integer constants that results depend on.
    Fixed,
    /// Every integer constant.
    All,
}

/// Checks the names of an expression, and what it divides by.
pub(super) fn check<T>(cx: &mut Context, kernel: &KernelDraft, key: &str, placed: &Placed<T>, constants: Constants) {
    let dims: Vec<&str> = kernel.dim_names().into_iter().map(|name| name.value.as_str()).collect();
    let allowed = |name: &str| {
        let constant = kernel.constants.iter().find(|constant| constant.name.value == name)?;
        let integer = matches!(constant.dtype, None | Some(DType::I32 | DType::I64));
        Some(integer && constants != Constants::No && (constants == Constants::All || !constant.tuning))
    };
    let before = cx.out.0.len();
    for name in &placed.names {
        if dims.contains(&name.value.as_str()) {
            continue;
        }
        let message = format!("unknown name {} in `{key}` of {}", quoted(&name.value), cx.place());
        let (label, help) = match (allowed(&name.value), kernel.param(&name.value)) {
            (Some(true), _) => continue,
            (Some(false), _) => {
                let which = match constants {
                    Constants::No => "only sizes and numbers can stand here",
                    Constants::Fixed => "only an integer constant without `tuning` can be named here",
                    Constants::All => "only an integer constant can be named here",
                };
                ("a constant that cannot be used here", which.to_string())
            }
            (None, Some(_)) => ("a parameter, no size", "use a size that the shape of a required tensor names".into()),
            (None, None) if !kernel.shapes_are_whole() => continue,
            (None, None) => {
                let known = kernel.constants.iter().map(|constant| constant.name.value.as_str());
                let known = known.filter(|name| allowed(name) == Some(true));
                ("not known", did_you_mean(&name.value, dims.iter().copied().chain(known), "the known names are"))
            }
        };
        cx.error("TL0131", message, &name.span, label, &help);
    }
    if cx.out.0.len() > before {
        return;
    }
    for divisor in &placed.divisors {
        if expr::least(&divisor.value, &|name| kernel.integer(name)) < Some(1) {
            let message = format!("`cdiv` in `{key}` of {} may divide by zero", cx.place());
            let help = "divide by what is always above 0; a size can be 0, and `max(SIZE, 1)` cannot";
            cx.error("TL0132", message, &divisor.span, "can be 0 or less", help);
        }
    }
}

/// Checks that an expression without sizes is at least 1.
pub(super) fn check_positive(cx: &mut Context, kernel: &KernelDraft, key: &str, placed: &Placed<Expr>) {
    let value = expr::evaluate(&placed.value.value, &|name| kernel.integer(name));
    let label = match value {
        Value::Known(1..) | Value::Unknown => return,
        Value::Known(value) => format!("this is {value}"),
        Value::Invalid if !placed.divisors.is_empty() => return,
        Value::Invalid => "this overflows".to_string(),
    };
    let message = format!("`{key}` of {} must be at least 1", cx.place());
    cx.error("TL0132", message, &placed.value.span, &label, "write a size, or a number from 1");
}
