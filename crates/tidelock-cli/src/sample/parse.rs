//! Single values of the command line. What is wrong is said as expected and got.

use std::ops::Range;
use std::str::FromStr;

/// Words of token ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(pub Vec<Vec<i32>>);

fn value<T: FromStr>(text: &str, expected: &str, valid: impl Fn(&T) -> bool) -> Result<T, String> {
    text.trim().parse().ok().filter(valid).ok_or_else(|| format!("expected {expected}, got {text:?}"))
}

/// A temperature: at least 0; infinity makes all tokens alike.
pub fn temperature(text: &str) -> Result<f32, String> {
    value(text, "a number of at least 0", |value| *value >= 0.0)
}

/// Any number, which the kernels have a meaning for.
pub fn number(text: &str) -> Result<f32, String> {
    value(text, "a number", |value: &f32| !value.is_nan())
}

/// A finite number.
pub fn finite(text: &str) -> Result<f32, String> {
    value(text, "a finite number", |value: &f32| value.is_finite())
}

/// A finite number above 0.
pub fn positive(text: &str) -> Result<f32, String> {
    value(text, "a finite number above 0", |value: &f32| value.is_finite() && *value > 0.0)
}

/// A whole number.
pub fn integer<T: FromStr>(text: &str) -> Result<T, String> {
    value(text, &format!("a whole number of {} bits", 8 * size_of::<T>()), |_| true)
}

/// A token id, of whatever vocabulary.
pub fn token_id(text: &str) -> Result<i32, String> {
    value(text, "a token id", |_| true)
}

/// A part of the rows, `A..B`.
pub fn rows(text: &str) -> Result<Range<usize>, String> {
    let ends =
        text.split_once("..").and_then(|(start, end)| Some(start.trim().parse().ok()?..end.trim().parse().ok()?));
    ends.filter(|rows| !rows.is_empty()).ok_or_else(|| format!("expected A..B with A below B, got {text:?}"))
}

/// Words of ids, `12 5;7`.
pub fn words(text: &str) -> Result<Words, String> {
    let word = |word: &str| {
        let ids: Option<Vec<i32>> = word.split_whitespace().map(|id| id.parse().ok()).collect();
        ids.filter(|ids| !ids.is_empty())
    };
    let words: Option<_> = text.split(';').map(word).collect();
    words.map(Words).ok_or_else(|| format!("expected words of token ids such as \"12 5;7\", got {text:?}"))
}

/// A token's bias, `17:2.5`.
pub fn bias(text: &str) -> Result<(i32, f32), String> {
    let parts = text.split_once(':').and_then(|(id, bias)| Some((id.trim().parse().ok()?, number(bias).ok()?)));
    parts.ok_or_else(|| format!("expected ID:BIAS, a token id and a number, got {text:?}"))
}
