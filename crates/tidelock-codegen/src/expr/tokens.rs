//! The words and signs of an expression.

use std::ops::Range;

use super::Mistake;

/// A word or sign of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    Int(i64),
    Plus,
    Minus,
    Times,
    Open,
    Close,
    Comma,
    Dots,
}

/// Cuts `text` into tokens, each with its place.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token<'_>, Range<usize>)>, Mistake> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let run = |keep: fn(char) -> bool| text[at..].find(|c| !keep(c)).map_or(text.len(), |length| at + length);
        let (token, end) = match first {
            ' ' => {
                at += 1;
                continue;
            }
            '+' => (Token::Plus, at + 1),
            '-' => (Token::Minus, at + 1),
            '*' => (Token::Times, at + 1),
            '(' => (Token::Open, at + 1),
            ')' => (Token::Close, at + 1),
            ',' => (Token::Comma, at + 1),
            '.' if text[at..].starts_with("..") => (Token::Dots, at + 2),
            '0'..='9' => {
                let end = run(|c| c.is_ascii_alphanumeric() || c == '_');
                let Ok(value) = text[at..end].parse() else {
                    let help = "a number has decimal digits only and fits in 64 bits".to_string();
                    return Err(Mistake { range: at..end, label: "not an integer".into(), help });
                };
                (Token::Int(value), end)
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let end = run(|c| c.is_ascii_alphanumeric() || c == '_');
                (Token::Name(&text[at..end]), end)
            }
            other => {
                let help = match other {
                    '/' | '%' => "to divide, write `cdiv(a, b)`: a / b rounded up",
                    '.' => "numbers are integers; a range is written `A..B`",
                    _ => super::PARTS,
                };
                let range = at..at + other.len_utf8();
                return Err(Mistake { range, label: "not part of an expression".into(), help: help.into() });
            }
        };
        tokens.push((token, at..end));
        at = end;
    }
    Ok(tokens)
}
