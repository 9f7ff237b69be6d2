//! `tidelock show KERNEL`: one kernel's signature, its arms and what was compiled of it, each with its place.

mod signature;
mod text;

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use crate::kernels;
use crate::output::{self, Format};
use signature::Signature;

/// Show a kernel's signature, both arms and all variants
#[derive(Args)]
pub struct Arguments {
    /// Name of the kernel
    kernel: String,
    /// How it is printed
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

impl Arguments {
    /// Prints the signature.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let signature = Signature::new(kernels::find(&self.kernel)?);
        match self.format {
            Format::Json => output::json(out, &signature)?,
            Format::Table => text::print(out, &signature)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
