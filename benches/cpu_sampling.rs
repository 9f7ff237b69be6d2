//! What sampling costs on a CPU: 151,936 tokens, f32 logits from N(0, 3), one row and 64.
//!
//! `cargo bench --bench cpu_sampling`; README-cpu.md beside it says what the figures are compared with.

use divan::Bencher;
use tidelock::kernels::{
    Argmax, DrawInverseExponential, GumbelSample, LogSoftmax, RandomSample, SampleRecoveredTokens, Softmax,
};
use tidelock::sampling::{SamplingMetadata, SamplingScratch, Scratch, TopKTopPSampler, scratch_words};
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose};

const VOCAB: usize = 151_936;
const ROWS: [usize; 2] = [1, 64];
const CPU: Device = Device::Cpu;

/// Drafted tokens of a request.
const DRAFTS: usize = 4;

fn main() {
    divan::main();
}

/// Logits from N(0, 3), by Box and Muller from a linear congruential generator.
fn logits(rows: usize) -> Vec<f32> {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f64 + 0.5) / f64::from(1 << 24)
    };
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    (0..rows * VOCAB).map(|_| (3.0 * normal()) as f32).collect()
}

fn probs(rows: usize, logits: &[f32]) -> Vec<f32> {
    let mut probs = vec![0.0; rows * VOCAB];
    softmax(&mut probs, logits, &vec![1.0; rows], &mut scratch("softmax", rows));
    probs
}

fn scratch(kernel: &str, rows: usize) -> Scratch {
    Scratch::new(kernel, rows, VOCAB, &CPU).expect("there is memory")
}

fn softmax(probs: &mut [f32], logits: &[f32], temperature: &[f32], scratch: &mut Scratch) {
    let rows = temperature.len();
    let call = Softmax {
        probs: probs.view_mut().matrix(rows, VOCAB).expect("it fits"),
        scratch: scratch.rows(rows).expect("it fits"),
        logits: logits.view().matrix(rows, VOCAB).expect("it fits"),
        temperature: temperature.view(),
    };
    call.launch(&CPU).expect("the arguments fit");
}

fn counting(rows: usize) -> Vec<i64> {
    (0..rows as i64).collect()
}

fn draw(bencher: Bencher, rows: usize, mut noise: Buffer<impl tidelock::kernels::GumbelSampleSampledNoise>) {
    let (logits, temperature, numbers) = (logits(rows), vec![1.0; rows], counting(rows));
    let (mut tokens, mut sampled) = (vec![0; rows], vec![0.0; rows]);
    let words = scratch_words("gumbel_sample", VOCAB);
    let mut scratch = vec![0; rows * words];
    bencher.bench_local(|| {
        GumbelSample {
            output_token_ids: tokens.view_mut(),
            sampled_logits: sampled.view_mut(),
            sampled_noise: noise.view_mut(),
            scratch: scratch.view_mut().matrix(rows, words).expect("it fits"),
            logits: logits.view().matrix(rows, VOCAB).expect("it fits"),
            temperature: temperature.view(),
            seeds: numbers.view(),
            positions: numbers.view(),
            purpose: Purpose::Sample.into(),
        }
        .launch(&CPU)
    });
}

#[divan::bench(args = ROWS)]
fn draw_fp32(bencher: Bencher, rows: usize) {
    draw(bencher, rows, Buffer::<f32>::zeros(&CPU, rows).expect("the host has memory"));
}

#[divan::bench(args = ROWS)]
fn draw_fp64(bencher: Bencher, rows: usize) {
    draw(bencher, rows, Buffer::<f64>::zeros(&CPU, rows).expect("the host has memory"));
}

fn draw_within(bencher: Bencher, rows: usize, top_k: Option<i32>) {
    let (logits, numbers) = (logits(rows), counting(rows));
    let (temperature, top_k, top_p) = (vec![1.0; rows], top_k.map(|top_k| vec![top_k; rows]), vec![0.9; rows]);
    let sampler = TopKTopPSampler::new(true);
    let mut scratch = SamplingScratch::new(sampler, rows, VOCAB, &CPU).expect("the host has memory");
    let mut tokens = vec![0; rows];
    let metadata = SamplingMetadata {
        temperature: temperature.view(),
        all_greedy: false,
        top_k: top_k.as_ref().map(|top_k| top_k.view()),
        top_p: Some(top_p.view()),
        min_p: None,
        seeds: numbers.view(),
        positions: numbers.view(),
    };
    bencher.bench_local(|| {
        let logits = logits.view().matrix(rows, VOCAB).expect("it fits");
        sampler.forward(tokens.view_mut(), logits.into(), &metadata, Purpose::Sample, &mut scratch, &CPU)
    });
}

#[divan::bench(args = ROWS)]
fn top_k_50_top_p_draw_fp64(bencher: Bencher, rows: usize) {
    draw_within(bencher, rows, Some(50));
}

#[divan::bench(args = ROWS)]
fn top_p_draw_fp64(bencher: Bencher, rows: usize) {
    draw_within(bencher, rows, None);
}

#[divan::bench(args = ROWS)]
fn argmax(bencher: Bencher, rows: usize) {
    let (logits, mut tokens) = (logits(rows), vec![0_i64; rows]);
    bencher.bench_local(|| {
        let logits = logits.view().matrix(rows, VOCAB).expect("it fits");
        Argmax { output_token_ids: tokens.view_mut(), logits }.launch(&CPU)
    });
}

#[divan::bench(args = ROWS)]
fn softmax_of_logits(bencher: Bencher, rows: usize) {
    let (logits, temperature, mut probs) = (logits(rows), vec![1.0; rows], vec![0.0; rows * VOCAB]);
    let mut scratch = scratch("softmax", rows);
    bencher.bench_local(|| softmax(&mut probs, &logits, &temperature, &mut scratch));
}

#[divan::bench(args = ROWS)]
fn log_softmax(bencher: Bencher, rows: usize) {
    let (logits, mut logprobs, mut scratch) = (logits(rows), vec![0.0; rows * VOCAB], scratch("log_softmax", rows));
    bencher.bench_local(|| {
        LogSoftmax {
            logprobs: logprobs.view_mut().matrix(rows, VOCAB).expect("it fits"),
            scratch: scratch.rows(rows).expect("it fits"),
            logits: logits.view().matrix(rows, VOCAB).expect("it fits"),
        }
        .launch(&CPU)
    });
}

fn noise(inv_q: &mut [f64], rows: usize, numbers: &[i64]) {
    let output = inv_q.view_mut().matrix(rows, VOCAB).expect("it fits");
    let purpose = Purpose::Recovery.into();
    let call = DrawInverseExponential { output, seeds: numbers.view(), positions: numbers.view(), purpose };
    call.launch(&CPU).expect("the arguments fit");
}

#[divan::bench(args = ROWS)]
fn exponential_noise_fp64(bencher: Bencher, rows: usize) {
    let (mut inv_q, numbers) = (vec![0.0; rows * VOCAB], counting(rows));
    bencher.bench_local(|| noise(&mut inv_q, rows, &numbers));
}

#[divan::bench(args = ROWS)]
fn race_over_given_noise_fp64(bencher: Bencher, rows: usize) {
    let (probs, mut inv_q, mut tokens) = (probs(rows, &logits(rows)), vec![0.0; rows * VOCAB], vec![0; rows]);
    noise(&mut inv_q, rows, &counting(rows));
    bencher.bench_local(|| {
        RandomSample {
            output_token_ids: tokens.view_mut(),
            probs: probs.view().matrix(rows, VOCAB).expect("it fits"),
            inv_q: inv_q.view().matrix(rows, VOCAB).expect("it fits"),
        }
        .launch(&CPU)
    });
}

/// Requests of four drafted tokens each; with and without the drawing of the noise.
fn recover(bencher: Bencher, requests: usize, draws: bool) {
    let tokens = requests * DRAFTS;
    let target = probs(tokens, &logits(tokens));
    let draft: Vec<f32> = target.iter().rev().copied().collect();
    let ends: Vec<i32> = (1..=requests).map(|request| (request * DRAFTS) as i32).collect();
    let drafted: Vec<i32> = (0..tokens as i32).collect();
    let (mut inv_q, mut recovered) = (vec![0.0; requests * VOCAB], vec![0; tokens]);
    let numbers = counting(requests);
    noise(&mut inv_q, requests, &numbers);
    bencher.bench_local(|| {
        if draws {
            noise(&mut inv_q, requests, &numbers);
        }
        SampleRecoveredTokens {
            output_token_ids: recovered.view_mut(),
            cu_num_draft_tokens: ends.view(),
            draft_token_ids: drafted.view(),
            draft_probs: Some(draft.view().matrix(tokens, VOCAB).expect("it fits")),
            target_probs: target.view().matrix(tokens, VOCAB).expect("it fits"),
            inv_q: inv_q.view().matrix(requests, VOCAB).expect("it fits"),
        }
        .launch(&CPU)
    });
}

#[divan::bench(args = [1, 16])]
fn recovered_tokens_of_requests_fp64(bencher: Bencher, requests: usize) {
    recover(bencher, requests, false);
}

#[divan::bench(args = [1, 16])]
fn recovered_tokens_of_requests_and_their_noise_fp64(bencher: Bencher, requests: usize) {
    recover(bencher, requests, true);
}
