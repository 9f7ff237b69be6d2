//! What a record keeps of a case's outputs.

use sha2::{Digest, Sha256};

use crate::case::Case;
use crate::run::Output;

/// Sixteen bytes of a SHA-256 over every byte that the case wrote, in hexadecimal.
pub fn digest(case: &Case, outputs: &[Output]) -> String {
    let mut hash = Sha256::new();
    for output in outputs {
        hash.update(case.kernel.params[output.param].name);
        hash.update((output.bytes.len() as u64).to_le_bytes());
        hash.update(&output.bytes);
    }
    hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}
