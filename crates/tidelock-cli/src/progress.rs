//! What long work says of itself, on the standard error: one changing line on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

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

/// Work that is short enough to need no word.
const SHORT: Duration = Duration::from_millis(500);

/// A bar for work whose amount is known: on a terminal, and only when the work turns out to be long.
pub struct Counted {
    what: &'static str,
    total: u64,
    start: Instant,
    bar: Option<ProgressBar>,
}

impl Counted {
    /// Of work that has just begun, `total` of `what`.
    pub fn new(what: &'static str, total: u64) -> Counted {
        Counted { what, total, start: Instant::now(), bar: None }
    }

    /// Says how much is done.
    pub fn done(&mut self, done: u64) {
        if self.bar.is_none() && self.start.elapsed() >= SHORT && stderr().is_terminal() {
            let style = ProgressStyle::with_template("{elapsed:>4} {wide_bar} {pos} of {len} {msg}, {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::new(self.total).with_style(style).with_message(self.what);
            self.bar = Some(bar.with_elapsed(self.start.elapsed()));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
