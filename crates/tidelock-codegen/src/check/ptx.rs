//! Is each PTX file the one that was compiled, and does it have the slots that its facts say?

use std::collections::BTreeSet;

use super::kernel_source::Language;
use super::{Artifacts, Findings, Manifests, PerVariant, Subject, label_at};
use crate::abi::{self, Profile};
use crate::bindings;
use crate::diagnostic::Diagnostic;
use crate::facts::{self, Hash, Toolchain, VariantFacts};
use crate::model::Registry;
use crate::ptx::{self, Entry, Located, Module, SlotKind};
use crate::source::Span;

pub(super) fn check(subject: &Subject, artifacts: &Artifacts, findings: &mut Findings) {
    let (Some(facts), Some(toolchain)) = (subject.facts, subject.toolchain) else { return };
    let cuda = subject.language() == Language::Cuda;
    let profile = if cuda { Ok(abi::NVCC) } else { abi::triton(&toolchain.triton) };
    // A version that is refused was reported with its manifest.
    let Ok(profile) = profile else { return };
    let mut found = PerVariant::default();
    for (name, variant) in &facts.variants {
        let path = facts::ptx_path(&subject.family.name, name);
        let file = File { subject, variant, toolchain, profile, cuda, path };
        file.check(name, artifacts, &mut found);
    }
    found.finish(subject.id, findings);
}

/// The PTX file of one variant.
struct File<'a> {
    subject: &'a Subject<'a>,
    variant: &'a VariantFacts<Hash>,
    toolchain: &'a Toolchain,
    profile: Profile,
    cuda: bool,
    path: String,
}

impl File<'_> {
    fn check(&self, name: &str, artifacts: &Artifacts, found: &mut PerVariant) {
        let Some(content) = artifacts.ptx.get(&self.path) else {
            let message = format!("{} of kernel `{}` does not exist", self.path, self.subject.name());
            let span = self.subject.kernel.name.span.clone();
            let missing = || Diagnostic::new("TL0301", message, span, "its PTX").help(self.subject.compile());
            found.push("missing", name, missing);
            return;
        };
        let edited = Hash::of(content) != self.variant.ptx;
        let mut wrong = self.structure(content);
        if wrong.is_empty() && edited {
            let message = format!("{} is not the PTX that was compiled", self.path);
            let label = "edited by hand, cut off, or its line ends were converted";
            let diagnostic = Diagnostic::new("TL0303", message, Span::new(&self.path, 0, 0), label)
                .label(self.subject.kernel.name.span.clone(), "its kernel")
                .help(self.subject.compile());
            wrong.push(("hash".to_string(), diagnostic));
        } else if edited {
            // One cause: the hash only says the same less clearly.
            let help = format!("its hash differs too, so it was edited or cut off: {}", self.subject.compile());
            for (_, diagnostic) in &mut wrong {
                diagnostic.help = Some(help.clone());
            }
        }
        for (cause, diagnostic) in wrong {
            found.push(&cause, name, || diagnostic);
        }
    }

    /// The slot of a struct.
    fn struct_slot(&self, name: &str) -> Option<SlotKind> {
        let layout = self.subject.bindings?.structs.get(name)?.as_ref().ok()?;
        Some(SlotKind::Bytes { size: layout.size as u64, align: layout.align as u64 })
    }

    /// What differs between the facts and the file, each with the cause that it shares with other variants.
    fn structure(&self, content: &[u8]) -> Vec<(String, Diagnostic)> {
        let unreadable = |start, end, label: String| {
            let message = format!("{} is not whole PTX: {label}", self.path);
            vec![("unreadable".to_string(), self.wrong("TL0304", message, start..end, ""))]
        };
        let text = match std::str::from_utf8(content) {
            Ok(text) => text,
            Err(error) => return unreadable(error.valid_up_to(), error.valid_up_to(), "it is not UTF-8".to_string()),
        };
        let module = match ptx::read(text) {
            Ok(module) => module,
            Err(error) => return unreadable(error.span.start, error.span.end, error.message),
        };
        if let Some(open) = &module.unclosed {
            return unreadable(open.start, open.end, "this `{` has no `}`".to_string());
        }
        let mut wrong = Vec::new();
        self.module(&module, &mut wrong);
        match module.entries.as_slice() {
            [entry] if entry.name.value == self.variant.entry => {
                self.slots(entry, &mut wrong);
                self.threads(entry, &mut wrong);
            }
            entries => {
                let names: Vec<String> =
                    entries.iter().take(3).map(|entry| format!("`{}`", shorten(&entry.name.value))).collect();
                let found = match (names.as_slice(), entries.len() - names.len()) {
                    ([], _) => "none".to_string(),
                    (names, 0) => names.join(", "),
                    (names, more) => format!("{} and {more} more", names.join(", ")),
                };
                let message = format!("{}: expected the entry `{}`, found {found}", self.path, self.variant.entry);
                let span = entries.first().map_or(0..0, |entry| entry.name.span.clone());
                wrong.push(("entry".to_string(), self.wrong("TL0305", message, span, "not its kernel")));
            }
        }
        wrong
    }

    fn wrong(
        &self,
        code: &'static str,
        message: String,
        span: std::ops::Range<usize>,
        label: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::new(code, message, Span::new(&self.path, span.start, span.end), label)
            .label(self.subject.kernel.name.span.clone(), "its kernel")
            .help(self.subject.compile())
    }

    /// Versions, target and shared memory.
    fn module(&self, module: &Module, wrong: &mut Vec<(String, Diagnostic)>) {
        let mut header = |directive: &str, found: &Located<String>, expected: &str| {
            if found.value != expected {
                let message =
                    format!("{}: expected `{directive} {expected}`, found `{directive} {}`", self.path, found.value);
                let diagnostic = self.wrong("TL0309", message, found.span.clone(), format!("expected {expected}"));
                wrong.push((directive.to_string(), diagnostic));
            }
        };
        header(".target", &module.target, &self.toolchain.target);
        // nvcc writes the version of its own release.
        if !self.cuda {
            header(".version", &module.version, &self.toolchain.ptx_version);
        }
        match &module.address_size {
            Some(size) if size.value == 64 => {}
            Some(size) => {
                let found = Located { value: size.value.to_string(), span: size.span.clone() };
                header(".address_size", &found, "64");
            }
            None => header(".address_size", &Located { value: "nothing".to_string(), span: 0..0 }, "64"),
        }
        let given = self.variant.shared > 0 || self.subject.kernel.shared_memory.is_some();
        if let Some(span) = module.dynamic_shared.as_ref().filter(|_| !given) {
            let message = format!("{} declares dynamic shared memory, and a launch gives it none", self.path);
            let mut diagnostic = self.wrong("TL0310", message, span.clone(), "declared here");
            if self.cuda {
                diagnostic = diagnostic.help("say how many bytes a block gets: `shared_memory: …` in the registry");
            }
            wrong.push(("shared".to_string(), diagnostic));
        }
    }

    fn threads(&self, entry: &Entry, wrong: &mut Vec<(String, Diagnostic)>) {
        let expected = self.variant.num_warps.saturating_mul(32);
        let mut differs = |found: String, span: std::ops::Range<usize>| {
            let warps = match self.variant.num_warps {
                1 => "1 warp".to_string(),
                warps => format!("{warps} warps"),
            };
            let message =
                format!("{}: expected `.reqntid {expected}` ({warps} of 32 threads), found {found}", self.path);
            wrong.push(("threads".to_string(), self.wrong("TL0308", message, span, format!("expected {expected}"))));
        };
        let name = entry.name.span.clone();
        match (&entry.reqntid, &entry.maxntid) {
            (Some(exact), _) if exact.value == [expected, 1, 1] => {}
            (Some(exact), _) => differs(format!("`.reqntid {}`", extents(exact.value)), exact.span.clone()),
            (None, _) if self.profile.requires_reqntid => differs("none".to_string(), name),
            (None, Some(most)) if product(most.value) < u64::from(expected) => {
                differs(format!("`.maxntid {}`", extents(most.value)), most.span.clone());
            }
            _ => {}
        }
        if let Some(span) = &entry.cluster {
            let message = format!("{}: kernel `{}` must be launched as a cluster", self.path, self.subject.name());
            let label = "no launch gives this";
            wrong.push(("cluster".to_string(), self.wrong("TL0231", message, span.clone(), label)));
        }
    }

    fn slots(&self, entry: &Entry, wrong: &mut Vec<(String, Diagnostic)>) {
        let mut expected = Vec::new();
        for argument in &self.variant.arguments {
            let Some(kind) = abi::slot(&argument.kind).or_else(|| self.struct_slot(&argument.kind)) else {
                // A struct that is not bound was reported.
                if bindings::structs(self.subject.kernel).any(|(_, value)| value.name.value == argument.kind) {
                    return;
                }
                let message =
                    format!("{}: `{}` has the unknown type `{}`", self.path, argument.name, shorten(&argument.kind));
                wrong.push(("type".to_string(), self.wrong("TL0306", message, entry.name.span.clone(), "")));
                return;
            };
            expected.push(Expected { kind, name: format!("`{}`", argument.name), argument: Some(&argument.name) });
        }
        let own = expected.len();
        let hidden = |index| Expected {
            kind: SlotKind::Pointer,
            name: format!("the hidden pointer to {}", abi::hidden_name(index)),
            argument: None,
        };
        expected.extend((0..self.profile.hidden).map(hidden));

        let differences = compare(&expected, entry, |a, b| self.accepts(a, b));
        if differences.is_empty() {
            return;
        }
        // Beyond the arguments it is the compiler's own slots that differ, not the kernel's.
        let code = match differences.iter().all(|difference| difference.slot >= own) {
            true => "TL0307",
            false => "TL0306",
        };
        let mut differences = differences.into_iter();
        let Some(first) = differences.next() else { return };
        let span = |difference: &Difference| difference.span.clone().unwrap_or(entry.name.span.clone());
        let message = format!("{}: {}", self.path, first.message);
        let place = span(&first);
        let mut diagnostic =
            Diagnostic::new(code, message, Span::new(&self.path, place.start, place.end), first.label.clone());
        let argument = expected.get(first.slot).and_then(|expected| expected.argument);
        let declared = argument.and_then(|name| self.subject.param(name)).filter(|_| first.certain);
        diagnostic = match declared {
            Some(param) => diagnostic.label(param.name.span.clone(), "the parameter"),
            None => diagnostic.label(self.subject.kernel.name.span.clone(), "its kernel"),
        };
        if let Some(name) = argument.filter(|_| first.certain) {
            diagnostic = label_at(diagnostic, self.subject.param_span(name), "in its source");
        }
        for other in differences {
            let place = span(&other);
            diagnostic = diagnostic.label(Span::new(&self.path, place.start, place.end), other.message);
        }
        let cause = format!("slots {code} {}", first.message);
        wrong.push((cause, diagnostic.help(self.subject.compile())));
    }

    fn accepts(&self, expected: SlotKind, found: SlotKind) -> bool {
        // Compilers that do not mark pointers declare them as plain numbers of the same size.
        let unmarked = !self.profile.marks_pointers && expected == SlotKind::Pointer;
        expected == found || (unmarked && found == SlotKind::Integer(64))
    }
}

/// A slot that the facts ask for.
struct Expected<'a> {
    kind: SlotKind,
    name: String,
    /// The argument's name in the kernel; none for a hidden one.
    argument: Option<&'a str>,
}

/// Something about a slot that differs.
struct Difference {
    /// Index of the slot among those expected.
    slot: usize,
    message: String,
    label: String,
    /// Where in the file, if there is a place.
    span: Option<std::ops::Range<usize>>,
    /// Whether it is certain which slot it is.
    certain: bool,
}

fn compare(expected: &[Expected], entry: &Entry, accepts: impl Fn(SlotKind, SlotKind) -> bool) -> Vec<Difference> {
    let found = &entry.slots;
    let fits = |slot: usize, at: usize| accepts(expected[slot].kind, found[at].kind);
    let kind_differs = |slot: usize, at: usize| Difference {
        slot,
        message: format!(
            "slot {slot} ({}): expected {}, found {}",
            expected[slot].name, expected[slot].kind, found[at].kind
        ),
        label: format!("expected {}", expected[slot].kind),
        span: Some(found[at].span.clone()),
        certain: true,
    };
    let missing = |slot: usize, certain: bool, what: String| Difference {
        slot,
        message: format!("expected {} slots, found {}: {what}", expected.len(), found.len()),
        label: "parameters of this entry".to_string(),
        span: None,
        certain,
    };
    if found.len() == expected.len() {
        return (0..found.len()).filter(|&at| !fits(at, at)).map(|at| kind_differs(at, at)).collect();
    }
    if found.len() > expected.len() {
        let surplus = found.len() - expected.len();
        // The first slot that does not fit, or the first behind all that do.
        let at = (0..expected.len()).find(|&at| !fits(at, at)).unwrap_or(expected.len());
        let what = if surplus == 1 { "one is" } else { "some are" };
        let message =
            format!("expected {} slots, found {}: {what} no argument of the kernel", expected.len(), found.len());
        let label = format!("`{}` is {}", found[at].name, found[at].kind);
        return vec![Difference { slot: at, message, label, span: Some(found[at].span.clone()), certain: false }];
    }
    // The compilers number the slots, so a slot that was taken out leaves a gap.
    if let Some(numbers) = numbers(entry, expected.len()) {
        let present: BTreeSet<usize> = numbers.iter().copied().collect();
        let gaps: Vec<usize> = (0..expected.len()).filter(|slot| !present.contains(slot)).collect();
        if numbers != (0..numbers.len()).collect::<Vec<_>>() {
            let names: Vec<String> = gaps.iter().map(|&gap| format!("slot {gap} ({})", expected[gap].name)).collect();
            let verb = if gaps.len() == 1 { "is" } else { "are" };
            let mut all = vec![missing(gaps[0], true, format!("{} {verb} missing", names.join(", ")))];
            let differ = numbers.iter().enumerate().filter(|&(at, &slot)| !fits(slot, at));
            all.extend(differ.map(|(at, &slot)| kind_differs(slot, at)));
            return all;
        }
    }
    // Without a gap the kinds say which slots can be the missing one.
    let short = expected.len() - found.len();
    let prefix = (0..found.len()).find(|&at| !fits(at, at)).unwrap_or(found.len());
    let suffix =
        (0..found.len()).find(|&back| !fits(expected.len() - 1 - back, found.len() - 1 - back)).unwrap_or(found.len());
    let candidates: Vec<usize> = match short {
        1 => (0..expected.len()).filter(|&slot| slot <= prefix && found.len() - slot <= suffix).collect(),
        _ => Vec::new(),
    };
    let what = match candidates.as_slice() {
        [] if short == 1 => "one is missing, and others differ".to_string(),
        [] if prefix == found.len() => {
            let names: Vec<&str> = expected[prefix..].iter().map(|expected| expected.name.as_str()).collect();
            format!("the last ones may be missing, {}", names.join(", "))
        }
        [] => format!("{short} are missing, at or behind {}", expected[prefix].name),
        [slot] => format!("slot {slot} ({}) is missing", expected[*slot].name),
        several => {
            let names: Vec<&str> = several.iter().map(|&slot| expected[slot].name.as_str()).collect();
            format!("one of {} is missing", names.join(" or "))
        }
    };
    let slot = candidates.first().copied().unwrap_or(prefix);
    vec![missing(slot, candidates.len() == 1, what)]
}

/// The numbers in the names of the slots (`x_param_3`), if all have one, in order and below `limit`.
fn numbers(entry: &Entry, limit: usize) -> Option<Vec<usize>> {
    let prefix = format!("{}_param_", entry.name.value);
    let numbers: Vec<usize> =
        entry.slots.iter().map(|slot| slot.name.strip_prefix(&prefix)?.parse().ok()).collect::<Option<_>>()?;
    let in_order = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    (in_order && numbers.last().is_none_or(|last| *last < limit)).then_some(numbers)
}

fn extents([x, y, z]: [u32; 3]) -> String {
    if [y, z] == [1, 1] { x.to_string() } else { format!("{x}, {y}, {z}") }
}

fn product(extents: [u32; 3]) -> u64 {
    extents.iter().fold(1, |product, &extent| product.saturating_mul(u64::from(extent)))
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Reports PTX files that no manifest names. Where a manifest is missing or unreadable that was reported, and its files
/// are not.
pub(super) fn check_unused(registry: &Registry, manifests: &Manifests, artifacts: &Artifacts, findings: &mut Findings) {
    let families: BTreeSet<&str> = registry.families.iter().map(|family| family.name.as_str()).collect();
    let mut unused: Vec<&str> = Vec::new();
    let mut named = BTreeSet::new();
    for (family, manifest) in manifests {
        let variants = manifest.kernels.values().flat_map(|kernel| kernel.variants.keys());
        named.extend(variants.map(|variant| facts::ptx_path(family, variant)));
    }
    for path in artifacts.ptx.keys().filter(|path| !named.contains(*path)) {
        let family = path.strip_prefix("ptx/").and_then(|path| path.split_once('/')).map(|(family, _)| family);
        let explained = family.is_some_and(|family| {
            let declared = families.contains(family) && !manifests.contains_key(family);
            declared || (!families.contains(family) && artifacts.manifests.contains_key(&facts::manifest_path(family)))
        });
        if !explained {
            unused.push(path);
        }
    }
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_string());
    for group in unused.chunk_by(|a, b| folder(a) == folder(b)) {
        let message = match group.len() {
            1 => format!("{} is named by no manifest", group[0]),
            2 => format!("{} and 1 other file beside it are named by no manifest", group[0]),
            count => format!("{} and {} other files beside it are named by no manifest", group[0], count - 1),
        };
        let help = "`tidelock compile` removes it; to launch it, declare its kernel in signatures/";
        findings.push([], Diagnostic::new("TL0302", message, Span::new(group[0], 0, 0), "unused").help(help));
    }
}
