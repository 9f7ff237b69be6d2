//! Words for what the run-time table says of a kernel.

use tidelock::kernel::{
    Access, Arm, Constant, ConstantValue, Domain, ElementType, Expr, Field, Kernel, Literal, Param, Place, Presence,
    ScalarSource,
};

/// `signatures/rejection.yaml:12`
pub fn place(place: Place) -> String {
    format!("{}:{}", place.file, place.line)
}

/// The first sentence of a doc, without its full stop.
pub fn first_sentence(doc: &str) -> &str {
    doc.find(". ").map_or(doc.trim_end().trim_end_matches('.'), |end| &doc[..end])
}

/// The extents of a shape or a grid.
pub fn extents(kernel: &Kernel, exprs: &[Expr]) -> Vec<String> {
    exprs.iter().map(|expr| kernel.display(expr)).collect()
}

/// The types that an argument can have, with `|` between them.
pub fn element(kernel: &Kernel, element: ElementType) -> String {
    match element {
        ElementType::Fixed(dtype) => dtype.name().into(),
        ElementType::Variable(index) => {
            let choices = kernel.types.get(index).map_or(&[][..], |variable| variable.choices);
            choices.iter().map(|choice| choice.name()).collect::<Vec<_>>().join("|")
        }
    }
}

/// What a kernel does with a tensor.
pub fn access(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
        Access::Update => "update",
    }
}

/// When a tensor is given, where it can be absent.
pub fn presence(kernel: &Kernel, presence: Presence) -> Option<String> {
    match presence {
        Presence::Required => None,
        Presence::Optional => Some("optional".into()),
        Presence::With(index) => Some(format!("with {}", param(kernel, index))),
    }
}

/// What tells the two arms apart: the one that alone uses a parameter, or the one that refuses it.
pub fn arms(param: &Param) -> Option<String> {
    let name = |arm| if arm == Arm::Gpu { "GPU" } else { "CPU" };
    match (param.only, param.refused) {
        (Some(arm), _) => Some(format!("{} arm only", name(arm))),
        (None, Some((arm, reason))) => Some(format!("refused by the {} arm: {reason}", name(arm))),
        (None, None) => None,
    }
}

/// The fields of a struct, as Rust writes them.
pub fn fields(fields: &[Field]) -> String {
    let field = |field: &Field| match field.count {
        1 => format!("{}: {}", field.name, field.dtype),
        count => format!("{}: [{}; {count}]", field.name, field.dtype),
    };
    format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
}

/// Where a scalar's value comes from.
pub fn source(kernel: &Kernel, source: ScalarSource) -> String {
    match source {
        ScalarSource::Caller => "the caller".into(),
        ScalarSource::Default(value) => format!("the caller, or {}", literal(value)),
        ScalarSource::Dim(index) => match kernel.dims.get(index) {
            Some(dim) => format!("the shape of {}", param(kernel, dim.param)),
            None => "?".into(),
        },
        ScalarSource::Stride(index) => format!("the row stride of {}", param(kernel, index)),
    }
}

/// What values an argument may hold; nothing where it may hold any.
pub fn domain(kernel: &Kernel, domain: Domain) -> Option<String> {
    Some(match domain {
        Domain::Any => return None,
        Domain::Range(low, high) => format!("{}..{}", kernel.display(low), kernel.display(high)),
        Domain::TokenIds => "token ids, or -1".into(),
        Domain::InclusiveCumsum(total) => format!("non-decreasing, 0 to {}", dim(kernel, total)),
        Domain::Probabilities => "rows of probabilities".into(),
        Domain::Positive => "above 0".into(),
        Domain::NonNegative => "at least 0".into(),
        Domain::Unit => "0 to 1, both included".into(),
        Domain::OpenUnit => "0 to 1, neither included".into(),
        Domain::Logits => "finite, or -inf".into(),
    })
}

/// Where a constant's value comes from.
pub fn constant(kernel: &Kernel, constant: &Constant) -> String {
    match constant.value {
        ConstantValue::Fixed(value) => literal(value),
        ConstantValue::Present(index) => format!("whether {} is given", param(kernel, index)),
        ConstantValue::Absent(index) => format!("whether {} is absent", param(kernel, index)),
        ConstantValue::Chosen(index) => format!("which type {} has", param(kernel, index)),
    }
}

fn literal(literal: Literal) -> String {
    match literal {
        Literal::Bool(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Float(value) => format!("{value:?}"),
    }
}

fn dim(kernel: &Kernel, index: usize) -> &'static str {
    kernel.dims.get(index).map_or("?", |dim| dim.name)
}

fn param(kernel: &Kernel, index: usize) -> &'static str {
    kernel.params.get(index).map_or("?", |param: &Param| param.name)
}
