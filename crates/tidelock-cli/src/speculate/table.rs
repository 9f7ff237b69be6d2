//! What came of a step, for people.

use std::io::{self, Write};

use super::report::{Report, Request, Timing};
use crate::output;
use crate::precision::Precision;

/// Prints a line for each request, then what is to be said of all.
pub fn print(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let with_text = report.requests.iter().any(|request| request.text.is_some());
    let columns = ["request", "drafted", "accepted", "recovered", "bonus", "drafted text", "text of the step"];
    let columns = &columns[..if with_text { 7 } else { 5 }];
    let mut table = output::table(columns.iter().copied(), &[0, 3, 4]);
    for request in &report.requests {
        table.add_row(row(request).into_iter().take(columns.len()));
    }
    output::print(out, &table, "")?;
    writeln!(out)?;
    let rate = report.acceptance_rate.map_or("-".into(), |rate| format!("{rate:.3}"));
    writeln!(out, "acceptance rate  {rate}, {} of {} drafted tokens", report.accepted, report.drafted)?;
    writeln!(out, "mean tokens      {:.3} a request", report.mean_tokens)?;
    writeln!(out, "device           {}", report.device)?;
    writeln!(out, "noise            {}", Precision::label(report.noise))?;
    writeln!(out, "seed             {}", report.seed)?;
    writeln!(out, "time             {}", time(&report.time))
}

fn row(request: &Request) -> [String; 7] {
    let token = |token: Option<i32>| token.map_or("-".into(), |token| token.to_string());
    let ids: Vec<_> = request.drafted.iter().map(i32::to_string).collect();
    [
        request.request.to_string(),
        ids.join(" "),
        format!("{} of {}", request.accepted, request.drafted.len()),
        token(request.recovered),
        token(request.bonus),
        text(request.drafted_text.as_deref()),
        text(request.text.as_deref()),
    ]
}

/// Each token in quotes, with line breaks and the like escaped; `-` for one that has no text.
fn text(tokens: Option<&[Option<String>]>) -> String {
    let token = |token: &Option<String>| token.as_ref().map_or("-".into(), |text| format!("{text:?}"));
    tokens.unwrap_or_default().iter().map(token).collect::<Vec<_>>().join(" ")
}

fn time(time: &Timing) -> String {
    let what = match time.runs {
        1 => "1 run, which loads the kernels too".into(),
        runs => format!("median of {runs} runs"),
    };
    format!("{:.3} ms by the host's clock, launches and synchronisation ({what})", time.median_ms)
}
