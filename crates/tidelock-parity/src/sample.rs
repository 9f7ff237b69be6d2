//! What the generator needs of each element type: values of every kind, and its bytes.

use tidelock::{Element, bf16, f16};

/// An element type that values can be generated for.
pub(crate) trait Sample: Element {
    /// What is written to is filled with this first: bytes 0xA5, or `true`.
    const POISON: Self;
    /// What surrounds a tensor that is read: the largest value, so that reading it would show.
    const GUARD: Self;
    /// The smallest value above 0.
    const TINY: Self;
    /// Values of (0, 1) next to its ends.
    const UNIT: (f64, f64);
    /// Values that nothing may stumble over.
    const WILD: &'static [Self];
    /// The nearest value; an integer is rounded up, and what is finite stays finite.
    fn from_float(value: f64) -> Self;
    /// The nearest value.
    fn from_integer(value: i64) -> Self;
    /// Any value of the type, from its low bits; of the NaNs there is one.
    fn from_any(bits: u64) -> Self;
    /// Appends the little-endian bytes of `values`.
    fn append_bytes(values: &[Self], bytes: &mut Vec<u8>);
    /// The value with these bytes, for reading.
    fn show(bytes: &[u8]) -> String;
}

/// `$body` with `$T` as the Rust type of `$dtype`.
macro_rules! with_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::sample::with_dtype!(@ $dtype, $T, $body, Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16,
            U32 u32, U64 u64, F16 tidelock::f16, BF16 tidelock::bf16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $T:ident, $body:expr, $($variant:ident $rust:ty),*) => {
        match $dtype { $(tidelock::DType::$variant => { type $T = $rust; $body })* }
    };
}
pub(crate) use with_dtype;

macro_rules! bytes {
    () => {
        fn append_bytes(values: &[Self], bytes: &mut Vec<u8>) {
            bytes.reserve(size_of_val(values));
            values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        }

        fn show(bytes: &[u8]) -> String {
            bytes.try_into().map_or("?".into(), |bytes| Self::from_le_bytes(bytes).to_string())
        }
    };
}

macro_rules! integers {
    ($($rust:ident)*) => { $(
        impl Sample for $rust {
            const POISON: $rust = $rust::from_le_bytes([0xA5; size_of::<$rust>()]);
            const GUARD: $rust = $rust::MAX;
            const TINY: $rust = 1;
            const UNIT: (f64, f64) = (1.0, 1.0);
            const WILD: &'static [$rust] = &[
                $rust::MIN, $rust::MIN + 1, $rust::MIN / 2, 0, 1, 2, 100, $rust::MAX / 2, $rust::MAX / 2 + 1,
                $rust::MAX - 1, $rust::MAX, !0, !1, !6,
            ];

            fn from_float(value: f64) -> $rust {
                value.ceil() as $rust
            }

            fn from_integer(value: i64) -> $rust {
                i128::from(value).clamp($rust::MIN as i128, $rust::MAX as i128) as $rust
            }

            fn from_any(bits: u64) -> $rust {
                bits as $rust
            }

            bytes!();
        }
    )* };
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($rust:ident, $bits:ty, $epsilon:expr, $wide:ty, $narrow:expr, $wild:expr;)*) => { $(
        impl Sample for $rust {
            const POISON: $rust = $rust::from_bits(<$bits>::from_le_bytes([0xA5; size_of::<$bits>()]));
            const GUARD: $rust = $rust::MAX;
            const TINY: $rust = $rust::from_bits(1);
            const UNIT: (f64, f64) = ($epsilon / 2.0, 1.0 - $epsilon / 2.0);
            const WILD: &'static [$rust] = &$wild;

            fn from_float(value: f64) -> $rust {
                let narrow: $rust = $narrow(value as $wide);
                match narrow.is_infinite() && value.is_finite() {
                    true if value > 0.0 => $rust::MAX,
                    true => $rust::MIN,
                    false => narrow,
                }
            }

            fn from_integer(value: i64) -> $rust {
                Self::from_float(value as f64)
            }

            fn from_any(bits: u64) -> $rust {
                let value = $rust::from_bits(bits as $bits);
                if value.is_nan() { $rust::NAN } else { value }
            }

            bytes!();
        }
    )* };
}

// A half float is rounded from f32 on every machine; from f64, what it would be rounded from depends on the processor.
floats! {
    f64, u64, f64::EPSILON, f64, |value| value, [
        f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, -1.0, 1.0, 5e-324, -5e-324, f64::MIN_POSITIVE, 1e-3, -1e-3,
        1e30, f64::MAX, f64::MIN,
    ];
    f32, u32, f32::EPSILON as f64, f32, |value| value, [
        f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, -1.0, 1.0, 1e-45, -1e-45, f32::MIN_POSITIVE, 1e-3, -1e-3,
        1e30, f32::MAX, f32::MIN,
    ];
    f16, u16, 0.0009765625, f32, f16::from_f32, [
        f16::NAN, f16::INFINITY, f16::NEG_INFINITY, f16::NEG_ZERO, f16::ZERO, f16::NEG_ONE, f16::ONE, f16::from_bits(1),
        f16::from_bits(0x8001), f16::MIN_POSITIVE, f16::MAX, f16::MIN,
    ];
    bf16, u16, 0.0078125, f32, bf16::from_f32, [
        bf16::NAN, bf16::INFINITY, bf16::NEG_INFINITY, bf16::NEG_ZERO, bf16::ZERO, bf16::NEG_ONE, bf16::ONE,
        bf16::from_bits(1), bf16::from_bits(0x8001), bf16::MIN_POSITIVE, bf16::MAX, bf16::MIN,
    ];
}

impl Sample for bool {
    const POISON: bool = true;
    const GUARD: bool = true;
    const TINY: bool = true;
    const UNIT: (f64, f64) = (1.0, 1.0);
    const WILD: &'static [bool] = &[false, true];

    fn from_float(value: f64) -> bool {
        value > 0.5
    }

    fn from_integer(value: i64) -> bool {
        value & 1 != 0
    }

    fn from_any(bits: u64) -> bool {
        bits & 1 != 0
    }

    fn append_bytes(values: &[bool], bytes: &mut Vec<u8>) {
        bytes.extend(values.iter().map(|&value| u8::from(value)));
    }

    fn show(bytes: &[u8]) -> String {
        bytes.first().map_or("?".into(), |&byte| (byte != 0).to_string())
    }
}
