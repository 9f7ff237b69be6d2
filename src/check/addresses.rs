//! Addresses: elements are aligned, nothing that is written overlaps anything else, and which promises hold.

use crate::argument::{Argument, Memory};
use crate::bound::Bound;
use crate::check::PerParam;
use crate::element::DType;
use crate::error::{Error, Result};
use crate::kernel::{Access, Kernel, Param, ParamKind};

/// The bytes of one argument: where they start, how many there are, and whether they are written. All zero for what is no
/// tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) address: u64,
    pub(crate) given: bool,
    bytes: u64,
    dtype: DType,
    written: bool,
}

impl Extent {
    /// What `argument` covers. Memory of a GPU has its address filled in later, once its owner has been asked.
    #[inline(always)] // so that its fields are written where they stay
    fn new(param: &Param, argument: &Argument<'_>) -> Extent {
        let Argument::Tensor(tensor) = argument else {
            return Extent { address: 0, given: false, bytes: 0, dtype: DType::U8, written: false };
        };
        let address = match &tensor.memory {
            Memory::Host(slice) => slice.address() as u64,
            Memory::HostMut(slice) => slice.address() as u64,
            Memory::Raw(raw) | Memory::RawMut(raw) => raw.address,
            Memory::Device(..) | Memory::DeviceMut(..) => 0,
        };
        let bytes = (tensor.layout.span() * tensor.dtype.size()) as u64;
        let written = matches!(param.kind, ParamKind::Tensor { access: Access::Write | Access::Update, .. });
        Extent { address, given: true, bytes, dtype: tensor.dtype, written }
    }

    fn overlaps(&self, other: &Extent) -> bool {
        self.bytes > 0
            && other.bytes > 0
            && self.address < other.address.saturating_add(other.bytes)
            && other.address < self.address.saturating_add(self.bytes)
    }
}

/// The bytes of each argument, by parameter.
pub(crate) type Extents = PerParam<Extent>;

/// Fills in what each of `args` covers. They are written where they stay, since copies of them would cost as much as the check.
pub(crate) fn fill(extents: &mut Extents, kernel: &Kernel, args: &[Argument<'_>]) {
    for (param, argument) in kernel.params.iter().zip(args) {
        extents.push(Extent::new(param, argument));
    }
}

/// Checks alignment of elements and overlap with what is written.
pub(crate) fn check(kernel: &'static Kernel, extents: &Extents) -> Result<()> {
    for (index, (param, extent)) in kernel.params.iter().zip(extents).enumerate() {
        if extent.bytes == 0 {
            continue;
        }
        if extent.address == 0 {
            return Err(Error::argument(kernel.name, param.name, "memory", "a null pointer"));
        }
        if !extent.address.is_multiple_of(extent.dtype.size() as u64) {
            let expected = format!("an address aligned for {}", extent.dtype);
            return Err(Error::argument(kernel.name, param.name, expected, format!("{:#x}", extent.address)));
        }
        if !extent.written {
            continue;
        }
        for (other_index, other) in extents.iter().enumerate() {
            // A pair of written tensors is met twice; once is enough.
            if other_index != index && !(other.written && other_index < index) && extent.overlaps(other) {
                let expected = format!("memory apart from `{}`", kernel.params[other_index].name);
                let got = format!(
                    "{} bytes at {:#x}, which overlap {} bytes at {:#x}",
                    extent.bytes, extent.address, other.bytes, other.address
                );
                return Err(Error::argument(kernel.name, param.name, expected, got));
            }
        }
    }
    Ok(())
}

/// Whether everything that the aligned variant promises is divisible by 16.
pub(crate) fn divisible_by_16(kernel: &Kernel, extents: &Extents, bound: &Bound) -> bool {
    kernel.params.iter().enumerate().filter(|(_, param)| param.divisible_by_16).all(|(index, param)| match param.kind {
        // An absent tensor has no address and promises nothing.
        ParamKind::Tensor { .. } => extents[index].address.is_multiple_of(16),
        ParamKind::Struct { .. } => false,
        // An integer, as the generator has checked; its low bits say it whatever its sign.
        ParamKind::Scalar { .. } => bound.scalars[index].is_multiple_of(16),
    })
}

#[cfg(all(test, feature = "sampling"))]
mod tests {
    use super::*;
    use crate::view::{View, ViewMut};

    /// The extents of argmax over `rows` rows of 8 f32, at raw addresses that nothing is read from.
    #[allow(unsafe_code)]
    fn check_at(tokens: u64, logits: u64, rows: usize) -> Result<()> {
        let kernel = crate::REGISTRY.iter().find(|kernel| kernel.name == "argmax").expect("the registry has argmax");
        // SAFETY: the addresses are compared and never followed.
        let tokens = unsafe { ViewMut::<i64>::from_raw_device(tokens, rows, 0) };
        // SAFETY: as above.
        let logits = unsafe { View::<f32>::from_raw_device(logits, rows * 8, 0) };
        let logits = logits.matrix(rows, 8).expect("it fits");
        let args = [tokens.into(), logits.into(), Argument::Absent, Argument::Absent];
        let mut extents = Extents::new();
        fill(&mut extents, kernel, &args);
        check(kernel, &extents)
    }

    #[test]
    fn an_output_that_overlaps_an_input_is_refused() {
        assert!(check_at(0x1000, 0x1010, 2).is_ok(), "one ends where the other begins");
        let error = check_at(0x1000, 0x100c, 2).expect_err("they share four bytes");
        let expected = "kernel `argmax`, parameter `output_token_ids`: expected memory apart from `logits`, got 16 bytes at \
                        0x1000, which overlap 64 bytes at 0x100c";
        assert_eq!(error.to_string(), expected);
        assert!(check_at(0x1038, 0x1000, 2).is_err() && check_at(0x1040, 0x1000, 2).is_ok());
        assert!(check_at(0x1000, 0x1000, 0).is_ok(), "what is empty overlaps nothing");
    }

    #[test]
    fn null_and_misaligned_addresses_are_refused() {
        let error = check_at(0, 0x1000, 1).expect_err("null holds nothing");
        assert_eq!(
            error.to_string(),
            "kernel `argmax`, parameter `output_token_ids`: expected memory, got a null pointer"
        );
        let error = check_at(0x2000, 0x1002, 1).expect_err("f32 is aligned to four bytes");
        let expected = "kernel `argmax`, parameter `logits`: expected an address aligned for f32, got 0x1002";
        assert_eq!(error.to_string(), expected);
        assert!(check_at(0, 0, 0).is_ok(), "nothing needs no memory");
    }
}
