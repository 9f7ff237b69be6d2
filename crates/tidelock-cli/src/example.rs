//! The example's data, which commands read where no file is named, and the tokenizer beside data.

use std::path::{Path, PathBuf};

use anyhow::bail;

use crate::tokenizer::Tokenizer;

/// What is read when no file is named.
const DEFAULT_FILE: &str = "examples/data/speculation.safetensors";

/// The example, from where the command runs or from the checkout that it was built in.
pub fn file() -> anyhow::Result<PathBuf> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let places = [PathBuf::from(DEFAULT_FILE), checkout.join(DEFAULT_FILE)];
    match places.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => bail!("no FILE was named, and the example is neither at {DEFAULT_FILE} nor at {}", places[1].display()),
    }
}

/// The tokenizer that was named, or the one beside the data.
pub fn tokenizer(named: Option<PathBuf>, data: &Path) -> anyhow::Result<Option<Tokenizer>> {
    let beside = || Some(data.with_file_name("tokenizer.json")).filter(|path| path.is_file());
    named.or_else(beside).map(|path| Tokenizer::read(&path)).transpose()
}
