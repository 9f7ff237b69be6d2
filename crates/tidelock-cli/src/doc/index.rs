//! The first page: every family and its kernels, and how they stand.

use maud::{Markup, html};
use tidelock_codegen::diagnostic::Diagnostics;
use tidelock_codegen::model::Registry;

use super::kernel::lock;
use super::{Entry, page, source, words};
use crate::output::plural;

/// The index.
pub fn page(registry: &Registry, entries: &[Entry], drift: &Diagnostics) -> String {
    let variants: usize = entries.iter().map(|entry| entry.status.variants).sum();
    let body = html! {
        h1 { "Kernels" }
        p.lead {
            (plural(entries.len(), "kernel")) " in " (plural(registry.families.len(), "family").replace("familys", "families")) ", "
            (plural(variants, "compiled variant")) ". "
            @if drift.is_empty() { span.good { "Registry, kernels, PTX and CPU arms agree." } }
            @else { span.bad { (plural(drift.0.len(), "error")) " of drift." } }
        }
        @if !drift.is_empty() {
            h2 { "What has drifted apart" }
            ul { @for error in &drift.0 { li { code { (error.code) } " " (error.message) } } }
        }
        @for family in &registry.families {
            section {
                h2 id=(family.name) { (family.name) }
                (page::table(&family.name, &["kernel", "what it does", "parameters", "variants", "locked", "record"], &rows(family.name.as_str(), entries)))
                p.quiet { "Declared in " a href=(source::page_of(&family.path)) { (family.path) } "." }
            }
        }
    };
    page::page("Kernels", 0, &body)
}

fn rows(family: &str, entries: &[Entry]) -> Vec<Vec<Markup>> {
    let row = |entry: &Entry| {
        vec![
            html! { a href=(words::kernel_page(entry.kernel)) { code { (entry.kernel.name.value) } } },
            html! { (entry.kernel.doc) },
            html! { (entry.kernel.params.len()) },
            html! { (entry.status.variants) },
            lock(entry),
            html! { (entry.record) },
        ]
    };
    entries.iter().filter(|entry| entry.family.name == family).map(row).collect()
}
