//! What is timed, as data: `benches/workloads.yaml`.

use std::collections::BTreeMap;
use std::slice;

use anyhow::{anyhow, bail};
use serde::{Deserialize, Serialize};
use tidelock_codegen::expr::{self, Value};

/// The definitions that this binary was built with.
pub const DEFINITIONS: &str = include_str!("../../../../benches/workloads.yaml");

/// All workloads, and the sizes that they share.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definitions {
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// Drafted tokens of a request.
    pub drafts: usize,
    /// Logprobs of a row.
    pub top_logprobs: usize,
    /// What is timed.
    pub workloads: Vec<Workload>,
}

/// One step of a layer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// What runs.
    pub layer: Layer,
    /// The type of its logits.
    pub logits: LogitsType,
    /// The precision of its noise.
    #[serde(default)]
    pub use_fp64_gumbel: bool,
    /// Tokens kept.
    pub top_k: Option<i32>,
    /// Mass kept.
    pub top_p: Option<f32>,
    /// Batch sizes.
    pub batch: Vec<usize>,
    /// Bytes that must move, as an expression.
    bytes: String,
    /// Implementations that it is compared with.
    pub peers: Vec<String>,
    /// The goal in microseconds, by batch size.
    #[serde(default)]
    pub reach: BTreeMap<usize, f64>,
}

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    Sample,
    Argmax,
    Softmax,
    LogSoftmax,
    TopLogprobs,
    VerifyProbs,
    Verify,
}

/// The type of logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogitsType {
    F32,
    Bf16,
}

/// A workload at one batch size.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Requests.
    pub batch: usize,
    /// Drafted tokens of a request.
    pub drafts: usize,
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// Logprobs of a row.
    pub top_logprobs: usize,
    /// The goal in microseconds, where one is set for these sizes.
    pub reach: Option<f64>,
}

impl Definitions {
    /// Reads them, and sees that every expression can be evaluated.
    pub fn read(text: &str) -> anyhow::Result<Definitions> {
        let definitions: Definitions = serde_saphyr::from_str(text).map_err(|error| anyhow!("workloads: {error}"))?;
        definitions.cases(&[], &[], &[])?.iter().try_for_each(|case| case.bytes().map(drop))?;
        Ok(definitions)
    }

    /// The workloads of these names, or all, at their batch sizes or at these, at the size of the vocabulary or at each of these.
    pub fn cases(&self, names: &[String], batches: &[usize], vocab_sizes: &[usize]) -> anyhow::Result<Vec<Case<'_>>> {
        let known = |name: &&String| self.workloads.iter().all(|workload| workload.name != **name);
        if let Some(unknown) = names.iter().find(known) {
            let known: Vec<_> = self.workloads.iter().map(|workload| workload.name.as_str()).collect();
            bail!("expected a workload, that is one of {}, got `{unknown}`", known.join(", "));
        }
        let chosen = self.workloads.iter().filter(|workload| names.is_empty() || names.contains(&workload.name));
        let vocab_sizes = if vocab_sizes.is_empty() { slice::from_ref(&self.vocab_size) } else { vocab_sizes };
        let mut cases = Vec::new();
        for workload in chosen {
            for &vocab_size in vocab_sizes {
                for &batch in if batches.is_empty() { &workload.batch } else { batches } {
                    let (drafts, top_logprobs) = (self.drafts, self.top_logprobs);
                    let reach = workload.reach.get(&batch).copied().filter(|_| vocab_size == self.vocab_size);
                    cases.push(Case { workload, batch, drafts, vocab_size, top_logprobs, reach });
                }
            }
        }
        Ok(cases)
    }
}

impl Case<'_> {
    /// Rows of logits.
    pub fn rows(&self) -> usize {
        match self.workload.layer {
            Layer::Verify | Layer::VerifyProbs => self.batch * self.drafts,
            _ => self.batch,
        }
    }

    /// Bytes that must move.
    pub fn bytes(&self) -> anyhow::Result<u64> {
        let Workload { name, bytes, logits, .. } = self.workload;
        let wrong = |why: String| anyhow!("workload {name}, bytes `{bytes}`: {why}");
        let tree = expr::expression(bytes).map_err(|mistake| wrong(format!("{}; {}", mistake.label, mistake.help)))?;
        let lookup = |name: &str| match name {
            "batch" => Some(self.batch as i64),
            "rows" => Some(self.rows() as i64),
            "drafts" => Some(self.drafts as i64),
            "vocab_size" => Some(self.vocab_size as i64),
            "logit" => Some(if *logits == LogitsType::F32 { 4 } else { 2 }),
            _ => None,
        };
        match expr::evaluate(&tree.value, &lookup) {
            Value::Known(bytes @ 0..) => Ok(bytes as u64),
            Value::Unknown => Err(wrong("the names are batch, rows, drafts, vocab_size and logit".into())),
            Value::Known(_) | Value::Invalid => Err(wrong("expected a number from 0 that fits 64 bits".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_definitions_can_be_read() {
        let definitions = Definitions::read(DEFINITIONS).expect("they are right");
        let cases = definitions.cases(&["verify".into()], &[64], &[]).expect("there is one");
        assert_eq!((cases.len(), cases[0].rows()), (1, 256));
        let goals = definitions.cases(&["top-p".into()], &[1, 2], &[151_936, 9]).expect("there is one");
        let goals: Vec<_> = goals.iter().map(|case| (case.vocab_size, case.batch, case.reach)).collect();
        assert_eq!(goals, [(151_936, 1, Some(20.0)), (151_936, 2, None), (9, 1, None), (9, 2, None)]);
        assert_eq!(cases[0].bytes().expect("it was checked"), (256 + 64) * 151_936 * 4);
        let error = definitions.cases(&["verfy".into()], &[], &[]).expect_err("there is none").to_string();
        assert!(error.starts_with("expected a workload, that is one of sample-fp32, "), "{error}");
    }

    #[test]
    fn what_cannot_be_evaluated_is_refused() {
        let read = |bytes: &str, more: &str| {
            let workload =
                format!("{{name: a, layer: argmax, logits: f32, batch: [1], peers: [], bytes: {bytes}{more}}}");
            let text = format!("vocab_size: 8\ndrafts: 4\ntop_logprobs: 2\nworkloads: [{workload}]");
            Definitions::read(&text).expect_err("it is wrong").to_string()
        };
        assert_eq!(
            read("rowz * 2", ""),
            "workload a, bytes `rowz * 2`: the names are batch, rows, drafts, vocab_size and logit"
        );
        assert!(read("rows *", "").starts_with("workload a, bytes `rows *`: expected a number, a name or `(` here"));
        assert!(read("rows", ", topk: 3").contains("topk"));
    }
}
