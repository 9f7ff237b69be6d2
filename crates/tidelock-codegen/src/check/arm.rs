//! Does the CPU arm name and read every argument?

use std::collections::BTreeMap;

use super::{Artifacts, Findings, Subject, label_at, similar};
use crate::arms::{self, CpuArm, Taken};
use crate::diagnostic::Diagnostic;
use crate::model::Registry;
use crate::names;
use crate::source::Span;

pub(super) fn check(registry: &Registry, subjects: &[Subject], artifacts: &Artifacts, findings: &mut Findings) {
    for (family, subjects) in registry.families.iter().zip(subjects.chunk_by(|a, b| a.family.name == b.family.name)) {
        // An arm in C or C++ is held to the registry by its type.
        let subjects: Vec<&Subject> = subjects.iter().filter(|subject| subject.kernel.cpu.is_none()).collect();
        if subjects.is_empty() {
            continue;
        }
        let ids: Vec<usize> = subjects.iter().map(|subject| subject.id).collect();
        let path = arms::path(&family.name);
        let Some(content) = artifacts.cpu.get(&path) else {
            let message = format!("family `{}` has no CPU arm: there is no {path}", family.name);
            let span = subjects[0].kernel.name.span.clone();
            let diagnostic = Diagnostic::new("TL0401", message, span, "needs a fallback");
            findings.push(ids, diagnostic.help(format!("write {path} with an `impl CpuArm` for each kernel")));
            continue;
        };
        let read = match std::str::from_utf8(content) {
            Ok(text) => arms::read(text).map(|arms| (text, arms)),
            Err(error) => {
                let at = error.valid_up_to();
                Err(arms::NotRust { message: "not UTF-8".to_string(), span: at..at })
            }
        };
        match read {
            Err(error) => {
                let span = Span::new(&path, error.span.start, error.span.end);
                findings.push(
                    ids,
                    Diagnostic::new("TL0402", format!("{path} is not Rust"), span, error.message)
                        .help("rustc says more"),
                );
            }
            Ok((text, arms)) => {
                for subject in subjects {
                    let file = File { path: &path, text, subject };
                    for diagnostic in file.check(&arms.0) {
                        findings.push([subject.id], diagnostic);
                    }
                }
            }
        }
    }
}

/// A file of CPU arms, for one kernel.
struct File<'a> {
    path: &'a str,
    text: &'a str,
    subject: &'a Subject<'a>,
}

impl File<'_> {
    fn check(&self, arms: &[CpuArm]) -> Vec<Diagnostic> {
        let kernel = self.subject.kernel;
        let wanted = names::cpu_arguments_name(&kernel.name.value);
        let declared = kernel.name.span.clone();
        let Some(arm) = arms.iter().find(|arm| arm.name == wanted) else {
            let message = format!("kernel `{}` has no CPU arm in {}", kernel.name.value, self.path);
            let known: Vec<String> = self
                .subject
                .family
                .kernels
                .iter()
                .map(|kernel| names::cpu_arguments_name(&kernel.name.value))
                .collect();
            // An arm of no kernel may be this one's under its old name.
            let unclaimed = arms.iter().filter(|arm| !known.contains(&arm.name));
            let similar = similar::closest(&wanted, unclaimed.map(|arm| arm.name.as_str()));
            let place = arms.iter().find(|arm| Some(arm.name.as_str()) == similar);
            let diagnostic =
                Diagnostic::new("TL0403", message, declared, format!("needs an `impl CpuArm for {wanted}`"));
            let place = place.map(|arm| self.span(arm.span.clone()));
            return vec![label_at(diagnostic, place, format!("is `{wanted}` meant?"))];
        };
        let Some(run) = &arm.run else {
            let message = format!("the CPU arm of kernel `{}` has no function `run`", kernel.name.value);
            let span = self.span(arm.span.clone());
            return vec![Diagnostic::new("TL0403", message, span, "no `run` here").label(declared, "its kernel")];
        };
        match &run.taken {
            Some(taken) => self.fields(taken),
            None => {
                let fields: Vec<String> = arms::expected(kernel).into_iter().map(|field| field.field).collect();
                let message = format!(
                    "the CPU arm of kernel `{}` does not begin by taking its arguments apart",
                    kernel.name.value
                );
                let help = format!("begin with `let Self {{ {} }} = self;`", fields.join(", "));
                let span = self.span(run.span.clone());
                vec![Diagnostic::new("TL0404", message, span, "").label(declared, "its kernel").help(help)]
            }
        }
    }

    fn fields(&self, taken: &Taken) -> Vec<Diagnostic> {
        let kernel = &self.subject.kernel.name;
        let expected = arms::expected(self.subject.kernel);
        let named: BTreeMap<&str, _> = taken.fields.iter().map(|field| (field.name.as_str(), field)).collect();
        let left: Vec<_> = expected.iter().filter(|argument| !named.contains_key(argument.field.as_str())).collect();
        let unknown: Vec<_> =
            taken.fields.iter().filter(|field| expected.iter().all(|argument| argument.field != field.name)).collect();
        let line = self.line(taken.span.start);
        let mut found = Vec::new();
        if let Some(rest) = &taken.rest {
            let names: Vec<String> = left.iter().map(|argument| format!("`{}`", argument.field)).collect();
            let unread = match names.as_slice() {
                [] => "which would hide arguments that are added later".to_string(),
                names => format!("which leaves {} unread", names.join(", ")),
            };
            let message =
                format!("the CPU arm of kernel `{}` takes its arguments apart with `..`, {unread}", kernel.value);
            let mut diagnostic =
                Diagnostic::new("TL0404", message, self.span(rest.clone()), "name each argument instead");
            for argument in &left {
                diagnostic = diagnostic.label(argument.declared.clone(), "not read");
            }
            found.push(
                diagnostic.help("what only the GPU arm uses says so in the registry: `only: gpu`, with a reason"),
            );
        } else {
            for argument in &left {
                let name = &argument.field;
                let message = format!(
                    "argument `{name}` of kernel `{}` is in the registry but not in its CPU arm, {line}",
                    kernel.value
                );
                let help = match similar::closest(name, unknown.iter().map(|field| field.name.as_str())) {
                    Some(similar) => format!("did you mean `{name}` where the arm has `{similar}`?"),
                    None => format!("name `{name}` in the pattern and use it"),
                };
                let diagnostic = Diagnostic::new("TL0405", message, argument.declared.clone(), "declared here");
                found.push(diagnostic.label(self.span(taken.span.clone()), format!("no `{name}` here")).help(help));
            }
        }
        for field in &unknown {
            let missing = left.iter().map(|argument| argument.field.as_str());
            // Reported above, from the side of the registry.
            if taken.rest.is_none() && similar::closest(&field.name, missing).is_some() {
                continue;
            }
            found.push(self.unknown(field, &expected));
        }
        for argument in &expected {
            let Some(field) = named.get(argument.field.as_str()).filter(|field| !field.read) else { continue };
            let message = format!("the CPU arm of kernel `{}` does not read `{}`", kernel.value, argument.field);
            let help = "use it, or, if only the GPU arm needs it, say so in the registry: `only: gpu`, with a reason";
            let diagnostic = Diagnostic::new("TL0406", message, self.span(field.span.clone()), "bound and never read");
            found.push(diagnostic.label(argument.declared.clone(), "declared here").help(help));
        }
        found
    }

    fn unknown(&self, field: &arms::Field, expected: &[arms::Expected]) -> Diagnostic {
        let kernel = self.subject.kernel;
        let message = format!(
            "the CPU arm of kernel `{}` names `{}`, which is not one of its arguments",
            kernel.name.value, field.name
        );
        let diagnostic = Diagnostic::new("TL0407", message, self.span(field.span.clone()), "no such argument");
        let param = kernel.params.iter().find(|param| param.name.value == field.name).map(|param| &param.name);
        let constant = kernel.constants.iter().map(|constant| &constant.name);
        let declared = param.or_else(|| constant.into_iter().find(|name| name.value.to_lowercase() == field.name));
        match declared {
            Some(name) => diagnostic
                .label(name.span.clone(), "never given to the CPU arm")
                .help("strides come with the views; tuning and derived constants are the GPU arm's alone"),
            None => {
                let candidates = expected.iter().map(|argument| argument.field.as_str());
                let help = similar::did_you_mean(&field.name, candidates).unwrap_or_else(|| {
                    format!("declare `{}` in {}, or take it out", field.name, self.subject.family.path)
                });
                diagnostic.label(kernel.name.span.clone(), "its kernel").help(help)
            }
        }
    }

    fn span(&self, range: std::ops::Range<usize>) -> Span {
        Span::new(self.path, range.start, range.end)
    }

    /// `src/cpu/softmax.rs:12`.
    fn line(&self, at: usize) -> String {
        format!("{}:{}", self.path, Span::new(self.path, at, at).line_column(self.text).0)
    }
}
