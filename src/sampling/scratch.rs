//! How much memory the blocks of a GPU that look at parts of one row need to meet in: what the registry says of `scratch`.

use crate::REGISTRY;

/// Words (i64) of `scratch` that `kernel` needs for each row of a vocabulary of this size; 0 for a kernel without such memory.
///
/// The memory holds zeros before the first launch. A launch of rows of another vocabulary needs memory of its own.
///
/// ```
/// assert!(tidelock::sampling::scratch_words("gumbel_sample", 151_936) > 0);
/// assert_eq!(tidelock::sampling::scratch_words("argmax", 151_936), 0);
/// ```
pub fn scratch_words(kernel: &str, vocab_size: usize) -> usize {
    let kernel = REGISTRY.iter().find(|known| known.name == kernel);
    kernel.and_then(|kernel| kernel.columns("scratch", &[("vocab_size", vocab_size)])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_says_how_much() {
        assert_eq!(scratch_words("top_k_top_p_sample", 129), 5 + 3768);
        assert_eq!(scratch_words("rejection_sample_from_logits", 4097), 2 * 2 + 136);
        assert_eq!([scratch_words("gumbel_sample", 1), scratch_words("gumbel_sample", 1 << 20)], [520; 2]);
        assert_eq!([scratch_words("softmax", 1), scratch_words("no_kernel", 1)], [0; 2]);
    }
}
