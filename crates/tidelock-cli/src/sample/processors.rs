//! What changes the logits before a token is drawn: options, and their memory on the device.

use anyhow::{bail, ensure};
use clap::Args;
use tidelock::kernels::{CountTokens, MarkTokens};
use tidelock::sampling::{BadWords, LogitBias, LogitsProcessors, MinTokens, Penalties};
use tidelock::{AsView, AsViewMut, Buffer, Device, Result};

use super::options::optional;
use super::parse::{self, Words};
use super::ragged::Ragged;

/// Options of the logits processors. Lists of ids are those of every row.
#[derive(Args)]
#[group(skip)]
#[command(next_help_heading = "Logits processors")]
pub struct Options {
    /// Ids of the prompt
    #[arg(long, value_name = "ID,..", value_delimiter = ',', value_parser = parse::token_id, allow_hyphen_values = true)]
    prompt_ids: Vec<i32>,
    /// Ids of the output so far
    #[arg(long, value_name = "ID,..", value_delimiter = ',', value_parser = parse::token_id, allow_hyphen_values = true)]
    output_ids: Vec<i32>,
    /// Divides positive logits of tokens of prompt and output, and multiplies others; 1 is none
    #[arg(long, value_name = "P,..", value_delimiter = ',', value_parser = parse::positive, allow_hyphen_values = true)]
    repetition_penalty: Option<Vec<f32>>,
    /// Is subtracted for each time that a token is in the output; 0 is none
    #[arg(long, value_name = "P,..", value_delimiter = ',', value_parser = parse::finite, allow_hyphen_values = true)]
    frequency_penalty: Option<Vec<f32>>,
    /// Is subtracted where a token is in the output; 0 is none
    #[arg(long, value_name = "P,..", value_delimiter = ',', value_parser = parse::finite, allow_hyphen_values = true)]
    presence_penalty: Option<Vec<f32>>,
    /// Words that the token must not complete, such as "12 5;7"
    #[arg(long, value_name = "WORDS", value_parser = parse::words, allow_hyphen_values = true)]
    bad_words: Option<Words>,
    /// The only tokens that may be drawn
    #[arg(long, value_name = "ID,..", value_delimiter = ',', value_parser = parse::token_id, allow_hyphen_values = true)]
    allowed_ids: Option<Vec<i32>>,
    /// Is added to the logits of tokens, such as "17:2.5,3:-1"
    #[arg(long, value_name = "ID:B,..", value_delimiter = ',', value_parser = parse::bias, allow_hyphen_values = true)]
    logit_bias: Option<Vec<(i32, f32)>>,
    /// How long the output has to be before a stop token may be drawn
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = parse::integer::<i32>, allow_hyphen_values = true)]
    #[arg(requires = "stop_ids")]
    min_tokens: Option<Vec<i32>>,
    /// Tokens that end an output
    #[arg(long, value_name = "ID,..", value_delimiter = ',', value_parser = parse::token_id, allow_hyphen_values = true)]
    #[arg(requires = "min_tokens")]
    stop_ids: Vec<i32>,
}

impl Options {
    /// Refuses ids outside the vocabulary, and penalties of nothing.
    fn check(&self, vocab_size: usize) -> anyhow::Result<()> {
        let words: Vec<i32> = self.bad_words.iter().flat_map(|words| words.0.concat()).collect();
        let biased: Vec<i32> = self.logit_bias.iter().flatten().map(|&(id, _)| id).collect();
        ids("--prompt-ids", &self.prompt_ids, vocab_size)?;
        ids("--output-ids", &self.output_ids, vocab_size)?;
        ids("--bad-words", &words, vocab_size)?;
        ids("--allowed-ids", self.allowed_ids.as_deref().unwrap_or_default(), vocab_size)?;
        ids("--logit-bias", &biased, vocab_size)?;
        ids("--stop-ids", &self.stop_ids, vocab_size)?;
        let no_output = self.output_ids.is_empty();
        if self.repetition_penalty.is_some() && no_output && self.prompt_ids.is_empty() {
            bail!("--repetition-penalty cannot be honoured: there are neither --prompt-ids nor --output-ids");
        }
        for (flag, given) in
            [("--frequency-penalty", &self.frequency_penalty), ("--presence-penalty", &self.presence_penalty)]
        {
            ensure!(given.is_none() || !no_output, "{flag} cannot be honoured: there are no --output-ids");
        }
        Ok(())
    }

    fn penalizes(&self) -> bool {
        self.repetition_penalty.is_some() || self.frequency_penalty.is_some() || self.presence_penalty.is_some()
    }
}

fn ids(flag: &str, ids: &[i32], vocab_size: usize) -> anyhow::Result<()> {
    let outside = |&&id: &&i32| !usize::try_from(id).is_ok_and(|id| id < vocab_size);
    match ids.iter().find(outside) {
        Some(id) => bail!("{flag}: expected ids from 0 to {}, got {id}", vocab_size - 1),
        None => Ok(()),
    }
}

/// The processors' memory on the device.
pub struct Processors {
    shape: [usize; 2],
    outputs: Ragged<i32>,
    allowed: Option<Buffer<i32>>,
    bad_words: Option<(Buffer<i32>, Ragged<i32>)>,
    min_tokens: Option<Stop>,
    logit_bias: Option<(Ragged<i32>, Buffer<f32>)>,
    penalties: Option<Penalized>,
}

struct Stop {
    min_tokens: Buffer<i32>,
    output_lens: Buffer<i32>,
    ids: Ragged<i32>,
    restore: Buffer<bool>,
}

struct Penalized {
    counts: Buffer<i32>,
    prompt: Buffer<i32>,
    repetition: Buffer<f32>,
    frequency: Buffer<f32>,
    presence: Buffer<f32>,
}

impl Processors {
    /// What `options` ask for, for logits of shape `[rows, vocab_size]`.
    pub fn new(options: &Options, [rows, vocab_size]: [usize; 2], device: &Device) -> anyhow::Result<Processors> {
        options.check(vocab_size)?;
        let shape = [rows, vocab_size];
        let outputs = Ragged::repeated(device, &options.output_ids, rows)?;
        let allowed = options.allowed_ids.as_ref().map(|ids| marked(ids, shape, device)).transpose()?;
        let bad_words = options.bad_words.as_ref().map(|words| bad_words(words, rows, device)).transpose()?;
        let min_tokens = optional("--min-tokens", options.min_tokens.as_deref(), rows)?;
        let min_tokens = min_tokens.map(|least| Stop::new(&least, options, device)).transpose()?;
        let logit_bias = options.logit_bias.as_ref().map(|biases| logit_bias(biases, rows, device)).transpose()?;
        let penalties = options.penalizes().then(|| Penalized::new(options, &outputs, shape, device)).transpose()?;
        Ok(Processors { shape, outputs, allowed, bad_words, min_tokens, logit_bias, penalties })
    }

    /// As the sampler takes them.
    pub fn views(&self) -> Result<LogitsProcessors<'_>> {
        let [rows, vocab_size] = self.shape;
        let words = vocab_size.div_ceil(32);
        let token_bitmask = self.allowed.as_ref().map(|bits| bits.view().matrix(rows, words)).transpose()?;
        let bad_words = self.bad_words.as_ref().map(|(ends, words)| BadWords {
            cu_bad_words: ends.view(),
            cu_bad_word_tokens: words.ends(),
            bad_word_token_ids: words.values(),
            cu_output_tokens: self.outputs.ends(),
            output_token_ids: self.outputs.values(),
        });
        let min_tokens = self.min_tokens.as_ref().map(|stop| MinTokens {
            min_tokens: stop.min_tokens.view(),
            output_lens: stop.output_lens.view(),
            stop_token_ids: stop.ids.values(),
            cu_stop_token_ids: stop.ids.ends(),
            restore_when_all_masked: stop.restore.view(),
        });
        let logit_bias = self.logit_bias.as_ref().map(|(ids, bias)| LogitBias {
            token_ids: ids.values(),
            bias: bias.view(),
            cu_logit_bias: ids.ends(),
        });
        let penalties = self.penalties.as_ref().map(|penalized| penalized.views(self.shape)).transpose()?;
        Ok(LogitsProcessors { token_bitmask, bad_words, min_tokens, logit_bias, penalties })
    }
}

/// A set of `ids` for each row, a bit a token.
fn marked(ids: &[i32], [rows, vocab_size]: [usize; 2], device: &Device) -> Result<Buffer<i32>> {
    let words = vocab_size.div_ceil(32);
    let (mut bits, initial) = (Buffer::zeros(device, rows * words)?, Buffer::zeros(device, rows)?);
    let ids = Ragged::repeated(device, ids, rows)?;
    MarkTokens {
        bitmask: bits.view_mut().matrix(rows, words)?,
        token_ids: ids.values(),
        cu_token_ids: ids.ends(),
        initial: initial.view(),
    }
    .launch(device)?;
    Ok(bits)
}

/// Where each row's words end, and the words.
fn bad_words(words: &Words, rows: usize, device: &Device) -> Result<(Buffer<i32>, Ragged<i32>)> {
    let ends: Vec<i32> = (1..=rows).map(|row| (row * words.0.len()) as i32).collect();
    let words = (0..rows).flat_map(|_| words.0.iter().map(Vec::as_slice));
    Ok((Buffer::from_slice(device, &ends)?, Ragged::new(device, words)?))
}

fn logit_bias(biases: &[(i32, f32)], rows: usize, device: &Device) -> Result<(Ragged<i32>, Buffer<f32>)> {
    let (ids, bias): (Vec<i32>, Vec<f32>) = biases.iter().copied().unzip();
    Ok((Ragged::repeated(device, &ids, rows)?, Buffer::from_slice(device, &bias.repeat(rows))?))
}

impl Stop {
    fn new(min_tokens: &[i32], options: &Options, device: &Device) -> Result<Stop> {
        let rows = min_tokens.len();
        Ok(Stop {
            min_tokens: Buffer::from_slice(device, min_tokens)?,
            output_lens: Buffer::from_slice(device, &vec![options.output_ids.len() as i32; rows])?,
            ids: Ragged::repeated(device, &options.stop_ids, rows)?,
            restore: Buffer::zeros(device, rows)?,
        })
    }
}

impl Penalized {
    fn new(
        options: &Options,
        outputs: &Ragged<i32>,
        [rows, vocab_size]: [usize; 2],
        device: &Device,
    ) -> anyhow::Result<Penalized> {
        let values = |flag, given: &Option<Vec<f32>>, none| -> anyhow::Result<Buffer<f32>> {
            let values = optional(flag, given.as_deref(), rows)?;
            Ok(Buffer::from_slice(device, &values.unwrap_or_else(|| vec![none; rows]))?)
        };
        let repetition = values("--repetition-penalty", &options.repetition_penalty, 1.0)?;
        let frequency = values("--frequency-penalty", &options.frequency_penalty, 0.0)?;
        let presence = values("--presence-penalty", &options.presence_penalty, 0.0)?;
        let mut counts = Buffer::zeros(device, rows * vocab_size)?;
        CountTokens {
            counts: counts.view_mut().matrix(rows, vocab_size)?,
            token_ids: outputs.values(),
            cu_token_ids: outputs.ends(),
            clear: Buffer::zeros(device, rows)?.view(), // the counts are 0 already
        }
        .launch(device)?;
        let prompt = marked(&options.prompt_ids, [rows, vocab_size], device)?;
        Ok(Penalized { counts, prompt, repetition, frequency, presence })
    }

    fn views(&self, [rows, vocab_size]: [usize; 2]) -> Result<Penalties<'_>> {
        Ok(Penalties {
            output_token_counts: self.counts.view().matrix(rows, vocab_size)?,
            prompt_bitmask: self.prompt.view().matrix(rows, vocab_size.div_ceil(32))?,
            repetition: self.repetition.view(),
            frequency: self.frequency.view(),
            presence: self.presence.view(),
        })
    }
}
