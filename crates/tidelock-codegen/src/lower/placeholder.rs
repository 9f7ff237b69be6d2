//! `TODO`, which `tidelock import` writes where the source does not say: refused here, so that nothing half-known is built.

use super::context::Context;
use super::words::quoted;
use crate::source::Span;
use crate::yaml::{Kind, Node};

/// Reports every `TODO` in a kernel's entry, in place of what else was said of it.
pub(super) fn check(cx: &mut Context, kernel: &Node) {
    let mut open = Vec::new();
    find(kernel, &mut open);
    if open.is_empty() {
        return;
    }
    let inside = |span: &Span| open.iter().any(|(_, open)| open.start <= span.start && span.end <= open.end);
    let reported = cx.out.0.split_off(cx.start);
    cx.out.0.extend(reported.into_iter().filter(|error| !inside(&error.primary.span)));
    cx.entry = None;
    for (key, span) in open {
        let message = format!("{} of {} is still to be said", quoted(&key), cx.place());
        cx.error("TL0150", message, &span, "to be said", help(&key));
    }
}

/// Each value that is, or begins with, the word `TODO`, by the key that it belongs to.
fn find(node: &Node, open: &mut Vec<(String, Span)>) {
    fn walk(node: &Node, path: &[&str], open: &mut Vec<(String, Span)>) {
        match &node.kind {
            Kind::Str(text) if is_placeholder(text) => open.push((path.join("."), node.span.clone())),
            Kind::Seq(items) => items.iter().for_each(|item| walk(item, path, open)),
            Kind::Map(entries) => {
                entries.iter().for_each(|(key, value)| walk(value, &[path, &[key.value.as_str()]].concat(), open))
            }
            _ => {}
        }
    }
    walk(node, &[], open);
}

fn is_placeholder(text: &str) -> bool {
    text.strip_prefix("TODO").is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

fn help(key: &str) -> &'static str {
    match key.rsplit('.').next().unwrap_or(key) {
        "doc" => "say in a sentence what it does or means",
        "grid" => "write the number of blocks in x, y and z, such as `[num_rows, \"cdiv(width, BLOCK_SIZE)\"]`",
        "shared_memory" => "write the bytes that a launch gives a block, such as `\"4 * width\"`",
        "shape" => "write the length of each axis, rows first, such as `[num_rows, width]`",
        "tensor" | "scalar" | "type" => "write the element type that the launches have, such as `f32` or `i64`",
        "value" => "write the value that the launches have, or derive it: `from: present(TENSOR)`",
        "access" => "write `read`, `write` or `update`",
        _ => "write what it is, as the kernel and its launches have it",
    }
}
