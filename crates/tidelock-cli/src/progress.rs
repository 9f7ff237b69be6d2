//! What long work says of itself, on the standard error: one changing line on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write, stderr};

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of one piece of work; it leaves the terminal clean when it is dropped.
pub struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Of work that has just begun.
    pub fn new() -> Progress {
        let style =
            ProgressStyle::with_template("{elapsed:>4} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        Progress { bar: stderr().is_terminal().then(|| ProgressBar::no_length().with_style(style)) }
    }

    /// Says what is being done.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(line.to_string()),
            None => _ = writeln!(stderr(), "{line}"),
        }
    }

    /// Says how much of `what` is done. Away from a terminal only its end is worth a line.
    pub fn say_done(&self, what: &str, done: u64, total: u64) {
        if self.bar.is_some() || done == total {
            self.say(&format!("{what}: {done} of {total}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
