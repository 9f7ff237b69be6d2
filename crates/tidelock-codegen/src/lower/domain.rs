//! Whether a domain fits the type and the shape of what it is about.

use super::context::Context;
use super::draft::{KernelDraft, ParamDraft, Placed};
use super::expression::{Constants, check as check_names};
use super::literal::{integer_range, is_float};
use super::words::quoted;
use crate::diagnostic::Diagnostic;
use crate::expr::{Value, evaluate};
use crate::model::{DType, Domain, Expr};

pub(super) fn check(cx: &mut Context, kernel: &KernelDraft) {
    for param in &kernel.params {
        let Some(domain) = &param.domain else { continue };
        cx.entry = Some(format!("parameter {}", quoted(&param.name.value)));
        let is_sum = matches!(domain.value.value, Domain::InclusiveCumsum(_));
        let constants = if is_sum { Constants::No } else { Constants::Fixed };
        check_names(cx, kernel, "domain", domain, constants);
        if let Some((label, help)) = misfit(kernel, param, &domain.value.value) {
            let message = format!("`domain` of {} does not fit what it is about", cx.place());
            let mut error = Diagnostic::new("TL0146", message, domain.value.span.clone(), label);
            if let Some(element) = param.element() {
                error = error.label(element.span.clone(), "the type");
            }
            cx.push(error.help(help));
        } else if let Domain::Range(low, high) = &domain.value.value {
            range(cx, kernel, param, domain, low, high);
        }
    }
    cx.entry = None;
}

/// Why a parameter cannot have `domain`, and what to write.
fn misfit(kernel: &KernelDraft, param: &ParamDraft, domain: &Domain) -> Option<(&'static str, &'static str)> {
    let choices = kernel.choices(&param.element()?.value);
    let all = |test: fn(DType) -> bool| choices.iter().all(|dtype| test(*dtype));
    let integers = all(|dtype| integer_range(dtype).is_some());
    let axes = param.tensor().map(|tensor| tensor.shape.as_ref().map(Vec::len));
    match domain {
        Domain::Any => None,
        Domain::Range(..) if !integers => Some((
            "a range is about integers",
            "for floats, write `unit`, `open_unit`, `positive`, `non_negative` or `any`",
        )),
        Domain::TokenIds if !all(|dtype| matches!(dtype, DType::I32 | DType::I64)) => {
            Some(("token ids are `i32` or `i64`", "change the type, or write a range `A..B`"))
        }
        Domain::InclusiveCumsum(_) if !all(|dtype| matches!(dtype, DType::I32 | DType::I64)) => {
            Some(("a running sum is of `i32` or `i64`", "change the type or the domain"))
        }
        Domain::InclusiveCumsum(_) if !matches!(axes, Some(None | Some(1))) => {
            Some(("a running sum is a tensor with one axis", "change the shape or the domain"))
        }
        Domain::Probabilities | Domain::Logits if axes.is_none() => {
            Some(("only a tensor has rows", "write `unit` for one probability, or `any`"))
        }
        Domain::Range(..) | Domain::TokenIds | Domain::InclusiveCumsum(_) => None,
        _ if !all(is_float) => {
            Some(("this domain is about floats", "for integers, write a range `A..B`, `token_ids` or `any`"))
        }
        _ => None,
    }
}

/// A range must hold a value, and its ends must be values of the type.
fn range(cx: &mut Context, kernel: &KernelDraft, param: &ParamDraft, domain: &Placed<Domain>, low: &Expr, high: &Expr) {
    let fixed = |name: &str| kernel.integer(name);
    let (low, high) = (evaluate(low, &fixed), evaluate(high, &fixed));
    let choices = param.element().map_or(vec![], |element| kernel.choices(&element.value));
    let outside =
        |value: i64, dtype: &DType| integer_range(*dtype).is_some_and(|(least, most)| value < least || value > most);
    let label = match (low, high) {
        (Value::Invalid, _) | (_, Value::Invalid) if domain.divisors.is_empty() => "this overflows".to_string(),
        (Value::Known(low), Value::Known(high)) if low >= high => "no value is in this range".to_string(),
        (Value::Known(low), _) if choices.iter().any(|dtype| outside(low, dtype)) => {
            format!("{low} is not of the type")
        }
        (_, Value::Known(high)) if choices.iter().any(|dtype| outside(high.saturating_sub(1), dtype)) => {
            format!("{} is not of the type", high.saturating_sub(1))
        }
        _ => return,
    };
    let message = format!("the range of {} is wrong", cx.place());
    cx.error(
        "TL0147",
        message,
        &domain.value.span,
        &label,
        "in `A..B`, A is the first value and B the first that is too large",
    );
}
