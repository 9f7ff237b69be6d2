//! Which compiled variants a kernel has, and in which order.
//!
//! A variant is one choice for each thing that a launch may choose. The order is that of a number whose digits are, from
//! the slowest: the type variables in the order of the registry, then each optional tensor that stands for itself (0
//! absent, 1 given) in parameter order, then, where the kernel promises anything, 0 for generic and 1 for aligned. The
//! runtime computes the same number at a launch, so no table is searched.

use crate::model::{Arm, DType, Kernel, Param, ParamKind, Presence};

/// One compiled form of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name, which is the stem of its PTX file: `sample_recovered_tokens-f64-no_draft_probs-aligned`.
    pub name: String,
    /// The type of each type variable, in the order of the registry.
    pub types: Vec<DType>,
    /// Names of the optional tensors that are not given.
    pub absent: Vec<String>,
    /// Whether it promises that what `divisible_by_16` lists is.
    pub aligned: bool,
}

/// The optional tensors that stand for themselves, in parameter order: the digits of a variant's number. One that the GPU arm
/// refuses is never given there.
pub fn switches(kernel: &Kernel) -> impl Iterator<Item = &Param> {
    optional(kernel).filter(|param| !refused(param))
}

fn optional(kernel: &Kernel) -> impl Iterator<Item = &Param> {
    kernel.params.iter().filter(|param| matches!(&param.kind, ParamKind::Tensor(t) if t.presence == Presence::Optional))
}

fn refused(param: &Param) -> bool {
    matches!(param.refused, Some((Arm::Gpu, _)))
}

/// All variants of `kernel`, in order.
pub fn variants(kernel: &Kernel) -> Vec<Variant> {
    let refused = optional(kernel).filter(|param| refused(param));
    let absent = refused.flat_map(|param| absent_with(kernel, &param.name.value)).collect();
    let mut all = vec![Variant { name: kernel.name.value.clone(), types: vec![], absent, aligned: false }];
    for variable in &kernel.types {
        all = extend(all, &variable.choices, |variant, &choice| {
            variant.types.push(choice);
            variant.name += &format!("-{}", choice.name());
        });
    }
    for param in switches(kernel) {
        let name = &param.name.value;
        all = extend(all, &[false, true], |variant, &given| {
            variant.name += &if given { format!("-{name}") } else { format!("-no_{name}") };
            if !given {
                variant.absent.extend(absent_with(kernel, name));
            }
        });
    }
    if !kernel.divisible_by_16.is_empty() {
        all = extend(all, &[false, true], |variant, &aligned| {
            variant.aligned = aligned;
            variant.name += if aligned { "-aligned" } else { "-generic" };
        });
    }
    all
}

/// `name` and the tensors that are given only together with it.
fn absent_with(kernel: &Kernel, name: &str) -> Vec<String> {
    let follows = |param: &&Param| match &param.kind {
        ParamKind::Tensor(tensor) => param.name.value == name || tensor.presence == Presence::With(name.to_string()),
        ParamKind::Scalar(_) | ParamKind::Struct(_) => false,
    };
    kernel.params.iter().filter(follows).map(|param| param.name.value.clone()).collect()
}

fn extend<T>(base: Vec<Variant>, digits: &[T], apply: impl Fn(&mut Variant, &T)) -> Vec<Variant> {
    let mut all = Vec::with_capacity(base.len() * digits.len());
    for variant in base {
        for digit in digits {
            let mut next = variant.clone();
            apply(&mut next, digit);
            all.push(next);
        }
    }
    all
}
