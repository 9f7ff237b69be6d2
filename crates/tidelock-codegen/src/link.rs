//! Brings together what belongs to a kernel and was found in different files: lines, facts, PTX.

use crate::check::{Artifacts, c};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::emit::{Compiled, Linked};
use crate::facts::{self, KernelFacts, Manifest, VariantFacts};
use crate::model::{Family, Kernel, Registry};
use crate::source::Sources;
use crate::variants::{Variant, variants};
use crate::{arms, bindings, ptx};

/// Every kernel of `registry` with all that belongs to it.
///
/// # Errors
/// What is missing. After a check without findings nothing is.
pub fn link<'a>(
    registry: &'a Registry,
    artifacts: &Artifacts,
    texts: &Sources,
) -> Result<Vec<Linked<'a>>, Diagnostics> {
    let mut linked = Vec::new();
    let mut errors = Diagnostics::default();
    for family in &registry.families {
        let path = facts::manifest_path(&family.name);
        let content = artifacts.manifests.get(&path).map_or(&[][..], Vec::as_slice);
        match facts::read_manifest(&path, content) {
            Err(error) => errors.push(error),
            Ok(manifest) => {
                for kernel in &family.kernels {
                    match link_kernel(family, kernel, &manifest, artifacts, texts) {
                        Ok(kernel) => linked.push(kernel),
                        Err(error) => errors.push(error),
                    }
                }
            }
        }
    }
    if errors.is_empty() { Ok(linked) } else { Err(errors) }
}

fn link_kernel<'a>(
    family: &'a Family,
    kernel: &'a Kernel,
    manifest: &Manifest,
    artifacts: &Artifacts,
    texts: &Sources,
) -> Result<Linked<'a>, Diagnostic> {
    let missing = |what: String| {
        let message = format!("kernel `{}` has no {what}", kernel.name.value);
        Diagnostic::new("TL0201", message, kernel.name.span.clone(), "declared here")
    };
    let text = texts.get(&family.path).map_or("", String::as_str);
    let line = |span: &crate::source::Span| span.line_column(text).0;
    let facts: &KernelFacts<_> = manifest.kernels.get(&kernel.name.value).ok_or_else(|| missing("facts".into()))?;
    let arm = kernel.cpu.as_ref().map_or_else(|| arms::path(&family.name), |cpu| cpu.value.file.clone());
    let arm_text = texts.get(&arm).map_or("", String::as_str);
    let arm_line = match bindings::functions(kernel).first() {
        Some(function) => c::line(arm_text, function),
        None => arms::line(arm_text, &kernel.name.value),
    };
    let arm_line = arm_line.ok_or_else(|| missing("CPU arm".into()))?;
    let compiled = variants(kernel).into_iter().map(|variant| {
        let facts = facts.variants.get(&variant.name).ok_or_else(|| missing(format!("variant `{}`", variant.name)))?;
        compile(family, variant, facts, manifest, artifacts).ok_or_else(|| missing("readable PTX".into()))
    });
    Ok(Linked {
        kernel,
        family: &family.name,
        signature: (&family.path, line(&kernel.name.span)),
        gpu_line: facts.line,
        cpu: (arm, arm_line),
        variants: compiled.collect::<Result<_, _>>()?,
        param_lines: kernel.params.iter().map(|param| line(&param.name.span)).collect(),
    })
}

fn compile(
    family: &Family,
    variant: Variant,
    facts: &VariantFacts<facts::Hash>,
    manifest: &Manifest,
    artifacts: &Artifacts,
) -> Option<Compiled> {
    let path = facts::ptx_path(&family.name, &variant.name);
    let module = ptx::read(std::str::from_utf8(artifacts.ptx.get(&path)?).ok()?).ok()?;
    let entry = module.entries.into_iter().find(|entry| entry.name.value == facts.entry)?;
    let slots = entry.slots.iter().map(|slot| u8::try_from(slot.kind.size()).ok());
    Some(Compiled {
        name: variant.name,
        sha256: facts.ptx.as_str().to_string(),
        entry: facts.entry.clone(),
        threads: 32 * facts.num_warps,
        shared: u32::try_from(facts.shared).ok()?,
        slots: slots.collect::<Option<_>>()?,
        capability: manifest.toolchain.target.strip_prefix("sm_")?.parse().ok()?,
        ptx_version: module.version.value,
        aligned: variant.aligned,
        path,
    })
}
