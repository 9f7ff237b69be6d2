//! The check that both arms share. It looks at the arguments, never at what tensors hold.
//!
//! [`arguments`] needs no device: presence, element types, ranks, extents, strides, scalars. Where memory is and at which
//! address is looked at by [`places`] and [`addresses`], once the device is known.

pub(crate) mod addresses;
pub(crate) mod places;
mod shapes;

use arrayvec::ArrayVec;

use crate::argument::{Argument, Memory};
use crate::bound::{self, Bound};
use crate::element::DType;
use crate::error::{Error, Result};
use crate::kernel::{Access, ElementType, Kernel, MAX_PARAMS, ParamKind, Presence};

/// Checks everything that does not depend on the device.
pub(crate) fn arguments(kernel: &'static Kernel, args: &[Argument<'_>]) -> Result<Bound> {
    if args.len() != kernel.params.len() {
        let message = format!("expected {} arguments, got {}", kernel.params.len(), args.len());
        return Err(Error::launch(kernel.name, message));
    }
    presence(kernel, args)?;
    structs(kernel, args)?;
    let types = types(kernel, args)?;
    let dims = shapes::dims(kernel, args)?;
    let mut bound = Bound { dims, types, scalars: ArrayVec::new() };
    shapes::extents(kernel, args, &bound)?;
    for (index, param) in kernel.params.iter().enumerate() {
        let scalar = match param.kind {
            ParamKind::Tensor { .. } | ParamKind::Struct { .. } => None,
            ParamKind::Scalar { .. } => Some(bound::scalar(kernel, param, args, index, &bound)?),
        };
        bound.scalars.push(scalar);
    }
    Ok(bound)
}

/// Tensors are where tensors are expected, given where they must be, and writable where they are written.
fn presence(kernel: &'static Kernel, args: &[Argument<'_>]) -> Result<()> {
    for (param, argument) in kernel.params.iter().zip(args) {
        let ParamKind::Tensor { access, presence, .. } = param.kind else { continue };
        let fail = |expected: String, got: &str| Err(Error::argument(kernel.name, param.name, expected, got));
        match (presence, argument) {
            (_, Argument::Scalar(_)) => return fail("a view".into(), "a scalar"),
            (_, Argument::Struct(_)) => return fail("a view".into(), "a struct"),
            (Presence::Required, Argument::Absent) => return fail("a view".into(), "none"),
            (Presence::With(other), _) if args[other].is_given() != argument.is_given() => {
                let other = kernel.params[other].name;
                let got = if argument.is_given() { "this one alone" } else { "the other alone" };
                return fail(format!("to be given exactly when `{other}` is"), got);
            }
            (_, Argument::Tensor(tensor)) if access != Access::Read => {
                if matches!(tensor.memory, Memory::Host(_) | Memory::Device(..) | Memory::Raw(_)) {
                    return fail("a view that can be written".into(), "one that can only be read");
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Structs are those that the registry names.
fn structs(kernel: &'static Kernel, args: &[Argument<'_>]) -> Result<()> {
    for (param, argument) in kernel.params.iter().zip(args) {
        let ParamKind::Struct { name, id, .. } = param.kind else { continue };
        let got = match argument {
            Argument::Struct(value) if (**value).type_id() == id() => continue,
            Argument::Struct(_) => "another struct",
            Argument::Tensor(_) => "a view",
            Argument::Scalar(_) => "a scalar",
            Argument::Absent => "none",
        };
        return Err(Error::argument(kernel.name, param.name, format!("the struct `{name}`"), got));
    }
    Ok(())
}

/// Element types are what they must be, and one type variable stands for one type.
fn types(kernel: &'static Kernel, args: &[Argument<'_>]) -> Result<ArrayVec<DType, { crate::kernel::MAX_TYPES }>> {
    let mut found: [Option<(DType, &'static str)>; crate::kernel::MAX_TYPES] = [None; crate::kernel::MAX_TYPES];
    for (param, argument) in kernel.params.iter().zip(args) {
        let (element, got) = match (&param.kind, argument) {
            (ParamKind::Tensor { element, .. }, Argument::Tensor(tensor)) => (*element, tensor.dtype),
            (ParamKind::Scalar { element, .. }, Argument::Scalar(scalar)) => (*element, scalar.dtype()),
            _ => continue,
        };
        let fail = |expected: String| Err(Error::argument(kernel.name, param.name, expected, got.name()));
        match element {
            ElementType::Fixed(expected) if expected != got => return fail(expected.name().into()),
            ElementType::Fixed(_) => {}
            ElementType::Variable(index) => match found[index] {
                Some((expected, _)) if expected == got => {}
                Some((expected, other)) => return fail(format!("{expected}, as `{other}` has")),
                None if kernel.types[index].choices.contains(&got) => found[index] = Some((got, param.name)),
                None => {
                    let choices: Vec<_> = kernel.types[index].choices.iter().map(|choice| choice.name()).collect();
                    return fail(format!("one of {}", choices.join(", ")));
                }
            },
        }
    }
    let mut types = ArrayVec::new();
    for (variable, found) in kernel.types.iter().zip(found) {
        let Some((dtype, _)) = found else {
            return Err(Error::launch(kernel.name, format!("nothing says which type `{}` is", variable.name)));
        };
        types.push(dtype);
    }
    Ok(types)
}

/// An array with one entry a parameter.
pub(crate) type PerParam<T> = ArrayVec<T, MAX_PARAMS>;
