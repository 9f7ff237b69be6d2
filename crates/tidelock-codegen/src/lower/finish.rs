//! From a draft without errors to the model.

use super::dims::bind;
use super::draft::{ConstantDraft, KernelDraft, KindDraft, ParamDraft};
use crate::model::{
    Constant, Domain, Kernel, Param, ParamKind, Presence, Scalar, ScalarSource, Spanned, Tensor, TypeVariable,
};

/// The kernel, unless it had errors.
pub(super) fn kernel(draft: KernelDraft, has_errors: bool) -> Option<Kernel> {
    if has_errors {
        return None;
    }
    let kernel = whole(draft);
    assert!(kernel.is_some(), "what is missing in a draft has been reported");
    kernel
}

fn whole(draft: KernelDraft) -> Option<Kernel> {
    let dims = bind(&draft);
    let mut types = draft.types.clone();
    for constant in &draft.constants {
        if let Some(chosen) = draft.chosen.iter().find(|chosen| chosen.constant.value == constant.name.value) {
            let (name, choices) = (constant.name.clone(), chosen.choices.to_vec());
            types.push(TypeVariable { name, choices, chosen_by: Some(constant.name.value.clone()) });
        }
    }
    let strides = draft.scalars().filter_map(|(param, scalar)| match &scalar.source.as_ref()?.value {
        ScalarSource::Stride(tensor) => Some((tensor.clone(), param.name.value.clone())),
        _ => None,
    });
    let strides: Vec<(String, String)> = strides.collect();
    let params: Option<Vec<Param>> = draft.params.into_iter().map(|draft| param(draft, &strides)).collect();
    let constants: Option<Vec<Constant>> = draft.constants.into_iter().map(constant).collect();
    Some(Kernel {
        name: draft.name,
        doc: draft.doc?,
        gpu: draft.gpu?,
        cpu: draft.cpu,
        grid: draft.grid?.into_iter().map(|placed| placed.value).collect(),
        num_warps: draft.num_warps?,
        shared_memory: draft.shared_memory.map(|placed| placed.value),
        types,
        dims,
        params: params?,
        constants: constants?,
        divisible_by_16: draft.divisible_by_16,
    })
}

fn param(draft: ParamDraft, strides: &[(String, String)]) -> Option<Param> {
    let kind = match draft.kind {
        KindDraft::Broken => return None,
        KindDraft::Tensor(tensor) => ParamKind::Tensor(Tensor {
            element: tensor.element?,
            shape: tensor.shape?.into_iter().map(|placed| placed.value).collect(),
            access: tensor.access?,
            presence: presence(tensor.presence)?,
            stride_param: strides
                .iter()
                .find(|(tensor, _)| *tensor == draft.name.value)
                .map(|(_, param)| param.clone()),
        }),
        KindDraft::Scalar(scalar) => {
            ParamKind::Scalar(Scalar { element: scalar.element?, source: scalar.source?.value, max: scalar.max })
        }
        KindDraft::Struct(value) => ParamKind::Struct(value),
    };
    Some(Param {
        name: draft.name,
        kernel_name: draft.kernel_name.value,
        doc: draft.doc?,
        kind,
        domain: draft.domain.map_or(Domain::Any, |placed| placed.value.value),
        only: draft.only,
        refused: draft.refused,
    })
}

fn presence(presence: Option<Spanned<Presence>>) -> Option<Presence> {
    presence.map(|presence| presence.value)
}

fn constant(draft: ConstantDraft) -> Option<Constant> {
    let (dtype, value) = (draft.dtype?, draft.value?.value);
    Some(Constant {
        name: draft.name,
        kernel_name: draft.kernel_name.value,
        doc: draft.doc?,
        dtype,
        value,
        tuning: draft.tuning,
    })
}
