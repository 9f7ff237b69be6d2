//! A crate that brings kernels of its own: one registry entry each, and tidelock makes wrappers, checks and parity cases.
//!
//! ```
//! use own_kernels::kernels::AddScaled;
//! use tidelock::{AsView, AsViewMut, Device};
//!
//! let mut sums = [0f32; 2];
//! AddScaled { output: sums.view_mut(), input: [1f32, 2.0].view(), added: [10f32, 20.0].view() }
//!     .factor(0.5)
//!     .launch(&Device::Cpu)?;
//! assert_eq!(sums, [6.0, 12.0]);
//! # Ok::<(), tidelock::Error>(())
//! ```
//!
//! A struct is passed by value, and is one type in C, CUDA C++ and Rust:
//!
//! ```
//! use own_kernels::kernels::{DequantizeRows, Quantization};
//! use tidelock::{AsView, AsViewMut, Device};
//!
//! let mut numbers = [0f32; 2];
//! DequantizeRows {
//!     output: numbers.view_mut().matrix(1, 2)?,
//!     input: [5i8, -3].view().matrix(1, 2)?,
//!     ceilings: None,
//!     quantization: &Quantization { scale: 0.5, zero_point: 1, rectify: true, bias: [0.0, 0.25] },
//! }
//! .launch(&Device::Cpu)?;
//! assert_eq!(numbers, [2.0, 0.0]);
//! # Ok::<(), tidelock::Error>(())
//! ```

mod cpu;

/// What the build made of `signatures/`.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
