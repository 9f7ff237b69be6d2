//! What changed from one registry to another, each change by its rule. Words of documentation are no change.

use std::collections::BTreeMap;

use serde::Serialize;
use tidelock_codegen::model::{
    Access, Arm, Constant, ConstantValue, Domain, Element, Family, Kernel, Param, ParamKind, Registry, Scalar,
    ScalarSource, Tensor,
};
use tidelock_codegen::source::Span;

use super::describe::{
    added, described, domain, element, is_cpu_only, kind, list, literal, removed, source, structure, value,
};

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Name of its rule.
    pub rule: &'static str,
    /// The kernel.
    pub kernel: String,
    /// The parameter, constant or type variable.
    pub item: Option<String>,
    /// What it was.
    pub old: Option<String>,
    /// What it is.
    pub new: Option<String>,
    /// Where it stands: in the new registry, or in the old one where it is gone.
    #[serde(skip)]
    pub span: Span,
    /// Whether that is the old one.
    #[serde(skip)]
    pub gone: bool,
}

/// Every change from `old` to `new`, in the order of the new registry, then what is gone.
pub fn compare(old: &Registry, new: &Registry) -> Vec<Change> {
    let (olds, news) = (kernels(old), kernels(new));
    let mut changes = Vec::new();
    for family in &new.families {
        for kernel in &family.kernels {
            let mut pair = Pair { kernel: kernel.name.value.clone(), changes: &mut changes };
            match olds.get(kernel.name.value.as_str()) {
                None => pair.add("kernel-added", None, None, None, &kernel.name.span),
                Some((was_in, before)) => {
                    pair.value("family-changed", None, &was_in.name, &family.name, &kernel.name.span);
                    pair.kernel(before, kernel);
                }
            }
        }
    }
    for (name, (_, kernel)) in olds.iter().filter(|(name, _)| !news.contains_key(*name)) {
        let mut pair = Pair { kernel: (*name).to_string(), changes: &mut changes };
        pair.gone("kernel-removed", None, None, &kernel.name.span);
    }
    changes
}

fn kernels(registry: &Registry) -> BTreeMap<&str, (&Family, &Kernel)> {
    let all = registry.families.iter().flat_map(|family| family.kernels.iter().map(move |kernel| (family, kernel)));
    all.map(|(family, kernel)| (kernel.name.value.as_str(), (family, kernel))).collect()
}

/// A kernel in both registries.
struct Pair<'a> {
    kernel: String,
    changes: &'a mut Vec<Change>,
}

impl Pair<'_> {
    fn add(&mut self, rule: &'static str, item: Option<&str>, old: Option<String>, new: Option<String>, span: &Span) {
        let item = item.map(str::to_string);
        self.changes.push(Change {
            rule,
            kernel: self.kernel.clone(),
            item,
            old,
            new,
            span: span.clone(),
            gone: false,
        });
    }

    fn gone(&mut self, rule: &'static str, item: Option<&str>, old: Option<String>, span: &Span) {
        self.add(rule, item, old, None, span);
        if let Some(last) = self.changes.last_mut() {
            last.gone = true;
        }
    }

    /// A change if the two differ.
    fn value(&mut self, rule: &'static str, item: Option<&str>, old: &str, new: &str, span: &Span) {
        if old != new {
            self.add(rule, item, Some(old.to_string()), Some(new.to_string()), span);
        }
    }

    fn kernel(&mut self, old: &Kernel, new: &Kernel) {
        let gpu = |kernel: &Kernel| format!("{}:{}", kernel.gpu.value.file, kernel.gpu.value.function);
        self.value("gpu-changed", None, &gpu(old), &gpu(new), &new.gpu.span);
        let cpu = |kernel: &Kernel| {
            kernel.cpu.as_ref().map_or("Rust".into(), |cpu| format!("{}:{}", cpu.value.file, cpu.value.function))
        };
        self.value("cpu-changed", None, &cpu(old), &cpu(new), &new.name.span);
        let grid = |kernel: &Kernel| list(kernel.grid.iter().map(|extent| extent.value.to_string()));
        self.value("grid-changed", None, &grid(old), &grid(new), &new.name.span);
        let shared = |kernel: &Kernel| kernel.shared_memory.as_ref().map_or("none".into(), |it| it.value.to_string());
        self.value("shared-memory-changed", None, &shared(old), &shared(new), &new.name.span);
        self.value("num-warps-changed", None, &old.num_warps.to_string(), &new.num_warps.to_string(), &new.name.span);
        let mut promises =
            [old, new].map(|kernel| kernel.divisible_by_16.iter().map(|name| name.value.clone()).collect::<Vec<_>>());
        promises.iter_mut().for_each(|names| names.sort());
        self.value("promise-changed", None, &list(promises[0].clone()), &list(promises[1].clone()), &new.name.span);
        self.types(old, new);
        let order = |kernel: &Kernel, other: &Kernel| {
            let both =
                kernel.params.iter().filter(|param| !is_cpu_only(param) && other.param(&param.name.value).is_some());
            list(both.map(|param| param.name.value.clone()))
        };
        self.value("order-changed", None, &order(old, new), &order(new, old), &new.name.span);
        for param in &new.params {
            match old.param(&param.name.value) {
                Some(before) => self.param(before, param),
                None => self.add(added(param), Some(&param.name.value), None, Some(described(param)), &param.name.span),
            }
        }
        for param in old.params.iter().filter(|param| new.param(&param.name.value).is_none()) {
            self.gone(removed(param), Some(&param.name.value), Some(described(param)), &param.name.span);
        }
        let find = |kernel: &'_ Kernel, name: &str| kernel.constants.iter().position(|it| it.name.value == name);
        for constant in &new.constants {
            let name = &constant.name.value;
            match find(old, name) {
                Some(at) => self.constant(&old.constants[at], constant),
                None => self.add("constant-added", Some(name), None, Some(value(constant)), &constant.name.span),
            }
        }
        for constant in old.constants.iter().filter(|constant| find(new, &constant.name.value).is_none()) {
            self.gone("constant-removed", Some(&constant.name.value), Some(value(constant)), &constant.name.span);
        }
    }

    fn types(&mut self, old: &Kernel, new: &Kernel) {
        for variable in &new.types {
            let name = &variable.name;
            match old.type_variable(&name.value) {
                Some(before) => {
                    let names = |choices: &[tidelock_codegen::model::DType]| {
                        list(choices.iter().map(|dtype| dtype.name().to_string()))
                    };
                    let (was, is) = (names(&before.choices), names(&variable.choices));
                    let more = variable.choices.iter().any(|dtype| !before.choices.contains(dtype));
                    let fewer = before.choices.iter().any(|dtype| !variable.choices.contains(dtype));
                    for rule in [("choice-added", more), ("choice-removed", fewer)].into_iter().filter(|rule| rule.1) {
                        self.add(rule.0, Some(&name.value), Some(was.clone()), Some(is.clone()), &name.span);
                    }
                }
                None => {
                    let same = |other: &&tidelock_codegen::model::TypeVariable| {
                        other.choices == variable.choices && new.type_variable(&other.name.value).is_none()
                    };
                    if let Some(before) = old.types.iter().find(same) {
                        self.value("variable-renamed", Some(&name.value), &before.name.value, &name.value, &name.span);
                    }
                }
            }
        }
    }

    fn param(&mut self, old: &Param, new: &Param) {
        let (name, span) = (&new.name.value, &new.name.span);
        let item = Some(name.as_str());
        self.value("kernel-name-changed", item, &old.kernel_name, &new.kernel_name, span);
        let arms = |param: &Param| {
            let arm = |arm: &Arm| if *arm == Arm::Gpu { "gpu" } else { "cpu" };
            let said =
                |word: &str, said: &Option<(Arm, String)>| said.as_ref().map(|(it, _)| format!("{word} {}", arm(it)));
            let said: Vec<String> =
                [said("only", &param.only), said("refused", &param.refused)].into_iter().flatten().collect();
            if said.is_empty() { "both arms".to_string() } else { said.join(", ") }
        };
        self.value("arm-changed", item, &arms(old), &arms(new), span);
        let (was, is) = (domain(&old.domain), domain(&new.domain));
        let rule = if new.domain == Domain::Any { "domain-widened" } else { "domain-narrowed" };
        self.value(rule, item, &was, &is, span);
        match (&old.kind, &new.kind) {
            (ParamKind::Tensor(old), ParamKind::Tensor(new)) => self.tensor(name, span, old, new),
            (ParamKind::Scalar(old), ParamKind::Scalar(new)) => self.scalar(name, span, old, new),
            (ParamKind::Struct(old), ParamKind::Struct(new)) => {
                self.value("type-changed", item, &structure(old), &structure(new), span);
            }
            (before, after) => self.value("kind-changed", item, kind(before), kind(after), span),
        }
    }

    fn tensor(&mut self, name: &str, span: &Span, old: &Tensor, new: &Tensor) {
        let item = Some(name);
        self.element(name, span, &old.element.value, &new.element.value);
        let shape = |tensor: &Tensor| list(tensor.shape.iter().map(|extent| extent.value.to_string()));
        self.value("shape-changed", item, &shape(old), &shape(new), span);
        let word = |access| match access {
            Access::Read => "read",
            Access::Write => "write",
            Access::Update => "update",
        };
        let rule = match (old.access, new.access) {
            (Access::Write, Access::Update) => "write-to-update",
            (Access::Update, Access::Write) => "update-to-write",
            _ => "access-changed",
        };
        self.value(rule, item, word(old.access), word(new.access), span);
        let presence = |tensor: &Tensor| format!("{:?}", tensor.presence).to_lowercase();
        self.value("presence-changed", item, &presence(old), &presence(new), span);
    }

    fn scalar(&mut self, name: &str, span: &Span, old: &Scalar, new: &Scalar) {
        let item = Some(name);
        self.element(name, span, &old.element.value, &new.element.value);
        match (&old.source, &new.source) {
            (ScalarSource::Default(was), ScalarSource::Default(is)) => {
                self.value("default-changed", item, &literal(was), &literal(is), span);
            }
            (was, is) => self.value("source-changed", item, &source(was), &source(is), span),
        }
        let limit = |max: Option<i64>| max.map_or("none".to_string(), |max| max.to_string());
        let lower = new.max.is_some_and(|max| old.max.is_none_or(|before| max < before));
        let rule = if lower { "limit-lowered" } else { "limit-raised" };
        self.value(rule, item, &limit(old.max), &limit(new.max), span);
    }

    fn element(&mut self, name: &str, span: &Span, old: &Element, new: &Element) {
        // That a variable is called otherwise is told once, for the variable.
        let renamed = self.changes.iter().any(|it| {
            it.rule == "variable-renamed"
                && it.kernel == self.kernel
                && it.old.as_ref() == Some(&element(old))
                && it.new.as_ref() == Some(&element(new))
        });
        if !renamed {
            self.value("type-changed", Some(name), &element(old), &element(new), span);
        }
    }

    fn constant(&mut self, old: &Constant, new: &Constant) {
        let (item, span) = (Some(new.name.value.as_str()), &new.name.span);
        self.value("kernel-name-changed", item, &old.kernel_name, &new.kernel_name, span);
        let kind = |constant: &Constant| {
            let tuning = if constant.tuning { ", tuning" } else { "" };
            let derived = if matches!(constant.value, ConstantValue::Fixed(_)) { "" } else { ", derived" };
            format!("{}{tuning}{derived}", constant.dtype.name())
        };
        self.value("constant-kind-changed", item, &kind(old), &kind(new), span);
        if kind(old) == kind(new) {
            self.value("constant-value-changed", item, &value(old), &value(new), span);
        }
    }
}
