//! Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (Random123), and how sampling addresses
//! it.
//!
//! A random word is a pure function of a seed, a position in the sequence, a token and a purpose: the seed is the key,
//! the other three the counter. No state is kept, so neither the place in a batch nor the device can change a word.
//!
//! A counter gives four words. They serve four neighbouring tokens, one each; and one more counter serves a group of 32, of which
//! [`crate::noise`] says more.
//!
//! ```
//! // A known answer of Random123.
//! let words = tidelock::philox::philox4x32_10([0; 4], [0; 2]);
//! assert_eq!(words, [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
//! ```

/// Ten rounds of Philox4x32: four random words of a counter and a key.
#[inline(always)]
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let first = u64::from(c0) * 0xD2511F53;
        let second = u64::from(c2) * 0xCD9E8D57;
        (c0, c1) = ((second >> 32) as u32 ^ c1 ^ k0, second as u32);
        (c2, c3) = ((first >> 32) as u32 ^ c3 ^ k1, first as u32);
        k0 = k0.wrapping_add(0x9E3779B9);
        k1 = k1.wrapping_add(0xBB67AE85);
    }
    [c0, c1, c2, c3]
}

/// Blocks that are made side by side.
const BLOCKS: usize = 16;

/// Words of [`Stream::fill_high_words`].
pub const MANY: usize = 4 * BLOCKS;

const LOWER: u64 = u32::MAX as u64;

/// The random words of one request at one position, for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: [u32; 2],
    position: [u32; 2],
    purpose: u32,
}

impl Stream {
    /// Names the stream.
    #[inline(always)]
    pub fn new(seed: i64, position: i64, purpose: i32) -> Stream {
        let halves = |word: i64| [word as u32, (word >> 32) as u32];
        Stream { key: halves(seed), position: halves(position), purpose: purpose as u32 }
    }

    /// The words of tokens `4 * block` to `4 * block + 3`, all that f32 noise needs.
    #[inline(always)]
    pub fn high_words(&self, block: u32) -> [u32; 4] {
        self.words(block, self.purpose)
    }

    /// The further words of the same tokens that f64 noise needs.
    #[inline(always)]
    pub fn low_words(&self, block: u32) -> [u32; 4] {
        self.words(block, self.purpose | 0x8000_0000)
    }

    /// The words that tokens `32 * group` to `32 * group + 31` share.
    #[inline(always)]
    pub fn group_words(&self, group: u32) -> [u32; 4] {
        self.words(group, self.purpose | 0x4000_0000)
    }

    /// The high words of the tokens from `4 * block` on, as [`Stream::high_words`] has them for one block.
    #[inline(always)]
    pub fn fill_high_words(&self, block: u32, words: &mut [u32; MANY]) {
        self.fill(block, self.purpose, words);
    }

    /// The low words of the tokens from `4 * block` on, as [`Stream::low_words`] has them for one block.
    #[inline(always)]
    pub fn fill_low_words(&self, block: u32, words: &mut [u32; MANY]) {
        self.fill(block, self.purpose | 0x8000_0000, words);
    }

    /// The words that groups share from `group` on, as [`Stream::group_words`] has them for one group.
    #[inline(always)]
    pub fn fill_group_words(&self, group: u32, words: &mut [u32; MANY]) {
        self.fill(group, self.purpose | 0x4000_0000, words);
    }

    /// [`philox4x32_10`] of many blocks side by side. Each word has 64 bits, of which only the lower 32 count: what a
    /// processor multiplies, and what it multiplies them to.
    #[inline(always)]
    fn fill(&self, block: u32, purpose: u32, words: &mut [u32; MANY]) {
        let mut counters = [[0_u64; BLOCKS]; 4];
        for (lane, counter) in counters[0].iter_mut().enumerate() {
            *counter = block.wrapping_add(lane as u32).into();
        }
        counters[1] = [self.position[0].into(); BLOCKS];
        counters[2] = [self.position[1].into(); BLOCKS];
        counters[3] = [purpose.into(); BLOCKS];
        let [mut k0, mut k1] = self.key;
        for _ in 0..10 {
            let [c0, c1, c2, c3] = &mut counters;
            for lane in 0..BLOCKS {
                let first = (c0[lane] & LOWER) * 0xD2511F53;
                let second = (c2[lane] & LOWER) * 0xCD9E8D57;
                (c0[lane], c1[lane]) = (second >> 32 ^ c1[lane] ^ u64::from(k0), second);
                (c2[lane], c3[lane]) = (first >> 32 ^ c3[lane] ^ u64::from(k1), first);
            }
            k0 = k0.wrapping_add(0x9E3779B9);
            k1 = k1.wrapping_add(0xBB67AE85);
        }
        let [c0, c1, c2, c3] = &counters;
        for (lane, words) in words.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *words = [c0[lane] as u32, c1[lane] as u32, c2[lane] as u32, c3[lane] as u32];
        }
    }

    #[inline(always)]
    fn words(&self, block: u32, purpose: u32) -> [u32; 4] {
        philox4x32_10([block, self.position[0], self.position[1], purpose], self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Random123's `kat_vectors`.
    #[test]
    fn published_answers() {
        assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(philox4x32_10([u32::MAX; 4], [u32::MAX; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        assert_eq!(
            philox4x32_10([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }

    #[test]
    fn a_stream_is_its_seed_position_and_purpose() {
        let stream = Stream::new(0x299f31d0_a4093822, 0x13198a2e_85a308d3, 3);
        let key = [0xa4093822, 0x299f31d0];
        assert_eq!(stream.high_words(7), philox4x32_10([7, 0x85a308d3, 0x13198a2e, 3], key));
        assert_eq!(stream.low_words(7), philox4x32_10([7, 0x85a308d3, 0x13198a2e, 0x8000_0003], key));
        assert_eq!(stream.group_words(7), philox4x32_10([7, 0x85a308d3, 0x13198a2e, 0x4000_0003], key));
    }

    #[test]
    fn many_blocks_have_the_words_of_each() {
        let stream = Stream::new(-5, i64::MIN + 3, 4);
        for block in [0, 1, 77_000, u32::MAX - 3] {
            let mut words = [0; MANY];
            stream.fill_high_words(block, &mut words);
            let blocks = (0..BLOCKS as u32).map(|lane| block.wrapping_add(lane));
            assert_eq!(words.to_vec(), blocks.clone().flat_map(|block| stream.high_words(block)).collect::<Vec<_>>());
            stream.fill_low_words(block, &mut words);
            assert_eq!(words.to_vec(), blocks.clone().flat_map(|block| stream.low_words(block)).collect::<Vec<_>>());
            stream.fill_group_words(block, &mut words);
            assert_eq!(words.to_vec(), blocks.flat_map(|group| stream.group_words(group)).collect::<Vec<_>>());
        }
    }
}
