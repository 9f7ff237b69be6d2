//! What many Gumbel draws look like: the distribution that they follow, and that streams are independent.

use crate::gumbel::{Batch, Noise, scattered};
use crate::statistics::{assert_close, assert_fits, bins, count, softmax};
use crate::support::{on, on_each_arm};
use tidelock::Device;

/// Tokens drawn from one row of logits with many seeds.
pub(crate) fn draws<N: Noise>(
    device: &Device,
    row: &[f32],
    temperature: f32,
    number: usize,
    purpose: i32,
) -> Vec<usize> {
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
