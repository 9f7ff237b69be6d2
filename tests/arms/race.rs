//! The exponential race over drawn noise: what it draws from given probabilities, and that its noise is its own.

use crate::statistics::{assert_close, assert_fits, bins, count, softmax};
use crate::support::{on, on_each_arm, read};
use tidelock::kernels::{
    DrawInverseExponential, DrawInverseExponentialOutput, DrawUniformProbs, GumbelSample, RandomSample,
    RandomSampleInvQ,
};
use tidelock::sampling::scratch_words;
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose};

/// f32 or f64 noise.
trait Noise: DrawInverseExponentialOutput + RandomSampleInvQ {}

impl<T: DrawInverseExponentialOutput + RandomSampleInvQ> Noise for T {}

/// A token a row of `probs`, with the noise of its seed.
fn draw<Q: Noise>(device: &Device, probs: &Buffer<f32>, vocab: usize, seeds: &[i64], purpose: i32) -> Vec<i32> {
    let rows = seeds.len();
    let (seeds, positions) = (on(device, seeds), on(device, &vec![3; rows]));
    let mut inv_q = Buffer::<Q>::zeros(device, rows * vocab).expect("the device has memory");
    let mut tokens = on(device, &vec![-77; rows]);
    let output = inv_q.view_mut().matrix(rows, vocab).expect("it fits");
    let call = DrawInverseExponential { output, seeds: seeds.view(), positions: positions.view(), purpose };
    call.launch(device).expect("the arguments fit");
    RandomSample {
        output_token_ids: tokens.view_mut(),
        probs: probs.view().matrix(rows, vocab).expect("it fits"),
        inv_q: inv_q.view().matrix(rows, vocab).expect("it fits"),
    }
    .launch(device)
    .expect("the arguments fit");
    read(&tokens)
}

/// Tokens drawn from one row of probabilities with many seeds.
fn draws<Q: Noise>(device: &Device, row: &[f64], number: usize, purpose: i32) -> Vec<usize> {
    let rows = number.min((1 << 22) / row.len()).max(1);
    let probs: Vec<f32> = row.iter().map(|&p| p as f32).collect();
    let probs = on(device, &probs.repeat(rows));
    let mut drawn = Vec::with_capacity(number);
    while drawn.len() < number {
        let seeds: Vec<i64> = (drawn.len() as i64..).take(rows).collect();
        let tokens = draw::<Q>(device, &probs, row.len(), &seeds, purpose);
        drawn.extend(tokens.into_iter().map(|token| token as usize));
    }
    drawn.truncate(number);
    drawn
}

/// More where there is a GPU, which draws a thousand times as fast.
fn number(device: &Device, cpu: usize, gpu: usize) -> usize {
    if matches!(device, Device::Cpu) { cpu } else { gpu }
}

#[test]
fn a_million_draws_follow_the_probabilities() {
    on_each_arm(|device| {
        let probs = softmax(&[0.0, 2.5, -1.0, 1.0, 1.0, 3.0, -2.0], 1.0);
        let name = format!("seven tokens on {device}");
        assert_fits(&count(7, draws::<f32>(device, &probs, 1 << 20, 0)), &probs, &name);
        assert_fits(&count(7, draws::<f64>(device, &probs, 1 << 20, 0)), &probs, &name);
    });
}

#[test]
fn a_large_vocabulary_follows_the_probabilities() {
    on_each_arm(|device| {
        let logits: Vec<f32> =
            (0..128_256_u32).map(|v| v.wrapping_mul(0x9e37_79b9) as f32 / 7e8 - (v as f32).ln_1p()).collect();
        let probs = softmax(&logits, 0.9);
        let (bin, held) = bins(&probs, 32);
        let name = format!("128,256 tokens on {device}");
        let binned = |drawn: Vec<usize>| count(held.len(), drawn.into_iter().map(|token| bin[token]));
        assert_fits(&binned(draws::<f32>(device, &probs, number(device, 500, 1 << 20), 0)), &held, &name);
        assert_fits(&binned(draws::<f64>(device, &probs, number(device, 500, 1 << 20), 0)), &held, &name);
    });
}

/// One head and a long tail of tokens e^gap times less likely; on a GPU the field's own case.
#[test]
fn a_long_tail_gets_its_share() {
    on_each_arm(|device| {
        let (tail, gap, trials) = match device {
            Device::Cpu => (1 << 12, 11.0, 8000),
            Device::Cuda(_) => (1 << 18, 20.5, 100_000),
        };
        let mut row = vec![f64::exp(-gap); tail + 1];
        row[0] = 1.0;
        let total: f64 = row.iter().sum();
        let tailed = |drawn: Vec<usize>| drawn.iter().filter(|&&token| token > 0).count() as u64;
        let p = 1.0 - 1.0 / total;
        assert_close(tailed(draws::<f32>(device, &row, trials, 0)), trials as u64, p, "a long tail, f32");
        assert_close(tailed(draws::<f64>(device, &row, trials, 0)), trials as u64, p, "a long tail, f64");
    });
}

/// 0 / 0 in a race by division is NaN, which wins torch's argmax: a token without probability was drawn.
#[test]
fn a_token_without_probability_never_wins() {
    on_each_arm(|device| {
        let vocab = 151_936;
        let mut probs = vec![0f32; vocab];
        probs[0] = 1.0;
        let probs = on(device, &probs);
        let mut noise = vec![1f32; vocab];
        noise[5] = f32::INFINITY; // the reciprocal of q = 0
        let noise = on(device, &noise);
        let mut tokens = on(device, &[-77]);
        RandomSample {
            output_token_ids: tokens.view_mut(),
            probs: probs.view().matrix(1, vocab).expect("it fits"),
            inv_q: noise.view().matrix(1, vocab).expect("it fits"),
        }
        .launch(device)
        .expect("the arguments fit");
        assert_eq!(read(&tokens), [0], "{device}");
    });
}

/// Draft and recovery noise were one in vLLM, so a rejected draft came back too often.
#[test]
fn purposes_are_independent() {
    on_each_arm(|device| {
        let probs = softmax(&[0.0, 0.5, 1.0, 1.5], 1.0);
        let both = probs.iter().flat_map(|p| probs.iter().map(move |q| p * q)).collect::<Vec<_>>();
        let all = [Purpose::Sample, Purpose::Draft, Purpose::Recovery, Purpose::Bonus].map(i32::from);
        let drawn = all.map(|purpose| draws::<f64>(device, &probs, 100_000, purpose));
        for (first, a) in drawn.iter().enumerate() {
            for (second, b) in drawn[..first].iter().enumerate() {
                let pairs = a.iter().zip(b).map(|(a, b)| a * 4 + b);
                assert_fits(&count(16, pairs), &both, &format!("purposes {first} and {second} on {device}"));
            }
        }
    });
}

/// The acceptance uniform of a request says nothing of the token that it drafts.
#[test]
fn acceptance_is_independent_of_the_draft() {
    on_each_arm(|device| {
        let rows = 100_000;
        let seeds: Vec<i64> = (0..rows as i64).collect();
        let (seeds, positions) = (on(device, &seeds), on(device, &vec![3; rows]));
        let mut uniforms = Buffer::<f64>::zeros(device, rows).expect("the device has memory");
        DrawUniformProbs {
            output: uniforms.view_mut(),
            seeds: seeds.view(),
            positions: positions.view(),
            purpose: Purpose::Acceptance.into(),
        }
        .launch(device)
        .expect("the arguments fit");
        let drafts = draws::<f32>(device, &[0.25; 4], rows, Purpose::Draft.into());
        let pairs =
            read(&uniforms).into_iter().zip(drafts).map(|(uniform, draft)| (uniform * 8.0) as usize * 4 + draft);
        assert_fits(&count(32, pairs), &[1.0; 32], &format!("eighths and drafts on {device}"));
    });
}

/// Permuting, splitting and merging a batch changes no token, and equal seeds alone give equal noise.
#[test]
fn a_request_owns_its_noise_in_every_slot() {
    on_each_arm(|device| {
        let vocab = 50;
        let probs = softmax(&[0.0; 50], 1.0).iter().map(|&p| p as f32).collect::<Vec<_>>();
        let draw = |seeds: &[i64]| draw::<f32>(device, &on(device, &probs.repeat(seeds.len())), vocab, seeds, 0);
        let seeds = [1111, 2222, 3333, 4444, -1, i64::MIN, i64::MAX, 0, 1 << 32, 5];
        let tokens = draw(&seeds);
        assert_eq!(draw(&seeds), tokens, "again, on {device}");
        for batch in [&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0][..], &[3, 3, 3, 0], &[5], &[0, 2, 4]] {
            let (seeds, own): (Vec<i64>, Vec<i32>) = batch.iter().map(|&slot| (seeds[slot], tokens[slot])).unzip();
            assert_eq!(draw(&seeds), own, "{batch:?} on {device}");
        }
        assert!(tokens[1..4].iter().any(|&token| token != tokens[0]), "four streams, on {device}: {tokens:?}");
    });
}

/// An exponential race over probabilities and the Gumbel race over their logits are the same draw.
#[test]
fn both_races_have_the_same_winner() {
    on_each_arm(|device| {
        let (rows, vocab) = (500, 100);
        let logits: Vec<f32> = (0..vocab as u32).map(|v| v.wrapping_mul(0x9e37_79b9) as f32 / 1e9).collect();
        let probs = softmax(&logits, 1.0).iter().map(|&p| p as f32).collect::<Vec<_>>();
        let seeds: Vec<i64> = (0..rows as i64).collect();
        let exponential = draw::<f64>(device, &on(device, &probs.repeat(rows)), vocab, &seeds, 2);

        let (logits, temperature) = (on(device, &logits.repeat(rows)), on(device, &vec![1.0; rows]));
        let (seeds, positions) = (on(device, &seeds), on(device, &vec![3; rows]));
        let (mut tokens, mut sampled) = (on(device, &vec![-77; rows]), on(device, &vec![0f32; rows]));
        let words = scratch_words("gumbel_sample", vocab);
        let (mut noise, mut scratch) = (on(device, &vec![0f64; rows]), on(device, &vec![0; rows * words]));
        GumbelSample {
            output_token_ids: tokens.view_mut(),
            sampled_logits: sampled.view_mut(),
            sampled_noise: noise.view_mut(),
            scratch: scratch.view_mut().matrix(rows, words).expect("it fits"),
            logits: logits.view().matrix(rows, vocab).expect("it fits"),
            temperature: temperature.view(),
            seeds: seeds.view(),
            positions: positions.view(),
            purpose: 2,
        }
        .launch(device)
        .expect("the arguments fit");
        assert_eq!(read(&tokens), exponential, "{device}");
    });
}
