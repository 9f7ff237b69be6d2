//! From a registry of kernel signatures to typed launch wrappers, checked on the way.
//!
//! The stages, each a module that knows nothing of the next:
//! 1. [`lower`] reads `signatures/*.yaml` ([`yaml`], [`expr`]) and validates it into the [`model`].
//! 2. [`plan`] says which [`variants`] to compile; [`toolchain`] runs the compiler; [`facts`] keeps what it saw.
//! 3. [`check`] holds the model against facts, PTX ([`ptx`], [`abi`]), kernel sources and CPU arms.
//! 4. [`emit`] prints Rust, with every identifier from [`names`].
//!
//! All of it works on texts; [`project`] reads the files and [`toolchain`] writes under `ptx/`. Mistakes are collected as
//! [`diagnostic`]s with spans, never thrown at the first one; nothing is generated while there is one.
//!
//! A crate with a registry of its own calls [`build`] in its build script and nothing else.

pub mod abi;
pub mod arms;
pub mod bindings;
mod build;
pub mod check;
pub mod diagnostic;
pub mod emit;
pub mod explain;
pub mod expr;
pub mod facts;
pub mod header;
mod link;
pub mod lower;
pub mod model;
pub mod names;
mod parallel;
pub mod plan;
pub mod project;
pub mod ptx;
pub mod source;
pub mod toolchain;
pub mod variants;
pub mod yaml;

pub use build::build;
pub use project::Project;
