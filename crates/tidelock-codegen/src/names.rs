//! Every identifier that the generator makes is made here, so that no two stages can spell one differently; and what a name
//! of the registry may be.

use proc_macro2::{Ident, Span};
use quote::format_ident;

use crate::model::{Element, Kernel, ParamKind, TypeVariable};

/// Words that Rust keeps for itself and that could be a name in snake case.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Longest name, in bytes.
pub const MAX_LENGTH: usize = 64;

/// `sample_recovered_tokens` as `SampleRecoveredTokens`.
pub fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map_or(String::new(), |first| first.to_uppercase().chain(letters.flat_map(char::to_lowercase)).collect())
    };
    name.split('_').map(word).collect()
}

/// The argument struct of a kernel.
pub fn arguments(kernel: &Kernel) -> Ident {
    ident(&camel(&kernel.name.value))
}

/// The argument struct together with the parameters that have defaults.
pub fn arguments_with(kernel: &Kernel) -> Ident {
    format_ident!("{}With", camel(&kernel.name.value))
}

/// What the CPU arm takes apart.
pub fn cpu_arguments(kernel: &Kernel) -> Ident {
    ident(&cpu_arguments_name(&kernel.name.value))
}

/// The name of what the CPU arm of the kernel `kernel` takes apart.
pub fn cpu_arguments_name(kernel: &str) -> String {
    format!("{}Cpu", camel(kernel))
}

/// The static that holds a kernel's entry in the run-time table.
pub fn table(kernel: &Kernel) -> Ident {
    ident(&kernel.name.value.to_uppercase())
}

/// The function that hands checked arguments to the CPU arm.
pub fn run_cpu(kernel: &Kernel) -> Ident {
    format_ident!("{}_cpu", kernel.name.value)
}

/// A field or local variable of a parameter or constant.
pub fn field(name: &str) -> Ident {
    ident(&name.to_lowercase())
}

/// The generic parameter for a type variable: its own name, or, where a constant chooses the type, that of the first
/// tensor that has it.
pub fn type_parameter(kernel: &Kernel, variable: &TypeVariable) -> Ident {
    let has_it = |kind: &ParamKind| match kind {
        ParamKind::Tensor(tensor) => tensor.element.value == Element::Variable(variable.name.value.clone()),
        ParamKind::Scalar(_) | ParamKind::Struct(_) => false,
    };
    match kernel.params.iter().find(|param| has_it(&param.kind)) {
        Some(param) if variable.chosen_by.is_some() => ident(&camel(&param.name.value)),
        _ => ident(&variable.name.value),
    }
}

/// The trait of the types that a type variable can be.
pub fn type_bound(kernel: &Kernel, variable: &TypeVariable) -> Ident {
    format_ident!("{}{}", camel(&kernel.name.value), type_parameter(kernel, variable))
}

fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// Whether `name` is in snake case: words of letters and digits, joined by single underscores.
pub fn is_snake(name: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.len() <= MAX_LENGTH && name.split('_').all(word)
}

/// Whether `name` can be a name in Python or C.
pub fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_LENGTH
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether Rust keeps `name` for itself.
pub fn is_keyword(name: &str) -> bool {
    KEYWORDS.contains(&name)
}
