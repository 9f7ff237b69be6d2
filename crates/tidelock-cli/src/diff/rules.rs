//! What each kind of change breaks: the one table of it. `diff/rules.md` shows it to people; a test holds them together.

use serde::Serialize;

/// Whom a change concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Rust code that builds argument structs and launches them: does what compiled and ran still do so?
    Callers,
    /// The sources of both arms: do their names, types and promises still fit?
    Arms,
    /// The compiled kernels: do they still pass the checks?
    Ptx,
}

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// In words.
    pub words: &'static str,
    /// Whether it breaks callers, arms, PTX.
    breaks: [bool; 3],
}

const NO: bool = false;
const YES: bool = true;

/// Every kind of change.
pub const RULES: [Rule; 39] = [
    rule("kernel-added", "a kernel is new", [NO, YES, YES]),
    rule("kernel-removed", "a kernel is gone", [YES, YES, YES]),
    rule("family-changed", "a kernel is in another family", [NO, YES, YES]),
    rule("gpu-changed", "a kernel's source is another function or file", [NO, YES, YES]),
    rule("cpu-changed", "a kernel's CPU arm is another function in C or C++, or in another language", [NO, YES, NO]),
    rule("grid-changed", "the number of blocks", [NO, YES, NO]),
    rule("shared-memory-changed", "the bytes of dynamic shared memory", [NO, YES, NO]),
    rule("num-warps-changed", "the warps of a block", [NO, NO, YES]),
    rule("promise-changed", "what `divisible_by_16` lists", [NO, NO, YES]),
    rule("order-changed", "parameters of the kernel stand in another order", [NO, YES, YES]),
    rule("required-added", "a parameter that every caller gives is new", [YES, YES, YES]),
    rule("default-added", "a parameter with a default is new", [NO, YES, YES]),
    rule("derived-added", "a size or stride is new", [NO, YES, YES]),
    rule("cpu-only-added", "a parameter with a default, of the CPU arm alone, is new", [NO, YES, NO]),
    rule("passed-removed", "a parameter that callers give is gone", [YES, YES, YES]),
    rule("size-removed", "a size is no longer a parameter", [NO, YES, YES]),
    rule("stride-removed", "a tensor lost its stride: its rows must be back to back", [YES, YES, YES]),
    rule("kernel-name-changed", "the kernel's name for a parameter or constant (`as`)", [NO, YES, YES]),
    rule("kind-changed", "a tensor, scalar or struct became another of them", [YES, YES, YES]),
    rule("type-changed", "an element type, or which struct", [YES, YES, YES]),
    rule("choice-added", "a type variable has more choices", [NO, YES, YES]),
    rule("choice-removed", "a type variable has fewer choices", [YES, YES, YES]),
    rule("variable-renamed", "a type variable has another name", [NO, YES, NO]),
    rule("shape-changed", "the extents of a tensor", [YES, YES, NO]),
    rule("access-changed", "read became write or update, or the other way", [YES, YES, NO]),
    rule("write-to-update", "what a tensor held before matters now", [YES, NO, NO]),
    rule("update-to-write", "every element must be written now", [NO, YES, NO]),
    rule("presence-changed", "whether a tensor can be left out, or with which", [YES, YES, YES]),
    rule("source-changed", "where a scalar comes from: the caller, a default, a size or a stride", [YES, YES, NO]),
    rule("default-changed", "the value where a caller says none", [YES, NO, NO]),
    rule("limit-lowered", "`max` is lower or new", [YES, NO, NO]),
    rule("limit-raised", "`max` is higher or gone", [NO, YES, NO]),
    rule("domain-narrowed", "callers promise something else about values", [YES, NO, NO]),
    rule("domain-widened", "callers promise nothing about values any more", [NO, NO, NO]),
    rule("arm-changed", "which arm uses or refuses a parameter", [YES, YES, YES]),
    rule("constant-added", "a constant is new", [NO, YES, YES]),
    rule("constant-removed", "a constant is gone", [NO, YES, YES]),
    rule("constant-value-changed", "a constant's value, or what it follows from", [NO, NO, YES]),
    rule("constant-kind-changed", "a constant's type, whether it tunes, or whether it is derived", [NO, YES, YES]),
];

const fn rule(name: &'static str, words: &'static str, breaks: [bool; 3]) -> Rule {
    Rule { name, words, breaks }
}

impl Rule {
    /// The rule of this name.
    pub fn of(name: &'static str) -> Rule {
        RULES.into_iter().find(|rule| rule.name == name).unwrap_or(rule(name, name, [YES, YES, YES]))
    }

    /// Whether it breaks `side`.
    pub fn breaks(&self, side: Side) -> bool {
        self.breaks[side as usize]
    }
}

/// The table as Markdown.
pub fn markdown() -> String {
    let word = |breaks: bool| if breaks { "breaks" } else { "fits" };
    let mut text = "| rule | what changed | callers | arms | PTX |\n| --- | --- | --- | --- | --- |\n".to_string();
    for rule in RULES {
        let [callers, arms, ptx] = rule.breaks.map(word);
        text += &format!("| `{}` | {} | {callers} | {arms} | {ptx} |\n", rule.name, rule.words);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_this_table() {
        assert!(include_str!("rules.md").contains(&markdown()), "{}", markdown());
    }
}
