//! What every part of the lowering shares: where it is, what it found, and access to maps and scalars of the tree.

use std::collections::BTreeMap;

use super::words::{did_you_mean, listed, quoted};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Spanned;
use crate::source::Span;
use crate::yaml::{Kind, Node};

/// Collects errors, and knows the kernel and the parameter it is at.
pub(super) struct Context<'a> {
    pub(super) out: &'a mut Diagnostics,
    /// How many errors there were before this kernel.
    pub(super) start: usize,
    /// The kernel.
    pub(super) kernel: Option<String>,
    /// The entry in it: "parameter `x`".
    pub(super) entry: Option<String>,
}

/// The keys of a map whose keys are fixed, each at most once.
pub(super) struct Fields<'n> {
    /// Where to point when a key is missing.
    pub(super) span: Span,
    map: BTreeMap<&'n str, (&'n Span, &'n Node)>,
}

impl<'n> Fields<'n> {
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.map.get(key).map(|field| field.1)
    }

    /// Where the key stands.
    pub(super) fn key(&self, key: &str) -> Option<&'n Span> {
        self.map.get(key).map(|field| field.0)
    }
}

impl Context<'_> {
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.out.push(diagnostic);
    }

    /// Reports an error with nothing but a help line beside its label.
    pub(super) fn error(&mut self, code: &'static str, message: String, span: &Span, label: &str, help: &str) {
        self.push(Diagnostic::new(code, message, span.clone(), label).help(help));
    }

    /// Where we are: "parameter `x` of kernel `y`".
    pub(super) fn place(&self) -> String {
        match (&self.entry, &self.kernel) {
            (Some(entry), Some(kernel)) => format!("{entry} of kernel {}", quoted(kernel)),
            (_, Some(kernel)) => format!("kernel {}", quoted(kernel)),
            _ => "the file".to_string(),
        }
    }

    /// " in kernel `y`", or nothing at the top of a file.
    pub(super) fn inside(&self) -> String {
        self.kernel.as_ref().map_or(String::new(), |kernel| format!(" in kernel {}", quoted(kernel)))
    }

    /// The entries of a map whose keys are names, without repeated ones.
    pub(super) fn entries<'n>(&mut self, node: &'n Node, what: &str) -> Option<Vec<&'n (Spanned<String>, Node)>> {
        let Kind::Map(entries) = &node.kind else {
            self.wrong_kind(node, what, "a map");
            return None;
        };
        let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
        let mut kept = Vec::new();
        for entry in entries {
            let (name, span) = (entry.0.value.as_str(), &entry.0.span);
            if let Some(first) = seen.get(name) {
                let message = format!("{} is written twice in {what}", quoted(name));
                let error = Diagnostic::new("TL0102", message, span.clone(), "again here")
                    .label((*first).clone(), "first here");
                self.push(error.help("keep one of them"));
            } else {
                seen.insert(name, span);
                kept.push(entry);
            }
        }
        Some(kept)
    }

    /// The fields of a map that has the `known` keys alone; `span` is the name of what it describes.
    pub(super) fn fields<'n>(&mut self, node: &'n Node, span: &Span, known: &[&str]) -> Option<Fields<'n>> {
        let entries = self.entries(node, &self.place())?;
        let mut map = BTreeMap::new();
        for (key, value) in entries {
            if known.contains(&key.value.as_str()) {
                map.insert(key.value.as_str(), (&key.span, value));
                continue;
            }
            let message = format!("unknown key {} in {}", quoted(&key.value), self.place());
            let help = did_you_mean(
                &key.value,
                known.iter().copied(),
                if known.len() == 1 { "the key is" } else { "the keys are" },
            );
            self.error("TL0103", message, &key.span, "unknown key", &help);
        }
        Some(Fields { span: span.clone(), map })
    }

    /// The value of a key that has to be there.
    pub(super) fn required<'n>(&mut self, fields: &Fields<'n>, key: &str, example: &str) -> Option<&'n Node> {
        let node = fields.get(key);
        if node.is_none() {
            let message = format!("{} has no key `{key}`", self.place());
            self.error(
                "TL0104",
                message,
                &fields.span,
                &format!("`{key}` is missing"),
                &format!("add `{key}: {example}`"),
            );
        }
        node
    }

    /// Refuses keys that are known but do not go together with something else that is said.
    pub(super) fn misplaced(&mut self, fields: &Fields, keys: &[&str], why: &str, help: &str) {
        for span in keys.iter().filter_map(|key| Some((key, fields.key(key)?))) {
            let message = format!("key `{}` does not belong in {}", span.0, self.place());
            self.error("TL0106", message, span.1, why, help);
        }
    }

    pub(super) fn wrong_kind(&mut self, node: &Node, what: &str, expected: &str) {
        let message = format!("{what} must be {expected}");
        let mut error = Diagnostic::new("TL0105", message, node.span.clone(), format!("this is {}", node.describe()));
        let help = match (expected, &node.kind) {
            ("text", Kind::Int(_) | Kind::Float(_) | Kind::Bool(_)) => "put it in quotes",
            ("text", Kind::Null) => "write it after the colon",
            ("a list", Kind::Str(_) | Kind::Int(_)) => "put it in square brackets",
            ("a map", _) => "write `key: value`, one a line and indented, or `{key: value, …}`",
            _ => "",
        };
        if !help.is_empty() {
            error = error.help(help);
        }
        self.push(error);
    }

    fn key_of(&self, key: &str) -> String {
        format!("`{key}` of {}", self.place())
    }

    pub(super) fn text<'n>(&mut self, node: &'n Node, key: &str) -> Option<&'n str> {
        if let Kind::Str(text) = &node.kind {
            return Some(text);
        }
        self.wrong_kind(node, &self.key_of(key), "text");
        None
    }

    /// Text for people to read: trimmed, and not empty.
    pub(super) fn prose(&mut self, node: &Node, key: &str) -> Option<String> {
        let text = self.text(node, key)?.trim();
        if text.is_empty() {
            let message = format!("`{key}` of {} is empty", self.place());
            self.error("TL0113", message, &node.span, "no words", "say it in a sentence");
            return None;
        }
        Some(text.to_string())
    }

    pub(super) fn boolean(&mut self, node: &Node, key: &str) -> Option<bool> {
        if let Kind::Bool(value) = node.kind {
            return Some(value);
        }
        self.wrong_kind(node, &self.key_of(key), "true or false");
        None
    }

    pub(super) fn integer(&mut self, node: &Node, key: &str) -> Option<i64> {
        if let Kind::Int(value) = node.kind {
            return Some(value);
        }
        self.wrong_kind(node, &self.key_of(key), "an integer");
        None
    }

    pub(super) fn list<'n>(&mut self, node: &'n Node, key: &str) -> Option<&'n [Node]> {
        if let Kind::Seq(items) = &node.kind {
            return Some(items);
        }
        self.wrong_kind(node, &self.key_of(key), "a list");
        None
    }

    /// One of the `known` words.
    pub(super) fn word<T: Copy>(&mut self, node: &Node, key: &str, known: &[(&str, T)]) -> Option<T> {
        let text = self.text(node, key)?;
        let found = known.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let message = format!("unknown word {} for {}", quoted(text), self.key_of(key));
            let help = did_you_mean(text, known.iter().map(|(word, _)| *word), "write");
            self.error("TL0117", message, &node.span, "unknown word", &help);
        }
        found.map(|(_, value)| *value)
    }

    /// `word` or `word(name)`, such as `stride(probs)`, where `known` says each word and whether a name goes with it.
    pub(super) fn derivation(
        &mut self,
        node: &Node,
        known: &[(&str, bool)],
    ) -> Option<(String, Option<Spanned<String>>)> {
        let text = self.text(node, "from")?;
        let (word, rest) = text.find('(').map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])));
        let argument = rest.and_then(|rest| rest.strip_suffix(')')).map(str::trim).filter(|name| !name.is_empty());
        if let Some((_, with_name)) = known.iter().find(|(known, _)| *known == word)
            && *with_name == argument.is_some()
            && *with_name == rest.is_some()
        {
            let name = argument.map(|name| {
                let start =
                    text.find('(').map_or(0, |at| at + 1 + text[at + 1..].len() - text[at + 1..].trim_start().len());
                Spanned { value: name.to_string(), span: node.at(start..start + name.len()) }
            });
            return Some((word.to_string(), name));
        }
        let forms: Vec<String> = known
            .iter()
            .map(|(word, with)| if *with { format!("{word}(TENSOR)") } else { (*word).to_string() })
            .collect();
        let message = format!("unknown word {} for {}", quoted(text), self.key_of("from"));
        let help = format!("write {}", listed(forms.iter().map(String::as_str), "or"));
        self.error("TL0117", message, &node.span, "unknown word", &help);
        None
    }
}
