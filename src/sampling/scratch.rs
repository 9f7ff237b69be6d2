//! How much memory the blocks of a GPU that look at parts of one row need to meet in: what the registry says of `scratch`.

use crate::REGISTRY;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Result;
use crate::view::{AsViewMut, ViewMut};

/// The memory in which the blocks of a GPU meet that run one kernel, owned by the caller and used again for the next launch.
///
/// ```
/// use tidelock::sampling::Scratch;
/// use tidelock::{AsView, AsViewMut, Device, kernels::Softmax};
///
/// let mut scratch = Scratch::new("softmax", 1, 2, &Device::Cpu)?;
/// let (logits, temperature, mut probs) = ([0.0f32, 0.0], [1.0f32], [0f32; 2]);
/// Softmax {
///     probs: probs.view_mut().matrix(1, 2)?,
///     scratch: scratch.rows(1)?,
///     logits: logits.view().matrix(1, 2)?,
///     temperature: temperature.view(),
/// }
/// .launch(&Device::Cpu)?;
/// assert_eq!(probs, [0.5, 0.5]);
/// # Ok::<(), tidelock::Error>(())
/// ```
#[derive(Debug)]
pub struct Scratch {
    words: usize,
    buffer: Buffer<i64>,
}

impl Scratch {
    /// Memory for launches of `kernel` with at most `max_rows` rows of `vocab_size` tokens.
    ///
    /// # Errors
    /// Where the GPU has no memory left.
    pub fn new(kernel: &str, max_rows: usize, vocab_size: usize, device: &Device) -> Result<Scratch> {
        let words = scratch_words(kernel, vocab_size);
        Ok(Scratch { words, buffer: Buffer::zeros(device, max_rows * words)? })
    }

    /// Bytes of device memory that [`Scratch::new`] takes.
    pub fn required_bytes(kernel: &str, max_rows: usize, vocab_size: usize) -> usize {
        max_rows * scratch_words(kernel, vocab_size) * size_of::<i64>()
    }

    /// What a launch with so many rows takes as its `scratch`.
    ///
    /// # Errors
    /// Where there was memory made for fewer.
    pub fn rows(&mut self, num_rows: usize) -> Result<ViewMut<'_, i64>> {
        self.buffer.view_mut().matrix(num_rows, self.words)
    }
}

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
        assert_eq!(scratch_words("top_k_top_p_sample", 129), 5 + 3864);
        assert_eq!(scratch_words("rejection_sample_from_logits", 4097), 2 * 2 + 136);
        assert_eq!([scratch_words("gumbel_sample", 1), scratch_words("gumbel_sample", 1 << 20)], [520; 2]);
        assert_eq!([scratch_words("softmax", 4096), scratch_words("softmax", 4097)], [2 + 8, 4 + 8]);
        assert_eq!([scratch_words("argmax", 1), scratch_words("no_kernel", 1)], [0; 2]);
    }
}
