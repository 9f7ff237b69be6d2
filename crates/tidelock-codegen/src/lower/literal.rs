//! Values written in a registry, and the limits of element types.

use super::context::Context;
use super::words::listed;
use crate::model::{DType, Literal};
use crate::yaml::{Kind, Node};

/// A literal that fits in each of `choices`; where these are not known, any literal.
pub(super) fn read(cx: &mut Context, node: &Node, key: &str, choices: &[DType]) -> Option<Literal> {
    let literal = match node.kind {
        Kind::Bool(value) => Literal::Bool(value),
        Kind::Int(value) => Literal::Int(value),
        Kind::Float(value) => Literal::Float(value),
        _ => {
            let place = format!("`{key}` of {}", cx.place());
            cx.wrong_kind(node, &place, "a number, true or false");
            return None;
        }
    };
    if let Some(misfit) = choices.iter().find(|dtype| !fits(&literal, **dtype)) {
        let message = format!("`{key}` of {} is not a value of type `{}`", cx.place(), misfit.name());
        cx.error("TL0143", message, &node.span, &format!("not {}", described(*misfit)), &help(*misfit));
        return None;
    }
    let all_floats = !choices.is_empty() && choices.iter().all(|dtype| is_float(*dtype));
    Some(match literal {
        Literal::Int(value) if all_floats => Literal::Float(value as f64),
        other => other,
    })
}

/// The key `max`: a positive integer that a scalar of integer type can have.
pub(super) fn maximum(cx: &mut Context, node: &Node, choices: &[DType]) -> Option<i64> {
    let value = cx.integer(node, "max")?;
    let message = format!("`max` of {} cannot be {value}", cx.place());
    if let Some(dtype) = choices.iter().find(|dtype| integer_range(**dtype).is_none()) {
        let label = format!("the type is `{}`", dtype.name());
        cx.error(
            "TL0144",
            message,
            &node.span,
            &label,
            "only an integer has a largest value; say the rest with `domain`",
        );
    } else if value <= 0 {
        cx.error("TL0144", message, &node.span, "not greater than 0", "write the largest value that a launch may have");
    } else if let Some(dtype) = choices.iter().find(|dtype| !fits(&Literal::Int(value), **dtype)) {
        let label = format!("greater than any `{}`", dtype.name());
        cx.error(
            "TL0144",
            message,
            &node.span,
            &label,
            "write a smaller number, or remove it: the type is a limit by itself",
        );
    } else {
        return Some(value);
    }
    None
}

pub(super) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

/// The smallest and the largest value of an integer type, as far as 64 bits hold them.
pub(super) fn integer_range(dtype: DType) -> Option<(i64, i64)> {
    Some(match dtype {
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::I64 => (i64::MIN, i64::MAX),
        DType::U8 => (0, u8::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        DType::U64 => (0, i64::MAX),
        DType::Bool | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => return None,
    })
}

/// The largest value of a floating-point type, and up to where it holds every integer.
fn float_limits(dtype: DType) -> Option<(f64, i64)> {
    Some(match dtype {
        DType::F16 => (65504.0, 1 << 11),
        DType::BF16 => (f64::from(f32::from_bits(0x7f7f_0000)), 1 << 8),
        DType::F32 => (f32::MAX.into(), 1 << 24),
        DType::F64 => (f64::MAX, 1 << 53),
        _ => return None,
    })
}

fn fits(literal: &Literal, dtype: DType) -> bool {
    match (literal, integer_range(dtype), float_limits(dtype)) {
        (Literal::Bool(_), ..) => dtype == DType::Bool,
        (Literal::Int(value), Some((low, high)), _) => (low..=high).contains(value),
        (Literal::Int(value), _, Some((_, exact))) => (-exact..=exact).contains(value),
        (Literal::Float(value), _, Some((largest, _))) => value.abs() <= largest,
        _ => false,
    }
}

fn described(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "true or false",
        dtype if is_float(dtype) => "a finite number that the type holds",
        _ => "an integer within the type's range",
    }
}

fn help(dtype: DType) -> String {
    match (integer_range(dtype), float_limits(dtype)) {
        (Some((low, high)), _) => format!("write an integer from {low} to {high}"),
        (_, Some((largest, exact))) => {
            format!(
                "write a number up to {largest:e}; without a point, an integer up to {exact}, which it holds exactly"
            )
        }
        _ => format!("write {}", listed(["true", "false"], "or")),
    }
}
