//! Gumbel sampling from logits: what it draws, with whose noise, and how it stays exact.

use crate::gumbel_draws::draws;
use crate::statistics::{assert_close, assert_fits, count};
use crate::support::{on, on_each_arm, read};
use tidelock::kernels::{GumbelSample, GumbelSampleL, GumbelSampleSampledNoise};
use tidelock::noise::{self, time};
use tidelock::philox::Stream;
use tidelock::sampling::scratch_words;
use tidelock::{AsView, AsViewMut, Buffer, Device, f16};

/// f32 or f64 noise.
pub(crate) trait Noise: GumbelSampleSampledNoise + noise::Noise + std::fmt::Debug {
    /// The noise of a token, straight from its words.
    fn of(stream: &Stream, token: u32) -> Self {
        Self::gumbel(time(stream, token))
    }
}

impl Noise for f32 {}

impl Noise for f64 {}

/// Rows to draw from: `vocab` columns each, a multiple of that apart.
#[derive(Clone)]
pub(crate) struct Batch<'a, L = f32> {
    pub(crate) logits: &'a [L],
    pub(crate) vocab: usize,
    pub(crate) temperature: &'a [f32],
    pub(crate) seeds: &'a [i64],
    pub(crate) positions: &'a [i64],
    pub(crate) purpose: i32,
    pub(crate) vocab_start: usize,
}

impl<L: GumbelSampleL> Batch<'_, L> {
    /// Token, logit and noise of each row.
    pub(crate) fn draw<N: Noise>(&self, device: &Device) -> Vec<(i32, f32, N)> {
        self.draw_from(device, &on(device, self.logits))
    }

    fn tokens<N: Noise>(&self, device: &Device) -> Vec<i32> {
        self.draw::<N>(device).into_iter().map(|(token, ..)| token).collect()
    }

    pub(crate) fn draw_from<N: Noise>(&self, device: &Device, logits: &Buffer<L>) -> Vec<(i32, f32, N)> {
        let rows = self.seeds.len();
        let stride = self.logits.len() / rows;
        let (mut tokens, mut sampled) = (on(device, &vec![-77; rows]), on(device, &vec![-77.0; rows]));
        let words = scratch_words("gumbel_sample", self.vocab);
        let (mut noise, mut scratch) = (on(device, &vec![N::default(); rows]), on(device, &vec![0; rows * words]));
        let (temperature, seeds) = (on(device, self.temperature), on(device, self.seeds));
        let positions = on(device, self.positions);
        GumbelSample {
            output_token_ids: tokens.view_mut(),
            sampled_logits: sampled.view_mut(),
            sampled_noise: noise.view_mut(),
            scratch: scratch.view_mut().matrix(rows, words).expect("it fits"),
            logits: logits.view().strided(rows, self.vocab, stride).expect("it fits"),
            temperature: temperature.view(),
            seeds: seeds.view(),
            positions: positions.view(),
            purpose: self.purpose,
        }
        .vocab_start(self.vocab_start as i32)
        .launch(device)
        .expect("the arguments fit");
        read(&tokens).into_iter().zip(read(&sampled)).zip(read(&noise)).map(|((t, x), g)| (t, x, g)).collect()
    }
}

/// `value` as a whole number of 2^-80, which it must be.
fn whole(value: f64) -> i128 {
    const ONE: f64 = (1_u128 << 80) as f64;
    let whole = (value * ONE) as i128;
    assert!(whole as f64 / ONE == value && (value * ONE).fract() == 0.0, "{value:e}");
    whole
}

/// The winner by sums of integers, the lowest among those that tie.
fn winner(runners: impl Iterator<Item = (i32, f32, f64)>, temperature: f32) -> i32 {
    let sums = runners.map(|(token, x, noise)| (whole(x.into()) + whole(f64::from(temperature) * noise), -token));
    -sums.max().expect("somebody runs").1
}

/// Numbers without an obvious order, from 0 to below 1.
pub(crate) fn scattered(index: usize) -> f32 {
    (index as u32).wrapping_mul(0x9e37_79b9) as f32 / 4294967296.0
}

#[test]
fn the_largest_exact_sum_wins() {
    fn test<N: Noise>(device: &Device) {
        for (vocab, scale, start) in [(1, 4.0, 0), (5, 1e-8, 0), (37, 6.0, 0), (40, 1e9, 3), (300, 3.0, 128_001)] {
            let rows = 40;
            let logits: Vec<f32> =
                (0..rows * vocab).map(|i| (scattered(i) * scale * 1024.0).round() / 1024.0).collect();
            let temperature: Vec<f32> = (0..rows).map(|row| 0.25 + scattered(row)).collect();
            let (seeds, positions): (Vec<i64>, Vec<i64>) =
                (0..rows as i64).map(|row| (row * row - 50, row << 30)).unzip();
            let batch = Batch {
                logits: &logits,
                vocab,
                temperature: &temperature,
                seeds: &seeds,
                positions: &positions,
                purpose: 3,
                vocab_start: start,
            };
            for (row, (token, logit, noise)) in batch.draw::<N>(device).into_iter().enumerate() {
                let stream = Stream::new(seeds[row], positions[row], 3);
                let row_logits = &logits[row * vocab..][..vocab];
                let runners =
                    (start as i32..).zip(row_logits).map(|(id, &x)| (id, x, N::of(&stream, id as u32).into()));
                assert_eq!(token, winner(runners, temperature[row]), "row {row} of {vocab} tokens on {device}");
                let drawn = (row_logits[token as usize - start], N::of(&stream, token as u32));
                assert_eq!((logit, noise), drawn, "row {row} of {vocab} tokens on {device}");
            }
        }
    }
    on_each_arm(|device| {
        test::<f32>(device);
        test::<f64>(device);
    });
}

/// Two logits that differ by what their noise does, up to what an f32 can hold: f64 noise decides by the rest.
#[test]
fn fp64_noise_decides_near_ties_that_f32_noise_cannot() {
    on_each_arm(|device| {
        let seeds: Vec<i64> = (0..1000).collect();
        let noise: Vec<[f64; 2]> =
            seeds.iter().map(|&seed| [0, 1].map(|token| f64::of(&Stream::new(seed, 0, 0), token))).collect();
        let logits: Vec<f32> = noise.iter().flat_map(|[a, b]| [0.0, (a - b) as f32]).collect();
        let batch = Batch {
            logits: &logits,
            vocab: 2,
            temperature: &[1.0; 1000],
            seeds: &seeds,
            positions: &[0; 1000],
            purpose: 0,
            vocab_start: 0,
        };
        let tokens = batch.tokens::<f64>(device);
        let reference = |narrow: fn(f64) -> f64| -> Vec<i32> {
            let rows = noise.iter().zip(logits.as_chunks::<2>().0);
            rows.map(|(noise, x)| winner((0..2).map(|v| (v as i32, x[v], narrow(noise[v]))), 1.0)).collect()
        };
        assert_eq!(tokens, reference(|noise| noise), "{device}");
        let narrowed = reference(|noise| f64::from(noise as f32));
        let differ = tokens.iter().zip(&narrowed).filter(|(a, b)| a != b).count();
        assert!(differ > 100, "noise cut to f32 changes {differ} of 1000 tokens");
    });
}

/// Each shard of the vocabulary draws alone, and their winners race again: 1, 2, 4 or 8 shards, and uneven ones, agree.
#[test]
fn shards_agree_with_the_whole() {
    fn test<N: Noise>(device: &Device) {
        let (rows, vocab) = (50, 1000);
        let logits: Vec<f32> = (0..rows * vocab).map(|i| (scattered(i) * 4096.0).round() / 512.0).collect();
        let seeds: Vec<i64> = (0..rows as i64).collect();
        let (temperature, positions) = (vec![0.75; rows], vec![5; rows]);
        let draw = |start: usize, vocab: usize, logits: &[f32]| {
            let (temperature, seeds, positions) = (&temperature[..], &seeds[..], &positions[..]);
            Batch { logits, vocab, temperature, seeds, positions, purpose: 0, vocab_start: start }.draw::<N>(device)
        };
        let whole: Vec<i32> = draw(0, vocab, &logits).into_iter().map(|(token, ..)| token).collect();
        for cuts in [vec![0, 500], vec![0, 250, 500, 750], (0..8).map(|i| i * 125).collect(), vec![0, 1, 3, 6, 999]] {
            let ends = cuts[1..].iter().copied().chain([vocab]);
            let shards = cuts.iter().zip(ends).map(|(&start, end)| {
                let columns: Vec<f32> = logits.chunks(vocab).flat_map(|row| row[start..end].to_vec()).collect();
                draw(start, end - start, &columns)
            });
            let shards: Vec<_> = shards.collect();
            let agreed = |row: usize| {
                winner(
                    shards.iter().map(|shard| {
                        let (token, x, noise) = shard[row];
                        (token, x, noise.into())
                    }),
                    0.75,
                )
            };
            assert_eq!((0..rows).map(agreed).collect::<Vec<_>>(), whole, "cut at {cuts:?} on {device}");
        }
    }
    on_each_arm(|device| {
        test::<f32>(device);
        test::<f64>(device);
    });
}

/// One row for each temperature, all from the same logits.
fn at_temperatures<L: GumbelSampleL>(device: &Device, logits: &[L], temperature: &[f32]) -> Vec<(i32, f32, f64)> {
    let rows = temperature.len();
    let seeds: Vec<i64> = (0..rows as i64).collect();
    let batch = Batch {
        logits: &logits.repeat(rows),
        vocab: logits.len(),
        temperature,
        seeds: &seeds,
        positions: &vec![0; rows],
        purpose: 0,
        vocab_start: 0,
    };
    batch.draw(device)
}

/// FlashInfer gives a uniform distribution at temperature 0; vLLM and TensorRT-LLM had NaN at tiny ones.
#[test]
fn temperature_0_and_tiny_ones_take_the_largest_logit() {
    on_each_arm(|device| {
        let tokens = |drawn: Vec<(i32, f32, f64)>| drawn.into_iter().map(|(token, ..)| token).collect::<Vec<_>>();
        let logits = [1.0, 8.0, -3.0, 8.0, f32::NEG_INFINITY, 7.0];
        assert_eq!(tokens(at_temperatures(device, &logits, &[0.0; 50])), [1; 50], "the lowest of equals, on {device}");
        assert_eq!(tokens(at_temperatures(device, &logits, &[-0.0; 50])), [1; 50], "{device}");
        let mut clear = logits.map(f16::from_f32);
        clear[1] = f16::from_f32(60000.0);
        for tiny in [1e-5, 1e-12, f32::MIN_POSITIVE, 1e-45] {
            assert_eq!(tokens(at_temperatures(device, &clear, &[tiny; 50])), [1; 50], "{tiny:e} on {device}");
            let drawn = tokens(at_temperatures(device, &logits, &[tiny; 10_000]));
            let ties = [1, 3].map(|tie| drawn.iter().filter(|&&token| token == tie).count() as u64);
            assert_eq!(ties[0] + ties[1], 10_000, "{tiny:e} on {device}");
            assert_close(ties[0], 10_000, 0.5, "the first of two equals at a tiny temperature");
        }
    });
}

#[test]
fn an_infinite_temperature_draws_any_token_that_is_not_removed() {
    on_each_arm(|device| {
        let logits = [1e30, 8.0, -3e38, f32::NEG_INFINITY, 0.0];
        let drawn = at_temperatures(device, &logits, &[f32::INFINITY; 40_000]);
        let counts = count(5, drawn.iter().map(|&(token, ..)| token as usize));
        assert_eq!(counts[3], 0, "{device}");
        assert_fits(&[counts[0], counts[1], counts[2], counts[4]], &[1.0; 4], "an infinite temperature");
    });
}

/// 3e38 + noise is 3e38 in any float, so a plain sum would give every draw to the first of the two.
#[test]
fn large_logits_do_not_swallow_the_noise() {
    on_each_arm(|device| {
        for (logits, temperature) in [
            ([-3e38, 3e38, 3e38, 1.0], 1.0),
            ([f32::NEG_INFINITY, f32::MAX, f32::MAX, f32::MIN], 0.01),
            ([f32::MAX, f32::INFINITY, f32::INFINITY, 0.0], 1.0),
            ([1e9, 1e9 + 64.0, 1e9 + 64.0, 1e9], 1.0),
        ] {
            let drawn = draws::<f64>(device, &logits, temperature, 20_000, 0);
            let counts = count(4, drawn);
            assert_eq!(counts[1] + counts[2], 20_000, "{logits:?} on {device}: {counts:?}");
            assert_close(counts[1], 20_000, 0.5, "the first of two large logits");
        }
    });
}

#[test]
fn a_row_without_a_distribution_gives_no_token() {
    on_each_arm(|device| {
        let infinite = (-1, f32::INFINITY, f64::INFINITY);
        let fine = [0.0f32, 1.0, 2.0];
        for temperature in [-1.0, f32::NAN, -1e-45, f32::NEG_INFINITY] {
            assert_eq!(at_temperatures(device, &fine, &[temperature]), [infinite], "{temperature} on {device}");
        }
        for temperature in [0.0, 1.0, f32::INFINITY] {
            for nan in 0..3 {
                let mut logits = [0.0, f32::INFINITY, f32::NEG_INFINITY];
                logits[nan] = f32::NAN;
                assert_eq!(at_temperatures(device, &logits, &[temperature]), [infinite], "{logits:?} on {device}");
            }
            let none = (-1, f32::NEG_INFINITY, f64::NEG_INFINITY);
            assert_eq!(at_temperatures(device, &[f32::NEG_INFINITY; 5], &[temperature]), [none], "{device}");
            let only = at_temperatures(device, &[f32::NEG_INFINITY, -3e38], &[temperature]);
            assert_eq!((only[0].0, only[0].1), (1, -3e38), "{device}");
            assert_eq!(at_temperatures(device, &[-1e9f32], &[temperature])[0].0, 0, "V = 1 on {device}");
        }
    });
}

/// Padding beyond the vocabulary is not looked at, whatever it holds; nor does a last tile without support win.
#[test]
fn padding_never_wins() {
    on_each_arm(|device| {
        for (vocab, stride) in [(8193, 8200), (100_278, 100_288), (3, 16)] {
            let mut logits = vec![f32::NEG_INFINITY; 3 * stride];
            for (row, padding) in [f32::NAN, f32::INFINITY, 1e30].into_iter().enumerate() {
                logits[row * stride + vocab..(row + 1) * stride].fill(padding);
                logits[row * stride + 1] = row as f32;
            }
            let batch = Batch {
                logits: &logits,
                vocab,
                temperature: &[1.0, 0.0, f32::INFINITY],
                seeds: &[1, 2, 3],
                positions: &[0; 3],
                purpose: 0,
                vocab_start: 0,
            };
            assert_eq!(batch.tokens::<f32>(device), [1; 3], "{vocab} of {stride} on {device}");
        }
    });
}
