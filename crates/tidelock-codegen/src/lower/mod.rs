//! From the tree of a registry file to the model: every rule about a registry by itself is here.
//!
//! A kernel is first read into a draft, part by part (`kernel`, `param`, `constant`), then the parts are checked
//! against each other (`names`, `dims`, `references`, `types`, `domain`, `limits`), what is left open is reported as such
//! (`placeholder`), and only a registry without any error becomes a model (`finish`). An error never stops the reading, so
//! all of them are seen at once.

mod constant;
mod context;
mod dims;
mod domain;
mod draft;
mod element;
mod expression;
mod finish;
mod kernel;
mod limits;
mod literal;
mod names;
mod param;
mod placeholder;
mod references;
mod types;
mod words;

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Family, Registry, Spanned};
use crate::parallel;
use crate::source::Span;
use crate::yaml::{self, Kind};
use context::Context;
pub(crate) use words::did_you_mean;
use words::{is_keyword, is_snake, quoted};

/// Reads registry files, each a path relative to the crate and its text.
pub fn read(files: &[(String, String)]) -> Result<Registry, Diagnostics> {
    let mut files: Vec<&(String, String)> = files.iter().collect();
    files.sort();
    let (mut families, mut names, mut out) = (Vec::new(), Vec::new(), Diagnostics::default());
    for (family, its_names, errors) in parallel::map(&files, |(path, text)| read_file(path, text)) {
        families.extend(family);
        names.extend(its_names);
        out.0.extend(errors.0);
    }
    check_file_names(&files, &mut out);
    check_kernel_names(&names, &mut out);
    if out.is_empty() {
        return Ok(Registry { families });
    }
    out.0.sort_by_cached_key(|error| (error.primary.span.file.clone(), error.primary.span.start, error.code));
    Err(out)
}

fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".yaml").unwrap_or(name)
}

/// The kernels of one file, as far as they are without errors, the names of all, and what is wrong.
fn read_file(path: &str, text: &str) -> (Option<Family>, Vec<Spanned<String>>, Diagnostics) {
    let (mut names, mut out) = (Vec::new(), Diagnostics::default());
    (family(path, text, &mut names, &mut out), names, out)
}

fn family(path: &str, text: &str, names: &mut Vec<Spanned<String>>, out: &mut Diagnostics) -> Option<Family> {
    let root = yaml::parse(path, text).map_err(|error| out.push(*error)).ok()?;
    let mut cx = Context { out, start: 0, kernel: None, entry: None };
    let top = Span::new(path, 0, 0);
    let no_kernels = |cx: &mut Context, span: &Span| {
        let message = format!("{path} has no kernels");
        cx.error("TL0109", message, span, "nothing here", "add an entry under `kernels:`, or remove the file");
    };
    if root.kind == Kind::Null {
        no_kernels(&mut cx, &top);
        return None;
    }
    let fields = cx.fields(&root, &top, &["kernels"])?;
    let node = cx.required(&fields, "kernels", "{name: …}")?;
    let entries = match &node.kind {
        Kind::Null => vec![],
        _ => cx.entries(node, "`kernels`")?,
    };
    if entries.is_empty() {
        no_kernels(&mut cx, fields.key("kernels").unwrap_or(&top));
    }
    let mut kernels = Vec::new();
    for (name, node) in entries {
        names.push(name.clone());
        cx.start = cx.out.0.len();
        if let Some(draft) = kernel::read(&mut cx, name, node) {
            check(&mut cx, &draft);
            placeholder::check(&mut cx, node);
            kernels.extend(finish::kernel(draft, cx.out.0.len() > cx.start));
        }
        (cx.kernel, cx.entry) = (None, None);
    }
    Some(Family { name: stem(path).to_string(), path: path.to_string(), kernels })
}

/// Checks the parts of a kernel against each other.
fn check(cx: &mut Context, kernel: &draft::KernelDraft) {
    names::check(cx, kernel);
    dims::check(cx, kernel);
    references::check(cx, kernel);
    types::check(cx, kernel);
    domain::check(cx, kernel);
    limits::check(cx, kernel);
}

fn check_file_names(files: &[&(String, String)], out: &mut Diagnostics) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (path, _) in files {
        let (name, top) = (stem(path), Span::new(path, 0, 0));
        let mut error = |message: String, help: &str| {
            out.push(Diagnostic::new("TL0108", message, top.clone(), "this file").help(help));
        };
        if !is_snake(name) || is_keyword(name) || !path.ends_with(".yaml") {
            let message = format!("{} cannot be the name of a family of kernels", quoted(name));
            error(message, "name the file in snake case, such as `rejection.yaml`; the name becomes a Rust module");
        } else if let Some(first) = seen.insert(name, path) {
            error(format!("two files of the family {}, {path} and {first}", quoted(name)), "rename one of them");
        }
    }
}

/// Kernels of all files must have different names, also as Rust types.
fn check_kernel_names(names: &[Spanned<String>], out: &mut Diagnostics) {
    let mut seen: BTreeMap<String, &Spanned<String>> = BTreeMap::new();
    for name in names.iter().filter(|name| is_snake(&name.value)) {
        let Some(first) = seen.insert(type_name(&name.value), name) else { continue };
        let message = if first.value == name.value {
            format!("kernel {} is in the registry twice", quoted(&name.value))
        } else {
            let both = format!("kernels {} and {}", quoted(&first.value), quoted(&name.value));
            format!("{both} would both be the Rust type {}", quoted(&type_name(&name.value)))
        };
        let error =
            Diagnostic::new("TL0110", message, name.span.clone(), "again here").label(first.span.clone(), "first here");
        out.push(error.help("rename one of them; a kernel's name is its own in all files"));
    }
}

/// `sample_recovered_tokens` as `SampleRecoveredTokens`.
fn type_name(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}
