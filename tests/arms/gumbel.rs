//! Gumbel sampling from logits: what it draws, with whose noise, and how it stays exact.

use crate::statistics::{assert_close, assert_fits, bins, count, softmax};
use crate::support::{on, on_each_arm, read};
use tidelock::kernels::{GumbelSample, GumbelSampleL, GumbelSampleSampledNoise};
use tidelock::noise::{self, time};
use tidelock::philox::Stream;
use tidelock::sampling::scratch_words;
use tidelock::{AsView, AsViewMut, Buffer, Device, f16};

/// f32 or f64 noise.
trait Noise: GumbelSampleSampledNoise + noise::Noise + std::fmt::Debug {
    /// The noise of a token, straight from its words.
    fn of(stream: &Stream, token: u32) -> Self {
        Self::gumbel(time(stream, token))
    }
}

impl Noise for f32 {}

impl Noise for f64 {}

/// Rows to draw from: `vocab` columns each, a multiple of that apart.
#[derive(Clone)]
struct Batch<'a, L = f32> {
    logits: &'a [L],
    vocab: usize,
    temperature: &'a [f32],
    seeds: &'a [i64],
    positions: &'a [i64],
    purpose: i32,
    vocab_start: usize,
}

impl<L: GumbelSampleL> Batch<'_, L> {
    /// Token, logit and noise of each row.
    fn draw<N: Noise>(&self, device: &Device) -> Vec<(i32, f32, N)> {
        self.draw_from(device, &on(device, self.logits))
    }

    fn tokens<N: Noise>(&self, device: &Device) -> Vec<i32> {
        self.draw::<N>(device).into_iter().map(|(token, ..)| token).collect()
    }

    fn draw_from<N: Noise>(&self, device: &Device, logits: &Buffer<L>) -> Vec<(i32, f32, N)> {
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

/// Tokens drawn from one row of logits with many seeds.
fn draws<N: Noise>(device: &Device, row: &[f32], temperature: f32, number: usize, purpose: i32) -> Vec<usize> {
    let rows = number.min((1 << 22) / row.len()).max(1);
    let logits = row.repeat(rows);
    let (logits_there, temperature) = (on(device, &logits), vec![temperature; rows]);
    let mut drawn = Vec::with_capacity(number);
    while drawn.len() < number {
        let seeds: Vec<i64> = (drawn.len() as i64..).take(rows).collect();
        let batch = Batch {
            logits: &logits,
            vocab: row.len(),
            temperature: &temperature,
            seeds: &seeds,
            positions: &vec![17; rows],
            purpose,
            vocab_start: 0,
        };
        drawn.extend(batch.draw_from::<N>(device, &logits_there).iter().map(|&(token, ..)| token as usize));
    }
    drawn.truncate(number);
    drawn
}

/// More where there is a GPU, which draws a thousand times as fast.
fn number(device: &Device, cpu: usize, gpu: usize) -> usize {
    if matches!(device, Device::Cpu) { cpu } else { gpu }
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
fn scattered(index: usize) -> f32 {
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

/// FlashInfer gave every request the first seed's stream, and vLLM's CPU fallback forgot the seeds of a mixed batch.
#[test]
fn a_request_owns_its_stream_in_every_slot() {
    on_each_arm(|device| {
        let vocab = 50;
        let seeds = [1111, 2222, 3333, 4444, 1111, -1, i64::MIN, i64::MAX, 0, 1 << 32];
        let positions = [0, 0, 0, 0, 1, 7, 1 << 40, 3, 0, 0];
        let row = |request: usize| (0..vocab).map(|v| scattered(request * 97 + v)).collect::<Vec<f32>>();
        let draw = |requests: &[usize]| {
            let [seeds, positions] =
                [&seeds, &positions].map(|of| requests.iter().map(|&r| of[r]).collect::<Vec<i64>>());
            let logits: Vec<f32> = requests.iter().flat_map(|&request| row(request)).collect();
            let temperature: Vec<f32> = requests.iter().map(|&request| request as f32 * 0.3).collect();
            let (temperature, seeds, positions) = (&temperature[..], &seeds[..], &positions[..]);
            Batch { logits: &logits, vocab, temperature, seeds, positions, purpose: 0, vocab_start: 0 }
                .draw::<f64>(device)
        };
        let all = draw(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let own = |requests: &[usize]| requests.iter().map(|&request| all[request]).collect::<Vec<_>>();
        for batch in [&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0][..], &[3, 3, 3, 0], &[5], &[0, 2, 4], &[1, 3, 5, 7, 9, 6]] {
            assert_eq!(draw(batch), own(batch), "{batch:?} on {device}");
        }
        let noise: std::collections::BTreeSet<u64> = all.iter().map(|(.., noise)| noise.to_bits()).collect();
        assert_eq!(noise.len(), seeds.len(), "no two requests share their noise, on {device}");
    });
}

/// Consecutive seeds must not give shifted streams: with V = 128, w(s + 1) = w(s) - 1 came up twice as often as it should.
#[test]
fn neighbouring_seeds_are_independent() {
    on_each_arm(|device| {
        let drawn = draws::<f32>(device, &[0.0; 128], 1.0, 1 << 16, 0);
        for shift in 0..4 {
            let pairs = drawn.windows(2).filter(|pair| (pair[1] + shift) % 128 == pair[0]).count();
            assert_close(pairs as u64, (1 << 16) - 1, 1.0 / 128.0, &format!("w(s + 1) = w(s) - {shift}"));
        }
    });
}

#[test]
fn purposes_are_independent() {
    on_each_arm(|device| {
        let row = [0.0, 0.5, 1.0, 1.5];
        let probs = softmax(&row, 1.0);
        let both = probs.iter().flat_map(|p| probs.iter().map(move |q| p * q)).collect::<Vec<_>>();
        let drawn: Vec<_> = (0..5).map(|purpose| draws::<f32>(device, &row, 1.0, 100_000, purpose)).collect();
        for first in 0..5 {
            for second in 0..first {
                let pairs = drawn[first].iter().zip(&drawn[second]).map(|(a, b)| a * 4 + b);
                assert_fits(&count(16, pairs), &both, &format!("purposes {first} and {second} on {device}"));
            }
        }
    });
}

#[test]
fn a_million_draws_follow_the_softmax() {
    fn test<N: Noise>(device: &Device) {
        let row = [0.0, 2.5, -1.0, 1.0, 1.0, f32::NEG_INFINITY, 3.0, -2.0, 0.5];
        for temperature in [0.5, 1.7] {
            let counts = count(9, draws::<N>(device, &row, temperature, 1 << 20, 0));
            assert_eq!(counts[5], 0, "{device}");
            let kept = |values: Vec<f64>| [&values[..5], &values[6..]].concat();
            let counts = [&counts[..5], &counts[6..]].concat();
            let probs = kept(softmax(&row, temperature.into()));
            assert_fits(&counts, &probs, &format!("temperature {temperature} on {device}"));
        }
    }
    on_each_arm(|device| {
        test::<f32>(device);
        test::<f64>(device);
    });
}

#[test]
fn a_large_vocabulary_follows_the_softmax() {
    fn test<N: Noise>(device: &Device, number: usize) {
        let row: Vec<f32> = (0..128_256).map(|v| 6.0 * scattered(v) - (1.0 + v as f32).ln()).collect();
        let (bin, held) = bins(&softmax(&row, 0.9), 32);
        let counts = count(held.len(), draws::<N>(device, &row, 0.9, number, 0).into_iter().map(|token| bin[token]));
        assert_fits(&counts, &held, &format!("128,256 tokens on {device}"));
    }
    on_each_arm(|device| {
        test::<f32>(device, number(device, 2000, 1 << 20));
        test::<f64>(device, number(device, 2000, 1 << 20));
    });
}

/// A logit of 10 among 128,255 of 0 has probability 0.1466; candle's `gumbel_softmax` always takes it.
#[test]
fn a_high_logit_leaves_the_rest_its_share() {
    on_each_arm(|device| {
        let mut row = vec![0.0; 128_256];
        row[70_000] = 10.0;
        let number = number(device, 2000, 200_000);
        let hits = draws::<f32>(device, &row, 1.0, number, 0).iter().filter(|&&token| token == 70_000).count();
        assert_close(hits as u64, number as u64, softmax(&row, 1.0)[70_000], "one logit of 10");
    });
}

/// One head and a long tail of tokens e^gap times less likely. On a GPU the field's own case, in which 24-bit uniforms
/// never draw the tail; here one that fits the time. `tidelock prove-precision` runs it in full on any machine.
#[test]
fn a_long_tail_gets_its_share() {
    fn test<N: Noise>(device: &Device) {
        let (tail, gap, trials) = match device {
            Device::Cpu => (1 << 16, 14.0, 2000),
            Device::Cuda(_) => (1 << 18, 20.5, 100_000),
        };
        let mut row = vec![-gap; tail + 1];
        row[0] = 0.0;
        let hits = draws::<N>(device, &row, 1.0, trials, 0).iter().filter(|&&token| token > 0).count();
        assert_close(hits as u64, trials as u64, 1.0 - softmax(&row, 1.0)[0], "a long tail");
    }
    on_each_arm(|device| {
        test::<f32>(device);
        test::<f64>(device);
    });
}
