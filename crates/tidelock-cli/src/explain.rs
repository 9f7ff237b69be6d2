//! `tidelock explain CODE`: what an error of the registry means, and what to do about it.

use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use tidelock_codegen::explain::{self, Explanation};

/// Explain an error's code, such as TL0210
#[derive(Args)]
pub struct Arguments {
    /// The code
    code: String,
}

impl Arguments {
    /// Prints the explanation.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let code = self.code.to_uppercase();
        let Some(Explanation { title, text }) = explain::explain(&code) else {
            bail!("there is no code `{code}`; there are {}", explain::codes().collect::<Vec<_>>().join(", "))
        };
        writeln!(out, "{code}: {title}\n\n{}", text.trim_end())?;
        Ok(ExitCode::SUCCESS)
    }
}
