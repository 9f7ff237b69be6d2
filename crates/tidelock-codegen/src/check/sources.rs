//! Are the sources there, and are they the ones that were compiled?

use std::collections::{BTreeMap, BTreeSet};

use super::{Findings, SourceFiles, Subject, label_at, similar};
use crate::diagnostic::Diagnostic;
use crate::source::Span;

pub(super) fn check(subjects: &[Subject], files: &SourceFiles, findings: &mut Findings) {
    changed(subjects, files, findings);
    for subject in subjects {
        if there(subject, files, findings) {
            compiled(subject, findings);
        }
    }
}

/// Reports each file that changed, once, with the kernels that were compiled from it.
fn changed(subjects: &[Subject], files: &SourceFiles, findings: &mut Findings) {
    let mut changed: BTreeMap<&str, Vec<&Subject>> = BTreeMap::new();
    for subject in subjects {
        let sources = subject.facts.iter().flat_map(|facts| &facts.sources);
        for (path, _) in sources.filter(|(path, hash)| files.get(path.as_str()).map(|file| &file.hash) != Some(hash)) {
            // A source that is gone altogether is reported where the registry names it.
            if files.contains_key(path.as_str()) || *path != subject.kernel.gpu.value.file {
                changed.entry(path).or_default().push(subject);
            }
        }
    }
    for (path, subjects) in changed {
        let kernels: Vec<String> = subjects.iter().map(|subject| format!("`{}`", subject.name())).collect();
        let families: BTreeSet<&str> = subjects.iter().map(|subject| subject.family.name.as_str()).collect();
        let command = format!("run `tidelock compile {}`", families.into_iter().collect::<Vec<_>>().join(" "));
        let ids: Vec<usize> = subjects.iter().map(|subject| subject.id).collect();
        let kernels = kernels.join(", ");
        let diagnostic = match files.get(path) {
            Some(file) => {
                let message = format!("{path} changed since its PTX was compiled");
                let text = String::from_utf8_lossy(file.content);
                let label = format!("compiled into {kernels}");
                Diagnostic::new("TL0206", message, Span::of_line(path, &text, 1), label)
            }
            None => {
                let message = format!("{path}, which PTX was compiled from, is gone");
                let span = subjects[0].kernel.gpu.span.clone();
                Diagnostic::new("TL0206", message, span, format!("compiled into {kernels}"))
            }
        };
        findings.push(ids, diagnostic.help(command));
    }
}

/// Are the file and the function there that the registry names?
fn there(subject: &Subject, files: &SourceFiles, findings: &mut Findings) -> bool {
    let gpu = &subject.kernel.gpu;
    let (file, function) = (&gpu.value.file, &gpu.value.function);
    let missing = |message: String, label: &str, help: Option<String>| {
        let mut diagnostic = Diagnostic::new("TL0205", message, gpu.span.clone(), label);
        diagnostic.help = help;
        diagnostic
    };
    let name = subject.name();
    let Some(source) = files.get(file.as_str()) else {
        let help = similar::did_you_mean(file, files.keys().copied());
        let message = format!("the source of kernel `{name}`, {file}, does not exist");
        findings.push([subject.id], missing(message, "no such file", help));
        return false;
    };
    if source.text.is_none() {
        let message = format!("the source of kernel `{name}`, {file}, is not UTF-8");
        findings.push([subject.id], missing(message, "not a text", None));
        return false;
    }
    let found =
        source.function_names().any(|name| name == function) || function.contains('.') && subject.function.is_some();
    if !found {
        let message = format!("{file} defines no function `{function}`, the source of kernel `{name}`");
        let help = similar::did_you_mean(function, source.function_names());
        findings.push([subject.id], missing(message, "no such function", help));
    }
    found
}

/// Was it compiled, and from what the registry names?
fn compiled(subject: &Subject, findings: &mut Findings) {
    let (kernel, gpu) = (subject.kernel, &subject.kernel.gpu);
    // Without a manifest all kernels of the family lack facts, and that was reported.
    if subject.toolchain.is_none() {
        return;
    }
    let Some(facts) = subject.facts else {
        let message = format!("kernel `{}` has never been compiled", subject.name());
        let diagnostic = Diagnostic::new("TL0204", message, kernel.name.span.clone(), "declared here");
        let diagnostic = label_at(diagnostic, subject.function_span(), "its source");
        findings.push([subject.id], diagnostic.help(subject.compile()));
        return;
    };
    if facts.file != gpu.value.file || facts.function != gpu.value.function {
        let message = format!("kernel `{}` was compiled from `{}` in {}", subject.name(), facts.function, facts.file);
        let diagnostic = Diagnostic::new("TL0207", message, gpu.span.clone(), "but this is its source now");
        findings.push([subject.id], diagnostic.help(subject.compile()));
    }
}
