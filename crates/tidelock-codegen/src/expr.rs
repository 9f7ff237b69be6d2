//! Expressions (`max_spec_len + 1`, `cdiv(vocab_size, BLOCK_SIZE)`) and domains (`-1..vocab_size`, `probabilities`).
//!
//! Parsing knows nothing of which names exist; it keeps the place of each name so that [`crate::lower`] can point at
//! the one that does not. Length and nesting are bounded.

mod tokens;
mod value;

use std::ops::Range;

use crate::model::{Domain, Expr};
use tokens::{Token, tokens};
pub use value::{Value, evaluate, least};

/// Longest text of an expression or domain, in bytes.
pub const MAX_LENGTH: usize = 200;
const MAX_DEPTH: usize = 16;
/// What an expression is made of, for a help line.
const PARTS: &str =
    "an expression has integers, names, `+`, `-`, `*`, `cdiv(a, b)`, `min(a, b)`, `max(a, b)` and parentheses";

/// The words that stand for a domain, with what they mean.
pub const WORDS: [(&str, Domain); 8] = [
    ("any", Domain::Any),
    ("token_ids", Domain::TokenIds),
    ("probabilities", Domain::Probabilities),
    ("positive", Domain::Positive),
    ("non_negative", Domain::NonNegative),
    ("unit", Domain::Unit),
    ("open_unit", Domain::OpenUnit),
    ("logits", Domain::Logits),
];

/// What was read, with the names in it and their places in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree<T> {
    /// The expression or domain.
    pub value: T,
    /// Each use of a name.
    pub names: Vec<(String, Range<usize>)>,
    /// What `cdiv` divides by.
    pub divisors: Vec<(Expr, Range<usize>)>,
}

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The place in the text.
    pub range: Range<usize>,
    /// What is wrong there.
    pub label: String,
    /// What to write.
    pub help: String,
}

/// Reads an expression.
pub fn expression(text: &str) -> Result<Tree<Expr>, Mistake> {
    let mut parser = Parser::new(text)?;
    let value = parser.sum(0)?;
    parser.end()?;
    Ok(parser.tree(value))
}

/// Reads a domain.
pub fn domain(text: &str) -> Result<Tree<Domain>, Mistake> {
    let mut parser = Parser::new(text)?;
    if let [(Token::Name("inclusive_cumsum"), _), (Token::Open, _), ..] = parser.tokens[..] {
        parser.next = 2;
        let name = parser.name("the dimension that the last value equals")?;
        parser.expect(Token::Close, "`)`")?;
        parser.end()?;
        return Ok(parser.tree(Domain::InclusiveCumsum(name)));
    }
    if let [(Token::Name(word), ref range)] = parser.tokens[..] {
        return match WORDS.iter().find(|(known, _)| *known == word) {
            Some((_, domain)) => Ok(Tree { value: domain.clone(), names: vec![], divisors: vec![] }),
            None => Err(Mistake { range: range.clone(), label: "unknown domain".into(), help: domain_help(word) }),
        };
    }
    let low = parser.sum(0)?;
    parser.expect(Token::Dots, "`..` and the first value that is too large")?;
    let high = parser.sum(0)?;
    parser.end()?;
    Ok(parser.tree(Domain::Range(low, high)))
}

fn domain_help(word: &str) -> String {
    let words = WORDS.iter().map(|(word, _)| *word).chain(["inclusive_cumsum(DIM)"]);
    crate::lower::did_you_mean(word, words, "write a range `A..B`, or one of")
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token<'a>, Range<usize>)>,
    next: usize,
    names: Vec<(String, Range<usize>)>,
    divisors: Vec<(Expr, Range<usize>)>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>, Mistake> {
        if text.len() > MAX_LENGTH {
            let label = format!("longer than {MAX_LENGTH} bytes");
            return Err(Mistake { range: 0..text.len(), label, help: "name a size and use the name".into() });
        }
        Ok(Parser { text, tokens: tokens(text)?, next: 0, names: vec![], divisors: vec![] })
    }

    fn tree<T>(self, value: T) -> Tree<T> {
        Tree { value, names: self.names, divisors: self.divisors }
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next).map(|token| token.0)
    }

    /// The place of the next token, or the end of the text.
    fn here(&self) -> Range<usize> {
        self.tokens.get(self.next).map_or(self.text.len()..self.text.len(), |token| token.1.clone())
    }

    fn take(&mut self, token: Token) -> bool {
        let found = self.peek() == Some(token);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, token: Token, words: &str) -> Result<(), Mistake> {
        if self.take(token) { Ok(()) } else { Err(self.expected(words)) }
    }

    fn expected(&self, words: &str) -> Mistake {
        Mistake { range: self.here(), label: format!("expected {words} here"), help: PARTS.into() }
    }

    fn end(&self) -> Result<(), Mistake> {
        if self.next == self.tokens.len() { Ok(()) } else { Err(self.expected("an operator or the end")) }
    }

    fn name(&mut self, words: &str) -> Result<String, Mistake> {
        let Some(Token::Name(name)) = self.peek() else { return Err(self.expected(words)) };
        self.names.push((name.to_string(), self.here()));
        self.next += 1;
        Ok(name.to_string())
    }

    fn sum(&mut self, depth: usize) -> Result<Expr, Mistake> {
        let mut left = self.product(depth)?;
        loop {
            if self.take(Token::Plus) {
                left = Expr::Add(Box::new(left), Box::new(self.product(depth)?));
            } else if self.take(Token::Minus) {
                left = Expr::Sub(Box::new(left), Box::new(self.product(depth)?));
            } else {
                return Ok(left);
            }
        }
    }

    fn product(&mut self, depth: usize) -> Result<Expr, Mistake> {
        let mut left = self.atom(depth)?;
        while self.take(Token::Times) {
            left = Expr::Mul(Box::new(left), Box::new(self.atom(depth)?));
        }
        Ok(left)
    }

    fn atom(&mut self, depth: usize) -> Result<Expr, Mistake> {
        if depth > MAX_DEPTH {
            let help = "name a size and use the name".to_string();
            return Err(Mistake { range: self.here(), label: "nested too deeply".into(), help });
        }
        match (self.peek(), self.tokens.get(self.next + 1).map(|token| token.0)) {
            (Some(Token::Int(value)), _) => {
                self.next += 1;
                Ok(Expr::Int(value))
            }
            (Some(Token::Minus), Some(Token::Int(value))) => {
                self.next += 2;
                Ok(Expr::Int(-value))
            }
            (Some(Token::Open), _) => {
                self.next += 1;
                let inner = self.sum(depth + 1)?;
                self.expect(Token::Close, "`)`")?;
                Ok(inner)
            }
            (Some(Token::Name(name)), Some(Token::Open)) => self.call(name, depth),
            _ => self.name("a number, a name or `(`").map(Expr::Name),
        }
    }

    /// `cdiv(a, b)`, `min(a, b)` or `max(a, b)`, of which `name` comes next.
    fn call(&mut self, name: &str, depth: usize) -> Result<Expr, Mistake> {
        let function = match name {
            "cdiv" => Expr::CeilDiv,
            "min" => Expr::Min,
            "max" => Expr::Max,
            _ => {
                let help = "the functions are `cdiv(a, b)` (a / b rounded up), `min(a, b)` and `max(a, b)`".to_string();
                return Err(Mistake { range: self.here(), label: format!("`{name}` is no function"), help });
            }
        };
        self.next += 2;
        let first = self.sum(depth + 1)?;
        self.expect(Token::Comma, "`,`")?;
        let start = self.here().start;
        let second = self.sum(depth + 1)?;
        if name == "cdiv" {
            let end = self.tokens[self.next - 1].1.end;
            self.divisors.push((second.clone(), start..end));
        }
        self.expect(Token::Close, "`)`")?;
        Ok(function(Box::new(first), Box::new(second)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Box<Expr> {
        Box::new(Expr::Name(name.into()))
    }

    #[test]
    fn products_bind_tighter_and_sums_lean_left() {
        let tree = expression("a - b - c * 2").unwrap();
        let product = Expr::Mul(name("c"), Box::new(Expr::Int(2)));
        assert_eq!(tree.value, Expr::Sub(Box::new(Expr::Sub(name("a"), name("b"))), Box::new(product)));
        assert_eq!(tree.names[2], ("c".to_string(), 8..9));
    }

    #[test]
    fn domains() {
        let value = |text| domain(text).unwrap().value;
        assert_eq!(value("-1..vocab_size"), Domain::Range(Expr::Int(-1), *name("vocab_size")));
        assert_eq!(value("0..n + 1"), Domain::Range(Expr::Int(0), Expr::Add(name("n"), Box::new(Expr::Int(1)))));
        assert_eq!(value("inclusive_cumsum( num_tokens )"), Domain::InclusiveCumsum("num_tokens".into()));
        assert_eq!(value("open_unit"), Domain::OpenUnit);
    }

    #[test]
    fn mistakes_have_a_place() {
        let place = |text: &str| expression(text).unwrap_err().range;
        assert_eq!(place("a + "), 4..4);
        assert_eq!(place("a / b"), 2..3);
        assert_eq!(place("a b"), 2..3);
        assert_eq!(place("mod(a, b)"), 0..3);
        assert_eq!(place("99999999999999999999"), 0..20);
        assert_eq!(place("é"), 0..2);
        assert_eq!(place(&"(".repeat(150)), 17..18);
    }
}
