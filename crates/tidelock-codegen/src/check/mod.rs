//! Checks a registry against what was compiled, against the sources, and against the CPU arm.
//!
//! Each check asks one question and reports each cause once. What a check has already reported about a parameter, the
//! later ones do not repeat in other words.

mod arm;
mod artifacts;
pub(crate) mod c;
#[cfg(test)]
mod codes;
mod kernel_source;
mod names;
mod ptx;
pub mod similar;
mod source_file;
mod sources;
mod subject;
mod variants;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use artifacts::read_file;
pub use artifacts::{Artifacts, FOLDERS, Files, MAX_BYTES};

use crate::abi;
use crate::diagnostic::{Diagnostic, Diagnostics, MAX_RENDERED};
use crate::facts::{self, Manifest};
use crate::model::Registry;
use crate::source::Span;
use kernel_source::Language;
use source_file::{SourceFile, SourceFiles};
use subject::Subject;

/// All that is wrong with `registry` and `artifacts` together.
pub fn check(registry: &Registry, artifacts: &Artifacts) -> Diagnostics {
    report(registry, artifacts).diagnostics
}

/// What was found, and how each kernel stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// All that is wrong.
    pub diagnostics: Diagnostics,
    /// Kernels in the order of the registry.
    pub kernels: Vec<Status>,
}

/// How a kernel stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its name in the registry.
    pub kernel: String,
    /// Its family.
    pub family: String,
    /// How many variants it has.
    pub variants: usize,
    /// Codes of what is wrong with it; none if nothing is.
    pub failed: BTreeSet<&'static str>,
}

/// Checks everything.
pub fn report(registry: &Registry, artifacts: &Artifacts) -> Report {
    let mut findings = Findings::default();
    let manifests = manifests(registry, artifacts, &mut findings);
    let sources: SourceFiles =
        artifacts.kernels.iter().map(|(path, it)| (path.as_str(), SourceFile::of(path, it))).collect();
    let bindings = c::read(artifacts);
    let mut subjects: Vec<Subject> = Vec::new();
    for family in &registry.families {
        for kernel in &family.kernels {
            let bindings = bindings.as_ref().ok();
            subjects.push(Subject::new(subjects.len(), family, kernel, &manifests, bindings, &sources));
        }
    }
    // Facts that are out of date explain much of what follows, so they come first.
    sources::check(&subjects, &sources, &mut findings);
    for subject in &mut subjects {
        names::check(subject, &mut findings);
        variants::check(subject, &mut findings);
        ptx::check(subject, artifacts, &mut findings);
    }
    ptx::check_unused(registry, &manifests, artifacts, &mut findings);
    arm::check(registry, &subjects, artifacts, &mut findings);
    c::check(registry, &subjects, &bindings, artifacts, &mut findings);
    findings.report(&subjects)
}

/// Diagnostics, each with the kernels that it is about.
#[derive(Default)]
struct Findings(Vec<(Vec<usize>, Diagnostic)>);

impl Findings {
    fn push(&mut self, kernels: impl Into<Vec<usize>>, diagnostic: Diagnostic) {
        self.0.push((kernels.into(), diagnostic));
    }

    fn report(self, subjects: &[Subject]) -> Report {
        let status = |subject: &Subject| Status {
            kernel: subject.kernel.name.value.clone(),
            family: subject.family.name.clone(),
            variants: subject.plans.len(),
            failed: BTreeSet::new(),
        };
        let mut report = Report { kernels: subjects.iter().map(status).collect(), ..Report::default() };
        for (kernels, diagnostic) in self.0 {
            for kernel in kernels {
                report.kernels[kernel].failed.insert(diagnostic.code);
            }
            report.diagnostics.push(diagnostic);
        }
        report
    }
}

/// One finding for many variants of a kernel: the first one is shown, the others are counted.
#[derive(Default)]
struct PerVariant(Vec<(String, String, usize, Diagnostic)>);

impl PerVariant {
    /// Counts a finding of `variant`. Findings with the same `cause` are one.
    fn push(&mut self, cause: &str, variant: &str, diagnostic: impl FnOnce() -> Diagnostic) {
        match self.0.iter_mut().find(|finding| finding.0 == cause) {
            Some(finding) => finding.2 += 1,
            None => self.0.push((cause.to_string(), variant.to_string(), 0, diagnostic())),
        }
    }

    /// Hands over what was counted, with the variants named at the end of each message.
    fn finish(self, kernel: usize, findings: &mut Findings) {
        for (_, variant, more, mut diagnostic) in self.0 {
            diagnostic.message += &match more {
                0 => format!(" (variant `{variant}`)"),
                1 => format!(" (variant `{variant}` and 1 other)"),
                more => format!(" (variant `{variant}` and {more} others)"),
            };
            findings.push([kernel], diagnostic);
        }
    }
}

/// The manifests that can be read, by family.
type Manifests = BTreeMap<String, Manifest>;

/// Reads the manifests and reports those that are missing, unreadable, or of nothing in the registry.
fn manifests(registry: &Registry, artifacts: &Artifacts, findings: &mut Findings) -> Manifests {
    let mut first = 0;
    let mut read = Manifests::new();
    for family in &registry.families {
        let kernels: Vec<usize> = (first..first + family.kernels.len()).collect();
        first += family.kernels.len();
        let path = facts::manifest_path(&family.name);
        let Some(content) = artifacts.manifests.get(&path) else {
            let Some(kernel) = family.kernels.first() else { continue };
            let message = format!("family `{}` has never been compiled: there is no {path}", family.name);
            let help = format!("run `tidelock compile {}`", family.name);
            findings.push(kernels, Diagnostic::new("TL0201", message, kernel.name.span.clone(), "").help(help));
            continue;
        };
        match facts::read_manifest(&path, content) {
            Err(error) => findings.push(kernels, error),
            Ok(manifest) => {
                let text = String::from_utf8_lossy(content);
                let declared: BTreeSet<_> = family.kernels.iter().map(|kernel| kernel.name.value.as_str()).collect();
                let unknown = manifest.kernels.keys().filter(|name| !declared.contains(name.as_str()));
                for name in unknown.take(MAX_RENDERED) {
                    let span = quoted(&path, &text, name);
                    let message = format!("{path} has facts of kernel `{name}`, which {} does not have", family.path);
                    let help = similar::did_you_mean(name, declared.iter().copied());
                    let help = help.map_or(String::new(), |help| format!("{help} "));
                    let help = format!("{help}`tidelock compile {}` removes what is no longer declared", family.name);
                    findings.push([], Diagnostic::new("TL0203", message, span, "not in the registry").help(help));
                }
                let triton = family.kernels.iter().any(|it| Language::of(&it.gpu.value.file) == Language::Python);
                if let Err(reason) = abi::triton(&manifest.toolchain.triton)
                    && triton
                {
                    let message = format!("family `{}` was compiled by a Triton that is refused", family.name);
                    let span = quoted(&path, &text, &manifest.toolchain.triton);
                    let help = format!("with a version that is known, run `tidelock compile {}`", family.name);
                    findings.push(kernels, Diagnostic::new("TL0230", message, span, reason).help(help));
                }
                read.insert(family.name.clone(), manifest);
            }
        }
    }
    let families: BTreeSet<_> = registry.families.iter().map(|family| family.name.as_str()).collect();
    for path in artifacts.manifests.keys() {
        let name = facts::manifest_family(path).unwrap_or(path);
        if families.contains(name) {
            continue;
        }
        let message = format!("{path} is the manifest of a family that is not in the registry");
        let help = match similar::closest(name, families.iter().copied()) {
            Some(family) => {
                format!("is signatures/{family}.yaml meant? `tidelock compile` removes what is not declared")
            }
            None => "`tidelock compile` removes what is no longer declared".to_string(),
        };
        findings.push([], Diagnostic::new("TL0203", message, Span::new(path, 0, 0), "").help(help));
    }
    read
}

/// Where `"name"` first stands in a JSON text.
fn quoted(path: &str, text: &str, name: &str) -> Span {
    let quoted = format!("\"{name}\"");
    let start = text.find(&quoted).unwrap_or(0);
    Span::new(path, start, if text[start..].starts_with(&quoted) { start + quoted.len() } else { start })
}

/// Adds a label if there is a place for it.
fn label_at(diagnostic: Diagnostic, span: Option<Span>, text: impl Into<String>) -> Diagnostic {
    match span {
        Some(span) => diagnostic.label(span, text),
        None => diagnostic,
    }
}
