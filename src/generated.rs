//! What the build made of `signatures/`: an argument struct for each kernel, what its CPU arm takes apart, and the table.
//!
//! The text lies in the build's output folder as `kernels.rs`; `tests/snapshots/` pins its public part.

/// The argument struct of each kernel of the registry, and what its CPU arm takes apart.
#[allow(clippy::all, clippy::pedantic, unused_mut)]
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

pub use kernels::REGISTRY;
