//! Brings together what belongs to a kernel and was found in different files: lines, facts, PTX.

use crate::arms::{self, Arms};
use crate::check::{Artifacts, c};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::emit::{Compiled, Linked};
use crate::facts::{self, KernelFacts, Manifest, VariantFacts};
use crate::model::{Family, Kernel, Registry};
use crate::source::{Lines, Sources, Span};
use crate::variants::{Variant, variants};
use crate::{bindings, ptx};

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
        let files = Files::of(family, texts);
        let path = facts::manifest_path(&family.name);
        let content = artifacts.manifests.get(&path).map_or(&[][..], Vec::as_slice);
        match facts::read_manifest(&path, content) {
            Err(error) => errors.push(error),
            Ok(manifest) => {
                for kernel in &family.kernels {
                    match link_kernel(family, kernel, &manifest, artifacts, &files) {
                        Ok(kernel) => linked.push(kernel),
                        Err(error) => errors.push(error),
                    }
                }
            }
        }
    }
    if errors.is_empty() { Ok(linked) } else { Err(errors) }
}

/// What is read once for all kernels of a family.
struct Files<'a> {
    texts: &'a Sources,
    /// Lines of the registry file.
    registry: Lines,
    /// The CPU arms in Rust, and the lines of their file.
    arms: (Arms, Lines),
}

impl<'a> Files<'a> {
    fn of(family: &Family, texts: &'a Sources) -> Files<'a> {
        let text = |path: &str| texts.get(path).map_or("", String::as_str);
        let arms = text(&arms::path(&family.name));
        let arms = (arms::read(arms).unwrap_or_default(), Lines::of(arms));
        Files { texts, registry: Lines::of(text(&family.path)), arms }
    }

    /// File and line of the CPU arm.
    fn arm(&self, family: &Family, kernel: &Kernel) -> Option<(String, usize)> {
        let Some(cpu) = &kernel.cpu else {
            let (arms, lines) = &self.arms;
            let arm = arms.of(&kernel.name.value)?;
            return Some((arms::path(&family.name), lines.line_column(arm.span.start).0));
        };
        let file = &cpu.value.file;
        let function = bindings::functions(kernel).into_iter().next()?;
        Some((file.clone(), c::line(self.texts.get(file)?, &function)?))
    }
}

fn link_kernel<'a>(
    family: &'a Family,
    kernel: &'a Kernel,
    manifest: &Manifest,
    artifacts: &Artifacts,
    files: &Files<'_>,
) -> Result<Linked<'a>, Diagnostic> {
    let missing = |what: String| {
        let message = format!("kernel `{}` has no {what}", kernel.name.value);
        Diagnostic::new("TL0201", message, kernel.name.span.clone(), "declared here")
    };
    let line = |span: &Span| files.registry.line_column(span.start).0;
    let facts: &KernelFacts<_> = manifest.kernels.get(&kernel.name.value).ok_or_else(|| missing("facts".into()))?;
    let cpu = files.arm(family, kernel).ok_or_else(|| missing("CPU arm".into()))?;
    let compiled = variants(kernel).into_iter().map(|variant| {
        let facts = facts.variants.get(&variant.name).ok_or_else(|| missing(format!("variant `{}`", variant.name)))?;
        compile(family, variant, facts, manifest, artifacts).ok_or_else(|| missing("readable PTX".into()))
    });
    Ok(Linked {
        kernel,
        family: &family.name,
        signature: (&family.path, line(&kernel.name.span)),
        gpu_line: facts.line,
        cpu,
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
