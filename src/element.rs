//! Element types: what a view can hold, known to the type system and, once erased, to the checks.

use std::fmt;

use cudarc::driver::{DeviceRepr, ValidAsZeroBits};
use half::{bf16, f16};

mod sealed {
    pub trait Sealed {}
}

/// A type that a view can hold. Implemented for `bool`, the fixed-width integers, `f16`, `bf16`, `f32` and `f64`.
pub trait Element:
    Copy
    + PartialEq
    + PartialOrd
    + Default
    + fmt::Debug
    + Send
    + Sync
    + DeviceRepr
    + ValidAsZeroBits
    + sealed::Sealed
    + 'static
{
    /// The type's name at run time.
    const DTYPE: DType;
    /// Forgets the type of a slice.
    fn erase(slice: &[Self]) -> HostSlice<'_>;
    /// Forgets the type of a mutable slice.
    fn erase_mut(slice: &mut [Self]) -> HostSliceMut<'_>;
    /// Recovers the type of a slice; `None` where it was another.
    fn recover<'a>(slice: &HostSlice<'a>) -> Option<&'a [Self]>;
    /// Recovers the type of a mutable slice; `None` where it was another.
    fn recover_mut(slice: HostSliceMut<'_>) -> Option<&mut [Self]>;
    /// The value as a scalar argument.
    fn to_scalar(self) -> Scalar;
    /// The value of a scalar argument; `None` where it has another type.
    fn from_scalar(scalar: Scalar) -> Option<Self>;
}

macro_rules! elements {
    ($($variant:ident $rust:ty, $name:literal;)*) => {
        /// An element type at run time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum DType { $($variant),* }

        impl DType {
            /// The name that the registry uses, such as `f32`.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name),* }
            }

            /// Bytes of one element.
            pub const fn size(self) -> usize {
                match self { $(DType::$variant => size_of::<$rust>()),* }
            }
        }

        /// A slice of host memory whose element type is known at run time only.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs)]
        pub enum HostSlice<'a> { $($variant(&'a [$rust])),* }

        /// A mutable slice of host memory whose element type is known at run time only.
        #[derive(Debug)]
        #[allow(missing_docs)]
        pub enum HostSliceMut<'a> { $($variant(&'a mut [$rust])),* }

        impl HostSlice<'_> {
            /// The address of its first element.
            pub fn address(&self) -> usize {
                match self { $(HostSlice::$variant(slice) => slice.as_ptr() as usize),* }
            }
        }

        impl HostSliceMut<'_> {
            /// The same slice, borrowed for one more use before the next.
            pub(crate) fn reborrow(&mut self) -> HostSliceMut<'_> {
                match self { $(HostSliceMut::$variant(slice) => HostSliceMut::$variant(slice)),* }
            }

            /// The address of its first element.
            pub fn address(&self) -> usize {
                match self { $(HostSliceMut::$variant(slice) => slice.as_ptr() as usize),* }
            }
        }

        /// One value of any element type.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Scalar { $($variant($rust)),* }

        impl Scalar {
            /// Its type.
            pub const fn dtype(self) -> DType {
                match self { $(Scalar::$variant(_) => DType::$variant),* }
            }
        }

        $(
            impl sealed::Sealed for $rust {}

            impl Element for $rust {
                const DTYPE: DType = DType::$variant;

                fn erase(slice: &[Self]) -> HostSlice<'_> {
                    HostSlice::$variant(slice)
                }

                fn erase_mut(slice: &mut [Self]) -> HostSliceMut<'_> {
                    HostSliceMut::$variant(slice)
                }

                fn recover<'a>(slice: &HostSlice<'a>) -> Option<&'a [Self]> {
                    match slice { HostSlice::$variant(slice) => Some(slice), _ => None }
                }

                fn recover_mut(slice: HostSliceMut<'_>) -> Option<&mut [Self]> {
                    match slice { HostSliceMut::$variant(slice) => Some(slice), _ => None }
                }

                fn to_scalar(self) -> Scalar {
                    Scalar::$variant(self)
                }

                fn from_scalar(scalar: Scalar) -> Option<Self> {
                    match scalar { Scalar::$variant(value) => Some(value), _ => None }
                }
            }
        )*
    };
}

elements! {
    Bool bool, "bool";
    I8 i8, "i8";
    I16 i16, "i16";
    I32 i32, "i32";
    I64 i64, "i64";
    U8 u8, "u8";
    U16 u16, "u16";
    U32 u32, "u32";
    U64 u64, "u64";
    F16 f16, "f16";
    BF16 bf16, "bf16";
    F32 f32, "f32";
    F64 f64, "f64";
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Scalar {
    /// The bits of the value in the low bytes, as a kernel's parameter slot holds them.
    pub fn bits(self) -> u64 {
        match self {
            Scalar::Bool(value) => value.into(),
            Scalar::I8(value) => u64::from(value as u8),
            Scalar::I16(value) => u64::from(value as u16),
            Scalar::I32(value) => u64::from(value as u32),
            Scalar::I64(value) => value as u64,
            Scalar::U8(value) => value.into(),
            Scalar::U16(value) => value.into(),
            Scalar::U32(value) => value.into(),
            Scalar::U64(value) => value,
            Scalar::F16(value) => value.to_bits().into(),
            Scalar::BF16(value) => value.to_bits().into(),
            Scalar::F32(value) => value.to_bits().into(),
            Scalar::F64(value) => value.to_bits(),
        }
    }

    /// The value of type `dtype` that has these bits, as [`Scalar::bits`] gives them.
    pub(crate) fn from_bits(dtype: DType, bits: u64) -> Scalar {
        match dtype {
            DType::Bool => Scalar::Bool(bits != 0),
            DType::I8 => Scalar::I8(bits as i8),
            DType::I16 => Scalar::I16(bits as i16),
            DType::I32 => Scalar::I32(bits as i32),
            DType::I64 => Scalar::I64(bits as i64),
            DType::U8 => Scalar::U8(bits as u8),
            DType::U16 => Scalar::U16(bits as u16),
            DType::U32 => Scalar::U32(bits as u32),
            DType::U64 => Scalar::U64(bits),
            DType::F16 => Scalar::F16(f16::from_bits(bits as u16)),
            DType::BF16 => Scalar::BF16(bf16::from_bits(bits as u16)),
            DType::F32 => Scalar::F32(f32::from_bits(bits as u32)),
            DType::F64 => Scalar::F64(f64::from_bits(bits)),
        }
    }

    /// The value as an integer; `None` for floating point, Booleans and what is beyond `i64`.
    pub fn as_integer(self) -> Option<i64> {
        match self {
            Scalar::I8(value) => Some(value.into()),
            Scalar::I16(value) => Some(value.into()),
            Scalar::I32(value) => Some(value.into()),
            Scalar::I64(value) => Some(value),
            Scalar::U8(value) => Some(value.into()),
            Scalar::U16(value) => Some(value.into()),
            Scalar::U32(value) => Some(value.into()),
            Scalar::U64(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// An integer as a scalar of type `dtype`; `None` where it does not fit or the type is no integer.
    pub fn from_integer(dtype: DType, value: i64) -> Option<Scalar> {
        Some(match dtype {
            DType::I8 => Scalar::I8(value.try_into().ok()?),
            DType::I16 => Scalar::I16(value.try_into().ok()?),
            DType::I32 => Scalar::I32(value.try_into().ok()?),
            DType::I64 => Scalar::I64(value),
            DType::U8 => Scalar::U8(value.try_into().ok()?),
            DType::U16 => Scalar::U16(value.try_into().ok()?),
            DType::U32 => Scalar::U32(value.try_into().ok()?),
            DType::U64 => Scalar::U64(value.try_into().ok()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_back() {
        let scalars = [
            Scalar::Bool(true),
            Scalar::I8(-3),
            Scalar::I16(-300),
            Scalar::I32(i32::MIN),
            Scalar::I64(-1),
            Scalar::U8(200),
            Scalar::U16(u16::MAX),
            Scalar::U32(u32::MAX),
            Scalar::U64(u64::MAX),
            Scalar::F16(f16::from_f32(-1.5)),
            Scalar::BF16(bf16::from_f32(2.5)),
            Scalar::F32(-0.1),
            Scalar::F64(f64::MIN_POSITIVE),
        ];
        for scalar in scalars {
            assert_eq!(Scalar::from_bits(scalar.dtype(), scalar.bits()), scalar);
        }
    }
}
