//! A kernel as far as it could be read: what is broken is absent, and what refers to it is not reported again.

use crate::expr::Tree;
use crate::model::{
    Access, Arm, ConstantValue, CpuSource, DType, Domain, Element, Expr, GpuSource, Presence, ScalarSource, Spanned,
    Struct, TypeVariable,
};
use crate::source::Span;

/// One kernel.
pub(super) struct KernelDraft {
    pub(super) name: Spanned<String>,
    pub(super) doc: Option<String>,
    pub(super) gpu: Option<Spanned<GpuSource>>,
    pub(super) cpu: Option<Spanned<CpuSource>>,
    pub(super) grid: Option<Vec<Placed<Expr>>>,
    pub(super) num_warps: Option<u32>,
    pub(super) shared_memory: Option<Placed<Expr>>,
    pub(super) types: Vec<TypeVariable>,
    /// Names under `types` whose lists are broken.
    pub(super) broken_types: Vec<String>,
    pub(super) chosen: Vec<Chosen>,
    pub(super) params: Vec<ParamDraft>,
    pub(super) constants: Vec<ConstantDraft>,
    pub(super) divisible_by_16: Vec<Spanned<String>>,
}

/// An expression or a domain whose names have spans.
#[derive(Clone)]
pub(super) struct Placed<T> {
    pub(super) value: Spanned<T>,
    pub(super) names: Vec<Spanned<String>>,
    pub(super) divisors: Vec<Spanned<Expr>>,
}

/// An element type written `{by: CONSTANT, true: A, false: B}`.
pub(super) struct Chosen {
    pub(super) constant: Spanned<String>,
    /// For `false`, then for `true`.
    pub(super) choices: [DType; 2],
    pub(super) tensor: String,
    pub(super) span: Span,
}

pub(super) struct ParamDraft {
    pub(super) name: Spanned<String>,
    pub(super) kernel_name: Spanned<String>,
    pub(super) doc: Option<String>,
    pub(super) kind: KindDraft,
    pub(super) domain: Option<Placed<Domain>>,
    pub(super) only: Option<(Arm, String)>,
    pub(super) refused: Option<(Arm, String)>,
}

pub(super) enum KindDraft {
    Broken,
    Tensor(TensorDraft),
    Scalar(ScalarDraft),
    Struct(Struct),
}

pub(super) struct TensorDraft {
    pub(super) element: Option<Spanned<Element>>,
    pub(super) shape: Option<Vec<Placed<Expr>>>,
    pub(super) access: Option<Access>,
    pub(super) presence: Option<Spanned<Presence>>,
}

pub(super) struct ScalarDraft {
    pub(super) element: Option<Spanned<Element>>,
    pub(super) source: Option<Spanned<ScalarSource>>,
    pub(super) max: Option<i64>,
}

pub(super) struct ConstantDraft {
    pub(super) name: Spanned<String>,
    pub(super) kernel_name: Spanned<String>,
    pub(super) doc: Option<String>,
    pub(super) dtype: Option<DType>,
    pub(super) value: Option<Spanned<ConstantValue>>,
    pub(super) tuning: bool,
}

impl<T> Placed<T> {
    /// Gives each range of `tree` its span.
    pub(super) fn new(tree: Tree<T>, span: Span, at: impl Fn(std::ops::Range<usize>) -> Span) -> Placed<T> {
        let names = tree.names.into_iter().map(|(value, range)| Spanned { value, span: at(range) }).collect();
        let divisors = tree.divisors.into_iter().map(|(value, range)| Spanned { value, span: at(range) }).collect();
        Placed { value: Spanned { value: tree.value, span }, names, divisors }
    }
}

impl ParamDraft {
    pub(super) fn tensor(&self) -> Option<&TensorDraft> {
        match &self.kind {
            KindDraft::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    pub(super) fn scalar(&self) -> Option<&ScalarDraft> {
        match &self.kind {
            KindDraft::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    pub(super) fn element(&self) -> Option<&Spanned<Element>> {
        match &self.kind {
            KindDraft::Broken | KindDraft::Struct(_) => None,
            KindDraft::Tensor(tensor) => tensor.element.as_ref(),
            KindDraft::Scalar(scalar) => scalar.element.as_ref(),
        }
    }
}

impl TensorDraft {
    /// Whether it is always given; `None` where that could not be read.
    pub(super) fn is_required(&self) -> Option<bool> {
        self.presence.as_ref().map(|presence| presence.value == Presence::Required)
    }
}

impl KernelDraft {
    pub(super) fn param(&self, name: &str) -> Option<&ParamDraft> {
        self.params.iter().find(|param| param.name.value == name)
    }

    pub(super) fn constant(&self, name: &str) -> Option<&ConstantDraft> {
        self.constants.iter().find(|constant| constant.name.value == name)
    }

    /// Every tensor, with the parameter it is.
    pub(super) fn tensors(&self) -> impl Iterator<Item = (&ParamDraft, &TensorDraft)> {
        self.params.iter().filter_map(|param| Some((param, param.tensor()?)))
    }

    /// Every scalar, with the parameter it is.
    pub(super) fn scalars(&self) -> impl Iterator<Item = (&ParamDraft, &ScalarDraft)> {
        self.params.iter().filter_map(|param| Some((param, param.scalar()?)))
    }

    /// Whether every shape could be read, so that a size that none names is really unknown.
    pub(super) fn shapes_are_whole(&self) -> bool {
        self.params.iter().all(|param| match &param.kind {
            KindDraft::Broken => false,
            KindDraft::Tensor(tensor) => tensor.shape.is_some(),
            KindDraft::Scalar(_) | KindDraft::Struct(_) => true,
        })
    }

    /// The names that shapes use and that are no constants, each once, in order.
    pub(super) fn dim_names(&self) -> Vec<&Spanned<String>> {
        let mut names: Vec<&Spanned<String>> = Vec::new();
        for extent in self.tensors().flat_map(|(_, tensor)| tensor.shape.iter().flatten()) {
            for name in &extent.names {
                let is_new = names.iter().all(|known| known.value != name.value);
                if is_new && self.constant(&name.value).is_none() {
                    names.push(name);
                }
            }
        }
        names
    }

    /// The types that an element may have; none where its variable is broken.
    pub(super) fn choices(&self, element: &Element) -> Vec<DType> {
        match element {
            Element::Fixed(dtype) => vec![*dtype],
            Element::Variable(name) => {
                let declared = self.types.iter().find(|variable| variable.name.value == *name);
                let chosen = self.chosen.iter().find(|chosen| chosen.constant.value == *name);
                declared
                    .map(|variable| variable.choices.clone())
                    .or(chosen.map(|c| c.choices.to_vec()))
                    .unwrap_or_default()
            }
        }
    }

    /// The value of an integer constant that is fixed in the registry.
    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        match &self.constant(name)?.value.as_ref()?.value {
            ConstantValue::Fixed(crate::model::Literal::Int(value)) => Some(*value),
            _ => None,
        }
    }
}
