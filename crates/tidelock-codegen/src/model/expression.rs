//! Expressions of sizes, as the registry writes them.

use std::fmt;

/// An integer expression over dimensions and constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A number.
    Int(i64),
    /// A dimension or an integer constant.
    Name(String),
    /// Sum.
    Add(Box<Expr>, Box<Expr>),
    /// Difference.
    Sub(Box<Expr>, Box<Expr>),
    /// Product.
    Mul(Box<Expr>, Box<Expr>),
    /// Quotient rounded up: `cdiv(a, b)`.
    CeilDiv(Box<Expr>, Box<Expr>),
    /// The smaller: `min(a, b)`.
    Min(Box<Expr>, Box<Expr>),
    /// The larger: `max(a, b)`.
    Max(Box<Expr>, Box<Expr>),
}

impl fmt::Display for Expr {
    /// As the registry writes it; a sum within a product has its parentheses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let factor = |expr: &Expr| match expr {
            Expr::Add(..) | Expr::Sub(..) => format!("({expr})"),
            other => other.to_string(),
        };
        match self {
            Expr::Int(value) => write!(f, "{value}"),
            Expr::Name(name) => f.write_str(name),
            Expr::Add(left, right) => write!(f, "{left} + {right}"),
            Expr::Sub(left, right) => write!(f, "{left} - {}", factor(right)),
            Expr::Mul(left, right) => write!(f, "{} * {}", factor(left), factor(right)),
            Expr::CeilDiv(left, right) => write!(f, "cdiv({left}, {right})"),
            Expr::Min(left, right) => write!(f, "min({left}, {right})"),
            Expr::Max(left, right) => write!(f, "max({left}, {right})"),
        }
    }
}
