//! Errors about a registry: a code, a message, labelled places and a help line.
//!
//! Stages collect diagnostics and go on, so that an author sees everything that is wrong at once. Rendering needs the
//! texts that the spans point into and is done once, at the end, by [`Diagnostics::render`].

mod render;

pub(crate) use render::MAX_RENDERED;

use crate::source::Span;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code, such as `TL0203`; `tidelock explain` knows it.
    pub code: &'static str,
    /// What is wrong, naming the kernel and the parameter.
    pub message: String,
    /// The place to change.
    pub primary: Label,
    /// Other places that bear on it.
    pub others: Vec<Label>,
    /// What to do.
    pub help: Option<String>,
}

/// A place and what is to be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The words beside it.
    pub text: String,
}

impl Diagnostic {
    /// An error at `span`, with `label` beside the snippet.
    pub fn new(code: &'static str, message: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
        let primary = Label { span, text: label.into() };
        Diagnostic { code, message: message.into(), primary, others: Vec::new(), help: None }
    }

    /// Adds another labelled place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.others.push(Label { span, text: text.into() });
        self
    }

    /// Sets the help line.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }
}

/// All that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
