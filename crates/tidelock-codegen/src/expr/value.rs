//! What an expression comes to, as far as a registry alone can tell.

use crate::model::Expr;

/// What an expression comes to where its names have the values that a lookup gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// This number.
    Known(i64),
    /// It depends on a name without a value.
    Unknown,
    /// It overflows, or divides by what is not positive.
    Invalid,
}

/// Evaluates `expr`.
pub fn evaluate(expr: &Expr, lookup: &dyn Fn(&str) -> Option<i64>) -> Value {
    let both = |a: &Expr, b: &Expr, apply: fn(i64, i64) -> Option<i64>| match (evaluate(a, lookup), evaluate(b, lookup))
    {
        (Value::Known(a), Value::Known(b)) => apply(a, b).map_or(Value::Invalid, Value::Known),
        (Value::Invalid, _) | (_, Value::Invalid) => Value::Invalid,
        _ => Value::Unknown,
    };
    match expr {
        Expr::Int(value) => Value::Known(*value),
        Expr::Name(name) => lookup(name).map_or(Value::Unknown, Value::Known),
        Expr::Add(a, b) => both(a, b, i64::checked_add),
        Expr::Sub(a, b) => both(a, b, i64::checked_sub),
        Expr::Mul(a, b) => both(a, b, i64::checked_mul),
        Expr::CeilDiv(a, b) => both(a, b, |a, b| if b > 0 { a.checked_neg().map(|a| -a.div_euclid(b)) } else { None }),
        Expr::Min(a, b) => both(a, b, |a, b| Some(a.min(b))),
        Expr::Max(a, b) => both(a, b, |a, b| Some(a.max(b))),
    }
}

/// A number that `expr` is never below, where a name without a value is a size and so at least 0; `None` where nothing is
/// known.
pub fn least(expr: &Expr, lookup: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    let least = |expr: &Expr| least(expr, lookup);
    match expr {
        Expr::Int(value) => Some(*value),
        Expr::Name(name) => Some(lookup(name).unwrap_or(0)),
        Expr::Add(a, b) => least(a)?.checked_add(least(b)?),
        Expr::Sub(a, b) => match evaluate(b, lookup) {
            Value::Known(b) => least(a)?.checked_sub(b),
            _ => None,
        },
        Expr::Mul(a, b) => match (least(a)?, least(b)?) {
            (a @ 0.., b @ 0..) => a.checked_mul(b),
            _ => match evaluate(expr, lookup) {
                Value::Known(product) => Some(product),
                _ => None,
            },
        },
        Expr::CeilDiv(a, _) => least(a).filter(|a| *a >= 0).map(|a| a.min(1)),
        Expr::Min(a, b) => Some(least(a)?.min(least(b)?)),
        Expr::Max(a, b) => least(a).max(least(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::expression;

    #[test]
    fn cdiv_rounds_up() {
        let tree = expression("cdiv(n + 1, 4)").unwrap();
        assert_eq!(tree.divisors, [(Expr::Int(4), 12..13)]);
        let at = |n| evaluate(&tree.value, &|_| Some(n));
        assert_eq!([at(0), at(3), at(4), at(-9)], [1, 1, 2, -2].map(Value::Known));
        assert_eq!(evaluate(&tree.value, &|_| None), Value::Unknown);
        assert_eq!(at(i64::MAX), Value::Invalid);
    }

    #[test]
    fn a_grid_that_fills_a_card_and_no_more() {
        let tree = expression("min(max(cdiv(1056, max(rows, 1)), 1), cdiv(vocab, 1024))").unwrap();
        let at = |rows, vocab| evaluate(&tree.value, &move |name| Some(if name == "rows" { rows } else { vocab }));
        let blocks = [at(0, 151_936), at(1, 151_936), at(64, 151_936), at(2000, 151_936), at(64, 0)];
        assert_eq!(blocks, [149, 149, 17, 1, 0].map(Value::Known));
    }

    #[test]
    fn the_least_that_a_size_can_make() {
        let least = |text: &str| least(&expression(text).unwrap().value, &|name| (name == "TWO").then_some(2));
        assert_eq!(least("max(n, 1)"), Some(1));
        assert_eq!(least("min(n + TWO, 7)"), Some(2));
        assert_eq!(least("(n + 1) * TWO"), Some(2));
        assert_eq!(least("cdiv(n + 9, 4)"), Some(1));
        assert_eq!(least("max(n - 5, TWO - 1)"), Some(1));
        assert_eq!(least("max(1, 4 - n)"), Some(1), "a bound on one side is a bound on the larger");
        assert_eq!(least("min(n, 4)"), Some(0));
        assert_eq!(least("4 - n"), None);
        assert_eq!(least("cdiv(4 - n, 2)"), None);
        assert_eq!(least("(0 - TWO) * n"), None);
        assert_eq!(least("(0 - TWO) * TWO"), Some(-4));
    }
}
