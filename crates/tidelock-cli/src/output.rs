//! What every command's output has in common: its format, JSON, tables, and whether it may be coloured.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// How a command prints what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[value(alias = "text")]
    Table,
    /// For programs; the order of the keys is stable.
    Json,
}

/// `value` as JSON on lines of its own.
pub fn json(out: &mut impl Write, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(writeln!(out, "{text}")?)
}

/// A table without rules between its columns, the numbered ones aligned to the right.
pub fn table<'a>(header: impl IntoIterator<Item = &'a str>, right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if right.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The lines of `table`, each after `indent`, without spaces at their ends.
pub fn print(out: &mut impl Write, table: &Table, indent: &str) -> io::Result<()> {
    table.lines().try_for_each(|line| writeln!(out, "{indent}{}", line.trim_end()))
}

/// Whether what goes to `stream` may be coloured: it is a terminal, and its user did not say no (<https://no-color.org>).
pub fn colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// `count` and what it counts: `1 variant`, `3 variants`.
pub fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
