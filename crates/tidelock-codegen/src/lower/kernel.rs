//! One entry under `kernels`, read key by key.

use super::context::{Context, Fields};
use super::draft::{KernelDraft, Placed};
use super::words::{is_identifier, quoted};
use super::{constant, expression, limits, param, types};
use crate::model::{CpuSource, Expr, GpuSource, Spanned};
use crate::yaml::{Kind, Node};

const KEYS: [&str; 10] =
    ["doc", "gpu", "cpu", "grid", "num_warps", "shared_memory", "types", "params", "divisible_by_16", "constants"];

pub(super) fn read(cx: &mut Context, name: &Spanned<String>, node: &Node) -> Option<KernelDraft> {
    cx.snake_name(name, "kernel");
    cx.kernel = Some(name.value.clone());
    let fields = cx.fields(node, &name.span, &KEYS)?;
    if !["types", "params", "constants", "divisible_by_16"]
        .map(|key| limits::entries(cx, &fields, key))
        .iter()
        .all(|good| *good)
    {
        return None;
    }
    let doc = cx.required(&fields, "doc", "What the kernel does.").and_then(|node| cx.prose(node, "doc"));
    let gpu = cx.required(&fields, "gpu", "kernels/file.py:function").and_then(|node| gpu(cx, node));
    let cpu = fields.get("cpu").and_then(|node| cpu(cx, node));
    let grid = cx.required(&fields, "grid", "[batch_size]").and_then(|node| grid(cx, node));
    let num_warps = fields.get("num_warps").map_or(Some(4), |node| num_warps(cx, node));
    if gpu.as_ref().is_some_and(|gpu| gpu.value.file.ends_with(".py")) {
        let help = "remove it: Triton says itself how much shared memory its kernels need";
        cx.misplaced(&fields, &["shared_memory"], "only for a kernel in CUDA C++", help);
    }
    let shared_memory = fields.get("shared_memory").and_then(|node| expression::one(cx, node, "shared_memory"));
    let mut kernel = KernelDraft {
        name: name.clone(),
        doc,
        gpu,
        cpu,
        grid,
        num_warps,
        shared_memory,
        types: vec![],
        broken_types: vec![],
        chosen: vec![],
        params: vec![],
        constants: vec![],
        divisible_by_16: vec![],
    };
    if let Some(node) = fields.get("types") {
        types::read(cx, node, &mut kernel);
    }
    if let Some(node) =
        cx.required(&fields, "params", "{output: {tensor: f32, shape: [batch_size], access: write, doc: …}}")
    {
        params(cx, &fields, node, &mut kernel);
    }
    if let Some(node) = fields.get("constants") {
        let entries = cx.entries(node, &format!("`constants` of {}", cx.place())).unwrap_or_default();
        for (name, node) in entries {
            let constant = constant::read(cx, name, node);
            kernel.constants.push(constant);
            cx.entry = None;
        }
    }
    if let Some(node) = fields.get("divisible_by_16") {
        for item in cx.list(node, "divisible_by_16").unwrap_or_default() {
            if let Some(name) = cx.text(item, "divisible_by_16") {
                kernel.divisible_by_16.push(Spanned { value: name.to_string(), span: item.span.clone() });
            }
        }
    }
    Some(kernel)
}

fn params(cx: &mut Context, fields: &Fields, node: &Node, kernel: &mut KernelDraft) {
    let place = format!("`params` of {}", cx.place());
    let Some(entries) = cx.entries(node, &place) else { return };
    if entries.is_empty() {
        let message = format!("{} has no parameters", cx.place());
        let span = fields.key("params").unwrap_or(&fields.span);
        cx.error("TL0104", message, span, "nothing here", "add what the kernel writes to, at least");
    }
    for (name, node) in entries {
        let param = param::read(cx, kernel, name, node);
        kernel.params.push(param);
        cx.entry = None;
    }
}

/// `kernels/rejection.py:expand_kernel`.
fn gpu(cx: &mut Context, node: &Node) -> Option<Spanned<GpuSource>> {
    let text = cx.text(node, "gpu")?;
    match named_in(text, "kernels/", &[".py", ".cu"]) {
        Ok((file, function)) => {
            let value = GpuSource { file: file.to_string(), function: function.to_string() };
            Some(Spanned { value, span: node.span.clone() })
        }
        Err(good_path) => {
            let message = format!("{} does not name a kernel's source, in {}", quoted(text), cx.place());
            let label = if good_path { "no function after the path" } else { "not a .py or .cu file under kernels/" };
            cx.error("TL0114", message, &node.span, label, "write `kernels/FILE.py:FUNCTION`, relative to the crate");
            None
        }
    }
}

/// `cpu/quantize.cpp:dequantize_rows`.
fn cpu(cx: &mut Context, node: &Node) -> Option<Spanned<CpuSource>> {
    let text = cx.text(node, "cpu")?;
    match named_in(text, "cpu/", &[".c", ".cpp", ".cc"]) {
        Ok((file, function)) => {
            let value = CpuSource { file: file.to_string(), function: function.to_string() };
            Some(Spanned { value, span: node.span.clone() })
        }
        Err(good_path) => {
            let message = format!("{} does not name a CPU arm's source, in {}", quoted(text), cx.place());
            let label = if good_path { "no function after the path" } else { "not a .c, .cpp or .cc file under cpu/" };
            let help = "write `cpu/FILE.cpp:FUNCTION`, relative to the crate; an arm in Rust needs no key";
            cx.error("TL0114", message, &node.span, label, help);
            None
        }
    }
}

/// The file and the name of `FOLDER/PATH.ENDING:NAME`; otherwise whether the path, at least, is one.
pub(super) fn named_in<'t>(text: &'t str, folder: &str, endings: &[&str]) -> Result<(&'t str, &'t str), bool> {
    let (file, name) = text.split_once(':').unwrap_or((text, ""));
    let part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let path = file.strip_prefix(folder).and_then(|path| endings.iter().find_map(|ending| path.strip_suffix(ending)));
    let good_path = path.is_some_and(|path| path.split('/').all(part));
    let good_name = match name.split_once('.') {
        // A Triton kernel can be a static method of a class.
        Some((class, method)) => file.ends_with(".py") && is_identifier(class) && is_identifier(method),
        None => is_identifier(name),
    };
    if good_path && good_name { Ok((file, name)) } else { Err(good_path) }
}

fn num_warps(cx: &mut Context, node: &Node) -> Option<u32> {
    let value = cx.integer(node, "num_warps")?;
    if (1..=32).contains(&value) && value.count_ones() == 1 {
        return u32::try_from(value).ok();
    }
    let message = format!("a block of {} cannot have {value} warps", cx.place());
    cx.error("TL0115", message, &node.span, "not a power of two up to 32", "write 1, 2, 4, 8, 16 or 32");
    None
}

fn grid(cx: &mut Context, node: &Node) -> Option<Vec<Placed<Expr>>> {
    expression::list(cx, node, "grid", 3, "number of blocks")
}

/// Whether `node` is a map with exactly one of `keys`, and which.
pub(super) fn only_key<'n>(node: &'n Node, keys: &[&str]) -> Option<(&'n str, &'n Node)> {
    match &node.kind {
        Kind::Map(entries) => match entries.as_slice() {
            [(key, value)] if keys.contains(&key.value.as_str()) => Some((&key.value, value)),
            _ => None,
        },
        _ => None,
    }
}
