//! `use_fp64_gumbel` reaches every race: with it, what is drawn is what an explicit race in f64 gives, near-ties included.

use crate::statistics::{assert_fits, count, softmax};
use crate::support::{on, on_each_arm, read};
use tidelock::kernels::{RandomSample, RandomSampleInvQ};
use tidelock::noise::time;
use tidelock::philox::Stream;
use tidelock::sampling::{
    InverseExponential, LogitsProcessors, LogprobsMode, Sampler, SamplerOutput, SamplerScratch, SamplingMetadata,
    Scratch, compute_probs_and_sample_next_token,
};
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose};

const VOCAB: usize = 97;

/// The first token with the largest p / q, all in f64.
fn race(probs: &[f32], noise: impl Fn(usize) -> f64) -> i32 {
    let mut best = (0.0, -1);
    for (token, &p) in probs.iter().enumerate() {
        let score = f64::from(p) * (1.0 / noise(token));
        if score > best.0 {
            best = (score, token as i32);
        }
    }
    best.1
}

fn random_sample<Q: RandomSampleInvQ>(device: &Device, probs: &[f32], inv_q: &[Q]) -> i32 {
    let (probs, inv_q, mut token) = (on(device, probs), on(device, inv_q), on(device, &[-7]));
    let columns = probs.view().layout().columns();
    RandomSample {
        output_token_ids: token.view_mut(),
        probs: probs.view().matrix(1, columns).expect("it fits"),
        inv_q: inv_q.view().matrix(1, columns).expect("it fits"),
    }
    .launch(device)
    .expect("the arguments fit");
    read(&token)[0]
}

#[test]
fn random_sample_decides_near_ties_in_f64() {
    on_each_arm(|device| {
        for winner in 0..4 {
            let near_tie: Vec<f64> = (0..4).map(|token| if token == winner { 1.0 + 1e-12 } else { 1.0 }).collect();
            assert_eq!(random_sample(device, &[0.25; 4], &near_tie), winner, "on {device}");
            let narrowed: Vec<f32> = near_tie.iter().map(|&noise| noise as f32).collect();
            assert_eq!(random_sample(device, &[0.25; 4], &narrowed), 0, "f32 sees a tie, on {device}");
        }
    });
}

#[test]
fn drafts_are_those_of_an_explicit_race_in_f64() {
    on_each_arm(|device| {
        let rows = 3000;
        let logits: Vec<f32> = (0..rows * VOCAB).map(|index| ((index * 7919) % 997) as f32 / 150.0).collect();
        let (input, temperature) = (on(device, &logits), on(device, &vec![0.9f32; rows]));
        let seeds: Vec<i64> = (0..rows as i64).map(|row| row * 31 - 7).collect();
        let positions: Vec<i64> = (0..rows as i64).map(|row| row % 13).collect();
        let (seed_buffer, position_buffer) = (on(device, &seeds), on(device, &positions));
        for use_fp64_gumbel in [false, true] {
            let mut noise = InverseExponential::new(device, use_fp64_gumbel, rows * VOCAB).expect("there is memory");
            let mut scratch = Scratch::new("softmax", rows, VOCAB, device).expect("there is memory");
            let mut tokens = Buffer::zeros(device, rows).expect("there is memory");
            let mut probs = Buffer::zeros(device, rows * VOCAB).expect("there is memory");
            compute_probs_and_sample_next_token(
                tokens.view_mut(),
                probs.view_mut().matrix(rows, VOCAB).expect("it fits"),
                input.view().matrix(rows, VOCAB).expect("it fits").into(),
                temperature.view(),
                seed_buffer.view(),
                position_buffer.view(),
                &mut noise,
                &mut scratch,
                device,
            )
            .expect("the arguments fit");
            let (tokens, probs) = (read(&tokens), read(&probs));
            for row in 0..rows {
                let stream = Stream::new(seeds[row], positions[row], Purpose::Draft.into());
                let noise = |token: usize| match use_fp64_gumbel {
                    true => time::<f64>(&stream, token as u32),
                    false => f64::from(time::<f32>(&stream, token as u32)),
                };
                let expected = race(&probs[row * VOCAB..][..VOCAB], noise);
                assert_eq!(tokens[row], expected, "row {row}, use_fp64_gumbel {use_fp64_gumbel}, on {device}");
            }
        }
    });
}

/// A million draws through temperature, top-k, top-p and min-p follow the distribution that these leave.
#[test]
fn filtered_draws_follow_what_the_filters_leave() {
    const LOGITS: [f32; 8] = [1.0, 0.5, -0.5, 2.0, 0.0, -1.5, 1.2, 0.9];
    on_each_arm(|device| {
        let (rows, rounds) = (100_000, 10);
        let input = on(device, &LOGITS.repeat(rows));
        let full = |value: f32| on(device, &vec![value; rows]);
        let (temperature, top_p, min_p, top_k) = (full(0.8), full(0.9), full(0.05), on(device, &vec![5; rows]));
        for use_fp64_gumbel in [false, true] {
            let sampler = Sampler::new(use_fp64_gumbel, LogprobsMode::Raw);
            let mut scratch = SamplerScratch::new(&sampler, rows, 8, device).expect("there is memory");
            let mut counts = [0; 8];
            for round in 0..rounds {
                let seeds = on(device, &(round * rows as i64..).take(rows).collect::<Vec<i64>>());
                let (positions, mut tokens) = (on(device, &vec![3i64; rows]), on(device, &vec![-7; rows]));
                let metadata = SamplingMetadata {
                    temperature: temperature.view(),
                    all_greedy: false,
                    top_k: Some(top_k.view()),
                    top_p: Some(top_p.view()),
                    min_p: Some(min_p.view()),
                    seeds: seeds.view(),
                    positions: positions.view(),
                };
                let output = SamplerOutput { sampled_token_ids: tokens.view_mut(), logprobs: None };
                let logits = input.view().matrix(rows, 8).expect("it fits").into();
                let processors = LogitsProcessors::default();
                sampler
                    .forward(output, logits, &processors, &metadata, Purpose::Sample, &mut scratch, device)
                    .expect("the arguments fit");
                let drawn = count(8, read(&tokens).into_iter().map(|token| token as usize));
                counts.iter_mut().zip(drawn).for_each(|(count, drawn)| *count += drawn);
            }
            // Top-k keeps tokens 3, 6, 0, 7 and 1; top-p, of which four have 0.90 of the mass, keeps the first four.
            let kept = [3, 6, 0, 7];
            let probs = softmax(&[2.0, 1.2, 1.0, 0.9, 0.5], 0.8);
            let mass: Vec<f64> = probs
                .iter()
                .scan(0.0, |sum, p| {
                    Some({
                        *sum += p;
                        *sum
                    })
                })
                .collect();
            assert!(mass[2] < 0.9 && mass[3] >= 0.9, "{mass:?}");
            let support: u64 = kept.iter().map(|&token: &usize| counts[token]).sum();
            assert_eq!(support, rows as u64 * rounds as u64, "nothing else is drawn: {counts:?} on {device}");
            assert_fits(&kept.map(|token| counts[token]), &probs[..4], "filtered draws");
        }
    });
}
