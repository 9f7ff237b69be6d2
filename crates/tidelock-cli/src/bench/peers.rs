//! Other implementations of the same workloads, run by a command that is told the cases and reads the same inputs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::definition::{Case, Layer, LogitsType};
use super::flush::Flushed;
use super::inputs;

/// The name under which the cases lie beside the inputs.
const CASES: &str = "cases.json";

/// What the command is told.
#[derive(Serialize)]
struct Request<'a> {
    device: String,
    replays: usize,
    #[serde(flatten)]
    flushed: Flushed,
    cases: Vec<RequestCase<'a>>,
}

#[derive(Serialize)]
struct RequestCase<'a> {
    workload: &'a str,
    layer: Layer,
    logits: LogitsType,
    use_fp64_gumbel: bool,
    top_k: Option<i32>,
    top_p: Option<f32>,
    top_logprobs: usize,
    batch: usize,
    rows: usize,
    drafts: usize,
    vocab_size: usize,
    peers: &'a [String],
    files: BTreeMap<&'static str, String>,
}

/// What it answers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What ran, by name.
    pub versions: BTreeMap<String, String>,
    /// What was measured.
    pub results: Vec<PeerResult>,
    /// What could not run here, and why.
    pub skipped: Vec<Skipped>,
}

/// One peer at one case.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PeerResult {
    #[serde(skip_serializing)]
    pub workload: String,
    #[serde(skip_serializing)]
    pub batch: usize,
    #[serde(skip_serializing)]
    pub vocab_size: usize,
    pub peer: String,
    pub median_us: f64,
    pub p10_us: f64,
    pub p90_us: f64,
}

/// A peer that did not run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    pub workload: String,
    pub peer: String,
    pub why: String,
}

/// Runs `command` through the shell with `folder`, in which the inputs are, as its last word.
pub fn run(
    command: &str,
    folder: &Path,
    cases: &[Case<'_>],
    device: String,
    replays: usize,
    flushed: Flushed,
) -> anyhow::Result<Answer> {
    let request = Request { device, replays, flushed, cases: cases.iter().map(request).collect() };
    let path = folder.join(CASES);
    std::fs::write(&path, serde_json::to_vec_pretty(&request)?).with_context(|| path.display().to_string())?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{command} \"$0\"")).arg(folder).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = shell.spawn().and_then(|child| child.wait_with_output()).context("sh cannot be run")?;
    if !output.status.success() {
        bail!("the peers' command `{command}` failed: {}", output.status);
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("the answer of the peers' command `{command}`"))
}

fn request<'a>(case: &'a Case<'_>) -> RequestCase<'a> {
    let workload = case.workload;
    let names: &[_] = match workload.layer {
        Layer::Verify => &["logits", "draft_probs", "draft_token_ids"],
        Layer::VerifyProbs => &["target_probs", "draft_probs", "draft_token_ids"],
        _ => &["logits"],
    };
    RequestCase {
        workload: &workload.name,
        layer: workload.layer,
        logits: workload.logits,
        use_fp64_gumbel: workload.use_fp64_gumbel,
        top_k: workload.top_k,
        top_p: workload.top_p,
        top_logprobs: case.top_logprobs,
        batch: case.batch,
        rows: case.rows(),
        drafts: case.drafts,
        vocab_size: case.vocab_size,
        peers: &workload.peers,
        files: names.iter().map(|&name| (name, inputs::file(name, case))).collect(),
    }
}

impl Answer {
    /// The results for `case`.
    pub fn of(&self, case: &Case<'_>) -> Vec<PeerResult> {
        let mine = |result: &&PeerResult| {
            (&result.workload, result.batch, result.vocab_size) == (&case.workload.name, case.batch, case.vocab_size)
        };
        self.results.iter().filter(mine).cloned().collect()
    }
}
