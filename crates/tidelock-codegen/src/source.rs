//! Where something stands: a file and a range of bytes in it.

use std::collections::BTreeMap;

/// A range of bytes in a file of the crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Path relative to the crate, with forward slashes.
    pub file: String,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// The texts that spans point into, by path.
pub type Sources = BTreeMap<String, String>;

impl Span {
    /// The span of `start..end` in `file`.
    pub fn new(file: impl Into<String>, start: usize, end: usize) -> Span {
        Span { file: file.into(), start, end }
    }

    /// Line and column, both counted from 1, of the span's start in `text`.
    pub fn line_column(&self, text: &str) -> (usize, usize) {
        let before = &text.as_bytes()[..self.start.min(text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
        (line, column)
    }

    /// The whole of a line, counted from 1, of `text` in `file`.
    pub fn of_line(file: impl Into<String>, text: &str, line: usize) -> Span {
        let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let length = text[start..].lines().next().map_or(0, str::len);
        Span::new(file, start, start + length)
    }
}

/// Where the lines of a text begin, to find the lines of many places.
#[derive(Clone, Debug)]
pub struct Lines(Vec<usize>);

impl Lines {
    /// The lines of `text`.
    pub fn of(text: &str) -> Lines {
        Lines(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// Line and column in bytes, both counted from 1, of the byte `at`.
    pub fn line_column(&self, at: usize) -> (usize, usize) {
        let line = self.0.partition_point(|&start| start <= at);
        (line, at - self.0[line - 1] + 1)
    }
}
