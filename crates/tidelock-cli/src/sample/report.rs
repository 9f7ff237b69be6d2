//! What was drawn, as it is printed in JSON: every key in this order. JSON has no infinity, so such a number is null.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use tidelock::Device;

use super::draw::Drawn;
use super::options::Settings;
use crate::precision::Precision;
use crate::tokenizer::Tokenizer;

/// The draws of all rows.
#[derive(Serialize)]
pub struct Report {
    /// Where the logits came from.
    pub file: String,
    /// Where the kernels ran.
    pub device: String,
    /// Type of the noise; nothing where none is drawn.
    pub noise: Option<Precision>,
    /// `raw` or `processed`; nothing where no logprobs were asked for.
    pub logprobs_mode: Option<&'static str>,
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// Draws of each row.
    pub samples: usize,
    /// What came of each row.
    pub rows: Vec<Row>,
    /// Rows in which no token can be drawn.
    pub rows_without_token: usize,
}

/// The draws of one row.
#[derive(Serialize)]
pub struct Row {
    /// Its index in the file.
    pub row: usize,
    /// Its seed.
    pub seed: i64,
    /// Position of its first draw.
    pub position: i64,
    /// Its temperature.
    pub temperature: f32,
    /// Tokens that were kept.
    pub top_k: Option<i32>,
    /// Mass that was kept.
    pub top_p: Option<f32>,
    /// Least part of the largest probability that was kept.
    pub min_p: Option<f32>,
    /// The tokens drawn; -1 where none can be.
    pub tokens: Vec<i32>,
    /// Their text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Vec<Option<String>>>,
    /// Their logprobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<f32>>,
    /// Their ranks; nothing for no token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Vec<Option<i32>>>,
    /// The most likely tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_logprobs: Option<Vec<Likely>>,
    /// How often each token came up, the most frequent first, where a row was drawn from several times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Vec<Count>>,
}

/// A likely token.
#[derive(Serialize)]
#[allow(missing_docs)]
pub struct Likely {
    pub token: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Option<String>>,
    pub logprob: f32,
}

/// How often a token came up.
#[derive(Serialize)]
#[allow(missing_docs)]
pub struct Count {
    pub token: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Option<String>>,
    pub count: u64,
}

/// What rows are made of.
pub struct Parts<'a> {
    /// What they were drawn with.
    pub settings: &'a Settings,
    /// What came of them.
    pub drawn: &'a Drawn,
    /// The first one's index in the file.
    pub first_row: usize,
    /// The text of tokens.
    pub tokenizer: Option<&'a Tokenizer>,
}

impl Report {
    /// Of draws from the file at `path`.
    pub fn new(
        path: &Path,
        device: &Device,
        noise: Option<Precision>,
        logprobs_mode: Option<&'static str>,
        vocab_size: usize,
        rows: Vec<Row>,
    ) -> Report {
        Report {
            file: path.display().to_string(),
            device: device.to_string(),
            noise,
            logprobs_mode,
            vocab_size,
            samples: rows.first().map_or(0, |row| row.tokens.len()),
            rows_without_token: rows.iter().filter(|row| row.lacks_token()).count(),
            rows,
        }
    }
}

impl Row {
    /// Whether no token can be drawn.
    pub fn lacks_token(&self) -> bool {
        self.tokens.contains(&-1)
    }
}

impl Parts<'_> {
    /// Every row.
    pub fn rows(&self) -> Vec<Row> {
        (0..self.settings.seeds.len()).map(|row| self.row(row)).collect()
    }

    fn row(&self, row: usize) -> Row {
        let Parts { settings, drawn, first_row, tokenizer } = self;
        let tokens: Vec<i32> = self.of_row(&drawn.tokens, row).collect();
        let with_logprobs = !drawn.logprobs.is_empty();
        let rank = |rank: i32| (rank > 0).then_some(rank);
        Row {
            row: first_row + row,
            seed: settings.seeds[row],
            position: settings.positions[row],
            temperature: settings.temperature[row],
            top_k: settings.top_k.as_ref().map(|values| values[row]),
            top_p: settings.top_p.as_ref().map(|values| values[row]),
            min_p: settings.min_p.as_ref().map(|values| values[row]),
            text: tokenizer.map(|tokenizer| tokens.iter().map(|&id| tokenizer.text(id)).collect()),
            logprobs: with_logprobs.then(|| self.of_row(&drawn.logprobs, row).collect()),
            ranks: with_logprobs.then(|| self.of_row(&drawn.ranks, row).map(rank).collect()),
            top_logprobs: with_logprobs.then(|| self.top_logprobs(row)),
            counts: (tokens.len() > 1).then(|| self.counts(&tokens)),
            tokens,
        }
    }

    /// The values of one row in every draw.
    fn of_row<T: Copy>(&self, values: &[T], row: usize) -> impl Iterator<Item = T> {
        values.iter().copied().skip(row).step_by(self.settings.seeds.len())
    }

    fn text(&self, id: i32) -> Option<Option<String>> {
        self.tokenizer.map(|tokenizer| tokenizer.text(id))
    }

    /// A row with fewer tokens than were asked for has -1 after them.
    fn top_logprobs(&self, row: usize) -> Vec<Likely> {
        let count = self.drawn.top_tokens.len() / self.settings.seeds.len();
        let place = row * count..(row + 1) * count;
        let tokens = self.drawn.top_tokens[place.clone()].iter().zip(&self.drawn.top_logprobs[place]);
        let tokens = tokens.take_while(|&(&token, _)| token >= 0);
        tokens.map(|(&token, &logprob)| Likely { token, text: self.text(token), logprob }).collect()
    }

    fn counts(&self, tokens: &[i32]) -> Vec<Count> {
        let mut counts: HashMap<i32, u64> = HashMap::new();
        tokens.iter().for_each(|&token| *counts.entry(token).or_default() += 1);
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|&(token, count)| (std::cmp::Reverse(count), token));
        counts.into_iter().map(|(token, count)| Count { token, text: self.text(token), count }).collect()
    }
}
