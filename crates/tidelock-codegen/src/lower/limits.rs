//! Limits on how much one kernel may have, so that neither the build nor a launch grows without bound.

use super::context::{Context, Fields};
use super::draft::KernelDraft;
use crate::model::{Element, Presence};
use crate::yaml::Kind;

/// Most entries of a map or a list in a kernel.
const MAX_ENTRIES: usize = 64;
/// Most sizes.
const MAX_DIMS: usize = 8;
/// Most compiled variants.
const MAX_VARIANTS: usize = 256;

/// Checks how many entries the value of `key` has.
pub(super) fn entries(cx: &mut Context, fields: &Fields, key: &str) -> bool {
    let count = match fields.get(key).map(|node| &node.kind) {
        Some(Kind::Map(entries)) => entries.len(),
        Some(Kind::Seq(items)) => items.len(),
        _ => return true,
    };
    if count > MAX_ENTRIES {
        let message = format!("{} has {count} entries in `{key}`", cx.place());
        let label = format!("more than {MAX_ENTRIES}");
        let span = fields.key(key).unwrap_or(&fields.span);
        cx.error("TL0112", message, span, &label, "split the kernel, or pack what belongs together into one tensor");
    }
    count <= MAX_ENTRIES
}

pub(super) fn check(cx: &mut Context, kernel: &KernelDraft) {
    let dims = kernel.dim_names();
    if let Some(name) = dims.get(MAX_DIMS) {
        let message = format!("{} has {} sizes", cx.place(), dims.len());
        let label = format!("more than {MAX_DIMS}");
        cx.error("TL0112", message, &name.span, &label, "use one name where sizes are equal, or split the kernel");
    }
    let used = |name: &str| {
        kernel.params.iter().any(|p| p.element().is_some_and(|e| e.value == Element::Variable(name.into())))
    };
    let declared = kernel.types.iter().filter(|v| used(&v.name.value)).map(|variable| variable.choices.len());
    let chosen = kernel.constants.iter().filter(|c| used(&c.name.value)).map(|_| 2);
    let is_switch = |presence: &Presence| *presence == Presence::Optional;
    let switches =
        kernel.tensors().filter(|(_, t)| t.presence.as_ref().is_some_and(|p| is_switch(&p.value))).map(|_| 2);
    let aligned = (!kernel.divisible_by_16.is_empty()).then_some(2);
    let count = declared.chain(chosen).chain(switches).chain(aligned).fold(1, usize::saturating_mul);
    if count > MAX_VARIANTS {
        let message = format!("{} would be compiled in {count} variants", cx.place());
        let label = format!("more than {MAX_VARIANTS}");
        let help =
            "each type choice, optional tensor and promise multiplies them; tie optional tensors with `{with: …}`";
        cx.error("TL0112", message, &kernel.name.span, &label, help);
    }
}
