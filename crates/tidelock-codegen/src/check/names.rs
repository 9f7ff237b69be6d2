//! Are the kernel's parameters those of the registry, in the same order?

use std::collections::{BTreeMap, BTreeSet};

use super::kernel_source::Language;
use super::{Findings, Subject, label_at, similar};
use crate::diagnostic::Diagnostic;
use crate::plan::gpu_params;
use crate::source::Span;

pub(super) fn check(subject: &mut Subject, findings: &mut Findings) {
    let Some(actual) = kernel_params(subject) else { return };
    let run_time: Vec<&str> = actual.iter().filter(|param| !param.1).map(|param| param.0.as_str()).collect();
    let constants: Vec<&str> = actual.iter().filter(|param| param.1).map(|param| param.0.as_str()).collect();
    let mut found = Vec::new();
    let comparison = Comparison { subject, run_time: &run_time, constants: &constants };
    comparison.params(&mut found);
    // CUDA C++ has no such parameters: its constants are macros.
    if subject.language() == Language::Python {
        comparison.constants(&mut found);
    }
    for (names, diagnostic) in found {
        subject.reported.extend(names);
        findings.push([subject.id], diagnostic);
    }
}

/// The kernel's parameters with whether they are constants: as compiled, or, where the source has changed since or was
/// never compiled, as it says now. None where it was compiled from another function, which was reported.
fn kernel_params(subject: &Subject) -> Option<Vec<(String, bool)>> {
    let gpu = &subject.kernel.gpu.value;
    if subject.facts.is_some_and(|facts| facts.function != gpu.function || facts.file != gpu.file) {
        return None;
    }
    match (subject.facts, &subject.function) {
        (Some(facts), now) if !subject.stale || now.is_none() => {
            Some(facts.params.iter().map(|param| (param.name.clone(), param.constexpr)).collect())
        }
        (_, now) => Some(now.as_ref()?.params.iter().map(|param| (param.name.clone(), param.constexpr)).collect()),
    }
}

/// A finding and the names in the kernel that it is about.
type Found = Vec<(Vec<String>, Diagnostic)>;

/// What the registry and the kernel call the same thing.
struct Renamed<'a> {
    registry: &'a str,
    kernel: &'a str,
}

struct Comparison<'a> {
    subject: &'a Subject<'a>,
    run_time: &'a [&'a str],
    constants: &'a [&'a str],
}

impl Comparison<'_> {
    fn params(&self, found: &mut Found) {
        let kernel = self.subject.kernel;
        let registry: Vec<&str> = gpu_params(kernel).map(|param| param.kernel_name.as_str()).collect();
        let declared: BTreeSet<&str> = kernel.constants.iter().map(|constant| constant.kernel_name.as_str()).collect();
        let (mut missing, mut extra) = differences(&registry, self.run_time);
        missing.retain(|name| {
            let mixed = self.constants.contains(name);
            if mixed {
                found.push(self.mixed_up(name, "a parameter", "`tl.constexpr`"));
            }
            !mixed
        });
        extra.retain(|name| {
            let mixed = declared.contains(name);
            if mixed {
                found.push(self.mixed_up(name, "a constant", "a run-time parameter"));
            }
            !mixed
        });
        for renamed in renames(&registry, self.run_time, &mut missing, &mut extra) {
            found.push(self.renamed("parameter", &renamed));
        }
        found.extend(missing.into_iter().map(|name| self.missing("TL0210", "parameter", name, &extra)));
        found.extend(extra.into_iter().map(|name| self.extra("TL0211", "parameter", name)));
        found.extend(self.reordered(&registry));
    }

    fn constants(&self, found: &mut Found) {
        let kernel = self.subject.kernel;
        let registry: Vec<&str> = kernel.constants.iter().map(|constant| constant.kernel_name.as_str()).collect();
        let params: BTreeSet<&str> = gpu_params(kernel).map(|param| param.kernel_name.as_str()).collect();
        let (mut missing, mut extra) = differences(&registry, self.constants);
        // What is a parameter on the other side was reported with the parameters.
        missing.retain(|name| !self.run_time.contains(name));
        extra.retain(|name| !params.contains(name));
        // The order of constants means nothing, so only their names speak for a rename.
        while let Some((i, j)) = pair(&missing, &extra) {
            let renamed = Renamed { registry: missing.remove(i), kernel: extra.remove(j) };
            found.push(self.renamed("constant", &renamed));
        }
        found.extend(missing.into_iter().map(|name| self.missing("TL0215", "constant", name, &extra)));
        found.extend(extra.into_iter().map(|name| self.extra("TL0216", "constant", name)));
    }

    /// The place in the registry that declares what the kernel calls `name`.
    fn declared(&self, name: &str) -> Span {
        let kernel = self.subject.kernel;
        if let Some(param) = self.subject.param(name) {
            return param.name.span.clone();
        }
        let constant = kernel.constants.iter().find(|constant| constant.kernel_name == name);
        constant.map_or(kernel.name.span.clone(), |constant| constant.name.span.clone())
    }

    /// ` (`x` in the wrapper)` where the registry has another name for it.
    fn alias(&self, name: &str) -> String {
        let constants = &self.subject.kernel.constants;
        let constant = constants.iter().find(|constant| constant.kernel_name == name).map(|constant| &constant.name);
        match self.subject.param(name).map(|param| &param.name).or(constant) {
            Some(ours) if ours.value != name => format!(" (`as` of `{}`)", ours.value),
            _ => String::new(),
        }
    }

    fn missing(&self, code: &'static str, what: &str, name: &str, others: &[&str]) -> (Vec<String>, Diagnostic) {
        let (kernel, place) = (self.subject.name(), self.subject.place());
        let alias = self.alias(name);
        let message = format!("{what} `{name}`{alias} of kernel `{kernel}` is in the registry but not in {place}");
        let diagnostic = Diagnostic::new(code, message, self.declared(name), "the kernel does not have it");
        let function = format!("`{}` has no {what} `{name}`", self.subject.kernel.gpu.value.function);
        let diagnostic = label_at(diagnostic, self.subject.function_span(), function);
        let help = match similar::did_you_mean(name, others.iter().copied()) {
            Some(help) => help,
            None => format!("add it to the kernel and {}, or take it out of the registry", self.subject.compile()),
        };
        (vec![name.to_string()], diagnostic.help(help))
    }

    fn extra(&self, code: &'static str, what: &str, name: &str) -> (Vec<String>, Diagnostic) {
        let (kernel, place) = (self.subject.name(), self.subject.place());
        let message = format!("{what} `{name}` of kernel `{kernel}` is in {place} but not in the registry");
        let registry = self.subject.kernel.name.span.clone();
        let label = format!("this {what} is not in the registry");
        let diagnostic = match self.subject.param_span(name) {
            Some(span) => {
                Diagnostic::new(code, message, span, label).label(registry, format!("no {what} `{name}` here"))
            }
            None => Diagnostic::new(code, message, registry, format!("no {what} `{name}` here")),
        };
        let help = match what {
            "constant" => format!("add `{name}` to the kernel's `constants`"),
            _ => format!("add `{name}` to the kernel's `params`{}", self.after(name)),
        };
        (vec![name.to_string()], diagnostic.help(help))
    }

    /// Where in the registry's list a parameter of the kernel belongs.
    fn after(&self, name: &str) -> String {
        let at = self.run_time.iter().position(|param| *param == name);
        match at.and_then(|at| at.checked_sub(1)).map(|before| self.run_time[before]) {
            Some(before) => format!(", after `{before}`"),
            None => ", as the first".to_string(),
        }
    }

    fn renamed(&self, what: &str, renamed: &Renamed) -> (Vec<String>, Diagnostic) {
        let Renamed { registry, kernel: actual } = *renamed;
        let (kernel, place) = (self.subject.name(), self.subject.place());
        let alias = self.alias(registry);
        let message = format!("{what} `{registry}`{alias} of kernel `{kernel}` is called `{actual}` in {place}");
        let diagnostic = Diagnostic::new("TL0212", message, self.declared(registry), "called so in the registry");
        let diagnostic = label_at(diagnostic, self.subject.param_span(actual), "and so in the kernel");
        let help = format!("give both the same name, or say `as: {actual}` in the registry");
        (vec![registry.to_string(), actual.to_string()], diagnostic.help(help))
    }

    fn mixed_up(&self, name: &str, here: &str, there: &str) -> (Vec<String>, Diagnostic) {
        let (kernel, place) = (self.subject.name(), self.subject.place());
        let message = format!("`{name}` of kernel `{kernel}` is {here} in the registry but {there} in {place}");
        let diagnostic = Diagnostic::new("TL0214", message, self.declared(name), format!("{here} here"));
        let diagnostic = label_at(diagnostic, self.subject.param_span(name), format!("{there} here"));
        let help = "what is `tl.constexpr` belongs under `constants`, everything else under `params`";
        (vec![name.to_string()], diagnostic.help(help))
    }

    /// Whether what both sides have stands in the same order.
    fn reordered(&self, registry: &[&str]) -> Option<(Vec<String>, Diagnostic)> {
        let ours: BTreeSet<&str> = registry.iter().copied().collect();
        let theirs: BTreeSet<&str> = self.run_time.iter().copied().collect();
        let registry: Vec<&str> = registry.iter().copied().filter(|name| theirs.contains(name)).collect();
        let actual: Vec<&str> = self.run_time.iter().copied().filter(|name| ours.contains(name)).collect();
        // Where they first differ, each side's next parameter comes later on the other side.
        let at = registry.iter().zip(&actual).position(|(a, b)| a != b)?;
        let (first, second) = (registry[at], actual[at]);
        let (kernel, place) = (self.subject.name(), self.subject.place());
        let message =
            format!("parameters `{first}` and `{second}` of kernel `{kernel}` stand in another order in {place}");
        let diagnostic = Diagnostic::new("TL0213", message, self.declared(first), "first in the registry");
        let diagnostic = label_at(diagnostic, self.subject.param_span(second), "first in the kernel");
        let help = format!("the kernel's order is: {}", self.run_time.join(", "));
        Some((Vec::new(), diagnostic.help(help)))
    }
}

/// What stands on one side only: in the registry, and in the kernel.
fn differences<'a>(registry: &[&'a str], actual: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
    let (ours, theirs): (BTreeSet<&str>, BTreeSet<&str>) =
        (registry.iter().copied().collect(), actual.iter().copied().collect());
    let missing = registry.iter().copied().filter(|name| !theirs.contains(name)).collect();
    let extra = actual.iter().copied().filter(|name| !ours.contains(name)).collect();
    (missing, extra)
}

/// Takes from `missing` and `extra` what is the same under two names: at the same place among what both sides have, and
/// either alike or the only one on each side.
fn renames<'a>(
    registry: &[&'a str],
    actual: &[&'a str],
    missing: &mut Vec<&'a str>,
    extra: &mut Vec<&'a str>,
) -> Vec<Renamed<'a>> {
    let only = missing.len() == 1 && extra.len() == 1;
    let (ours, theirs) = (places(registry, missing), places(actual, extra));
    let mut renamed = Vec::new();
    missing.retain(|name| {
        let same = |other: &&str| theirs[*other] == ours[name] && (only || similar::alike(name, other));
        let Some(at) = extra.iter().position(same) else { return true };
        renamed.push(Renamed { registry: name, kernel: extra.remove(at) });
        false
    });
    renamed
}

/// For each name how many of the names that both sides have stand before it.
fn places<'a>(names: &[&'a str], own: &[&str]) -> BTreeMap<&'a str, usize> {
    let own: BTreeSet<&str> = own.iter().copied().collect();
    let mut before = 0;
    let place = |name: &&'a str| {
        before += usize::from(!own.contains(name));
        (*name, before)
    };
    names.iter().map(place).collect()
}

/// The first two that are alike, or the only two.
fn pair(missing: &[&str], extra: &[&str]) -> Option<(usize, usize)> {
    if let ([_], [_]) = (missing, extra) {
        return Some((0, 0));
    }
    missing.iter().enumerate().find_map(|(i, name)| {
        let j = extra.iter().position(|other| similar::alike(name, other))?;
        Some((i, j))
    })
}
