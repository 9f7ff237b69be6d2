//! What to compile: the request that the kernel compiler reads from its standard input.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::check::similar;
use crate::header;
use crate::model::{Arm, Constant, ConstantValue, DType, Element, Kernel, Literal, Param, ParamKind, Registry};
use crate::variants::{Variant, variants};

/// A request to the compiler.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Version of this format.
    pub format: u32,
    /// The crate's folder; the caller sets it.
    pub root: String,
    /// The C header of each family that has one, which its kernels are compiled with; the caller sets them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What to compile, in the order of the registry.
    pub kernels: Vec<KernelPlan>,
}

/// One kernel to compile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelPlan {
    /// Its name in the registry.
    pub name: String,
    /// Its family.
    pub family: String,
    /// Its source, relative to the root.
    pub file: String,
    /// The function in the source.
    pub function: String,
    /// Warps of a block.
    pub num_warps: u32,
    /// Every form of it.
    pub variants: Vec<VariantPlan>,
}

/// One form of a kernel to compile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantPlan {
    /// Its name, which is the stem of its PTX file.
    pub name: String,
    /// Each parameter by its name in the kernel, with its Triton type; none where the tensor is absent.
    pub signature: Vec<(String, Option<String>)>,
    /// In CUDA C++, the Triton type of each parameter's elements, by the macro that says it; see [`crate::header`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, String>,
    /// The value of each constant.
    pub constants: BTreeMap<String, Value>,
    /// Parameters that are promised to be divisible by 16.
    pub divisible_by_16: Vec<String>,
}

/// The value of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value:?}"),
        }
    }
}

/// A selection that selects nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSelector {
    /// What was asked for.
    pub selector: String,
    /// What may have been meant.
    pub similar: Option<String>,
}

impl fmt::Display for UnknownSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no kernel, family or kernel source is called `{}`", self.selector)?;
        match &self.similar {
            Some(similar) => write!(f, "; did you mean `{similar}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownSelector {}

/// The request for the kernels that `only` names by kernel, family or source file (`softmax`, `kernels/softmax.py`,
/// `softmax.py`); for all of them where it names none.
pub fn plan(registry: &Registry, only: &[String]) -> Result<Plan, UnknownSelector> {
    let all = || registry.families.iter().flat_map(|family| family.kernels.iter().map(move |kernel| (family, kernel)));
    for selector in only {
        if !all().any(|(family, kernel)| names(&family.name, &family.path, kernel).contains(&selector.as_str())) {
            let candidates = all().flat_map(|(family, kernel)| names(&family.name, &family.path, kernel));
            let similar = similar::closest(selector, candidates).map(str::to_string);
            return Err(UnknownSelector { selector: selector.clone(), similar });
        }
    }
    let wanted = |family: &str, path: &str, kernel: &Kernel| {
        only.is_empty() || names(family, path, kernel).iter().any(|name| only.iter().any(|selector| selector == name))
    };
    let kernels = all()
        .filter(|(family, kernel)| wanted(&family.name, &family.path, kernel))
        .map(|(family, kernel)| kernel_plan(&family.name, kernel))
        .collect();
    Ok(Plan { format: crate::facts::FORMAT, root: String::new(), headers: BTreeMap::new(), kernels })
}

/// Everything that selects a kernel.
fn names<'a>(family: &'a str, path: &'a str, kernel: &'a Kernel) -> [&'a str; 5] {
    let file = kernel.gpu.value.file.as_str();
    [&kernel.name.value, family, file, file.rsplit('/').next().unwrap_or(file), path]
}

fn kernel_plan(family: &str, kernel: &Kernel) -> KernelPlan {
    KernelPlan {
        name: kernel.name.value.clone(),
        family: family.to_string(),
        file: kernel.gpu.value.file.clone(),
        function: kernel.gpu.value.function.clone(),
        num_warps: kernel.num_warps,
        variants: variants(kernel).iter().map(|variant| variant_plan(kernel, variant)).collect(),
    }
}

/// The parameters that the GPU arm has, in order.
pub fn gpu_params(kernel: &Kernel) -> impl Iterator<Item = &Param> {
    kernel.params.iter().filter(|param| !matches!(param.only, Some((Arm::Cpu, _))))
}

/// What one variant of `kernel` is compiled with.
pub fn variant_plan(kernel: &Kernel, variant: &Variant) -> VariantPlan {
    let signature: Vec<_> =
        gpu_params(kernel).map(|param| (param.kernel_name.clone(), argument_type(kernel, variant, param))).collect();
    let constants = kernel
        .constants
        .iter()
        .map(|constant| (constant.kernel_name.clone(), constant_value(kernel, variant, constant)))
        .collect();
    let promised = |param: &Param| kernel.divisible_by_16.iter().any(|name| name.value == param.name.value);
    let divisible_by_16 = match variant.aligned {
        false => Vec::new(),
        true => gpu_params(kernel)
            .zip(&signature)
            .filter(|(param, argument)| promised(param) && argument.1.is_some())
            .map(|(param, _)| param.kernel_name.clone())
            .collect(),
    };
    VariantPlan {
        name: variant.name.clone(),
        signature,
        types: header::macros(kernel, variant),
        constants,
        divisible_by_16,
    }
}

/// The Triton type of `param` in `variant`, or the name of its struct; none where it is absent.
fn argument_type(kernel: &Kernel, variant: &Variant, param: &Param) -> Option<String> {
    match &param.kind {
        ParamKind::Tensor(_) if variant.absent.contains(&param.name.value) => None,
        ParamKind::Tensor(tensor) => {
            Some(format!("*{}", dtype(kernel, variant, &tensor.element.value).map_or("?", DType::triton_name)))
        }
        ParamKind::Scalar(scalar) => {
            Some(dtype(kernel, variant, &scalar.element.value).map_or("?", DType::triton_name).to_string())
        }
        ParamKind::Struct(value) => Some(value.name.value.clone()),
    }
}

/// The element type that `element` is in `variant`.
pub(crate) fn dtype(kernel: &Kernel, variant: &Variant, element: &Element) -> Option<DType> {
    match element {
        Element::Fixed(dtype) => Some(*dtype),
        Element::Variable(name) => {
            let index = kernel.types.iter().position(|variable| &variable.name.value == name)?;
            variant.types.get(index).copied()
        }
    }
}

fn constant_value(kernel: &Kernel, variant: &Variant, constant: &Constant) -> Value {
    match &constant.value {
        ConstantValue::Fixed(Literal::Bool(value)) => Value::Bool(*value),
        ConstantValue::Fixed(Literal::Float(value)) => Value::Float(*value),
        ConstantValue::Fixed(Literal::Int(value)) => match constant.dtype {
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Value::Float(*value as f64),
            _ => Value::Int(*value),
        },
        ConstantValue::Present(name) => Value::Bool(!variant.absent.contains(name)),
        ConstantValue::Absent(name) => Value::Bool(variant.absent.contains(name)),
        ConstantValue::DType(_) => {
            // The choices of a variable that a constant chooses stand for `false`, then for `true`.
            let mut chosen = kernel.types.iter().zip(&variant.types);
            let chosen = chosen.find(|(variable, _)| variable.chosen_by.as_ref() == Some(&constant.name.value));
            Value::Bool(chosen.is_some_and(|(variable, dtype)| variable.choices.get(1) == Some(dtype)))
        }
    }
}
