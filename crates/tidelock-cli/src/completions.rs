//! `tidelock completions SHELL`: what a shell sources to complete commands and flags.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print the completions of a shell
///
/// For bash: `source <(tidelock completions bash)`.
#[derive(Args)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

impl Arguments {
    /// Prints the script.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        // Into memory first: clap_complete panics where its writer fails, as a closed pipe does.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Cli::command(), "tidelock", &mut script);
        out.write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
