//! The sources of kernels, each read once for all the kernels that it holds.

use std::collections::BTreeMap;
use std::ops::Range;

use super::kernel_source::{self, Function, Language};
use crate::facts::Hash;

/// Files under `kernels/` by path.
pub type SourceFiles<'a> = BTreeMap<&'a str, SourceFile<'a>>;

/// A file under `kernels/`, read once for all of its kernels.
pub struct SourceFile<'a> {
    pub content: &'a [u8],
    pub hash: Hash,
    /// Its text, where it is UTF-8.
    pub text: Option<&'a str>,
    language: Language,
    /// The names of its functions, where they stand.
    functions: Vec<Range<usize>>,
}

impl<'a> SourceFile<'a> {
    pub fn of(path: &str, content: &'a [u8]) -> SourceFile<'a> {
        let (text, language) = (std::str::from_utf8(content).ok(), Language::of(path));
        let functions = text.map_or(vec![], |text| kernel_source::functions(text, language));
        SourceFile { content, hash: Hash::of(content), text, language, functions }
    }

    pub fn find(&self, function: &str) -> Option<Function> {
        kernel_source::find(self.text?, &self.functions, function, self.language)
    }

    pub fn function_names(&self) -> impl Iterator<Item = &'a str> {
        self.functions.iter().filter_map(|span| self.text?.get(span.clone()))
    }
}
