//! The Gumbel-max race over one row: which token has the largest logit + temperature * noise, the sum taken exactly.
//!
//! What the kernel does for every token, is done here only for those that the high word of their noise lets win: a few
//! of a hundred thousand. So f64 noise costs hardly more than f32 noise. High words and the bound that decides are
//! calculated for many tokens side by side.

use multiversion::multiversion;
use rayon::prelude::*;

use super::selection::Kept;
use super::{Logit, TILE};
use crate::noise::{gumbel_bound, gumbel_f32, gumbel_f64};
use crate::philox::{MANY, Stream};

/// What Gumbel noise can be drawn as.
pub trait Gumbel: Copy + Into<f64> + Send + Sync {
    /// Noise that is above all other.
    const INFINITY: Self;
    /// Noise that is below all other.
    const NEG_INFINITY: Self;
    /// The noise of token `4 * block + lane`, whose high word is `high`.
    fn draw(stream: &Stream, block: u32, lane: usize, high: u32) -> Self;
}

impl Gumbel for f32 {
    const INFINITY: f32 = f32::INFINITY;
    const NEG_INFINITY: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn draw(_: &Stream, _: u32, _: usize, high: u32) -> f32 {
        gumbel_f32(high)
    }
}

impl Gumbel for f64 {
    const INFINITY: f64 = f64::INFINITY;
    const NEG_INFINITY: f64 = f64::NEG_INFINITY;

    #[inline(always)]
    fn draw(stream: &Stream, block: u32, lane: usize, high: u32) -> f64 {
        gumbel_f64(high, stream.low_words(block)[lane])
    }
}

/// What one row draws: its token, -1 where it has none, with its logit and its noise.
pub(super) type Drawn<N> = (i32, f32, N);

/// What a row without a distribution draws, other than for want of a token above -inf.
pub(super) fn invalid<N: Gumbel>() -> Drawn<N> {
    (-1, f32::INFINITY, N::INFINITY)
}

/// A race, and who leads it.
#[derive(Clone, Copy)]
pub(super) struct Race<N> {
    stream: Stream,
    /// Token id of the first column.
    start: i32,
    /// Only the noise counts.
    hot: bool,
    scale: f32,
    leader: (f64, f64),
    drawn: Drawn<N>,
    nan: bool,
}

impl<N: Gumbel> Race<N> {
    /// `None` for a temperature that is negative or NaN.
    pub(super) fn new(temperature: f32, stream: Stream, start: i32) -> Option<Race<N>> {
        let hot = temperature == f32::INFINITY;
        (temperature >= 0.0).then_some(Race {
            stream,
            start,
            hot,
            scale: if hot { 1.0 } else { temperature },
            leader: (f64::NEG_INFINITY, f64::NEG_INFINITY),
            drawn: (-1, f32::NEG_INFINITY, N::NEG_INFINITY),
            nan: false,
        })
    }

    /// Lets all tokens of a row run, or those that are kept.
    pub(super) fn run_all<L: Logit>(self, logits: &[L], kept: Option<Kept>) -> Race<N> {
        let tiles = logits.par_chunks(TILE).enumerate();
        let races = tiles.map(|(number, tile)| tile_race(tile, number * TILE, self, kept));
        races.reduce(|| self, Race::joined)
    }

    /// Lets one token run.
    pub(super) fn run_one(&mut self, column: usize, logit: f32) {
        let (block, lane) = self.counter(column);
        let word = self.stream.high_words(block)[lane];
        if self.can_win(logit, word, self.threshold()) {
            self.run(column, logit, word);
        }
    }

    /// The winner.
    pub(super) fn drawn(&self) -> Drawn<N> {
        if self.nan { invalid() } else { self.drawn }
    }

    /// The block of a column's words, and which of its words.
    #[inline(always)]
    fn counter(&self, column: usize) -> (u32, usize) {
        let token = i64::from(self.start) + column as i64;
        ((token >> 2) as u32, (token & 3) as usize)
    }

    /// A logit as it runs.
    #[inline(always)]
    fn runs(&self, logit: f32) -> f32 {
        if self.hot && logit.is_finite() { 0.0 } else { logit }
    }

    /// No sum below it can win. Without noise, none that is equal can, either.
    #[inline(always)]
    fn threshold(&self) -> f32 {
        let best = self.leader.0 as f32;
        match self.scale {
            _ if self.leader.0 == f64::NEG_INFINITY => f32::MIN,
            0.0 => best.next_up(),
            _ => best.next_down(),
        }
    }

    /// Whether a token can win against `threshold`, or is NaN.
    #[inline(always)]
    #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "NaN must be seen")]
    fn can_win(&self, logit: f32, word: u32, threshold: f32) -> bool {
        // Rounding keeps the order, so what this bound is below of, its noise is below of.
        let most = self.scale.mul_add(gumbel_bound(word), self.runs(logit));
        !(most < threshold)
    }

    /// Lets a token run whose high word is `word`.
    #[inline(always)]
    fn run(&mut self, column: usize, logit: f32, word: u32) {
        let (block, lane) = self.counter(column);
        let (x, noise) = (f64::from(self.runs(logit)), N::draw(&self.stream, block, lane, word));
        self.nan |= x.is_nan();
        let sum = exact_sum(x, f64::from(self.scale) * noise.into());
        if beats(sum, self.leader) {
            self.leader = sum;
            self.drawn = (self.start.wrapping_add(column as i32), logit, noise);
        }
    }

    /// The race with what another, of later tokens, came to.
    fn joined(self, later: Race<N>) -> Race<N> {
        let nan = self.nan | later.nan;
        Race { nan, ..if beats(later.leader, self.leader) { later } else { self } }
    }
}

/// Whether a sum is above another.
#[inline(always)]
fn beats(sum: (f64, f64), other: (f64, f64)) -> bool {
    sum.0 > other.0 || (sum.0 == other.0 && sum.1 > other.1)
}

/// x + scaled, rounded, and the rest: what rounding took away. Logits of +inf compare by their noise. The rest of -inf is
/// NaN, which wins nothing.
#[inline(always)]
fn exact_sum(x: f64, scaled: f64) -> (f64, f64) {
    let rounded = x + scaled;
    let part = rounded - x;
    let rest = (x - (rounded - part)) + (scaled - part);
    (rounded, if x == f64::INFINITY { scaled } else { rest })
}

/// The race over a whole row.
pub(super) fn sample<L: Logit, N: Gumbel>(logits: &[L], temperature: f32, stream: Stream, start: i32) -> Drawn<N> {
    let Some(race) = Race::<N>::new(temperature, stream, start) else { return invalid() };
    race.run_all(logits, None).drawn()
}

/// The race over the columns from `column` on.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn tile_race<L: Logit, N: Gumbel>(logits: &[L], column: usize, race: Race<N>, kept: Option<Kept>) -> Race<N> {
    let (mut race, mut logits, mut column) = (race, logits, column);
    let (mut words, mut wide, mut masked) = ([0; MANY], [0.0; MANY], [0.0; MANY]);
    while !logits.is_empty() {
        let (block, lane) = race.counter(column);
        race.stream.fill_high_words(block, &mut words);
        let (some, rest) = logits.split_at(logits.len().min(MANY - lane));
        let (mut some, words) = (L::widen(some, &mut wide), &words[lane..]);
        if let Some(kept) = kept {
            for (index, (&logit, masked)) in some.iter().zip(&mut masked).enumerate() {
                *masked = if kept.has(logit, column as u32 + index as u32) { logit } else { f32::NEG_INFINITY };
            }
            some = &masked[..some.len()];
        }
        let (threshold, mut any) = (race.threshold(), false);
        for (&logit, &word) in some.iter().zip(words) {
            any |= race.can_win(logit, word, threshold);
        }
        if any {
            for (index, (&logit, &word)) in some.iter().zip(words).enumerate() {
                if race.can_win(logit, word, race.threshold()) {
                    race.run(column + index, logit, word);
                }
            }
        }
        column += some.len();
        logits = rest;
    }
    race
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every token runs, one after the other.
    fn all<L: Logit, N: Gumbel>(logits: &[L], temperature: f32, stream: Stream, start: i32) -> Drawn<N> {
        let Some(mut race) = Race::<N>::new(temperature, stream, start) else { return invalid() };
        for (column, logit) in logits.iter().enumerate() {
            let (block, lane) = race.counter(column);
            race.run(column, logit.to_f32(), stream.high_words(block)[lane]);
        }
        race.drawn()
    }

    fn same<L: Logit, N: Gumbel>(logits: &[L]) {
        let temperatures = [0.0, 1e-45, 1e-6, 0.7, 1.0, 30.0, 1e38, f32::MAX, f32::INFINITY, -1.0, f32::NAN];
        for (number, &temperature) in temperatures.iter().enumerate() {
            for start in [0, 1, 128_002, i32::MAX - 70, -6] {
                let stream = Stream::new(number as i64 * 77 - 5, i64::from(start) << 20, 3);
                let (fast, slow) =
                    (sample::<L, N>(logits, temperature, stream, start), all(logits, temperature, stream, start));
                let bits = |drawn: Drawn<N>| (drawn.0, drawn.1.to_bits(), drawn.2.into().to_bits());
                assert_eq!(bits(fast), bits(slow), "{} logits, temperature {temperature}, start {start}", logits.len());
            }
        }
    }

    fn scattered(number: usize) -> f32 {
        (number as u32).wrapping_mul(0x9e37_79b9) as f32 / 4294967296.0
    }

    #[test]
    fn no_token_that_could_win_is_left_out() {
        for length in [0, 1, 3, MANY - 1, MANY, MANY + 1, 1000, 2 * TILE + 77] {
            let logits: Vec<f32> = (0..length).map(|token| (scattered(token) - 0.5) * 16.0).collect();
            same::<f32, f64>(&logits);
            same::<f32, f32>(&logits);
            same::<half::f16, f64>(&logits.iter().map(|&x| half::f16::from_f32(x)).collect::<Vec<_>>());
            same::<half::bf16, f32>(&logits.iter().map(|&x| half::bf16::from_f32(x)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn hostile_logits_run_as_they_would_alone() {
        let hostile = [f32::NEG_INFINITY, f32::INFINITY, f32::MAX, f32::MIN, 0.0, -0.0, 1e-45, -1e9, 1e38, f32::NAN];
        for mask in 0_usize..1 << hostile.len() {
            let values: Vec<f32> = (0..10).filter(|bit| mask >> bit & 1 != 0).map(|bit| hostile[bit]).collect();
            let logits: Vec<f32> = (0..150)
                .filter_map(|token| values.get((token * 7 + token / 3) % values.len().max(1)).copied())
                .collect();
            same::<f32, f64>(&logits);
        }
        let mut row = vec![f32::NEG_INFINITY; 3 * TILE];
        same::<f32, f64>(&row);
        row[2 * TILE + 5] = f32::MIN;
        same::<f32, f64>(&row);
        row[TILE] = f32::NAN;
        same::<f32, f64>(&row);
    }
}
