//! Diagnostics as text for people, in the manner of rustc, and as JSON for editors and scripts.

use std::collections::BTreeMap;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str};
use serde_json::{Value, json};

use super::{Diagnostic, Diagnostics, Label};
use crate::explain::explain;
use crate::source::{Lines, Sources, Span};

/// Most errors that are rendered; the others are counted.
pub(crate) const MAX_RENDERED: usize = 100;
const WIDTH: usize = 160;

impl Diagnostics {
    /// The whole as text, with a count at its end; `sources` must have the files that spans name.
    pub fn render(&self, sources: &Sources, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() }.term_width(WIDTH);
        let mut text = String::new();
        for diagnostic in self.0.iter().take(MAX_RENDERED) {
            text += &renderer.render(&[diagnostic.report(sources)]);
            text += "\n\n";
        }
        let mut end = vec![Group::with_title(Level::ERROR.primary_title(self.count()))];
        if let Some(code) = self.0.iter().map(|diagnostic| diagnostic.code).find(|code| explain(code).is_some()) {
            let help = format!("`tidelock explain {code}` says more about the first");
            end.push(Group::with_title(Level::HELP.secondary_title(help)));
        }
        text + &renderer.render(&end) + "\n"
    }

    fn count(&self) -> String {
        match self.0.len() {
            1 => "1 error found".to_string(),
            count if count > MAX_RENDERED => {
                format!("{count} errors found, of which {MAX_RENDERED} are shown")
            }
            count => format!("{count} errors found"),
        }
    }

    /// A list of objects: place, code, message, labels and help of each error. Lines and columns count from 1, columns
    /// in bytes.
    pub fn to_json(&self, sources: &Sources) -> Value {
        let lines = sources.iter().map(|(file, text)| (file.as_str(), Lines::of(text))).collect();
        self.0.iter().map(|diagnostic| diagnostic.to_json(&lines)).collect()
    }
}

impl Diagnostic {
    fn report<'a>(&'a self, sources: &'a Sources) -> Group<'a> {
        let mut group = Group::with_title(Level::ERROR.primary_title(self.message.as_str()).id(self.code));
        let mut files = vec![self.primary.span.file.as_str()];
        for other in &self.others {
            if !files.contains(&other.span.file.as_str()) {
                files.push(&other.span.file);
            }
        }
        for file in files {
            let Some(text) = sources.get(file).filter(|text| !text.is_empty()) else {
                group = group.element(Origin::path(file));
                continue;
            };
            let labels = std::iter::once((AnnotationKind::Primary, &self.primary))
                .chain(self.others.iter().map(|label| (AnnotationKind::Context, label)))
                .filter(|(_, label)| label.span.file == file);
            let annotations: Vec<Annotation> = labels.map(|(kind, label)| annotation(kind, label, text)).collect();
            group = group.element(Snippet::source(text).path(file).annotations(annotations));
        }
        match &self.help {
            Some(help) => group.element(Level::HELP.message(normalize_untrusted_str(help))),
            None => group,
        }
    }

    fn to_json(&self, lines: &LinesOf) -> Value {
        let mut value = place(&self.primary, lines);
        value["code"] = json!(self.code);
        value["message"] = json!(self.message);
        value["labels"] = self.others.iter().map(|label| place(label, lines)).collect();
        value["help"] = json!(self.help);
        value
    }
}

fn annotation<'a>(kind: AnnotationKind, label: &Label, text: &str) -> Annotation<'a> {
    let annotation = kind.span(within(&label.span, text));
    if label.text.is_empty() { annotation } else { annotation.label(normalize_untrusted_str(&label.text)) }
}

/// The bytes of `span` that `text` has, at borders of characters.
fn within(span: &Span, text: &str) -> Range<usize> {
    let border = |at: usize| (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let (start, end) = (border(span.start), border(span.end));
    start..end.max(start)
}

/// Where the lines of each file start.
type LinesOf<'a> = BTreeMap<&'a str, Lines>;

fn place(label: &Label, lines: &LinesOf) -> Value {
    let position = |at| lines.get(label.span.file.as_str()).map_or((1, 1), |lines| lines.line_column(at));
    let ((line, column), (end_line, end_column)) = (position(label.span.start), position(label.span.end));
    json!({
        "file": label.span.file,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "label": label.text,
    })
}
