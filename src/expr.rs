//! Integer expressions of sizes, as the run-time table has them: extents, grids and the bounds of domains.

use arrayvec::ArrayVec;

/// An integer expression in postfix order.
pub type Expr = &'static [Op];

/// One step of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Pushes a number.
    Int(i64),
    /// Pushes the dimension with this index.
    Dim(usize),
    /// Adds the two on top.
    Add,
    /// Subtracts the top from what is below it.
    Sub,
    /// Multiplies the two on top.
    Mul,
    /// Divides what is below by the top, rounding up.
    CeilDiv,
    /// Keeps the smaller of the two on top.
    Min,
    /// Keeps the larger of the two on top.
    Max,
}

/// Most values that an expression has at once: two a level, and the generator allows 16 levels.
const MAX_STACK: usize = 40;

/// The value of `expr` where the dimensions have these values; `None` when it overflows or divides by zero.
#[inline]
pub fn evaluate(expr: Expr, dims: &[i64]) -> Option<i64> {
    match *expr {
        [Op::Dim(index)] => dims.get(index).copied(), // nearly all of them
        _ => calculate(expr, dims),
    }
}

fn calculate(expr: Expr, dims: &[i64]) -> Option<i64> {
    let mut stack = ArrayVec::<i64, MAX_STACK>::new();
    for op in expr {
        let value = match *op {
            Op::Int(value) => value,
            Op::Dim(index) => *dims.get(index)?,
            binary => {
                let (right, left) = (stack.pop()?, stack.pop()?);
                match binary {
                    Op::Add => left.checked_add(right)?,
                    Op::Sub => left.checked_sub(right)?,
                    Op::Mul => left.checked_mul(right)?,
                    Op::Min => left.min(right),
                    Op::Max => left.max(right),
                    _ if right <= 0 || left < 0 => return None,
                    _ => left.checked_add(right - 1)? / right,
                }
            }
        };
        stack.try_push(value).ok()?;
    }
    stack.pop()
}

/// The expression as the registry writes it, with the names of dimensions.
pub fn display(expr: Expr, name: impl Fn(usize) -> &'static str) -> String {
    // Each with whether it is a sum, which needs parentheses within a product.
    let mut stack: Vec<(String, bool)> = Vec::new();
    for op in expr {
        let text = match *op {
            Op::Int(value) => (value.to_string(), false),
            Op::Dim(index) => (name(index).to_string(), false),
            binary => {
                let (right, left) = (stack.pop().unwrap_or_default(), stack.pop().unwrap_or_default());
                match binary {
                    Op::Add => (format!("{} + {}", left.0, right.0), true),
                    Op::Sub => (format!("{} - {}", left.0, factor(right)), true),
                    Op::Mul => (format!("{} * {}", factor(left), factor(right)), false),
                    Op::Min => (format!("min({}, {})", left.0, right.0), false),
                    Op::Max => (format!("max({}, {})", left.0, right.0), false),
                    _ => (format!("cdiv({}, {})", left.0, right.0), false),
                }
            }
        };
        stack.push(text);
    }
    stack.pop().unwrap_or_default().0
}

fn factor((text, is_sum): (String, bool)) -> String {
    if is_sum { format!("({text})") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_the_smaller_and_a_quotient_rounded_up() {
        // min(max(cdiv(1056, max(rows, 1)), 1), cdiv(vocab, 1024))
        let expr: Expr = &[
            Op::Int(1056),
            Op::Dim(0),
            Op::Int(1),
            Op::Max,
            Op::CeilDiv,
            Op::Int(1),
            Op::Max,
            Op::Dim(1),
            Op::Int(1024),
            Op::CeilDiv,
            Op::Min,
        ];
        let at = |rows, vocab| evaluate(expr, &[rows, vocab]);
        assert_eq!([at(0, 151_936), at(64, 151_936), at(2000, 151_936), at(64, 0)], [149, 17, 1, 0].map(Some));
        assert_eq!(at(1, i64::MAX), None, "beyond 64 bits");
    }

    #[test]
    fn an_expression_is_written_with_the_parentheses_that_it_needs() {
        const A: Op = Op::Dim(0);
        const B: Op = Op::Dim(1);
        let shown = |expr: Expr| display(expr, |dim| ["a", "b"][dim]);
        let expressions: [Expr; 5] = [
            &[A, B, Op::Int(1), Op::Add, Op::Sub],
            &[A, B, Op::Int(2), Op::Mul, Op::Sub],
            &[Op::Int(4), A, B, Op::Add, Op::Mul],
            &[Op::Int(4), A, B, Op::Min, Op::Mul, B, Op::Add],
            &[A, B, Op::Add, Op::Int(2), Op::CeilDiv],
        ];
        let expected = ["a - (b + 1)", "a - b * 2", "4 * (a + b)", "4 * min(a, b) + b", "cdiv(a + b, 2)"];
        assert_eq!(expressions.map(shown), expected);
    }
}
