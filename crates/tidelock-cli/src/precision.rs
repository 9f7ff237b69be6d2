//! The precision of noise, as it is reported.

use serde::Serialize;

/// Floating-point type of the noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Precision {
    F32,
    F64,
}

impl Precision {
    /// What `use_fp64_gumbel` asks for.
    pub fn new(use_fp64_gumbel: bool) -> Precision {
        if use_fp64_gumbel { Precision::F64 } else { Precision::F32 }
    }

    /// For people; no precision is no noise.
    pub fn label(noise: Option<Precision>) -> &'static str {
        match noise {
            None => "none, greedy",
            Some(Precision::F32) => "f32",
            Some(Precision::F64) => "f64",
        }
    }
}
