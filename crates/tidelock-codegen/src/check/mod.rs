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
mod sources;
mod variants;

use std::collections::{BTreeMap, BTreeSet};

pub use artifacts::{Artifacts, FOLDERS, Files};

use crate::abi;
use crate::bindings::Bindings;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::facts::{self, Hash, KernelFacts, Manifest, Toolchain};
use crate::model::{Family, Kernel, Param, Registry};
use crate::plan::{VariantPlan, gpu_params, variant_plan};
use crate::source::Span;
use kernel_source::{Function, Language};

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
    let bindings = c::read(artifacts);
    let mut subjects: Vec<Subject> = Vec::new();
    for family in &registry.families {
        for kernel in &family.kernels {
            let bindings = bindings.as_ref().ok();
            subjects.push(Subject::new(subjects.len(), family, kernel, &manifests, bindings, artifacts));
        }
    }
    // Facts that are out of date explain much of what follows, so they come first.
    sources::check(&subjects, artifacts, &mut findings);
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
                for name in manifest.kernels.keys().filter(|name| !declared.contains(name.as_str())) {
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

/// One kernel and all that is known of it.
struct Subject<'a> {
    /// Its place among all kernels.
    id: usize,
    family: &'a Family,
    kernel: &'a Kernel,
    /// Its variants, as they would be compiled now.
    plans: Vec<VariantPlan>,
    toolchain: Option<&'a Toolchain>,
    facts: Option<&'a KernelFacts<Hash>>,
    bindings: Option<&'a Bindings>,
    /// The text of its source, if the file is there.
    source: Option<&'a str>,
    /// Its declaration in the source.
    function: Option<Function>,
    /// The file of its source is another than the one it was compiled from.
    stale: bool,
    /// Names in the kernel of parameters and constants about which something was reported.
    reported: BTreeSet<String>,
}

impl<'a> Subject<'a> {
    fn new(
        id: usize,
        family: &'a Family,
        kernel: &'a Kernel,
        manifests: &'a Manifests,
        bindings: Option<&'a Bindings>,
        artifacts: &'a Artifacts,
    ) -> Subject<'a> {
        let gpu = &kernel.gpu.value;
        let manifest = manifests.get(&family.name);
        let facts = manifest.and_then(|manifest| manifest.kernels.get(&kernel.name.value));
        let content = artifacts.kernels.get(&gpu.file);
        let source = content.and_then(|content| std::str::from_utf8(content).ok());
        Subject {
            id,
            family,
            kernel,
            plans: crate::variants::variants(kernel).iter().map(|variant| variant_plan(kernel, variant)).collect(),
            toolchain: manifest.map(|manifest| &manifest.toolchain),
            facts,
            bindings,
            source,
            function: source.and_then(|text| kernel_source::find(text, &gpu.function, Language::of(&gpu.file))),
            stale: match (content, facts.and_then(|facts| facts.sources.get(&gpu.file))) {
                (Some(content), Some(hash)) => Hash::of(content) != *hash,
                _ => false,
            },
            reported: BTreeSet::new(),
        }
    }

    fn name(&self) -> &'a str {
        &self.kernel.name.value
    }

    fn language(&self) -> Language {
        Language::of(&self.kernel.gpu.value.file)
    }

    /// Where the kernel is, in words: `kernels/rejection.py:71`.
    fn place(&self) -> String {
        let file = &self.kernel.gpu.value.file;
        match (self.source, self.function_span()) {
            (Some(text), Some(span)) => format!("{file}:{}", span.line_column(text).0),
            _ => match self.facts {
                Some(facts) => format!("{file}:{}", facts.line),
                None => file.clone(),
            },
        }
    }

    /// Where the kernel's name stands in its source.
    fn function_span(&self) -> Option<Span> {
        let found = self.function.as_ref()?;
        Some(Span::new(&self.kernel.gpu.value.file, found.name.start, found.name.end))
    }

    /// Where a parameter stands in the kernel's source.
    fn param_span(&self, kernel_name: &str) -> Option<Span> {
        let file = &self.kernel.gpu.value.file;
        let found = self.function.as_ref().and_then(|f| f.params.iter().find(|param| param.name == kernel_name));
        if let Some(param) = found {
            return Some(Span::new(file, param.span.start, param.span.end));
        }
        // What the scan does not see the facts may know.
        let facts = self.facts?.params.iter().find(|param| param.name == kernel_name)?;
        (!self.stale).then_some(Span::of_line(file, self.source?, facts.line))
    }

    /// The registry's parameter that the kernel calls `kernel_name`.
    fn param(&self, kernel_name: &str) -> Option<&'a Param> {
        gpu_params(self.kernel).find(|param| param.kernel_name == kernel_name)
    }

    fn compile(&self) -> String {
        format!("run `tidelock compile {}`", self.name())
    }
}

/// Adds a label if there is a place for it.
fn label_at(diagnostic: Diagnostic, span: Option<Span>, text: impl Into<String>) -> Diagnostic {
    match span {
        Some(span) => diagnostic.label(span, text),
        None => diagnostic,
    }
}
