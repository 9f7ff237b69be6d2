//! Parts of a registry in a few words, as a change shows them.

use tidelock_codegen::expr;
use tidelock_codegen::model::{
    Arm, Constant, ConstantValue, Domain, Element, Literal, Param, ParamKind, ScalarSource, Struct,
};

pub fn added(param: &Param) -> &'static str {
    match &param.kind {
        ParamKind::Tensor(_) | ParamKind::Struct(_) => "required-added",
        ParamKind::Scalar(scalar) => match scalar.source {
            ScalarSource::Caller => "required-added",
            ScalarSource::Default(_) if is_cpu_only(param) => "cpu-only-added",
            ScalarSource::Default(_) => "default-added",
            ScalarSource::Dim | ScalarSource::Stride(_) => "derived-added",
        },
    }
}

pub fn removed(param: &Param) -> &'static str {
    match &param.kind {
        ParamKind::Tensor(_) | ParamKind::Struct(_) => "passed-removed",
        ParamKind::Scalar(scalar) => match scalar.source {
            ScalarSource::Caller | ScalarSource::Default(_) => "passed-removed",
            ScalarSource::Dim => "size-removed",
            ScalarSource::Stride(_) => "stride-removed",
        },
    }
}

pub fn is_cpu_only(param: &Param) -> bool {
    matches!(param.only, Some((Arm::Cpu, _)))
}

pub fn kind(kind: &ParamKind) -> &'static str {
    match kind {
        ParamKind::Tensor(_) => "tensor",
        ParamKind::Scalar(_) => "scalar",
        ParamKind::Struct(_) => "struct",
    }
}

pub fn described(param: &Param) -> String {
    match &param.kind {
        ParamKind::Tensor(tensor) => format!("tensor of {}", element(&tensor.element.value)),
        ParamKind::Scalar(scalar) => format!("scalar {}, {}", element(&scalar.element.value), source(&scalar.source)),
        ParamKind::Struct(value) => format!("struct {}", structure(value)),
    }
}

pub fn structure(value: &Struct) -> String {
    format!("{}:{}", value.header, value.name.value)
}

pub fn element(element: &Element) -> String {
    match element {
        Element::Fixed(dtype) => dtype.name().to_string(),
        Element::Variable(name) => name.clone(),
    }
}

pub fn source(source: &ScalarSource) -> String {
    match source {
        ScalarSource::Caller => "from the caller".to_string(),
        ScalarSource::Default(value) => format!("default {}", literal(value)),
        ScalarSource::Dim => "a size".to_string(),
        ScalarSource::Stride(tensor) => format!("stride of {tensor}"),
    }
}

pub fn domain(domain: &Domain) -> String {
    match domain {
        Domain::Range(low, high) => format!("{low}..{high}"),
        Domain::InclusiveCumsum(size) => format!("inclusive_cumsum({size})"),
        other => {
            let words = expr::WORDS.iter();
            words.into_iter().find(|(_, domain)| domain == other).map_or(String::new(), |(word, _)| (*word).to_string())
        }
    }
}

pub fn value(constant: &Constant) -> String {
    match &constant.value {
        ConstantValue::Fixed(value) => literal(value),
        ConstantValue::Present(tensor) => format!("present({tensor})"),
        ConstantValue::Absent(tensor) => format!("absent({tensor})"),
        ConstantValue::DType(tensor) => format!("dtype({tensor})"),
    }
}

pub fn literal(value: &Literal) -> String {
    match value {
        Literal::Bool(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Float(value) => format!("{value:?}"),
    }
}

pub fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(", "))
}
