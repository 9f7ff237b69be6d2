//! Is what the registry takes from C there, as C has it, and as it was committed?

use std::collections::BTreeMap;

use super::kernel_source::Language;
use super::{Artifacts, Findings, Subject, label_at, similar};
use crate::bindings::{self, Bindings, Wanted};
use crate::diagnostic::Diagnostic;
use crate::facts;
use crate::header;
use crate::model::{CpuSource, Registry, Spanned};
use crate::source::Span;

const BIND: &str = "run `tidelock bind`, which needs libclang";

pub(super) fn check(
    registry: &Registry,
    subjects: &[Subject],
    bindings: &Result<Bindings, Diagnostic>,
    artifacts: &Artifacts,
    findings: &mut Findings,
) {
    let wanted = bindings::wanted(registry);
    let users: Vec<&Subject> =
        subjects.iter().filter(|it| it.kernel.cpu.is_some() || bindings::structs(it.kernel).next().is_some()).collect();
    for subject in &users {
        names(subject, bindings.as_ref().ok(), artifacts, findings);
    }
    if let Some(diagnostic) = stale(&wanted, bindings, &users, artifacts) {
        findings.push(users.iter().map(|subject| subject.id).collect::<Vec<_>>(), diagnostic);
    }
    headers(registry, subjects, bindings.as_ref().ok(), artifacts, findings);
}

/// The committed bindings, or why they cannot be read; none are like empty ones.
pub(super) fn read(artifacts: &Artifacts) -> Result<Bindings, Diagnostic> {
    let Some(content) = &artifacts.bindings else { return Ok(Bindings::default()) };
    bindings::read(&String::from_utf8_lossy(content)).map_err(|error| {
        let message = format!("{} is not Rust: {error}", bindings::PATH);
        Diagnostic::new("TL0602", message, Span::new(bindings::PATH, 0, 0), "edited by hand, or cut off").help(BIND)
    })
}

/// Whether the bindings are missing, unreadable, or of other headers than those at hand.
fn stale(
    wanted: &Wanted,
    bindings: &Result<Bindings, Diagnostic>,
    users: &[&Subject],
    artifacts: &Artifacts,
) -> Option<Diagnostic> {
    let first = users.first()?;
    let span = || first.kernel.name.span.clone();
    let Some(content) = &artifacts.bindings else {
        let message =
            format!("the C that kernel `{}` names has never been bound: there is no {}", first.name(), bindings::PATH);
        return Some(Diagnostic::new("TL0602", message, span(), "declared here").help(BIND));
    };
    if let Err(error) = bindings {
        return Some(error.clone());
    }
    let expected = bindings::stamp(wanted, artifacts);
    let text = String::from_utf8_lossy(content);
    if text.starts_with(&expected) {
        return None;
    }
    let hashes = |text: &str| {
        let lines = text.lines().skip(1).map_while(|line| line.strip_prefix("// ")?.split_once(' '));
        lines.map(|(path, hash)| (path.to_string(), hash.to_string())).collect::<BTreeMap<_, _>>()
    };
    let (bound, now) = (hashes(&text), hashes(&expected));
    let changed: Vec<&str> =
        now.iter().filter(|(path, hash)| bound.get(*path) != Some(hash)).map(|it| it.0.as_str()).collect();
    let (message, span) = match changed.first() {
        Some(path) if bound.contains_key(*path) => {
            (format!("{path} changed since it was bound"), Span::new(*path, 0, 0))
        }
        Some(path) => (format!("{path} has never been bound"), Span::new(*path, 0, 0)),
        None => (
            format!("{} is of headers that the registry does not name", bindings::PATH),
            Span::new(bindings::PATH, 0, 0),
        ),
    };
    Some(
        Diagnostic::new("TL0602", message, span, "")
            .label(first.kernel.name.span.clone(), "a kernel that needs it")
            .help(BIND),
    )
}

/// Are the headers, structs, functions and files there that a kernel names?
fn names(subject: &Subject, bindings: Option<&Bindings>, artifacts: &Artifacts, findings: &mut Findings) {
    let mut push = |diagnostic| findings.push([subject.id], diagnostic);
    for (param, value) in bindings::structs(subject.kernel) {
        let (name, place) = (&value.name.value, value.name.span.clone());
        let of = format!("parameter `{}` of kernel `{}`", param.name.value, subject.name());
        if subject.language() == Language::Python {
            let message = format!("{of} is a struct, which a Triton kernel cannot take");
            push(
                Diagnostic::new("TL0605", message, place, "a struct")
                    .help("write the kernel in CUDA C++, or pass its fields as scalars"),
            );
        } else if !artifacts.kernels.contains_key(&value.header) {
            let message = format!("the header of {of}, {}, does not exist", value.header);
            let files = artifacts.kernels.keys().map(String::as_str).filter(|path| path.ends_with(".h"));
            let diagnostic = Diagnostic::new("TL0603", message, place, "no such file");
            push(Diagnostic { help: similar::did_you_mean(&value.header, files), ..diagnostic });
        } else if let Some(bindings) = bindings.filter(|_| artifacts.bindings.is_some()) {
            match bindings.structs.get(name) {
                Some(Ok(_)) => {}
                Some(Err(reason)) => {
                    let message = format!("struct `{name}`, {of}, cannot be passed by value: {reason}");
                    push(
                        Diagnostic::new("TL0603", message, place, "this struct")
                            .help(format!("change it in {}", value.header)),
                    );
                }
                None => {
                    let message = format!("{} has no struct `{name}`, {of}", value.header);
                    let diagnostic = Diagnostic::new("TL0603", message, place, "no such struct was bound");
                    let known = similar::did_you_mean(name, bindings.structs.keys().map(String::as_str));
                    push(diagnostic.help(known.unwrap_or(format!("define it there, and {BIND}"))));
                }
            }
        }
    }
    if let Some(cpu) = &subject.kernel.cpu {
        arm(subject, cpu, bindings.filter(|_| artifacts.bindings.is_some()), artifacts, findings);
    }
}

/// Is the CPU arm in C or C++ there, and declared?
fn arm(
    subject: &Subject,
    cpu: &Spanned<CpuSource>,
    bindings: Option<&Bindings>,
    artifacts: &Artifacts,
    findings: &mut Findings,
) {
    let CpuSource { file, .. } = &cpu.value;
    let header = cpu.value.header();
    for path in [file, &header] {
        if !artifacts.c.contains_key(path) {
            let message = format!("the CPU arm of kernel `{}` needs {path}, which does not exist", subject.name());
            let diagnostic = Diagnostic::new("TL0604", message, cpu.span.clone(), "named here");
            let help = similar::did_you_mean(path, artifacts.c.keys().map(String::as_str));
            findings.push(
                [subject.id],
                diagnostic.help(help.unwrap_or(format!("write {file}, and its declaration in {header}"))),
            );
        }
    }
    for function in bindings::functions(subject.kernel) {
        let text = artifacts.c.get(file).map(|content| String::from_utf8_lossy(content));
        let place = text.as_ref().and_then(|text| line(text, &function));
        let missing = if text.is_some() && place.is_none() {
            format!("{file} defines no function `{function}`")
        } else if text
            .as_ref()
            .zip(place)
            .is_some_and(|(text, line)| !file.ends_with(".c") && !has_c_linkage(text, line))
        {
            format!("{file} defines `{function}` without `extern \"C\"`")
        } else if bindings.is_some_and(|bindings| !bindings.functions.contains(&function))
            && artifacts.c.contains_key(&header)
        {
            format!("{header} declares no function `{function}` with C linkage that was bound")
        } else {
            continue;
        };
        let message = format!("{missing}, the CPU arm of kernel `{}`", subject.name());
        let diagnostic = Diagnostic::new("TL0604", message, cpu.span.clone(), "named here");
        let span = text.as_ref().zip(place).map(|(text, line)| Span::of_line(file, text, line));
        let help = format!("define `{function}` in {file} and declare it in {header} as `extern \"C\"`; then {BIND}");
        findings.push([subject.id], label_at(diagnostic, span, "defined here").help(help));
    }
}

/// Whether the function at this line, counted from 1, has C linkage by itself or by a block around it.
fn has_c_linkage(text: &str, line: usize) -> bool {
    let mut lines = text.lines().take(line);
    let block = |line: &str| line.contains("extern \"C\"") && line.trim_end().ends_with('{');
    let before = lines.by_ref().take(line - 1).any(block);
    before || lines.next().is_some_and(|line| line.contains("extern \"C\""))
}

/// The line, counted from 1, at which `text` defines or declares the function `name` first.
pub(crate) fn line(text: &str, name: &str) -> Option<usize> {
    let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_here = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        code.match_indices(name).any(|(at, _)| {
            let (before, after) = (&code[..at], code[at + name.len()..].trim_start());
            !before.ends_with(word) && !before.trim().is_empty() && after.starts_with('(')
        })
    };
    text.lines().position(is_here).map(|index| index + 1)
}

/// Are the committed headers of CUDA C++ families what the registry gives now?
fn headers(
    registry: &Registry,
    subjects: &[Subject],
    bindings: Option<&Bindings>,
    artifacts: &Artifacts,
    findings: &mut Findings,
) {
    let Some(bindings) = bindings else { return };
    for family in &registry.families {
        let path = header::path(&family.name);
        let Some(expected) = header::emit(family, bindings) else { continue };
        let ids: Vec<usize> = subjects
            .iter()
            .filter(|subject| subject.family.name == family.name && header::is_cuda(subject.kernel))
            .map(|subject| subject.id)
            .collect();
        let span = ids.first().map_or(Span::new(&family.path, 0, 0), |&id| subjects[id].kernel.name.span.clone());
        let help = format!("run `tidelock header {}`, or compile the family", family.name);
        match artifacts.headers.get(&path) {
            Some(content) if *content == expected.as_bytes() => {}
            Some(content) => {
                let text = String::from_utf8_lossy(content);
                let line = text.lines().zip(expected.lines()).take_while(|(a, b)| a == b).count() + 1;
                let message = format!("{path} is not what {} declares", family.path);
                let diagnostic = Diagnostic::new(
                    "TL0601",
                    message,
                    Span::of_line(&path, &text, line),
                    "the first line that differs",
                );
                findings.push(ids, diagnostic.label(span, "its kernel").help(help));
            }
            // It was never compiled, which is said already; compiling it writes the header.
            None if !artifacts.manifests.contains_key(&facts::manifest_path(&family.name)) => {}
            None => {
                let message =
                    format!("family `{}` has CUDA C++ kernels and no header: there is no {path}", family.name);
                findings.push(ids, Diagnostic::new("TL0601", message, span, "needs a declaration in C").help(help));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_function_is_found_by_its_name_alone() {
        let text =
            "// void f(int);\nvoid other_f(int);\nvoid caller() {\n    ff(1); }\nextern \"C\" void f (int a) {\n}";
        assert_eq!(line(text, "f"), Some(5));
        assert_eq!(line(text, "g"), None);
    }
}
