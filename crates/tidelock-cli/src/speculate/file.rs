//! The file that a step starts from, read strictly: whatever a kernel is promised of these tensors is checked here.

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use tidelock::Device;

use super::settings;
use crate::logits::{Logits, Values};

const TENSORS: [&str; 5] = ["target_logits", "draft_logits", "bonus_logits", "draft_token_ids", "cu_num_draft_tokens"];

/// Drafted tokens of a batch and what both models say of them. The logits are on the device already.
pub struct Speculation {
    /// The target's logits, a row a drafted token.
    pub target_logits: Logits,
    /// The draft model's, where they are known.
    pub draft_logits: Option<Logits>,
    /// The target's logits after the last draft, a row a request.
    pub bonus_logits: Logits,
    /// Drafted tokens of all requests; -1 is a placeholder.
    pub draft_token_ids: Vec<i32>,
    /// Where each request's drafts end.
    pub cu_num_draft_tokens: Vec<i32>,
    /// Temperature that the drafts were drawn at.
    pub temperature: Option<f32>,
}

impl Speculation {
    /// Reads the file at `path`.
    pub fn read(path: &Path, device: &Device) -> anyhow::Result<Speculation> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Speculation::parse(&bytes, device).with_context(|| path.display().to_string())
    }

    fn parse(bytes: &[u8], device: &Device) -> anyhow::Result<Speculation> {
        let wrong = |error| anyhow!("expected a safetensors file, got one with {error}");
        let tensors = SafeTensors::deserialize(bytes).map_err(wrong)?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(wrong)?;
        let mut names = tensors.names();
        names.sort_unstable();
        if let Some(unknown) = names.iter().find(|name| !TENSORS.contains(name)) {
            bail!("tensor `{unknown}`: expected only {}", TENSORS.join(", "));
        }
        let given = |name: &str| tensors.tensor(name).map_err(|_| anyhow!("tensor `{name}`: expected it, got none"));

        let draft_token_ids = integers("draft_token_ids", &given("draft_token_ids")?)?;
        let cu_num_draft_tokens = integers("cu_num_draft_tokens", &given("cu_num_draft_tokens")?)?;
        let (num_tokens, batch_size) = (draft_token_ids.len(), cu_num_draft_tokens.len());
        cumulative(&cu_num_draft_tokens, num_tokens)?;

        let target = given("target_logits")?;
        let vocab_size = target.shape().get(1).copied().unwrap_or(0);
        let by_tokens = format!("[{num_tokens}, V]: a row for each of draft_token_ids");
        let by_target = format!("[{num_tokens}, {vocab_size}]: that of target_logits");
        let by_requests = format!(
            "[{batch_size}, {vocab_size}]: a row for each of cu_num_draft_tokens, as long as those of target_logits"
        );
        let logits = |name, view, expected, rows| logits(name, view, expected, [rows, vocab_size], device);
        let target_logits = logits("target_logits", target, by_tokens, num_tokens)?;
        let draft_logits = match names.contains(&"draft_logits") {
            true => Some(logits("draft_logits", given("draft_logits")?, by_target, num_tokens)?),
            false => None,
        };
        let bonus_logits = logits("bonus_logits", given("bonus_logits")?, by_requests, batch_size)?;
        token_ids(&draft_token_ids, vocab_size)?;
        let temperature = metadata.metadata().as_ref().and_then(|metadata| metadata.get("temperature"));
        let temperature = temperature.map(|text| settings::temperature(text)).transpose();
        let temperature = temperature.map_err(|error| anyhow!("metadata `temperature`: {error}"))?;
        Ok(Speculation { target_logits, draft_logits, bonus_logits, draft_token_ids, cu_num_draft_tokens, temperature })
    }

    /// The drafted tokens of each request.
    pub fn drafted(&self) -> Vec<Vec<i32>> {
        self.requests().into_iter().map(|tokens| self.draft_token_ids[tokens].to_vec()).collect()
    }

    /// Which of the drafted tokens each request has.
    pub fn requests(&self) -> Vec<Range<usize>> {
        let ends = self.cu_num_draft_tokens.iter().map(|&end| end as usize);
        ends.scan(0, |start, end| Some(std::mem::replace(start, end)..end)).collect()
    }

    /// The most drafts that a request has.
    pub fn max_spec_len(&self) -> usize {
        self.requests().iter().map(Range::len).max().unwrap_or(0)
    }
}

fn integers(name: &str, view: &TensorView<'_>) -> anyhow::Result<Vec<i32>> {
    ensure!(view.dtype() == Dtype::I32, "tensor `{name}`: expected type I32, got {}", view.dtype());
    ensure!(view.shape().len() == 1, "tensor `{name}`: expected one axis, got shape {:?}", view.shape());
    Ok(view.data().as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes)).collect())
}

fn logits(
    name: &str,
    view: TensorView<'_>,
    expected: String,
    shape: [usize; 2],
    device: &Device,
) -> anyhow::Result<Logits> {
    ensure!(view.shape() == shape, "tensor `{name}`: expected shape {expected}, got {:?}", view.shape());
    ensure!(shape[1] > 0, "tensor `{name}`: expected at least one token in the vocabulary, got shape {shape:?}");
    Logits::read(view.dtype(), view.data(), shape, Values::Samplable, device)
        .with_context(|| format!("tensor `{name}`"))
}

fn cumulative(ends: &[i32], num_tokens: usize) -> anyhow::Result<()> {
    let name = "tensor `cu_num_draft_tokens`";
    let Some(&last) = ends.last() else { bail!("{name}: expected at least one request, got none") };
    let mut least = 0;
    for (request, &end) in ends.iter().enumerate() {
        ensure!(
            end >= least,
            "{name}, request {request}: expected at least {least}, where its drafts begin, got {end}"
        );
        least = end;
    }
    let agrees = usize::try_from(last) == Ok(num_tokens);
    ensure!(agrees, "{name}: expected to end with {num_tokens}, the number of draft_token_ids, got {last}");
    Ok(())
}

fn token_ids(ids: &[i32], vocab_size: usize) -> anyhow::Result<()> {
    let inside = |id: i32| id == -1 || usize::try_from(id).is_ok_and(|id| id < vocab_size);
    match ids.iter().enumerate().find(|&(_, &id)| !inside(id)) {
        Some((token, id)) => {
            bail!(
                "tensor `draft_token_ids`, token {token}: expected -1 (no draft) or 0 to {}, got {id}",
                vocab_size - 1
            )
        }
        None => Ok(()),
    }
}
