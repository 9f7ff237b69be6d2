//! Addresses: elements are aligned, and nothing that is written overlaps anything else.

use crate::check::PerParam;
use crate::element::DType;
use crate::error::{Error, Result};
use crate::kernel::{Access, Kernel, Param, ParamKind};
use crate::layout::Layout;

/// The bytes of the tensors that hold any: of those that are written, and of the others.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    written: PerParam<Extent>,
    read: PerParam<Extent>,
}

/// The bytes of one tensor, from its first to one past its last.
#[derive(Clone, Copy, Debug)]
struct Extent {
    start: u64,
    end: u64,
    param: usize,
    dtype: DType,
}

impl Extent {
    fn is_misplaced(&self) -> bool {
        self.start == 0 || !self.start.is_multiple_of(self.dtype.size() as u64)
    }

    fn overlaps(&self, other: &Extent) -> bool {
        (self.start < other.end) & (other.start < self.end)
    }
}

impl Extents {
    /// Adds the tensor that is parameter `index` and begins at `address`.
    #[inline]
    pub(crate) fn add(&mut self, index: usize, param: &Param, dtype: DType, layout: Layout, address: u64) {
        let bytes = (layout.span() * dtype.size()) as u64;
        if bytes > 0 {
            let extent = Extent { start: address, end: address.saturating_add(bytes), param: index, dtype };
            match param.kind {
                ParamKind::Tensor { access: Access::Write | Access::Update, .. } => self.written.push(extent),
                _ => self.read.push(extent),
            }
        }
    }

    /// Checks alignment of elements and overlap with what is written.
    pub(crate) fn check(&self, kernel: &'static Kernel) -> Result<()> {
        for extents in [&self.written, &self.read] {
            for extent in extents {
                if extent.is_misplaced() {
                    return Err(misplaced(kernel, extent));
                }
            }
        }
        for (index, written) in self.written.iter().enumerate() {
            for others in [&self.written[index + 1..], &self.read] {
                for other in others {
                    if written.overlaps(other) {
                        return Err(overlapping(kernel, written, other));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cold]
fn misplaced(kernel: &'static Kernel, extent: &Extent) -> Error {
    let name = kernel.params[extent.param].name;
    if extent.start == 0 {
        return Error::argument(kernel.name, name, "memory", "a null pointer");
    }
    let expected = format!("an address aligned for {}", extent.dtype);
    Error::argument(kernel.name, name, expected, format!("{:#x}", extent.start))
}

#[cold]
fn overlapping(kernel: &'static Kernel, written: &Extent, other: &Extent) -> Error {
    let bytes = |extent: &Extent| format!("{} bytes at {:#x}", extent.end - extent.start, extent.start);
    let expected = format!("memory apart from `{}`", kernel.params[other.param].name);
    let got = format!("{}, which overlap {}", bytes(written), bytes(other));
    Error::argument(kernel.name, kernel.params[written.param].name, expected, got)
}

#[cfg(all(test, feature = "sampling"))]
mod tests {
    use super::*;
    use crate::argument::{Argument, Memory, Tensor};
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
        let mut extents = Extents::default();
        for (index, argument) in [Argument::from(tokens), logits.into()].iter().enumerate() {
            let Argument::Tensor(Tensor { dtype, layout, memory: Memory::Raw(raw) | Memory::RawMut(raw) }) = argument
            else {
                panic!("it was made of an address")
            };
            extents.add(index, &kernel.params[index], *dtype, *layout, raw.address);
        }
        extents.check(kernel)
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
