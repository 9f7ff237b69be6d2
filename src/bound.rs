//! What a check establishes: the values that follow from the arguments, shared by both arms.

use arrayvec::ArrayVec;

use crate::argument::Argument;
use crate::element::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::kernel::{ElementType, Kernel, MAX_DIMS, MAX_PARAMS, MAX_TYPES, Param, ParamKind, ScalarSource};

/// Arguments that have passed the check, less the memory itself.
#[derive(Debug)]
pub struct Bound {
    pub(crate) dims: ArrayVec<i64, MAX_DIMS>,
    pub(crate) types: ArrayVec<DType, MAX_TYPES>,
    /// The bits of each scalar parameter, as its slot holds them; 0 for any other. Plain words, since a launch copies them.
    pub(crate) scalars: [u64; MAX_PARAMS],
}

impl Default for Bound {
    fn default() -> Bound {
        Bound { dims: ArrayVec::new(), types: ArrayVec::new(), scalars: [0; MAX_PARAMS] }
    }
}

impl Bound {
    /// The values of the kernel's dimensions, in the order of its table.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// The types that its type variables have.
    pub fn types(&self) -> &[DType] {
        &self.types
    }

    /// The value of the scalar parameter with this index.
    ///
    /// # Errors
    /// Where that parameter is no scalar of type `T`; the generated code never asks for one.
    pub fn scalar<T: Element>(&self, kernel: &Kernel, index: usize) -> Result<T> {
        let element = match kernel.params.get(index).map(|param| &param.kind) {
            Some(ParamKind::Scalar { element, .. }) => *element,
            _ => return Err(Error::generator(kernel)),
        };
        let scalar = self.scalars.get(index).map(|&bits| Scalar::from_bits(self.dtype(element), bits));
        scalar.and_then(T::from_scalar).ok_or_else(|| Error::generator(kernel))
    }

    /// The element type that `element` stands for.
    pub(crate) fn dtype(&self, element: ElementType) -> DType {
        match element {
            ElementType::Fixed(dtype) => dtype,
            ElementType::Variable(index) => self.types[index],
        }
    }
}

/// The value of a scalar parameter: what the caller passed, its default, a dimension or a stride.
#[inline]
pub(crate) fn scalar(
    kernel: &'static Kernel,
    param: &Param,
    args: &[Argument<'_>],
    index: usize,
    bound: &Bound,
) -> Result<Scalar> {
    let ParamKind::Scalar { element, source, max } = param.kind else {
        return Err(Error::launch(kernel.name, format!("`{}` is no scalar", param.name)));
    };
    let dtype = bound.dtype(element);
    let fail = |expected: String, got: String| Err(Error::argument(kernel.name, param.name, expected, got));
    let derived = |value: i64| match Scalar::from_integer(dtype, value) {
        Some(scalar) => Ok(scalar),
        None => fail(format!("a value that fits {dtype}"), value.to_string()),
    };
    let value = match (source, &args[index]) {
        (ScalarSource::Dim(dim), Argument::Absent) => derived(bound.dims[dim])?,
        (ScalarSource::Stride(tensor), Argument::Absent) => derived(row_stride(&args[tensor]))?,
        (ScalarSource::Default(literal), Argument::Absent) => match literal.to_scalar(dtype) {
            Some(scalar) => scalar,
            None => return fail(format!("a default of type {dtype}"), format!("{literal:?}")),
        },
        (ScalarSource::Caller | ScalarSource::Default(_), &Argument::Scalar(scalar)) if scalar.dtype() == dtype => {
            scalar
        }
        (_, Argument::Absent) => return fail(format!("a value of type {dtype}"), "none".into()),
        (_, Argument::Scalar(scalar)) => return fail(format!("a value of type {dtype}"), format!("{scalar:?}")),
        (_, Argument::Struct(_)) => return fail(format!("a value of type {dtype}"), "a struct".into()),
        (_, Argument::Tensor(_)) => return fail(format!("a value of type {dtype}"), "a view".into()),
    };
    match (max, value.as_integer()) {
        (Some(max), Some(value)) if value > max => fail(format!("at most {max}"), value.to_string()),
        _ => Ok(value),
    }
}

fn row_stride(argument: &Argument<'_>) -> i64 {
    match argument {
        Argument::Tensor(tensor) => tensor.layout.row_stride() as i64,
        _ => 0,
    }
}
