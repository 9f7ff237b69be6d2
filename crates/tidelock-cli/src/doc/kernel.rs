//! One kernel's page: its signature, both arms, what was compiled, and how it stands.

use maud::{Markup, html};
use tidelock_codegen::Project;
use tidelock_codegen::bindings;
use tidelock_codegen::facts;
use tidelock_codegen::header;
use tidelock_codegen::model::{Arm, Param, ParamKind};
use tidelock_codegen::source::{Sources, Span};
use tidelock_codegen::variants::variants;

use super::{Entry, page, source, words};

/// How the checks stand, in a word or by code.
pub fn lock(entry: &Entry) -> Markup {
    let failed: Vec<_> = entry.status.failed.iter().copied().collect();
    html! {
        @if failed.is_empty() { span.good { "locked" } } @else { span.bad { "drifted: " (failed.join(", ")) } }
    }
}

/// The page of a kernel, which lies one folder below the index.
pub fn page(entry: &Entry, project: &Project, sources: &Sources) -> String {
    let kernel = entry.kernel;
    let body = html! {
        h1 { code { (kernel.name.value) } }
        p.lead { (kernel.doc) }
        dl {
            dt { "State" } dd { (lock(entry)) }
            dt { "Signature" } dd { (link(&entry.family.path, line(&kernel.name.span, sources))) }
            dt { "GPU arm" } dd { (link(&kernel.gpu.value.file, entry.facts.map(|facts| facts.line))) " " code { (kernel.gpu.value.function) } }
            dt { "CPU arm" } dd { (cpu(entry, sources)) }
            @if header::is_cuda(kernel) { dt { "Header" } dd { (link(&header::path(&entry.family.name), None)) } }
            dt { "Blocks" } dd { code { "[" (kernel.grid.iter().map(|expr| expr.value.to_string()).collect::<Vec<_>>().join(", ")) "]" } " of " (32 * kernel.num_warps) " threads" }
            @if let Some(bytes) = &kernel.shared_memory { dt { "Shared memory" } dd { code { (bytes.value) } " bytes a block" } }
            dt { "Record" } dd { (entry.record) }
        }
        h2 { "Parameters" }
        (page::table("Parameters", &["name", "type", "shape or source", "access", "values", "what it means"], &params(entry)))
        @if !kernel.constants.is_empty() {
            h2 { "Constants" }
            (page::table("Constants", &["name", "type", "value", "what it means"], &constants(entry)))
        }
        h2 { "Variants" }
        (compiled(entry, project))
    };
    page::page(&format!("{} · {}", kernel.name.value, entry.family.name), 1, &body)
}

/// The line, counted from 1, at which `span` begins.
fn line(span: &Span, sources: &Sources) -> Option<usize> {
    sources.get(&span.file).map(|text| span.line_column(text).0)
}

/// A link to a line of a source.
fn link(path: &str, line: Option<usize>) -> Markup {
    let page = source::page_of(path);
    match line {
        Some(line) => html! { a href={ "../" (page) "#L" (line) } { (path) ":" (line) } },
        None => html! { a href={ "../" (page) } { (path) } },
    }
}

fn cpu(entry: &Entry, sources: &Sources) -> Markup {
    let path = source::cpu(&entry.family.name, entry.kernel);
    let Some(text) = sources.get(&path) else { return html! { span.bad { (path) " does not exist" } } };
    let functions = bindings::functions(entry.kernel);
    let line = match functions.first() {
        Some(function) => text.lines().position(|line| line.contains(&format!("{function}("))).map(|index| index + 1),
        None => tidelock_codegen::arms::line(text, &entry.kernel.name.value),
    };
    html! {
        (link(&path, line)) @for function in functions { " " code { (function) } }
        @if let Some(cpu) = &entry.kernel.cpu { ", declared in " (link(&cpu.value.header(), None)) }
    }
}

fn params(entry: &Entry) -> Vec<Vec<Markup>> {
    let row = |param: &Param| {
        let ParamKind::Struct(value) = &param.kind else {
            return cells(entry, param, html! { code { (words::element(entry.kernel, param)) } });
        };
        cells(entry, param, html! { a href={ "../" (source::page_of(&value.header)) } { code { (value.name.value) } } })
    };
    entry.kernel.params.iter().map(row).collect()
}

fn cells(entry: &Entry, param: &Param, ty: Markup) -> Vec<Markup> {
    let name = |arm| if arm == Arm::Gpu { "GPU" } else { "CPU" };
    let promised = entry.kernel.divisible_by_16.iter().any(|promise| promise.value == param.name.value);
    vec![
        html! { code { (param.name.value) } },
        ty,
        html! { code { (words::shape(param)) } },
        html! { (words::access(param)) },
        html! { (words::domain(param)) @if promised { "; divisible by 16 in aligned variants" } },
        html! {
            (param.doc)
            @if let Some((arm, reason)) = &param.only { " Only the " (name(*arm)) " arm uses it: " (reason) }
            @if let Some((arm, reason)) = &param.refused { " The " (name(*arm)) " arm refuses it: " (reason) }
        },
    ]
}

fn constants(entry: &Entry) -> Vec<Vec<Markup>> {
    let row = |constant: &tidelock_codegen::model::Constant| {
        vec![
            html! { code { (constant.name.value) } },
            html! { code { (constant.dtype.name()) } },
            html! { (words::constant(constant)) @if constant.tuning { ", tuning: changes no result" } },
            html! { (constant.doc) },
        ]
    };
    entry.kernel.constants.iter().map(row).collect()
}

/// What was compiled. Registers are those that ptxas gave for the target when it was compiled; of older facts they are unknown,
/// and there is no column of them.
fn compiled(entry: &Entry, project: &Project) -> Markup {
    let Some(facts) = entry.facts else { return html! { p.bad { "Nothing has been compiled." } } };
    let known = facts.variants.values().any(|variant| variant.registers.is_some());
    let registers = format!("registers ({})", entry.target);
    let mut header = vec!["variant", "PTX bytes", "threads", "shared bytes", "SHA-256 of the PTX"];
    if known {
        header.insert(2, &registers);
    }
    let rows = variants(entry.kernel).into_iter().map(|variant| {
        let compiled = facts.variants.get(&variant.name);
        let path = facts::ptx_path(&entry.family.name, &variant.name);
        let bytes = project.artifacts().ptx.get(&path).map(Vec::len);
        let or_missing = |text: Option<String>| html! { @match text { Some(text) => (text), None => span.bad { "missing" } } };
        let mut row = vec![
            html! { code { (variant.name) } },
            or_missing(bytes.map(|bytes| bytes.to_string())),
            or_missing(compiled.map(|compiled| (32 * compiled.num_warps).to_string())),
            or_missing(compiled.map(|compiled| compiled.shared.to_string())),
            html! { @if let Some(compiled) = compiled { code { (compiled.ptx.as_str().chars().take(12).collect::<String>()) } } },
        ];
        if known {
            row.insert(2, html! { @if let Some(count) = compiled.and_then(|compiled| compiled.registers) { (count) } });
        }
        row
    });
    page::table("Variants", &header, &rows.collect::<Vec<_>>())
}
