//! What each row is drawn with: one value for all, or one a row.

use anyhow::ensure;
use clap::Args;

use super::parse;

/// Options with a value for every row.
#[derive(Args)]
#[group(skip)]
#[command(next_help_heading = "Each one value for all rows, or one a row")]
pub struct Options {
    /// Temperature; 0 is greedy [default: 1]
    #[arg(long, value_name = "T,..", value_delimiter = ',', value_parser = parse::temperature, allow_hyphen_values = true)]
    temperature: Option<Vec<f32>>,
    /// Take the most likely token; the same as --temperature 0
    #[arg(long, conflicts_with = "temperature")]
    greedy: bool,
    /// Keep the K most likely tokens; all for 0 or less
    #[arg(long, value_name = "K,..", value_delimiter = ',', value_parser = parse::integer::<i32>, allow_hyphen_values = true)]
    top_k: Option<Vec<i32>>,
    /// Keep the fewest tokens that have this mass; all for 1 or more, one for 0 or less
    #[arg(long, value_name = "P,..", value_delimiter = ',', value_parser = parse::number, allow_hyphen_values = true)]
    top_p: Option<Vec<f32>>,
    /// Keep tokens with at least this part of the largest probability; all for 0 or less
    #[arg(long, value_name = "P,..", value_delimiter = ',', value_parser = parse::number, allow_hyphen_values = true)]
    min_p: Option<Vec<f32>>,
    /// Seed; of a single one each row has its own, the seed plus the row's index in the file [default: 0]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = parse::integer::<i64>, allow_hyphen_values = true)]
    seed: Option<Vec<i64>>,
    /// Position of the token in its request's sequence [default: 0]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = parse::integer::<i64>, allow_hyphen_values = true)]
    position: Option<Vec<i64>>,
}

/// What the rows are drawn with, nothing left open: a value a row.
pub struct Settings {
    /// Temperature; 0 is greedy.
    pub temperature: Vec<f32>,
    /// Tokens to keep.
    pub top_k: Option<Vec<i32>>,
    /// Mass to keep.
    pub top_p: Option<Vec<f32>>,
    /// Least part of the largest probability.
    pub min_p: Option<Vec<f32>>,
    /// Seeds.
    pub seeds: Vec<i64>,
    /// Position of the first draw.
    pub positions: Vec<i64>,
}

impl Settings {
    /// For `rows` rows, the first of which is `first_row` of the file.
    pub fn new(options: &Options, first_row: usize, rows: usize) -> anyhow::Result<Settings> {
        let seeds = match options.seed.as_deref().unwrap_or(&[0]) {
            &[seed] => (first_row as i64..).take(rows).map(|row| seed.wrapping_add(row)).collect(),
            seeds => per_row("--seed", seeds, rows)?,
        };
        let temperature = if options.greedy { &[0.0] } else { options.temperature.as_deref().unwrap_or(&[1.0]) };
        Ok(Settings {
            temperature: per_row("--temperature", temperature, rows)?,
            top_k: optional("--top-k", options.top_k.as_deref(), rows)?,
            top_p: optional("--top-p", options.top_p.as_deref(), rows)?,
            min_p: optional("--min-p", options.min_p.as_deref(), rows)?,
            seeds,
            positions: per_row("--position", options.position.as_deref().unwrap_or(&[0]), rows)?,
        })
    }

    /// Whether no row needs noise.
    pub fn all_greedy(&self) -> bool {
        self.temperature.iter().all(|&temperature| temperature == 0.0)
    }
}

/// A value for each row, of one for all or of as many as there are rows.
pub fn per_row<T: Copy>(flag: &str, values: &[T], rows: usize) -> anyhow::Result<Vec<T>> {
    if let &[value] = values {
        return Ok(vec![value; rows]);
    }
    ensure!(values.len() == rows, "{flag}: expected 1 value or {rows}, one a row, got {}", values.len());
    Ok(values.to_vec())
}

/// The same, where the flag was given.
pub fn optional<T: Copy>(flag: &str, values: Option<&[T]>, rows: usize) -> anyhow::Result<Option<Vec<T>>> {
    values.map(|values| per_row(flag, values, rows)).transpose()
}
