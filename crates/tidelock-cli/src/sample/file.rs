//! The file that the logits are in. Its layout is read strictly; what values it has is the kernels' matter.

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use safetensors::{Dtype, SafeTensors};
use tidelock::Device;

use super::npy;
use crate::logits::{Logits, Values};

/// The tensor that is read where none is named.
const DEFAULT_TENSOR: &str = "logits";

/// An array as a file has it.
pub struct Array<'a> {
    /// What messages call it.
    pub name: String,
    /// Type of its values.
    pub dtype: Dtype,
    /// Its axes.
    pub shape: Vec<usize>,
    /// Its values, the last axis the fastest.
    pub data: &'a [u8],
}

/// Reads the logits in the file at `path`, or a part of their rows, and copies them to the device.
pub fn read(path: &Path, tensor: Option<&str>, rows: Option<Range<usize>>, device: &Device) -> anyhow::Result<Logits> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let npy = match extension {
        Some("safetensors") => false,
        Some("npy") => true,
        _ => bail!("{}: expected a file named .safetensors or .npy", path.display()),
    };
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let logits = || {
        if npy {
            ensure!(tensor.is_none(), "--tensor cannot be honoured: the array in a .npy file has no name");
            return logits(npy::parse(&bytes)?, rows, device);
        }
        let wrong = |error| anyhow!("expected a safetensors file, got one with {error}");
        let tensors = SafeTensors::deserialize(&bytes).map_err(wrong)?;
        logits(named(&tensors, tensor.unwrap_or(DEFAULT_TENSOR))?, rows, device)
    };
    logits().with_context(|| path.display().to_string())
}

fn named<'a>(tensors: &SafeTensors<'a>, name: &str) -> anyhow::Result<Array<'a>> {
    let Ok(view) = tensors.tensor(name) else {
        let mut names = tensors.names();
        names.sort_unstable();
        let got = if names.is_empty() { "none".into() } else { format!("only {}", names.join(", ")) };
        bail!("tensor `{name}`: expected it, or another by --tensor NAME, got {got}");
    };
    let (dtype, shape) = (view.dtype(), view.shape().to_vec());
    Ok(Array { name: format!("tensor `{name}`"), dtype, shape, data: view.data() })
}

fn logits(array: Array<'_>, part: Option<Range<usize>>, device: &Device) -> anyhow::Result<Logits> {
    let Array { name, dtype, shape, data } = array;
    let [rows, vocab_size] = shape[..] else { bail!("{name}: expected shape [rows, V], got {shape:?}") };
    ensure!(rows > 0 && vocab_size > 0, "{name}: expected at least one row and one token, got shape {shape:?}");
    let part = part.unwrap_or(0..rows);
    ensure!(part.end <= rows, "--rows: expected a part of 0..{rows}, got {part:?}");
    let row_bytes = data.len() / rows;
    let data = &data[part.start * row_bytes..part.end * row_bytes];
    Logits::read(dtype, data, [part.len(), vocab_size], Values::Any, device).context(name)
}
