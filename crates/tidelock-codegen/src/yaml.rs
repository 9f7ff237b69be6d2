//! A YAML file as a tree in which every value knows where it was written.
//!
//! Nothing here knows what a registry is. Anchors, aliases, merge keys, tags and several documents in one file are
//! refused, since an entry must say by itself what it says; duplicate keys are kept for the reader to point at both.
//! Size, depth and number of nodes are bounded, so hostile input costs bounded time and memory.

mod raw;

use std::ops::Range;

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Location};

use crate::diagnostic::Diagnostic;
use crate::model::Spanned;
use crate::source::Span;
use raw::{Raw, RawNode};

/// Largest file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
const TOO_DEEP: &str = "a registry needs six levels; check the brackets and the indentation";

/// A value of a YAML file.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it stands; of something that spans lines, its first line.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
    /// Where the text of a string begins in the file, if the file holds it letter by letter.
    verbatim: Option<usize>,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Nothing, or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Str(String),
    /// A list.
    Seq(Vec<Node>),
    /// Keys and values in the order of the file, duplicates included.
    Map(Vec<(Spanned<String>, Node)>),
}

impl Node {
    /// What it is, in words for a message.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "true or false",
            Kind::Int(_) => "an integer",
            Kind::Float(_) => "a number that is no 64-bit integer",
            Kind::Str(_) => "text",
            Kind::Seq(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }

    /// This and the `next` item of a list as the one text that they were before YAML cut it at a comma.
    fn joined(&self, next: &Node) -> Option<Node> {
        let Kind::Str(left) = &self.kind else { return None };
        let right = match &next.kind {
            Kind::Str(right) => right.clone(),
            Kind::Int(right) => right.to_string(),
            _ => return None,
        };
        let gap = next.span.start.checked_sub(self.span.end).filter(|gap| (1..=80).contains(gap))?;
        let span = Span::new(&self.span.file, self.span.start, next.span.end);
        let text = format!("{left},{}{right}", " ".repeat(gap - 1));
        Some(Node { span, kind: Kind::Str(text), verbatim: self.verbatim })
    }

    /// The place of `range` of this string's text, or the whole where the file writes it otherwise.
    pub fn at(&self, range: Range<usize>) -> Span {
        match self.verbatim {
            Some(start) => Span::new(&self.span.file, start + range.start, start + range.end),
            None => self.span.clone(),
        }
    }
}

/// The items of a list, where an expression such as `cdiv(a, b)`, which YAML cuts at its comma inside `[ ]`, is whole.
pub fn whole_expressions(items: &[Node]) -> Vec<Node> {
    let open = |node: &Node| match &node.kind {
        Kind::Str(text) => text.matches('(').count() > text.matches(')').count(),
        _ => false,
    };
    let mut whole: Vec<Node> = Vec::new();
    for item in items {
        match whole.last_mut().filter(|last| open(last)).and_then(|last| last.joined(item)) {
            Some(joined) => *whole.last_mut().expect("it was joined to") = joined,
            None => whole.push(item.clone()),
        }
    }
    whole
}

/// Reads the one document in `text`, which is that of `file`.
pub fn parse(file: &str, text: &str) -> Result<Node, Box<Diagnostic>> {
    if text.len() > MAX_BYTES {
        let label = format!("{} bytes, the limit is {MAX_BYTES}", text.len());
        let error = Diagnostic::new("TL0101", "the file is too large for a registry", Span::new(file, 0, 0), label);
        return Err(Box::new(error.help("split it into several files, one for each family of kernels")));
    }
    let raw = serde_saphyr::from_str_with_options::<RawNode>(text, raw::options());
    let file = File { path: file, text };
    raw.map(|raw| file.node(raw)).map_err(|error| Box::new(file.error(&error)))
}

struct File<'a> {
    path: &'a str,
    text: &'a str,
}

impl File<'_> {
    fn node(&self, raw: RawNode) -> Node {
        let (start, mut end) = self.range(&raw.referenced);
        let mut verbatim = None;
        let kind = match raw.value {
            Raw::Leaf(kind) => {
                if let Kind::Str(value) = &kind {
                    verbatim = [start, start + 1].into_iter().find(|&at| self.holds(at, end, value));
                }
                kind
            }
            Raw::Seq(items) => {
                let items: Vec<Node> = items.into_iter().map(|item| self.node(item)).collect();
                end = self.close(start, items.last().map_or(end, |last| last.span.end.max(end)));
                Kind::Seq(items)
            }
            Raw::Map(entries) => {
                let entries: Vec<_> =
                    entries.into_iter().map(|(key, value)| (self.key(key), self.node(value))).collect();
                end =
                    self.close(start, entries.last().map_or(end, |last| last.1.span.end.max(last.0.span.end).max(end)));
                Kind::Map(entries)
            }
        };
        Node { span: self.line_span(start, end), kind, verbatim }
    }

    /// Whether a plain string stands at `at`, up to `end`, or a quoted one up to the quote before it.
    fn holds(&self, at: usize, end: usize, value: &str) -> bool {
        let stop = at + value.len();
        (stop == end || stop + 1 == end) && self.text.get(at..stop) == Some(value) && !value.contains('\n')
    }

    fn key(&self, key: serde_saphyr::Spanned<String>) -> Spanned<String> {
        let (start, end) = self.range(&key.referenced);
        Spanned { value: key.value, span: self.line_span(start, end) }
    }

    /// The end of a container that begins at `start` and whose last value ends at `end`.
    fn close(&self, start: usize, end: usize) -> usize {
        let closing = match self.text.as_bytes().get(start) {
            Some(b'{') => '}',
            Some(b'[') => ']',
            _ => return end,
        };
        let rest = self.text.get(end..).unwrap_or_default();
        match rest.find(closing) {
            Some(at) if rest[..at].chars().all(|c| c.is_whitespace() || c == ',') => end + at + 1,
            _ => end,
        }
    }

    /// `start..end` without what follows its first line.
    fn line_span(&self, start: usize, end: usize) -> Span {
        let line = self.text.get(start..end).unwrap_or_default();
        let line = line.split('\n').next().unwrap_or_default().trim_end();
        Span::new(self.path, start, start + line.len())
    }

    /// The bytes of a location: its byte offsets, or those of its characters where it has none.
    fn range(&self, location: &Location) -> (usize, usize) {
        let span = location.span();
        let byte_of = |chars: u64| self.text.char_indices().nth(chars as usize).map_or(self.text.len(), |(at, _)| at);
        let (start, end) = match (span.byte_offset(), span.byte_len()) {
            (Some(start), Some(length)) => (start as usize, (start + length) as usize),
            _ => (byte_of(span.offset()), byte_of(span.offset().saturating_add(span.len()))),
        };
        let length = self.text.len();
        (start.min(length), end.clamp(start.min(length), length))
    }

    fn error(&self, error: &Error) -> Diagnostic {
        let (mut start, end) = error.location().map_or((0, 0), |location| self.range(&location));
        let (label, help) = explain(error);
        if let Some(mark) = mark(error) {
            start = self.text.get(..end).and_then(|before| before.rfind(mark)).unwrap_or(start);
        }
        Diagnostic::new("TL0101", "the file cannot be read as YAML", self.line_span(start, end), label).help(help)
    }
}

/// The sign that begins what is refused, where the parser points behind it.
fn mark(error: &Error) -> Option<char> {
    match error {
        Error::Budget { breach: BudgetBreach::Anchors { .. }, .. } => Some('&'),
        Error::UnsupportedTag { .. } => Some('!'),
        _ => None,
    }
}

/// What is wrong and what to do.
fn explain(error: &Error) -> (String, &'static str) {
    match error {
        Error::Budget { breach: BudgetBreach::Anchors { .. } | BudgetBreach::Aliases { .. }, .. }
        | Error::UnknownAnchor { .. }
        | Error::AliasError { .. } => (
            "a registry has no anchors and aliases".into(),
            "write the value out; put text that starts with `&` or `*` in quotes",
        ),
        Error::MergeKeyNotAllowed { .. } => ("a registry has no merge keys".into(), "write the keys out"),
        Error::UnsupportedTag { .. } => {
            ("a registry has no tags".into(), "remove the word that starts with `!`, or put the text in quotes")
        }
        Error::MultipleDocuments { .. } | Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            ("a second document starts here".into(), "remove the line `---`, or use two files")
        }
        Error::Unexpected { expected: "string scalar", .. } => {
            ("a key must be text".into(), "write `name: value`; text that starts with `[` or `{` needs quotes")
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => ("nested too deeply".into(), TOO_DEEP),
        Error::Budget { breach, .. } => (
            format!("too much for a registry: {breach:?}"),
            "split it into several files, one for each family of kernels",
        ),
        other => {
            let text = other.to_string();
            let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
            let message: String = message.chars().filter(|c| !c.is_control()).take(200).collect();
            if message.contains("recursion limit") {
                return ("nested too deeply".into(), TOO_DEEP);
            }
            (message, "check indentation, brackets and quotes; text with `: ` or ` #` in it needs quotes")
        }
    }
}
