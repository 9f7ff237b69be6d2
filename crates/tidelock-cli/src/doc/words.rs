//! Names of pages, and words for what the registry says of a parameter.

use tidelock_codegen::model::{
    Constant, ConstantValue, Domain, Element, Kernel, Literal, Param, ParamKind, Presence, ScalarSource,
};

/// The page of a kernel, from the index.
pub fn kernel_page(kernel: &Kernel) -> String {
    format!("kernel/{}.html", kernel.name.value)
}

/// The types that a parameter can have.
pub fn element(kernel: &Kernel, param: &Param) -> String {
    match (&param.kind, param.element()) {
        (ParamKind::Struct(value), _) => value.name.value.clone(),
        (_, Some(Element::Variable(name))) => {
            let choices = kernel.type_variable(name).map_or(&[][..], |variable| &variable.choices);
            let choices: Vec<_> = choices.iter().map(|choice| choice.name()).collect();
            format!("{} by {name}", choices.join(" | "))
        }
        (_, Some(Element::Fixed(dtype))) => dtype.name().into(),
        (_, None) => String::new(),
    }
}

/// The extents of a tensor, or where a scalar's value comes from.
pub fn shape(param: &Param) -> String {
    match &param.kind {
        ParamKind::Struct(_) => "by value, from the caller".into(),
        ParamKind::Tensor(tensor) => {
            let extents: Vec<_> = tensor.shape.iter().map(|extent| extent.value.to_string()).collect();
            let rows = if tensor.stride_param.is_some() { ", any row stride" } else { "" };
            format!("[{}]{rows}", extents.join(", "))
        }
        ParamKind::Scalar(scalar) => match &scalar.source {
            ScalarSource::Caller => "from the caller".into(),
            ScalarSource::Default(value) => format!("from the caller, or {}", literal(value)),
            ScalarSource::Dim => "from the shapes".into(),
            ScalarSource::Stride(tensor) => format!("row stride of {tensor}"),
        },
    }
}

/// What a kernel does with a tensor, and when it is given.
pub fn access(param: &Param) -> String {
    let ParamKind::Tensor(tensor) = &param.kind else { return String::new() };
    let access = format!("{:?}", tensor.access).to_lowercase();
    match &tensor.presence {
        Presence::Required => access,
        Presence::Optional => format!("{access}, optional"),
        Presence::With(other) => format!("{access}, with {other}"),
    }
}

/// What values a parameter may hold.
pub fn domain(param: &Param) -> String {
    match &param.domain {
        Domain::Any => "any".into(),
        Domain::Range(low, high) => format!("{low} to below {high}"),
        Domain::TokenIds => "token ids, or -1".into(),
        Domain::InclusiveCumsum(total) => format!("never falling, 0 to {total}"),
        Domain::Probabilities => "rows of probabilities".into(),
        Domain::Positive => "above 0".into(),
        Domain::NonNegative => "0 or above, finite".into(),
        Domain::Unit => "0 to 1, both included".into(),
        Domain::OpenUnit => "0 to 1, neither included".into(),
        Domain::Logits => "finite, or -inf".into(),
    }
}

/// Where a constant's value comes from.
pub fn constant(constant: &Constant) -> String {
    match &constant.value {
        ConstantValue::Fixed(value) => literal(value),
        ConstantValue::Present(tensor) => format!("whether {tensor} is given"),
        ConstantValue::Absent(tensor) => format!("whether {tensor} is absent"),
        ConstantValue::DType(tensor) => format!("which type {tensor} has"),
    }
}

fn literal(literal: &Literal) -> String {
    match literal {
        Literal::Bool(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Float(value) => format!("{value:?}"),
    }
}
