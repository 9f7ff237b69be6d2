//! How a compiler lays out the parameters of a kernel, by its version.
//!
//! Measured with the compilers themselves. A version that nobody has measured is refused, because its hidden parameters
//! may be others and a launch would pass too few.

use crate::ptx::SlotKind;

/// The oldest and the newest Triton whose layout is known, as (major, minor).
pub const KNOWN_TRITON: [(u32, u32); 2] = [(2, 0), (3, 9)];

/// What a compiler adds to a kernel's own parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Pointers at the end that no source mentions: Triton's global scratch, then its profile scratch.
    pub hidden: usize,
    /// Every kernel carries `.reqntid`.
    pub requires_reqntid: bool,
    /// Pointers are declared with `.ptr`.
    pub marks_pointers: bool,
}

/// The layout of CUDA C++ compiled by nvcc: nothing is added.
pub const NVCC: Profile = Profile { hidden: 0, requires_reqntid: false, marks_pointers: false };

/// The layout of Triton `version`, such as `3.6.0`; otherwise why it is refused.
pub fn triton(version: &str) -> Result<Profile, String> {
    let [oldest, newest] = KNOWN_TRITON;
    let known = format!("tidelock knows Triton {}.{} to {}.{}", oldest.0, oldest.1, newest.0, newest.1);
    let shown: String = version.chars().take(40).collect();
    let Some(parsed) = major_minor(version) else {
        return Err(format!("`{shown}` is not a version of Triton; {known}"));
    };
    let hidden = match parsed {
        version if version < oldest || version > newest => {
            return Err(format!("the parameter layout of Triton {shown} is not known; {known}"));
        }
        version if version < (3, 3) => 0,
        (3, 3) => 1,
        _ => 2,
    };
    // Whether older versions mark pointers nobody has measured, so both are taken from them.
    Ok(Profile { hidden, requires_reqntid: parsed >= (3, 3), marks_pointers: parsed >= (3, 6) })
}

/// The first two numbers of a version of three, with or without a local suffix (`3.6.0+cu128`).
fn major_minor(version: &str) -> Option<(u32, u32)> {
    let release = version.split('+').next()?;
    let mut numbers = release.split('.').map(|part| part.parse::<u32>().ok());
    let parsed = (numbers.next()??, numbers.next()??);
    numbers.next()??;
    numbers.next().is_none().then_some(parsed)
}

/// What hidden parameter `index`, counted from 0, is for.
pub fn hidden_name(index: usize) -> &'static str {
    match index {
        0 => "global scratch",
        _ => "profile scratch",
    }
}

/// The slot of an argument of Triton type `name` (`*fp32`, `i64`); `None` if there is no such type.
pub fn slot(name: &str) -> Option<SlotKind> {
    let element = name.trim_start_matches('*');
    let kind = match element {
        // One bit travels as a byte; the sign of an integer is lost.
        "i1" | "u1" | "i8" | "u8" => SlotKind::Integer(8),
        "i16" | "u16" => SlotKind::Integer(16),
        "i32" | "u32" => SlotKind::Integer(32),
        "i64" | "u64" => SlotKind::Integer(64),
        "fp16" | "bf16" => SlotKind::Bytes { size: 2, align: 2 },
        "fp32" => SlotKind::Float(32),
        "fp64" => SlotKind::Float(64),
        _ => return None,
    };
    Some(if element.len() < name.len() { SlotKind::Pointer } else { kind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DType;

    #[test]
    fn hidden_parameters_follow_the_version() {
        let hidden = |version| triton(version).map(|profile| profile.hidden);
        assert_eq!(hidden("2.1.0"), Ok(0));
        assert_eq!(hidden("3.2.0"), Ok(0));
        assert_eq!(hidden("3.3.1"), Ok(1));
        assert_eq!(hidden("3.4.0"), Ok(2));
        assert_eq!(hidden("3.6.0+cu128"), Ok(2));
        assert_eq!(hidden("3.9.9"), Ok(2));
    }

    #[test]
    fn unknown_versions_are_refused() {
        for version in ["3.10.0", "4.0.0", "1.9.0"] {
            assert!(triton(version).unwrap_err().contains("is not known"), "{version}");
        }
        for version in ["", "3", "3.6", "3.6.0rc1", "3.x.0", "3.6.0.1", "99999999999.0.0", "-3.6.0"] {
            assert!(triton(version).unwrap_err().contains("is not a version"), "{version}");
        }
    }

    #[test]
    fn every_type_of_the_registry_has_a_slot() {
        for (dtype, _, triton, size) in DType::ALL {
            assert_eq!(slot(triton).map(SlotKind::size), Some(size as u64), "{dtype:?}");
            assert_eq!(slot(&format!("*{triton}")), Some(SlotKind::Pointer));
        }
        assert_eq!(slot("**i32"), Some(SlotKind::Pointer));
        assert_eq!(slot("*"), None);
        assert_eq!(slot("fp8e5"), None);
    }
}
