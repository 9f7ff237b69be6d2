//! Runs both arms of every kernel of a run-time table on generated cases, and keeps what a GPU gave as a record.
//!
//! Nothing here names a kernel. A [`Case`] is one way to call one, and all of it comes from the table: which types and
//! optional tensors there are, what the sizes mean, what values a tensor may hold. So a kernel that is added to a registry
//! is compared from its first day, and one that is changed is compared as changed. Other crates have tables of their own,
//! and pass them in the same way as [`tidelock::REGISTRY`].
//!
//! - [`standard`] is the fixed set of cases of a kernel; [`survey`] runs it on one device.
//! - [`record`] makes [`Record`]s of a survey on a GPU; [`verify`] compares a device with a record later, without the GPU.
//! - [`sweep`] compares two devices on as many random cases as there is time for.
//!
//! ```
//! use tidelock::Device;
//!
//! for kernel in tidelock::REGISTRY {
//!     let smallest = &tidelock_parity::standard(kernel)[0];
//!     assert!(tidelock_parity::compare(smallest, &Device::Cpu, &Device::Cpu)?.is_none());
//! }
//! # Ok::<(), tidelock_parity::Error>(())
//! ```

mod case;
mod compare;
mod digest;
mod error;
mod geometry;
mod hostile;
mod meta;
mod random;
mod record;
mod run;
mod sample;
mod sizes;
mod standard;
mod survey;
mod sweep;
#[cfg(test)]
mod testing;
mod values;
mod verify;

pub use case::{Case, Layout, Values};
pub use compare::{Difference, compare};
pub use digest::digest;
pub use error::{Error, Result};
pub use geometry::Placement;
pub use meta::{Meta, driver_version};
pub use record::{FORMAT, KernelRecord, Record, SweepRecord, VariantRecord, record};
pub use run::{Inputs, Output};
pub use standard::{COLUMNS, standard};
pub use survey::{Progress, Survey, Surveyed, survey};
pub use sweep::{KernelSummary, RandomCases, Summary, random_cases, sweep};
pub use verify::{Outcome, Verdict, verify, verify_survey};
