//! The layers of sampling: what comes out follows the target, whatever is beside a request.

use crate::statistics::{assert_fits, count, softmax};
use crate::support::{on, on_each_arm, read};
use tidelock::sampling::{
    InverseExponential, Logits, LogitsProcessors, LogprobsMode, LogprobsOutput, RejectionSampler, RejectionScratch,
    Sampler, SamplerOutput, SamplerScratch, SamplingMetadata, Scratch, SpecDecodeMetadata, Verification,
    compute_probs_and_sample_next_token,
};
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose};

pub(crate) const VOCAB: usize = 8;
pub(crate) const TARGET: [f32; VOCAB] = [1.0, 0.5, -0.5, 2.0, 0.0, -1.5, 1.2, f32::NEG_INFINITY];
const DRAFT: [f32; VOCAB] = [0.0, 1.5, 0.5, 1.0, -1.0, 0.3, 0.0, -2.0];

/// Rows of the same logits on a device.
pub(crate) fn rows(device: &Device, logits: &[f32; VOCAB], number: usize) -> Buffer<f32> {
    on(device, &logits.repeat(number))
}

pub(crate) fn logits(buffer: &Buffer<f32>) -> Logits<'_> {
    let view = buffer.view();
    let number = view.layout().columns() / VOCAB;
    view.matrix(number, VOCAB).expect("it fits").into()
}

/// A batch in which each request has as many drafts; request r has seed `first_seed + r`, its drafts are at 10, 11, …
pub(crate) struct Batch {
    cu: Buffer<i32>,
    drafts: Buffer<i32>,
    temperature: Buffer<f32>,
    seeds: Buffer<i64>,
    positions: Buffer<i64>,
    first_positions: Buffer<i64>,
    bonus_positions: Buffer<i64>,
}

impl Batch {
    pub(crate) fn new(device: &Device, drafts: &[i32], each: usize, temperature: f32, first_seed: i64) -> Batch {
        let requests = drafts.len() / each;
        let ends: Vec<i32> = (1..=requests).map(|request| (request * each) as i32).collect();
        let positions: Vec<i64> = (0..requests).flat_map(|_| (10..).take(each)).collect();
        Batch {
            cu: on(device, &ends),
            drafts: on(device, drafts),
            temperature: on(device, &vec![temperature; requests]),
            seeds: on(device, &(first_seed..).take(requests).collect::<Vec<i64>>()),
            positions: on(device, &positions),
            first_positions: on(device, &vec![10i64; requests]),
            bonus_positions: on(device, &vec![10 + each as i64; requests]),
        }
    }

    pub(crate) fn metadata(&self) -> SpecDecodeMetadata<'_> {
        SpecDecodeMetadata {
            cu_num_draft_tokens: self.cu.view(),
            draft_token_ids: self.drafts.view(),
            temperature: self.temperature.view(),
            is_greedy: None,
            all_greedy: false,
            all_random: true,
            top_k: None,
            top_p: None,
            min_p: None,
            seeds: self.seeds.view(),
            positions: self.positions.view(),
            first_positions: self.first_positions.view(),
            synthetic_conditional_rates: None,
        }
    }
}

/// Rows to sample with one seed and position each.
pub(crate) fn sample_rows<'a>(
    temperature: &'a Buffer<f32>,
    seeds: &'a Buffer<i64>,
    positions: &'a Buffer<i64>,
) -> SamplingMetadata<'a> {
    SamplingMetadata {
        temperature: temperature.view(),
        all_greedy: false,
        top_k: None,
        top_p: None,
        min_p: None,
        seeds: seeds.view(),
        positions: positions.view(),
    }
}

fn sample(
    sampler: &Sampler,
    input: Logits<'_>,
    metadata: &SamplingMetadata<'_>,
    purpose: Purpose,
    device: &Device,
) -> Vec<i32> {
    let mut scratch =
        SamplerScratch::new(sampler, input.num_rows(), input.vocab_size(), device).expect("there is memory");
    let mut tokens = Buffer::zeros(device, input.num_rows()).expect("there is memory");
    let output = SamplerOutput { sampled_token_ids: tokens.view_mut(), logprobs: None };
    let processors = LogitsProcessors::default();
    sampler.forward(output, input, &processors, metadata, purpose, &mut scratch, device).expect("the arguments fit");
    read(&tokens)
}

/// Drafts, one a request, and the distributions they were drawn from.
fn draft(device: &Device, requests: usize, seeds: &Buffer<i64>, use_fp64_gumbel: bool) -> (Vec<i32>, Buffer<f32>) {
    let (input, temperature) = (rows(device, &DRAFT, requests), on(device, &vec![1f32; requests]));
    let positions = on(device, &vec![10i64; requests]);
    let mut noise = InverseExponential::new(device, use_fp64_gumbel, requests * VOCAB).expect("there is memory");
    let mut scratch = Scratch::new("softmax", requests, VOCAB, device).expect("there is memory");
    let mut tokens = Buffer::zeros(device, requests).expect("there is memory");
    let mut probs = Buffer::zeros(device, requests * VOCAB).expect("there is memory");
    compute_probs_and_sample_next_token(
        tokens.view_mut(),
        probs.view_mut().matrix(requests, VOCAB).expect("it fits"),
        logits(&input),
        temperature.view(),
        seeds.view(),
        positions.view(),
        &mut noise,
        &mut scratch,
        device,
    )
    .expect("the arguments fit");
    (read(&tokens), probs)
}

/// A million requests with one draft each: the first token of each, which must follow the target alone.
fn first_tokens(device: &Device, use_fp64_gumbel: bool) -> (Vec<i32>, Vec<i32>) {
    let (requests, rounds) = (100_000, 10);
    let sampler = RejectionSampler::new(use_fp64_gumbel, Verification::Rejection);
    let mut scratch = RejectionScratch::new(&sampler, requests, requests, VOCAB, device).expect("there is memory");
    let target = rows(device, &TARGET, requests);
    let bonus = on(device, &vec![0; requests]);
    let (mut drafted, mut first) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let seeds = on(device, &(round * requests as i64..).take(requests).collect::<Vec<i64>>());
        let (drafts, probs) = draft(device, requests, &seeds, use_fp64_gumbel);
        let batch = Batch::new(device, &drafts, 1, 1.0, round * requests as i64);
        let mut output = on(device, &vec![-77; 2 * requests]);
        let probs = probs.view().matrix(requests, VOCAB).expect("it fits");
        sampler
            .forward(
                output.view_mut().matrix(requests, 2).expect("it fits"),
                logits(&target),
                Some(probs),
                bonus.view(),
                &batch.metadata(),
                &mut scratch,
                device,
            )
            .expect("the arguments fit");
        first.extend(read(&output).chunks(2).map(|row| row[0]));
        drafted.extend(drafts);
    }
    (drafted, first)
}

#[test]
fn the_first_token_of_a_verified_draft_follows_the_target() {
    on_each_arm(|device| {
        for use_fp64_gumbel in [false, true] {
            let (drafted, first) = first_tokens(device, use_fp64_gumbel);
            let counts = count(VOCAB, drafted.iter().map(|&token| token as usize));
            assert_fits(&counts, &softmax(&DRAFT, 1.0), "drafts follow the draft model");
            assert!(first.iter().all(|&token| token != 7), "token 7 is outside the target's support");
            let counts = count(VOCAB - 1, first.iter().map(|&token| token as usize));
            assert_fits(&counts, &softmax(&TARGET, 1.0)[..VOCAB - 1], "first tokens follow the target");
        }
    });
}

#[test]
fn sampled_verification_gives_the_tokens_of_plain_sampling() {
    on_each_arm(|device| {
        let requests = 500;
        let sampler = Sampler::new(true, LogprobsMode::Raw);
        let target = rows(device, &TARGET, 2 * requests);
        // The tokens that each request would have at positions 10 and 11, and, with the same logits again, at 12.
        let temperature = on(device, &vec![0.7f32; requests]);
        let seeds = on(device, &(40..).take(requests).collect::<Vec<i64>>());
        let plain = |position: i64| {
            let (input, positions) = (rows(device, &TARGET, requests), on(device, &vec![position; requests]));
            sample(&sampler, logits(&input), &sample_rows(&temperature, &seeds, &positions), Purpose::Sample, device)
        };
        let (first, second, third) = (plain(10), plain(11), plain(12));
        // Drafts that are right, right but for the second, or wrong at once.
        let drafts = (0..requests).flat_map(|request| match request % 3 {
            0 => [first[request], second[request]],
            1 => [first[request], (second[request] + 1) % 7],
            _ => [-1, second[request]],
        });
        let batch = Batch::new(device, &drafts.collect::<Vec<_>>(), 2, 0.7, 40);
        let rejection = RejectionSampler::new(true, Verification::Sampled);
        let bonus = {
            let (input, metadata) =
                (rows(device, &TARGET, requests), &sample_rows(&temperature, &seeds, &batch.bonus_positions));
            sample(&sampler, logits(&input), metadata, rejection.bonus_purpose(), device)
        };
        assert_eq!(bonus, third, "a bonus token is the plain token of its position, on {device}");
        let bonus = on(device, &bonus);
        let mut scratch =
            RejectionScratch::new(&rejection, requests, 2 * requests, VOCAB, device).expect("there is memory");
        let mut output = on(device, &vec![-77; 3 * requests]);
        let view = output.view_mut().matrix(requests, 3).expect("it fits");
        rejection
            .forward(view, logits(&target), None, bonus.view(), &batch.metadata(), &mut scratch, device)
            .expect("the arguments fit");
        for (request, row) in read(&output).chunks(3).enumerate() {
            let (first, second, third) = (first[request], second[request], third[request]);
            let expected = match request % 3 {
                0 => [first, second, third],
                1 => [first, second, -1],
                _ => [first, -1, -1],
            };
            assert_eq!(row, expected, "request {request} on {device}");
        }
    });
}

#[test]
fn a_request_has_the_same_tokens_alone_and_in_any_batch() {
    on_each_arm(|device| {
        let number = 64;
        let shape = |rows: &[usize]| {
            let pick = |row: &usize| {
                let shift = *row as f32 * 0.1;
                TARGET.map(|x| x * (1.0 + shift))
            };
            rows.iter().flat_map(pick).collect::<Vec<f32>>()
        };
        let run = |order: &[usize]| {
            let input = on(device, &shape(order));
            let value =
                |number: fn(usize) -> f32| on(device, &order.iter().map(|&row| number(row)).collect::<Vec<f32>>());
            // Greedy, plain, tiny and hot rows; filtered and unfiltered ones.
            let temperature = value(|row| [0.0, 1.0, 1e-6, 3.0][row % 4]);
            let top_k = on(device, &order.iter().map(|&row| [0, 3, -1, 100][row % 4]).collect::<Vec<i32>>());
            let (top_p, min_p) = (value(|row| [1.0, 0.8, 0.5][row % 3]), value(|row| [0.0, 0.1][row % 2]));
            let seeds = on(device, &order.iter().map(|&row| 7 * row as i64).collect::<Vec<i64>>());
            let positions = on(device, &order.iter().map(|&row| row as i64).collect::<Vec<i64>>());
            let metadata = SamplingMetadata {
                top_k: Some(top_k.view()),
                top_p: Some(top_p.view()),
                min_p: Some(min_p.view()),
                ..sample_rows(&temperature, &seeds, &positions)
            };
            sample(&Sampler::new(true, LogprobsMode::Raw), logits(&input), &metadata, Purpose::Sample, device)
        };
        let all: Vec<usize> = (0..number).collect();
        let whole = run(&all);
        let reversed: Vec<usize> = all.iter().rev().copied().collect();
        assert_eq!(run(&reversed).into_iter().rev().collect::<Vec<_>>(), whole, "permuted, on {device}");
        let halves = [run(&all[..20]), run(&all[20..])].concat();
        assert_eq!(halves, whole, "split, on {device}");
        for row in (0..number).step_by(4) {
            assert_eq!(whole[row], 3, "row {row} is greedy, on {device}");
        }
    });
}

#[test]
fn logprobs_are_of_the_model_or_of_what_was_drawn_from() {
    on_each_arm(|device| {
        let (input, temperature) = (rows(device, &TARGET, 1), on(device, &[0.5f32]));
        let (seeds, positions, top_k) = (on(device, &[3i64]), on(device, &[0i64]), on(device, &[2]));
        let unfiltered = sample_rows(&temperature, &seeds, &positions);
        let filtered = SamplingMetadata { top_k: Some(top_k.view()), ..unfiltered };
        let run = |mode, metadata: SamplingMetadata<'_>| {
            let sampler = Sampler::new(false, mode);
            let mut scratch = SamplerScratch::new(&sampler, 1, VOCAB, device).expect("there is memory");
            let (mut token, mut logprob, mut rank) = (on(device, &[-7]), on(device, &[9f32]), on(device, &[-7]));
            let (mut top, mut top_ids) = (on(device, &[9f32; 3]), on(device, &[-7; 3]));
            let output = SamplerOutput {
                sampled_token_ids: token.view_mut(),
                logprobs: Some(LogprobsOutput {
                    sampled_logprobs: logprob.view_mut(),
                    sampled_ranks: rank.view_mut(),
                    top_logprobs: top.view_mut().matrix(1, 3).expect("it fits"),
                    top_token_ids: top_ids.view_mut().matrix(1, 3).expect("it fits"),
                }),
            };
            let processors = LogitsProcessors::default();
            sampler
                .forward(output, logits(&input), &processors, &metadata, Purpose::Sample, &mut scratch, device)
                .expect("the arguments fit");
            let token = read(&token)[0];
            (token, read(&logprob)[0], read(&rank)[0], read(&top), read(&top_ids))
        };
        let close = |a: f32, b: f64| (f64::from(a) - b).abs() < 1e-6;
        let (token, logprob, rank, top, ids) = run(LogprobsMode::Raw, filtered);
        let raw = softmax(&TARGET, 1.0);
        assert!(close(logprob, raw[token as usize].ln()) && close(top[0], raw[3].ln()), "{logprob} {top:?}");
        assert_eq!((rank, ids), (if token == 3 { 1 } else { 2 }, vec![3, 6, 0]), "on {device}");
        assert!(token == 3 || token == 6, "top-k 2 keeps tokens 3 and 6, on {device}");
        // Without filters nothing was filtered for the draw, and logprobs are still of the temperature's distribution.
        let (token, logprob, _, _, _) = run(LogprobsMode::Processed, unfiltered);
        assert!(close(logprob, softmax(&TARGET, 0.5)[token as usize].ln()), "{logprob} of {token}, on {device}");
        let greedy = SamplingMetadata { all_greedy: true, ..filtered };
        let (token, logprob, rank, _, _) = run(LogprobsMode::Processed, greedy);
        assert!(token == 3 && rank == 1 && close(logprob, softmax(&[2.0, 1.2], 0.5)[0].ln()), "{logprob}, on {device}");
        let (token, logprob, _, top, ids) = run(LogprobsMode::Processed, filtered);
        let processed = softmax(&[2.0, 1.2], 0.5);
        assert!(close(logprob, processed[usize::from(token == 6)].ln()) && close(top[1], processed[1].ln()), "{top:?}");
        assert_eq!((ids, top[2]), (vec![3, 6, -1], f32::NEG_INFINITY), "two tokens are left, on {device}");
    });
}

/// Of three requests one has a draft; with filters, too, the others get their bonus tokens.
#[test]
fn there_may_be_more_requests_than_drafts() {
    on_each_arm(|device| {
        let (cu, drafts, bonus) = (on(device, &[0, 1, 1]), on(device, &[-1]), on(device, &[5, 6, 7]));
        let (temperature, seeds) = (on(device, &[1f32; 3]), on(device, &[1i64, 2, 3]));
        let (positions, first_positions) = (on(device, &[10i64]), on(device, &[10i64; 3]));
        let (top_k, target) = (on(device, &[1; 3]), rows(device, &TARGET, 1));
        let metadata = SpecDecodeMetadata {
            cu_num_draft_tokens: cu.view(),
            draft_token_ids: drafts.view(),
            temperature: temperature.view(),
            is_greedy: None,
            all_greedy: false,
            all_random: true,
            top_k: Some(top_k.view()),
            top_p: None,
            min_p: None,
            seeds: seeds.view(),
            positions: positions.view(),
            first_positions: first_positions.view(),
            synthetic_conditional_rates: None,
        };
        let sampler = RejectionSampler::new(true, Verification::Rejection);
        let mut scratch = RejectionScratch::new(&sampler, 3, 1, VOCAB, device).expect("there is memory");
        let mut output = on(device, &[-77; 6]);
        let view = output.view_mut().matrix(3, 2).expect("it fits");
        sampler.forward(view, logits(&target), None, bonus.view(), &metadata, &mut scratch, device).expect("it fits");
        let best = (0..VOCAB).max_by(|&a, &b| TARGET[a].total_cmp(&TARGET[b])).expect("there are tokens") as i32;
        assert_eq!(read(&output), [5, -1, best, -1, 7, -1], "{device}");
    });
}
