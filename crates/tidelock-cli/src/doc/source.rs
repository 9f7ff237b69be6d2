//! Sources as pages, with an anchor a line, so that the site needs nothing beside it.

use std::collections::BTreeSet;

use maud::html;
use tidelock_codegen::model::{Kernel, ParamKind, Registry};
use tidelock_codegen::{arms, header};

use super::page;

/// The page of the file at `path`, from the index.
pub fn page_of(path: &str) -> String {
    format!("source/{path}.html")
}

/// The files that are shown: signatures, both arms, and the headers of what is C.
pub fn shown(registry: &Registry) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for family in &registry.families {
        paths.insert(family.path.clone());
        for kernel in &family.kernels {
            paths.extend([kernel.gpu.value.file.clone(), cpu(&family.name, kernel)]);
            paths.extend(kernel.cpu.iter().map(|cpu| cpu.value.header()));
            paths.extend(header::is_cuda(kernel).then(|| header::path(&family.name)));
            paths.extend(kernel.params.iter().filter_map(|param| match &param.kind {
                ParamKind::Struct(value) => Some(value.header.clone()),
                _ => None,
            }));
        }
    }
    paths
}

/// The file of a kernel's CPU arm.
pub fn cpu(family: &str, kernel: &Kernel) -> String {
    kernel.cpu.as_ref().map_or_else(|| arms::path(family), |cpu| cpu.value.file.clone())
}

/// The page of a file.
pub fn page(path: &str, text: &str) -> String {
    let depth = page_of(path).matches('/').count();
    let body = html! {
        h1 { (path) }
        pre.source {
            @for (index, line) in text.lines().enumerate() {
                @let id = format!("L{}", index + 1);
                span id=(id) { a href={ "#" (id) } { (index + 1) } code { (line) } }
            }
        }
    };
    page::page(path, depth, &body)
}
