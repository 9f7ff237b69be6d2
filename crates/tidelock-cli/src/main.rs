//! The command `tidelock`. Each command is one module: its arguments, and a `run` that writes to the given output.
//!
//! A command returns the exit code: 0 where all is well, 1 where it found something wrong. What it could not do at all is
//! an error, which is printed here and exits with 1 too (`diff` exits with 2); a wrong use of the command line is clap's, and exits with 2.

mod add_param;
mod bench;
#[cfg(feature = "bind")]
mod bind;
mod check;
mod compile;
mod completions;
mod describe;
mod diff;
mod doc;
mod example;
mod explain;
mod header;
mod import;
mod kernels;
mod list;
mod logits;
mod new;
mod output;
mod parity;
mod precision;
mod progress;
mod prove_precision;
mod record;
mod sample;
mod show;
mod speculate;
mod tokenizer;
mod words;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Keeps GPU kernels and their CPU fallbacks facing each other.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Speculate(speculate::Arguments),
    Sample(Box<sample::Arguments>), // many flags
    List(list::Arguments),
    Show(show::Arguments),
    Check(check::Arguments),
    Bench(bench::Arguments),
    Compile(compile::Arguments),
    New(new::Arguments),
    Import(import::Arguments),
    AddParam(add_param::Arguments),
    Diff(diff::Arguments),
    Header(header::Arguments),
    #[cfg(feature = "bind")]
    Bind(bind::Arguments),
    Record(record::Arguments),
    Parity(parity::Arguments),
    ProvePrecision(prove_precision::Arguments),
    Doc(doc::Arguments),
    Explain(explain::Arguments),
    Completions(completions::Arguments),
}

impl Command {
    fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        match self {
            Command::Speculate(arguments) => arguments.run(out),
            Command::Sample(arguments) => arguments.run(out),
            Command::List(arguments) => arguments.run(out),
            Command::Show(arguments) => arguments.run(out),
            Command::Check(arguments) => arguments.run(out),
            Command::Bench(arguments) => arguments.run(out),
            Command::Compile(arguments) => arguments.run(out),
            Command::New(arguments) => arguments.run(out),
            Command::Import(arguments) => arguments.run(out),
            Command::AddParam(arguments) => arguments.run(out),
            Command::Diff(arguments) => arguments.run(out),
            Command::Header(arguments) => arguments.run(out),
            #[cfg(feature = "bind")]
            Command::Bind(arguments) => arguments.run(out),
            Command::Record(arguments) => arguments.run(out),
            Command::Parity(arguments) => arguments.run(out),
            Command::ProvePrecision(arguments) => arguments.run(out),
            Command::Doc(arguments) => arguments.run(out),
            Command::Explain(arguments) => arguments.run(out),
            Command::Completions(arguments) => arguments.run(out),
        }
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let mut out = BufWriter::new(io::stdout().lock());
    let result = command.run(&mut out);
    match result.and_then(|code| Ok(out.flush().map(|()| code)?)) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS, // whoever read has read enough
        Err(error) => {
            _ = out.flush();
            _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
