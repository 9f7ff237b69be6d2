//! The check that both arms share. It looks at the arguments, never at what tensors hold.
//!
//! [`arguments`] needs no device: presence, element types, ranks, extents, strides, scalars. Where memory is and at which
//! address is looked at by [`places`] and [`addresses`], once the device is known.

pub(crate) mod addresses;
pub(crate) mod places;
mod shapes;

use std::any::TypeId;

use arrayvec::ArrayVec;

use crate::argument::Argument;
use crate::bound::{self, Bound};
use crate::element::DType;
use crate::error::{Error, Result};
use crate::kernel::{Access, Arm, ElementType, Kernel, MAX_PARAMS, MAX_TYPES, Param, ParamKind, Presence};

/// Checks everything that does not depend on places and addresses, for a launch of `arm`, and fills in what follows.
pub(crate) fn arguments(kernel: &'static Kernel, args: &[Argument<'_>], arm: Arm, bound: &mut Bound) -> Result<()> {
    if args.len() != kernel.params.len() {
        let message = format!("expected {} arguments, got {}", kernel.params.len(), args.len());
        return Err(Error::launch(kernel.name, message));
    }
    shapes::dims(kernel, args, arm, &mut bound.dims)?;
    let mut types = Types::new(kernel);
    for (param, argument) in kernel.params.iter().zip(args) {
        match (&param.kind, argument) {
            // A tensor that is always given, as nearly all are.
            (ParamKind::Tensor { element, access, presence: Presence::Required, .. }, Argument::Tensor(tensor))
                if param.refused.is_none() && (*access == Access::Read || tensor.memory.is_writable()) =>
            {
                types.add(param, *element, tensor.dtype)?;
            }
            (ParamKind::Scalar { element, .. }, Argument::Scalar(scalar)) if param.refused.is_none() => {
                types.add(param, *element, scalar.dtype())?;
            }
            (ParamKind::Scalar { .. }, Argument::Absent) => {}
            _ => {
                if let Some((element, got)) = presence(kernel, param, args, argument, arm)? {
                    types.add(param, element, got)?;
                }
            }
        }
        if let (ParamKind::Tensor { shape, strided, .. }, Argument::Tensor(tensor)) = (&param.kind, argument) {
            shapes::extents(kernel, param, shape, *strided, &tensor.layout, &bound.dims)?;
        }
    }
    types.finish(&mut bound.types)?;
    for (index, param) in kernel.params.iter().enumerate() {
        if matches!(param.kind, ParamKind::Scalar { .. }) {
            bound.scalars[index] = bound::scalar(kernel, param, args, index, bound)?.bits();
        }
    }
    Ok(())
}

/// A tensor is where one is expected, given where it must be and not where `arm` refuses it, and writable where it is
/// written. The type that is declared and the one that came, where one did.
fn presence(
    kernel: &'static Kernel,
    param: &Param,
    args: &[Argument<'_>],
    argument: &Argument<'_>,
    arm: Arm,
) -> Result<Option<(ElementType, DType)>> {
    let fail = |expected: String, got: &str| Err(Error::argument(kernel.name, param.name, expected, got));
    if let Some((refusing, reason)) = param.refused
        && refusing == arm
        && argument.is_given()
    {
        let arm = if arm == Arm::Gpu { "GPU" } else { "CPU" };
        return fail(format!("none, since the {arm} arm refuses it ({reason})"), "a view");
    }
    let (element, access, presence) = match (&param.kind, argument) {
        (ParamKind::Tensor { element, access, presence, .. }, _) => (*element, *access, *presence),
        (ParamKind::Scalar { element, .. }, Argument::Scalar(scalar)) => return Ok(Some((*element, scalar.dtype()))),
        (ParamKind::Scalar { .. }, _) => return Ok(None),
        (ParamKind::Struct { name, id, .. }, _) => {
            return structure(kernel, param, name, id(), argument).map(|()| None);
        }
    };
    if let Presence::With(other) = presence
        && args[other].is_given() != argument.is_given()
    {
        let got = if argument.is_given() { "this one alone" } else { "the other alone" };
        return fail(format!("to be given exactly when `{}` is", kernel.params[other].name), got);
    }
    match argument {
        Argument::Scalar(_) => fail("a view".into(), "a scalar"),
        Argument::Struct(_) => fail("a view".into(), "a struct"),
        Argument::Absent if presence == Presence::Required => fail("a view".into(), "none"),
        Argument::Absent => Ok(None),
        Argument::Tensor(tensor) if access != Access::Read && !tensor.memory.is_writable() => {
            fail("a view that can be written".into(), "one that can only be read")
        }
        Argument::Tensor(tensor) => Ok(Some((element, tensor.dtype))),
    }
}

/// A struct is the one that the registry names.
fn structure(
    kernel: &'static Kernel,
    param: &Param,
    name: &'static str,
    id: TypeId,
    argument: &Argument<'_>,
) -> Result<()> {
    let got = match argument {
        Argument::Struct(value) if (**value).type_id() == id => return Ok(()),
        Argument::Struct(_) => "another struct",
        Argument::Tensor(_) => "a view",
        Argument::Scalar(_) => "a scalar",
        Argument::Absent => "none",
    };
    Err(Error::argument(kernel.name, param.name, format!("the struct `{name}`"), got))
}

/// Which type each type variable has, and which parameter said so.
struct Types {
    kernel: &'static Kernel,
    found: [Option<(DType, &'static str)>; MAX_TYPES],
}

impl Types {
    fn new(kernel: &'static Kernel) -> Types {
        Types { kernel, found: [None; MAX_TYPES] }
    }

    /// `got` is what `param` must have; one type variable stands for one type.
    #[inline(always)]
    fn add(&mut self, param: &Param, element: ElementType, got: DType) -> Result<()> {
        let fail = |expected: String| Err(Error::argument(self.kernel.name, param.name, expected, got.name()));
        let index = match element {
            ElementType::Fixed(expected) if expected != got => return fail(expected.name().into()),
            ElementType::Fixed(_) => return Ok(()),
            ElementType::Variable(index) => index,
        };
        match self.found[index] {
            Some((expected, _)) if expected == got => {}
            Some((expected, other)) => return fail(format!("{expected}, as `{other}` has")),
            None if self.kernel.types[index].choices.contains(&got) => self.found[index] = Some((got, param.name)),
            None => {
                let choices: Vec<_> = self.kernel.types[index].choices.iter().map(|choice| choice.name()).collect();
                return fail(format!("one of {}", choices.join(", ")));
            }
        }
        Ok(())
    }

    fn finish(&self, types: &mut ArrayVec<DType, MAX_TYPES>) -> Result<()> {
        for (variable, found) in self.kernel.types.iter().zip(self.found) {
            let Some((dtype, _)) = found else {
                let message = format!("nothing says which type `{}` is", variable.name);
                return Err(Error::launch(self.kernel.name, message));
            };
            types.push(dtype);
        }
        Ok(())
    }
}

/// An array with one entry a parameter.
pub(crate) type PerParam<T> = ArrayVec<T, MAX_PARAMS>;
