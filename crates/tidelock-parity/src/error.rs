//! One opaque error. Its text says which file, or which kernel and case, and what went wrong there.

use std::fmt;

use crate::case::Case;

/// Why a case could not be run, or a record could not be read or made.
#[derive(Debug)]
pub struct Error(String);

/// The crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error(message.into())
    }

    pub(crate) fn case(case: &Case, message: impl fmt::Display) -> Error {
        Error(format!("kernel `{}`, case {}: {message}", case.kernel.name, case.id()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
