//! tidelock keeps a GPU kernel and its CPU fallback facing each other.
//!
//! One entry in `signatures/` says what a kernel's arguments are. The build generates an argument struct from it; the same
//! struct and the same call run the GPU arm (committed PTX) or the CPU arm (Rust), after one shared check, and both return
//! the same bits. See ARCHITECTURE.md for the way through the house and `signatures/README.md` for the registry.
//!
//! ```
//! use tidelock::{AsView, AsViewMut, Device, kernels::Argmax};
//!
//! let logits = [0.5f32, 2.0, 1.0, 7.0, -1.0, 7.0];
//! let mut tokens = [0i64; 2];
//! Argmax { output_token_ids: tokens.view_mut(), logits: logits.view().matrix(2, 3)? }.launch(&Device::Cpu)?;
//! assert_eq!(tokens, [1, 0]);
//! # Ok::<(), tidelock::Error>(())
//! ```

extern crate self as tidelock; // so that generated code reads the same here and in other crates

mod argument;
mod bound;
mod buffer;
mod call;
mod check;
#[cfg(feature = "sampling")]
mod cpu;
pub mod cubin;
mod device;
mod device_memory;
mod dispatch;
mod element;
mod error;
pub mod exact;
mod expr;
mod form;
mod functions;
#[cfg(feature = "sampling")]
mod generated;
pub mod kernel;
mod launch;
mod layout;
pub mod noise;
pub mod philox;
mod prepared;
mod purpose;
mod recent;
mod rows;
#[cfg(feature = "sampling")]
pub mod sampling;
mod uses;
mod view;

pub use argument::{Argument, Tensor};
pub use bound::Bound;
pub use buffer::Buffer;
pub use device::{CudaDevice, Device};
pub use element::{DType, Element, HostSlice, HostSliceMut, Scalar};
pub use error::{Error, Result};
#[cfg(feature = "sampling")]
pub use generated::{REGISTRY, kernels};
pub use half::{bf16, f16};
pub use kernel::Kernel;
pub use layout::Layout;
pub use prepared::Prepared;
pub use purpose::Purpose;
pub use rows::{Rows, RowsMut};
pub use view::{AsView, AsViewMut, View, ViewMut};

/// The README's example, compiled and run with the documentation's.
#[cfg(all(doctest, feature = "sampling"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// The CPU arm of a kernel, implemented on the struct that the registry generates for it.
///
/// An arm is total: it has a defined result for any values of its arguments, the same as the GPU arm's.
#[diagnostic::on_unimplemented(
    message = "the registry declares a kernel whose CPU arm `{Self}` does not exist",
    note = "write `impl CpuArm for {Self}` in src/cpu/, in the file of the kernel's family"
)]
pub trait CpuArm {
    /// Runs the kernel.
    fn run(self);
}
