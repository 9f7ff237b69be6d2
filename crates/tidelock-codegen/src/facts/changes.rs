//! What a compiler's answer changes under `ptx/`: PTX, headers and manifests, of which those that were not compiled again stay.

use std::collections::{BTreeMap, BTreeSet};

use super::{ANSWER, Answer, FORMAT, Facts, Hash, KernelFacts, Manifest, Toolchain, VariantFacts};
use super::{manifest_path, ptx_path, read_manifest, text};
use crate::check::Artifacts;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::header;
use crate::model::{Family, Registry};
use crate::source::Span;
use crate::variants::variants;

/// Files to change under `ptx/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files to write, by path. Files that have that content already are left out.
    pub write: BTreeMap<String, Vec<u8>>,
    /// Files to remove.
    pub remove: BTreeSet<String>,
}

/// What `answer` changes under `ptx/`: the kernels that it names are replaced, the others are kept, and whatever the
/// registry no longer has goes.
pub fn changes(registry: &Registry, answer: Answer, artifacts: &Artifacts) -> Result<Changes, Diagnostics> {
    let mut errors = Diagnostics::default();
    for name in unasked(registry, &answer) {
        let message = format!("the kernel compiler's answer has {name}, which was not asked for");
        let help = "the compiler script and tidelock must be of the same version";
        errors.push(Diagnostic::new("TL0203", message, Span::new(ANSWER, 0, 0), "").help(help));
    }
    let Facts { toolchain, kernels: mut compiled, .. } = answer;
    let (mut wanted, mut kept) = (BTreeMap::new(), BTreeSet::new());
    for family in &registry.families {
        let fresh: BTreeMap<_, _> = family
            .kernels
            .iter()
            .filter_map(|kernel| compiled.remove_entry(&kernel.name.value))
            .map(|(name, facts)| (name, store(&family.name, facts, &mut wanted)))
            .collect();
        match merge(family, fresh, &toolchain, artifacts) {
            Err(error) => errors.push(error),
            Ok(manifest) if manifest.kernels.is_empty() => {}
            Ok(manifest) => {
                let variants = manifest.kernels.values().flat_map(|kernel| kernel.variants.keys());
                kept.extend(variants.map(|variant| ptx_path(&family.name, variant)));
                wanted.insert(manifest_path(&family.name), text(&manifest).into_bytes());
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let headers = header::emit_all(registry, artifacts);
    wanted.extend(headers.into_iter().map(|(family, text)| (header::path(&family), text.into_bytes())));
    kept.extend(wanted.keys().cloned());
    let present =
        |path: &str| [&artifacts.ptx, &artifacts.manifests, &artifacts.headers].iter().find_map(|it| it.get(path));
    let known = [&artifacts.ptx, &artifacts.manifests, &artifacts.headers].into_iter().flat_map(BTreeMap::keys);
    let remove = known.filter(|path| !kept.contains(*path)).cloned().collect();
    let write = wanted.into_iter().filter(|(path, content)| present(path) != Some(content)).collect();
    Ok(Changes { write, remove })
}

/// What the answer names and the registry does not.
fn unasked(registry: &Registry, answer: &Answer) -> Vec<String> {
    let kernels = registry.families.iter().flat_map(|family| &family.kernels);
    let known: BTreeMap<_, _> = kernels.map(|kernel| (&kernel.name.value, variant_names(kernel))).collect();
    let mut unasked = Vec::new();
    for (name, facts) in &answer.kernels {
        match known.get(name) {
            None => unasked.push(format!("kernel `{name}`")),
            Some(variants) => {
                let unknown = facts.variants.keys().filter(|variant| !variants.contains(*variant));
                unasked.extend(unknown.map(|variant| format!("variant `{variant}` of kernel `{name}`")));
            }
        }
    }
    unasked
}

fn variant_names(kernel: &crate::model::Kernel) -> BTreeSet<String> {
    variants(kernel).into_iter().map(|variant| variant.name).collect()
}

/// The facts with hashes in place of PTX, which goes to `files`.
fn store(family: &str, facts: KernelFacts<String>, files: &mut BTreeMap<String, Vec<u8>>) -> KernelFacts<Hash> {
    let KernelFacts { file, function, line, params, sources, variants } = facts;
    let mut hashed = BTreeMap::new();
    for (name, variant) in variants {
        let VariantFacts { entry, arguments, constants, absent, num_warps, num_ctas, shared, registers, .. } = variant;
        let VariantFacts { global_scratch_size, global_scratch_align, .. } = variant;
        let VariantFacts { profile_scratch_size, profile_scratch_align, ptx, .. } = variant;
        let facts = VariantFacts {
            entry,
            arguments,
            constants,
            absent,
            num_warps,
            num_ctas,
            shared,
            registers,
            global_scratch_size,
            global_scratch_align,
            profile_scratch_size,
            profile_scratch_align,
            ptx: Hash::of(ptx.as_bytes()),
        };
        files.insert(ptx_path(family, &name), ptx.into_bytes());
        hashed.insert(name, facts);
    }
    KernelFacts { file, function, line, params, sources, variants: hashed }
}

/// The manifest of `family`: `fresh` kernels, and those of the old manifest that were not compiled again.
fn merge(
    family: &Family,
    fresh: BTreeMap<String, KernelFacts<Hash>>,
    toolchain: &Toolchain,
    artifacts: &Artifacts,
) -> Result<Manifest, Diagnostic> {
    let path = manifest_path(&family.name);
    let whole = family.kernels.iter().all(|kernel| fresh.contains_key(&kernel.name.value));
    let old = match artifacts.manifests.get(&path) {
        Some(content) if !whole => Some(read_manifest(&path, content)?),
        _ => None,
    };
    let mut merged = Manifest { format: FORMAT, toolchain: toolchain.clone(), kernels: fresh };
    let Some(mut old) = old else { return Ok(merged) };
    if merged.kernels.is_empty() {
        merged.toolchain = old.toolchain.clone();
    }
    for kernel in &family.kernels {
        let name = &kernel.name.value;
        if merged.kernels.contains_key(name) {
            continue;
        }
        let Some(mut facts) = old.kernels.remove(name) else { continue };
        if old.toolchain != merged.toolchain {
            let message = format!("kernel `{name}` was compiled by another toolchain than the rest of its family now");
            let label = "not compiled again";
            let help = format!("compile the whole family: run `tidelock compile {}`", family.name);
            return Err(Diagnostic::new("TL0230", message, kernel.name.span.clone(), label).help(help));
        }
        let names = variant_names(kernel);
        facts.variants.retain(|variant, _| names.contains(variant));
        merged.kernels.insert(name.clone(), facts);
    }
    Ok(merged)
}
