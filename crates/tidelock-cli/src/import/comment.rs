//! What a comment beside a parameter says: an element type, a shape, and the rest in words.
//!
//! `# [batch_size, max_spec_len + 1] int32, tokens of each request` has all three.

use tidelock_codegen::expr;
use tidelock_codegen::model::DType;

use super::source::dtype;
use crate::words;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comment {
    /// The element type.
    pub element: Option<DType>,
    /// The length of each axis, as the registry would write it.
    pub shape: Option<Vec<String>>,
    /// Everything else, if it is words.
    pub words: Option<String>,
}

/// Reads the text of a comment, without its marks.
pub fn read(text: &str) -> Comment {
    let mut comment = Comment::default();
    let mut rest = text.trim().to_string();
    if let Some((range, shape)) = shape(&rest) {
        comment.shape = Some(shape);
        let before = rest[..range.start].trim_end().trim_end_matches(':');
        let before = before.strip_suffix("shape").unwrap_or(before).trim_end();
        rest = format!("{before} {}", &rest[range.end..]);
    }
    let first = rest.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';')).find(|word| !word.is_empty());
    if let Some(element) = first.and_then(|word| dtype(word.trim_end_matches(['*', ':']))) {
        comment.element = Some(element);
        rest = rest.replacen(first.unwrap_or_default(), "", 1);
    }
    let words = rest.trim_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '-' | '=' | '/'));
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    comment.words = (words.chars().filter(|c| c.is_alphabetic()).count() >= 3).then_some(words);
    comment
}

/// The first bracketed list of one or two extents, at the start of `text` or after the word `shape`.
fn shape(text: &str) -> Option<(std::ops::Range<usize>, Vec<String>)> {
    let open = text.find(['[', '('])?;
    let before = text[..open].trim_end().trim_end_matches(':').trim_end();
    let last = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    if !(before.is_empty() || last.eq_ignore_ascii_case("shape") || dtype(last).is_some()) {
        return None;
    }
    let close = open + text[open..].find([']', ')'])?;
    let extents = text[open + 1..close].split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let extents: Option<Vec<String>> = extents.map(extent).collect();
    let extents = extents.filter(|extents| (1..=2).contains(&extents.len()))?;
    Some((open..close + 1, extents))
}

/// An extent in the registry's words, its names in snake case.
fn extent(text: &str) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut written, mut word) = (String::new(), String::new());
    for letter in text.chars().chain([' ']) {
        if is_word(letter) {
            word.push(letter);
            continue;
        }
        if !word.is_empty() {
            let number = word.starts_with(|c: char| c.is_ascii_digit());
            written += &if number { word.clone() } else { words::snake(&word) };
            word.clear();
        }
        written.push(letter);
    }
    let written = written.trim().to_string();
    expr::expression(&written).is_ok().then_some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_shape_and_words() {
        let comment = read("[batch_size, max_spec_len + 1] int32, tokens of each request");
        assert_eq!(comment.element, Some(DType::I32));
        assert_eq!(comment.shape, Some(vec!["batch_size".to_string(), "max_spec_len + 1".to_string()]));
        assert_eq!(comment.words.as_deref(), Some("tokens of each request"));
    }

    #[test]
    fn forms_of_shapes() {
        let shape = |text| read(text).shape.map(|shape| shape.join("; "));
        assert_eq!(shape("shape: (M, N)").as_deref(), Some("m; n"));
        assert_eq!(shape("torch.int64[numTokens]").as_deref(), Some("num_tokens"));
        assert_eq!(shape("[a, b, c]"), None, "a registry has no third axis");
        assert_eq!(shape("pointer to the input (see above)"), None);
        assert_eq!(shape("[any words]"), None);
        assert_eq!(read("*fp32"), Comment { element: Some(DType::F32), ..Comment::default() });
        assert_eq!(read("--"), Comment::default());
    }
}
