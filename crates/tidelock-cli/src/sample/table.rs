//! What was drawn, for people.

use std::io::{self, Write};

use super::report::{Count, Likely, Report, Row};
use crate::output;
use crate::precision::Precision;

/// What a row without a token is told as.
pub const NO_TOKEN: &str = "no token can be drawn";
/// Of many tokens a line shows the first ones.
const SHOWN: usize = 5;

/// Prints a line for each row, then what is to be said of all.
pub fn print(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.samples == 1 {
        single(out, report)?
    } else {
        several(out, report)?
    }
    writeln!(out)?;
    writeln!(out, "device    {}", report.device)?;
    writeln!(out, "noise     {}", Precision::label(report.noise))?;
    report.logprobs_mode.map_or(Ok(()), |mode| writeln!(out, "logprobs  {mode}"))
}

/// A token a row.
fn single(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let with_text = report.rows.iter().any(|row| row.text.is_some() || row.lacks_token());
    let with_logprobs = report.logprobs_mode.is_some();
    let columns = [("row", true), ("token", true), ("text", with_text)];
    let likely = ["logprob", "rank", "most likely"].map(|name| (name, with_logprobs));
    let columns: Vec<_> = columns.into_iter().chain(likely).collect();
    let right = if with_text { [0, 1, 3, 4] } else { [0, 1, 2, 3] };
    let shown = columns.iter().filter(|column| column.1).map(|column| column.0);
    let mut table = output::table(shown, if with_logprobs { &right } else { &right[..2] });
    for row in &report.rows {
        let cells = [row.row.to_string(), row.tokens[0].to_string(), text(row)].into_iter().chain(logprobs(row));
        table.add_row(cells.zip(&columns).filter(|(_, column)| column.1).map(|(cell, _)| cell));
    }
    output::print(out, &table, "")
}

/// Many tokens a row, by how often they came up.
fn several(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let columns = ["row", "draws", "tokens", "most often", "most likely"];
    let columns = &columns[..if report.logprobs_mode.is_some() { 5 } else { 4 }];
    let mut table = output::table(columns.iter().copied(), &[0, 1, 2]);
    for row in &report.rows {
        let counts = row.counts.as_deref().unwrap_or_default();
        let (different, often) = match row.lacks_token() {
            true => (0, format!("-1, {NO_TOKEN}")),
            false => (counts.len(), list(counts, count)),
        };
        let draws = row.tokens.len();
        let cells = [row.row.to_string(), draws.to_string(), different.to_string(), often, most_likely(row)];
        table.add_row(cells.into_iter().take(columns.len()));
    }
    output::print(out, &table, "")
}

fn text(row: &Row) -> String {
    match row.text.as_ref().and_then(|text| text[0].as_ref()) {
        Some(text) => format!("{text:?}"),
        None if row.lacks_token() => NO_TOKEN.into(),
        None => "-".into(),
    }
}

fn logprobs(row: &Row) -> [String; 3] {
    let logprob = row.logprobs.as_ref().map(|values| values[0]).filter(|_| !row.lacks_token());
    let rank = row.ranks.as_ref().and_then(|values| values[0]);
    [
        logprob.map_or("-".into(), |value| format!("{value:.4}")),
        rank.map_or("-".into(), |rank| rank.to_string()),
        most_likely(row),
    ]
}

fn most_likely(row: &Row) -> String {
    list(row.top_logprobs.as_deref().unwrap_or_default(), likely)
}

fn likely(likely: &Likely) -> String {
    format!("{} {:.4}", name(likely.token, likely.text.as_ref()), likely.logprob)
}

fn count(count: &Count) -> String {
    format!("{} {}x", name(count.token, count.text.as_ref()), count.count)
}

/// A token, by its text where that is known.
fn name(token: i32, text: Option<&Option<String>>) -> String {
    text.and_then(Option::as_ref).map_or(token.to_string(), |text| format!("{text:?}"))
}

fn list<T>(items: &[T], show: fn(&T) -> String) -> String {
    let mut shown: Vec<_> = items.iter().take(SHOWN).map(show).collect();
    if items.len() > SHOWN {
        shown.push("..".into());
    }
    if shown.is_empty() { "-".into() } else { shown.join(", ") }
}
