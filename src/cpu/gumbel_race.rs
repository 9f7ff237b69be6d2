//! The Gumbel-max race over one row: which token has the largest logit + temperature * noise, the sum taken exactly.
//!
//! The 32 tokens of a group share the bound of their noise, so only groups of which a token may win with it are looked
//! at further, and of these only tokens that may win with what two numbers tell of their noise: some tens of a hundred
//! thousand. So f64 noise costs hardly more than f32 noise. All this is calculated side by side.

use multiversion::multiversion;
use rayon::prelude::*;

use super::selection::Kept;
use super::{Logit, TILE};
use crate::noise::{Arrivals, GROUP, Noise, gumbel_bound};
use crate::philox::{MANY, Stream};

/// Tokens of the groups whose words are made side by side.
const SPAN: usize = MANY / 4 * GROUP as usize;

/// What one row draws: its token, -1 where it has none, with its logit and its noise.
pub(super) type Drawn<N> = (i32, f32, N);

/// What a row without a distribution draws, other than for want of a token above -inf.
pub(super) fn invalid<N: Noise>() -> Drawn<N> {
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

impl<N: Noise> Race<N> {
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
        let token = self.token(column);
        let words = self.stream.group_words(token / GROUP);
        if self.can_win(logit, gumbel_bound(words[0]), self.threshold()) {
            self.run(column, logit, N::gumbel(self.time(&N::arrivals(words), token)));
        }
    }

    /// The winner.
    pub(super) fn drawn(&self) -> Drawn<N> {
        if self.nan { invalid() } else { self.drawn }
    }

    /// The token of a column.
    #[inline(always)]
    fn token(&self, column: usize) -> u32 {
        (self.start as u32).wrapping_add(column as u32)
    }

    /// The time of a token, of whose group `arrivals` are.
    #[inline(always)]
    fn time(&self, arrivals: &Arrivals<N>, token: u32) -> N {
        N::time(&self.stream, arrivals, token, self.stream.high_words(token / 4)[token as usize % 4])
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

    /// Whether a token, with noise of no more than `bound`, can win against `threshold`, or is NaN. Rounding keeps the order.
    #[inline(always)]
    #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "NaN must be seen")]
    fn can_win(&self, logit: f32, bound: f32, threshold: f32) -> bool {
        !(self.scale.mul_add(bound, self.runs(logit)) < threshold)
    }

    /// Lets those of a group run that can win; they begin with `column`.
    #[inline(always)]
    fn run_group(&mut self, column: usize, logits: &[f32], words: [u32; 4]) {
        let arrivals = N::arrivals(words);
        // Noise is not as far from its logarithm as this.
        let bound = |time: N| N::gumbel(time).into() as f32 + 1e-3;
        let (first, others) = (bound(arrivals.first), bound(arrivals.second));
        for (index, &logit) in logits.iter().enumerate() {
            let token = self.token(column + index);
            let bound = if token % GROUP == arrivals.first_lane { first } else { others };
            if self.can_win(logit, bound, self.threshold()) {
                self.run(column + index, logit, N::gumbel(self.time(&arrivals, token)));
            }
        }
    }

    /// Lets a token run.
    #[inline(always)]
    fn run(&mut self, column: usize, logit: f32, noise: N) {
        self.nan |= logit.is_nan();
        let sum = exact_sum(f64::from(self.runs(logit)), f64::from(self.scale) * noise.into());
        if beats(sum, self.leader) {
            self.leader = sum;
            self.drawn = (self.token(column) as i32, logit, noise);
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
pub(super) fn sample<L: Logit, N: Noise>(logits: &[L], temperature: f32, stream: Stream, start: i32) -> Drawn<N> {
    let Some(race) = Race::<N>::new(temperature, stream, start) else { return invalid() };
    race.run_all(logits, None).drawn()
}

/// The race over the columns from `column` on.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+fma", "x86_64+avx2+fma"))]
fn tile_race<L: Logit, N: Noise>(logits: &[L], column: usize, race: Race<N>, kept: Option<Kept>) -> Race<N> {
    let (mut race, mut logits, mut column) = (race, logits, column);
    let (mut words, mut wide, mut masked) = ([0; MANY], [0.0; SPAN], [0.0; SPAN]);
    while !logits.is_empty() {
        // A vocabulary may start within a group, and tokens are counted in 32 bits.
        let token = race.token(column);
        let lane = (token % GROUP) as usize;
        let until_0 = (u32::MAX - token) as usize + 1;
        race.stream.fill_group_words(token / GROUP, &mut words);
        let (some, rest) = logits.split_at(logits.len().min(SPAN - lane).min(until_0));
        let mut some = L::widen(some, &mut wide);
        if let Some(kept) = kept {
            for (index, (&logit, masked)) in some.iter().zip(&mut masked).enumerate() {
                *masked = if kept.has(logit, column as u32 + index as u32) { logit } else { f32::NEG_INFINITY };
            }
            some = &masked[..some.len()];
        }
        logits = rest;
        let mut end = GROUP as usize - lane;
        for &words in words.as_chunks::<4>().0 {
            let (group, rest) = some.split_at(some.len().min(end));
            let (bound, threshold, mut any) = (gumbel_bound(words[0]), race.threshold(), false);
            for &logit in group {
                any |= race.can_win(logit, bound, threshold);
            }
            if any {
                race.run_group(column, group, words);
            }
            column += group.len();
            (some, end) = (rest, GROUP as usize);
        }
    }
    race
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::time;

    /// Every token runs, one after the other.
    fn all<L: Logit, N: Noise>(logits: &[L], temperature: f32, stream: Stream, start: i32) -> Drawn<N> {
        let Some(mut race) = Race::<N>::new(temperature, stream, start) else { return invalid() };
        for (column, logit) in logits.iter().enumerate() {
            let x = logit.to_f32();
            race.run(column, x, N::gumbel(time::<N>(&stream, race.token(column))));
        }
        race.drawn()
    }

    fn same<L: Logit, N: Noise>(logits: &[L]) {
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
