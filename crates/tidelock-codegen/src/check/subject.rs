//! What a check of one kernel looks at.

use std::collections::BTreeSet;

use super::Manifests;
use super::kernel_source::{Function, Language};
use super::source_file::SourceFiles;
use crate::bindings::Bindings;
use crate::facts::{Hash, KernelFacts, Toolchain};
use crate::model::{Family, Kernel, Param};
use crate::plan::{VariantPlan, gpu_params, variant_plan};
use crate::source::Span;

/// One kernel and all that is known of it.
pub struct Subject<'a> {
    /// Its place among all kernels.
    pub id: usize,
    pub family: &'a Family,
    pub kernel: &'a Kernel,
    /// Its variants, as they would be compiled now.
    pub plans: Vec<VariantPlan>,
    pub toolchain: Option<&'a Toolchain>,
    pub facts: Option<&'a KernelFacts<Hash>>,
    pub bindings: Option<&'a Bindings>,
    /// The text of its source, if the file is there.
    pub source: Option<&'a str>,
    /// Its declaration in the source.
    pub function: Option<Function>,
    /// The file of its source is another than the one it was compiled from.
    pub stale: bool,
    /// Names in the kernel of parameters and constants about which something was reported.
    pub reported: BTreeSet<String>,
}

impl<'a> Subject<'a> {
    pub fn new(
        id: usize,
        family: &'a Family,
        kernel: &'a Kernel,
        manifests: &'a Manifests,
        bindings: Option<&'a Bindings>,
        sources: &SourceFiles<'a>,
    ) -> Subject<'a> {
        let gpu = &kernel.gpu.value;
        let manifest = manifests.get(&family.name);
        let facts = manifest.and_then(|manifest| manifest.kernels.get(&kernel.name.value));
        let file = sources.get(gpu.file.as_str());
        Subject {
            id,
            family,
            kernel,
            plans: crate::variants::variants(kernel).iter().map(|variant| variant_plan(kernel, variant)).collect(),
            toolchain: manifest.map(|manifest| &manifest.toolchain),
            facts,
            bindings,
            source: file.and_then(|file| file.text),
            function: file.and_then(|file| file.find(&gpu.function)),
            stale: match (file, facts.and_then(|facts| facts.sources.get(&gpu.file))) {
                (Some(file), Some(hash)) => file.hash != *hash,
                _ => false,
            },
            reported: BTreeSet::new(),
        }
    }

    pub fn name(&self) -> &'a str {
        &self.kernel.name.value
    }

    pub fn language(&self) -> Language {
        Language::of(&self.kernel.gpu.value.file)
    }

    /// Where the kernel is, in words: `kernels/rejection.py:71`.
    pub fn place(&self) -> String {
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
    pub fn function_span(&self) -> Option<Span> {
        let found = self.function.as_ref()?;
        Some(Span::new(&self.kernel.gpu.value.file, found.name.start, found.name.end))
    }

    /// Where a parameter stands in the kernel's source.
    pub fn param_span(&self, kernel_name: &str) -> Option<Span> {
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
    pub fn param(&self, kernel_name: &str) -> Option<&'a Param> {
        gpu_params(self.kernel).find(|param| param.kernel_name == kernel_name)
    }

    pub fn compile(&self) -> String {
        format!("run `tidelock compile {}`", self.name())
    }
}
