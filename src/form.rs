//! The form of an argument: all of it that the check looks at before places and addresses. So arguments of the same forms have
//! the same outcome there, and a launch need not be checked twice for them.

use std::any::TypeId;

use crate::argument::Argument;
use crate::element::DType;
use crate::layout::Layout;

/// What the check sees of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Tensor {
        dtype: DType,
        layout: Layout,
        writable: bool,
    },
    /// With its bits, since numbers that are equal need not be the same.
    Scalar(DType, u64),
    Struct(TypeId),
    Absent,
}

impl Form {
    /// That of `argument`.
    pub(crate) fn of(argument: &Argument<'_>) -> Form {
        match argument {
            Argument::Tensor(tensor) => {
                Form::Tensor { dtype: tensor.dtype, layout: tensor.layout, writable: tensor.memory.is_writable() }
            }
            Argument::Scalar(scalar) => Form::Scalar(scalar.dtype(), scalar.bits()),
            Argument::Struct(value) => Form::Struct((**value).type_id()),
            Argument::Absent => Form::Absent,
        }
    }

    /// Whether it is that of `argument`.
    #[inline(always)] // into the one loop that compares arguments
    pub(crate) fn is_of(&self, argument: &Argument<'_>) -> bool {
        match (argument, self) {
            (Argument::Tensor(tensor), Form::Tensor { dtype, layout, writable }) => {
                *layout == tensor.layout && *dtype == tensor.dtype && *writable == tensor.memory.is_writable()
            }
            (Argument::Absent, Form::Absent) => true,
            _ => self.is_of_value(argument),
        }
    }

    #[inline(never)] // there are few
    fn is_of_value(&self, argument: &Argument<'_>) -> bool {
        match (argument, self) {
            (Argument::Scalar(scalar), Form::Scalar(dtype, bits)) => *bits == scalar.bits() && *dtype == scalar.dtype(),
            (Argument::Struct(value), Form::Struct(id)) => *id == (**value).type_id(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Scalar;
    use crate::view::{AsView, AsViewMut};

    #[test]
    fn each_argument_has_its_own_form_alone() {
        let (values, other) = ([1f32; 4], [2f32; 4]);
        let (mut written, integers) = ([1f32; 4], [1i32; 4]);
        let matrix = |rows, columns, stride| values.view().strided(rows, columns, stride).expect("it fits").into();
        let arguments: [Argument<'_>; 14] = [
            values.view().into(),
            written.view_mut().into(),
            integers.view().into(),
            matrix(1, 4, 4),
            matrix(1, 4, 3),
            matrix(1, 3, 4),
            matrix(0, 4, 4),
            Argument::Scalar(Scalar::F32(0.0)),
            Argument::Scalar(Scalar::F32(-0.0)),
            Argument::Scalar(Scalar::I32(0)),
            Argument::Scalar(Scalar::F32(f32::NAN)),
            Argument::Struct(&1u32),
            Argument::Struct(&1i32),
            Argument::Absent,
        ];
        for (index, argument) in arguments.iter().enumerate() {
            for (other, same) in arguments.iter().zip(0..) {
                assert_eq!(Form::of(other).is_of(argument), index == same, "{index} and {same}");
            }
        }
        assert!(Form::of(&values.view().into()).is_of(&other.view().into()), "memory is no part of it");
        assert!(Form::of(&Argument::Struct(&1u32)).is_of(&Argument::Struct(&2u32)), "nor is what is in a struct");
    }
}
