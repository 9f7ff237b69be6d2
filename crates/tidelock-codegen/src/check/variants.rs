//! Was each variant compiled as the registry would have it compiled now?

use std::collections::{BTreeMap, BTreeSet};

use super::kernel_source::Language;
use super::{Findings, PerVariant, Subject, label_at};
use crate::diagnostic::Diagnostic;
use crate::facts::{Hash, KernelFacts, VariantFacts};
use crate::model::{DType, Element, Param, ParamKind, Presence};
use crate::plan::{Value, VariantPlan, gpu_params};
use crate::source::Span;

pub(super) fn check(subject: &Subject, findings: &mut Findings) {
    let Some(facts) = subject.facts else { return };
    sets(subject, facts, findings);
    let mut found = PerVariant::default();
    for plan in &subject.plans {
        let Some(compiled) = facts.variants.get(&plan.name) else { continue };
        let pair = Pair { subject, facts, plan, compiled };
        pair.params(&mut found);
        pair.constants(&mut found);
        pair.warps(&mut found);
        pair.launchable(&mut found);
    }
    found.finish(subject.id, findings);
}

/// A variant as planned and as compiled.
struct Pair<'a> {
    subject: &'a Subject<'a>,
    facts: &'a KernelFacts<Hash>,
    plan: &'a VariantPlan,
    compiled: &'a VariantFacts<Hash>,
}

impl Pair<'_> {
    fn params(&self, found: &mut PerVariant) {
        let arguments: BTreeMap<&str, _> =
            self.compiled.arguments.iter().map(|argument| (argument.name.as_str(), argument)).collect();
        let promised: BTreeSet<&str> = self.plan.divisible_by_16.iter().map(String::as_str).collect();
        for (param, (name, planned)) in gpu_params(self.subject.kernel).zip(&self.plan.signature) {
            let known = self.facts.params.iter().any(|param| param.name == *name && !param.constexpr);
            // What the kernel does not have was reported, by name or as a source that changed.
            if !known || self.subject.reported.contains(name) {
                continue;
            }
            // An absent argument of a CUDA C++ kernel keeps its slot, which holds a null pointer.
            let argument = arguments.get(name.as_str()).filter(|_| !self.compiled.absent.contains(name));
            let compiled = argument.map(|argument| argument.kind.as_str());
            match (planned.as_deref(), compiled) {
                (Some(planned), Some(compiled)) if !same_type(planned, compiled) => {
                    found.push(&format!("type {name}"), &self.plan.name, || self.other_type(param, planned, compiled));
                }
                (Some(_), None) | (None, Some(_)) => {
                    found.push(&format!("absent {name}"), &self.plan.name, || self.absent(param, planned.is_none()));
                    continue;
                }
                _ => {}
            }
            let Some(argument) = argument else { continue };
            let promised = promised.contains(name.as_str()).then_some(16);
            // nvcc is promised nothing, whatever the registry says.
            let forgone = argument.divisibility.is_none() && self.subject.language() == Language::Cuda;
            if argument.divisibility != promised && !forgone {
                let divisibility = argument.divisibility;
                found.push(&format!("divisible {name}"), &self.plan.name, || self.divisible(param, divisibility));
            }
        }
    }

    fn other_type(&self, param: &Param, planned: &str, compiled: &str) -> Diagnostic {
        let (name, kernel) = (&param.name.value, self.subject.name());
        let (planned, compiled) = (in_words(planned), in_words(compiled));
        let message =
            format!("`{name}` of kernel `{kernel}` is {planned} in the registry but was compiled as {compiled}");
        let diagnostic = Diagnostic::new("TL0221", message, element_span(param), format!("{planned} here"));
        let span = self.subject.param_span(&param.kernel_name);
        label_at(diagnostic, span, format!("compiled as {compiled}"))
            .help(format!("if the registry is right, {}", self.subject.compile()))
    }

    fn absent(&self, param: &Param, planned: bool) -> Diagnostic {
        let (name, kernel) = (&param.name.value, self.subject.name());
        let word = |absent| if absent { "absent" } else { "given" };
        let (here, there) = (word(planned), word(!planned));
        let message = format!("`{name}` of kernel `{kernel}` is {here} by the registry but was compiled as {there}");
        let diagnostic = Diagnostic::new("TL0224", message, param.name.span.clone(), format!("{here} in this variant"));
        let span = self.subject.param_span(&param.kernel_name);
        label_at(diagnostic, span, format!("compiled as {there}")).help(self.subject.compile())
    }

    fn divisible(&self, param: &Param, compiled: Option<u32>) -> Diagnostic {
        let (name, kernel) = (&param.name.value, self.subject.name());
        let promised = self.subject.kernel.divisible_by_16.iter().find(|promise| promise.value == *name);
        let said = match compiled {
            Some(divisor) => format!("compiled with the promise that {divisor} divides it"),
            None => "compiled without a promise".to_string(),
        };
        let (span, label) = match promised {
            Some(promise) => (promise.span.clone(), "promised here, in aligned variants"),
            None => (param.name.span.clone(), "not in `divisible_by_16`"),
        };
        let message = format!("`{name}` of kernel `{kernel}` was {said}, which is not what the registry says");
        let diagnostic = Diagnostic::new("TL0225", message, span, label);
        label_at(diagnostic, self.subject.param_span(&param.kernel_name), said).help(self.subject.compile())
    }

    fn constants(&self, found: &mut PerVariant) {
        for constant in &self.subject.kernel.constants {
            let name = &constant.kernel_name;
            let Some(planned) = self.plan.constants.get(name) else { continue };
            let compiled = self.compiled.constants.get(name);
            let known = self.facts.params.iter().any(|param| param.name == *name && param.constexpr)
                || self.subject.language() == Language::Cuda;
            if !known || self.subject.reported.contains(name) || compiled.is_some_and(|it| same_value(planned, it)) {
                continue;
            }
            found.push(&format!("constant {name}"), &self.plan.name, || {
                let compiled = compiled.map_or("no value".to_string(), |value| format!("{value}"));
                let kernel = self.subject.name();
                let message = format!(
                    "`{name}` of kernel `{kernel}` is {planned} in the registry but was compiled as {compiled}"
                );
                let label = format!("{planned} here");
                let diagnostic = Diagnostic::new("TL0220", message, constant.name.span.clone(), label);
                label_at(diagnostic, self.subject.param_span(name), format!("compiled as {compiled}"))
                    .help(format!("if the registry is right, {}", self.subject.compile()))
            });
        }
    }

    fn warps(&self, found: &mut PerVariant) {
        let (planned, compiled) = (self.subject.kernel.num_warps, self.compiled.num_warps);
        if planned == compiled {
            return;
        }
        found.push("warps", &self.plan.name, || {
            let kernel = self.subject.name();
            let message =
                format!("kernel `{kernel}` has {planned} warps in the registry but was compiled with {compiled}");
            let span = self.subject.kernel.name.span.clone();
            Diagnostic::new("TL0226", message, span, format!("`num_warps: {planned}`")).help(self.subject.compile())
        });
    }

    /// Whether a launch can give all that the variant needs.
    fn launchable(&self, found: &mut PerVariant) {
        let compiled = self.compiled;
        let needs = [
            (
                compiled.global_scratch_size != 0,
                "global scratch memory",
                "tensor descriptors made on the device need it",
            ),
            (compiled.profile_scratch_size != 0, "profiling scratch memory", "compile without a profiler"),
            (compiled.num_ctas != 1, "a cluster of blocks", "`num_ctas` must be 1"),
        ];
        for (_, what, why) in needs.iter().filter(|need| need.0) {
            found.push(what, &self.plan.name, || {
                let message = format!("kernel `{}` needs {what}, which no launch gives", self.subject.name());
                let span = self.subject.kernel.name.span.clone();
                let diagnostic = Diagnostic::new("TL0231", message, span, "declared here");
                label_at(diagnostic, self.subject.function_span(), format!("compiled to need {what}")).help(*why)
            });
        }
    }
}

/// Whether the compiled type is the planned one. The compiler does not keep the sign of an integer.
fn same_type(planned: &str, compiled: &str) -> bool {
    let split = |name: &str| {
        let element = name.trim_start_matches('*');
        (name.len() - element.len(), element.replacen('u', "i", 1))
    };
    split(planned) == split(compiled)
}

/// A Triton type in the registry's words: `*fp32` is a tensor of f32.
fn in_words(triton: &str) -> String {
    let element = triton.trim_start_matches('*');
    let element = DType::ALL.iter().find(|row| row.2 == element).map_or(element, |row| row.1);
    match triton.starts_with('*') {
        true => format!("a tensor of {element}"),
        false => element.to_string(),
    }
}

fn same_value(planned: &Value, compiled: &Value) -> bool {
    match (planned, compiled) {
        // JSON of some writers has no mark of a whole number in floating point.
        (Value::Float(float), Value::Int(int)) | (Value::Int(int), Value::Float(float)) => *float == *int as f64,
        (planned, compiled) => planned == compiled,
    }
}

fn element_span(param: &Param) -> Span {
    match &param.kind {
        ParamKind::Tensor(tensor) => tensor.element.span.clone(),
        ParamKind::Scalar(scalar) => scalar.element.span.clone(),
        ParamKind::Struct(value) => value.name.span.clone(),
    }
}

/// Are the variants that were compiled those that the registry has? If not, one diagnostic says which choice changed.
fn sets(subject: &Subject, facts: &KernelFacts<Hash>, findings: &mut Findings) {
    let planned: BTreeSet<&str> = subject.plans.iter().map(|plan| plan.name.as_str()).collect();
    let missing: Vec<&str> = subject
        .plans
        .iter()
        .map(|plan| plan.name.as_str())
        .filter(|name| !facts.variants.contains_key(*name))
        .collect();
    let extra: Vec<&str> = facts.variants.keys().map(String::as_str).filter(|name| !planned.contains(name)).collect();
    let (code, message) = match (missing.as_slice(), extra.as_slice()) {
        ([], []) => return,
        ([], [first, ..]) => {
            ("TL0223", format!("was compiled as {}, which the registry does not allow", some(first, &extra)))
        }
        ([first, ..], _) => ("TL0222", format!("has no compiled {}", some(first, &missing))),
    };
    let mut causes = causes(subject, facts);
    // A parameter that is missing altogether was reported, or its source has changed, which was reported too.
    if causes.is_empty() && subject_lacks(subject, facts) {
        return;
    }
    let message = format!("kernel `{}` {message}", subject.name());
    let mut diagnostic = match causes.is_empty() {
        true => Diagnostic::new(code, message, subject.kernel.name.span.clone(), "declared here"),
        false => {
            let first = causes.remove(0);
            Diagnostic::new(code, message, first.span, first.text)
        }
    };
    for cause in causes {
        diagnostic = diagnostic.label(cause.span, cause.text);
    }
    findings.push([subject.id], diagnostic.help(format!("if the registry is right, {}", subject.compile())));
}

/// `variant `x` (and 3 others)`.
fn some(first: &str, all: &[&str]) -> String {
    match all.len() - 1 {
        0 => format!("variant `{first}`"),
        1 => format!("variant `{first}` (and 1 other)"),
        more => format!("variant `{first}` (and {more} others)"),
    }
}

struct Cause {
    span: Span,
    text: String,
}

/// The types that an argument has among variants; none where it is absent.
type Choices<'a> = BTreeSet<Option<String>>;

/// The parameters and promises whose choices differ between the registry and what was compiled.
fn causes(subject: &Subject, facts: &KernelFacts<Hash>) -> Vec<Cause> {
    let compiled = compiled_choices(facts);
    let mut planned: BTreeMap<&str, Choices> = BTreeMap::new();
    for (name, kind) in subject.plans.iter().flat_map(|plan| &plan.signature) {
        planned.entry(name).or_default().insert(kind.as_deref().map(unsigned));
    }
    let mut causes = Vec::new();
    let mut variables = BTreeSet::new();
    for param in gpu_params(subject.kernel) {
        let name = param.kernel_name.as_str();
        let (Some(now), Some(then)) = (planned.get(name), compiled.get(name)) else { continue };
        if subject.reported.contains(name) || now == then {
            continue;
        }
        let name = &param.name.value;
        if now.contains(&None) != then.contains(&None) {
            let text = match now.contains(&None) {
                true => format!("`{name}` can be absent now, and was never compiled so"),
                false => format!("`{name}` is never absent now, and was compiled so"),
            };
            causes.push(Cause { span: param.name.span.clone(), text });
        } else if now.len() > 1 || then.len() > 1 {
            // A type variable is one cause, however many parameters have it.
            if let Some(Element::Variable(variable)) = param.element()
                && !variables.insert(variable)
            {
                continue;
            }
            let text = format!("`{name}` is {} now, and was compiled as {}", any_of(now), any_of(then));
            causes.push(Cause { span: element_span(param), text });
        }
    }
    let promised = |variant: &VariantFacts<Hash>| variant.arguments.iter().any(|it| it.divisibility.is_some());
    let was_promised = facts.variants.values().any(promised);
    match subject.kernel.divisible_by_16.first() {
        Some(promise) if !was_promised && facts.variants.keys().all(|name| !name.ends_with("-aligned")) => {
            let text = "divisibility is promised now, and nothing was compiled with it".to_string();
            causes.push(Cause { span: promise.span.clone(), text });
        }
        None if was_promised => {
            let text = "divisibility is no longer promised, and was compiled in".to_string();
            causes.push(Cause { span: subject.kernel.name.span.clone(), text });
        }
        _ => {}
    }
    causes
}

/// `a tensor of f32, f16 or bf16`.
fn any_of(choices: &Choices) -> String {
    let mut words = choices.iter().flatten().map(|kind| in_words(kind));
    let Some(mut list) = words.next() else { return "absent".to_string() };
    let words: Vec<String> = words.collect();
    for (index, word) in words.iter().enumerate() {
        list += if index + 1 == words.len() { " or " } else { ", " };
        list += word.strip_prefix("a tensor of ").unwrap_or(word);
    }
    list
}

fn compiled_choices(facts: &KernelFacts<Hash>) -> BTreeMap<&str, Choices<'_>> {
    let mut choices: BTreeMap<&str, Choices> = BTreeMap::new();
    for variant in facts.variants.values() {
        let absent: BTreeSet<&str> = variant.absent.iter().map(String::as_str).collect();
        for name in &absent {
            choices.entry(name).or_default().insert(None);
        }
        for argument in variant.arguments.iter().filter(|argument| !absent.contains(argument.name.as_str())) {
            choices.entry(&argument.name).or_default().insert(Some(unsigned(&argument.kind)));
        }
    }
    choices
}

fn unsigned(kind: &str) -> String {
    kind.replacen('u', "i", 1)
}

/// Whether one side has a parameter that decides over variants and the other side does not have it at all.
fn subject_lacks(subject: &Subject, facts: &KernelFacts<Hash>) -> bool {
    let compiled: BTreeSet<&str> = facts.params.iter().map(|param| param.name.as_str()).collect();
    let decides = |param: &Param| {
        let optional = matches!(&param.kind, ParamKind::Tensor(tensor) if tensor.presence != Presence::Required);
        optional || matches!(param.element(), Some(Element::Variable(_)))
    };
    let new = gpu_params(subject.kernel).any(|param| decides(param) && !compiled.contains(param.kernel_name.as_str()));
    let gone = |name: &&str| subject.param(name).is_none();
    new || compiled_choices(facts).iter().any(|(name, choices)| gone(name) && choices.len() > 1)
}
