//! What the layers of sampling refuse, so that no flag is ignored; with what was expected and what came.

use crate::sampling::{Batch, TARGET, VOCAB, logits, rows, sample_rows};
use crate::support::{on, read};
use tidelock::sampling::{
    LogitsProcessors, LogprobsMode, RejectionSampler, RejectionScratch, Sampler, SamplerOutput, SamplerScratch,
    SpecDecodeMetadata, Verification,
};
use tidelock::{AsView, AsViewMut, Device, Purpose};

#[test]
fn what_cannot_be_honoured_is_refused() {
    let device = &Device::Cpu;
    let batch = Batch::new(device, &[1, 2], 1, 1.0, 0);
    let (target, bonus) = (rows(device, &TARGET, 2), on(device, &[0, 0]));
    let probs = on(device, &[0.125f32; 2 * VOCAB]);
    let run = |verification, metadata: SpecDecodeMetadata<'_>, with_probs: bool, max_tokens| {
        let sampler = RejectionSampler::new(true, verification);
        let mut scratch = RejectionScratch::new(&sampler, 2, max_tokens, VOCAB, device).expect("there is memory");
        let mut output = on(device, &[-77; 4]);
        let view = output.view_mut().matrix(2, 2).expect("it fits");
        let probs = with_probs.then(|| probs.view().matrix(2, VOCAB).expect("it fits"));
        let result = sampler.forward(view, logits(&target), probs, bonus.view(), &metadata, &mut scratch, device);
        result.map_err(|error| error.to_string()).expect_err("it is refused")
    };
    let random = batch.metadata();
    assert_eq!(
        run(Verification::Sampled, random, true, 2),
        "RejectionSampler: expected no draft probabilities with sampled verification, got some"
    );
    let rates = on(device, &[0.5f32]);
    let synthetic = SpecDecodeMetadata { synthetic_conditional_rates: Some(rates.view()), ..random };
    assert_eq!(
        run(Verification::Sampled, synthetic, false, 2),
        "RejectionSampler: expected no synthetic rates with sampled verification, got some"
    );
    assert_eq!(
        run(Verification::Rejection, synthetic, false, 2),
        "RejectionSampler: expected scratch made with_synthetic_rates, got other scratch"
    );
    let both = SpecDecodeMetadata { all_greedy: true, ..random };
    assert_eq!(
        run(Verification::Rejection, both, true, 2),
        "RejectionSampler: expected all_greedy or all_random, got both"
    );
    let neither = SpecDecodeMetadata { all_random: false, ..random };
    assert_eq!(
        run(Verification::Rejection, neither, true, 2),
        "RejectionSampler: expected is_greedy where requests are neither all greedy nor all random, got none"
    );
    assert_eq!(
        run(Verification::Rejection, random, true, 1),
        "RejectionSampler: expected at most 2 requests and 1 tokens, got 2 and 2"
    );
}

#[test]
fn scratch_of_another_precision_is_refused() {
    let device = &Device::Cpu;
    let (f32_sampler, f64_sampler) = (Sampler::new(false, LogprobsMode::Raw), Sampler::new(true, LogprobsMode::Raw));
    let mut scratch = SamplerScratch::new(&f32_sampler, 1, VOCAB, device).expect("there is memory");
    let (input, temperature) = (rows(device, &TARGET, 1), on(device, &[1f32]));
    let (seeds, positions, mut token) = (on(device, &[3i64]), on(device, &[0i64]), on(device, &[-7]));
    let metadata = sample_rows(&temperature, &seeds, &positions);
    let output = SamplerOutput { sampled_token_ids: token.view_mut(), logprobs: None };
    let processors = LogitsProcessors::default();
    let result =
        f64_sampler.forward(output, logits(&input), &processors, &metadata, Purpose::Sample, &mut scratch, device);
    let message = result.expect_err("64-bit noise was asked for").to_string();
    assert_eq!(message, "TopKTopPSampler: expected scratch made for this sampler's use_fp64_gumbel, got another's");
    assert_eq!(read(&token), [-7]);
}

/// Blocks of a GPU meet in the scratch memory, so rows of another length must not find others' counters there.
#[test]
fn verification_refuses_scratch_of_another_vocabulary_or_precision() {
    let device = &Device::Cpu;
    let batch = Batch::new(device, &[1, 2], 1, 1.0, 0);
    let (target, bonus) = (rows(device, &TARGET, 2), on(device, &[0, 0]));
    let refused = |made_for: bool, vocab_size: usize| {
        let sampler = RejectionSampler::new(true, Verification::Rejection);
        let other = RejectionSampler::new(made_for, Verification::Rejection);
        let mut scratch = RejectionScratch::new(&other, 2, 2, vocab_size, device).expect("there is memory");
        let mut output = on(device, &[-77; 4]);
        let view = output.view_mut().matrix(2, 2).expect("it fits");
        let metadata = batch.metadata();
        let result = sampler.forward(view, logits(&target), None, bonus.view(), &metadata, &mut scratch, device);
        assert_eq!(read(&output), [-77; 4]);
        result.map_err(|error| error.to_string()).expect_err("it is refused")
    };
    let message = format!("RejectionSampler: expected rows of {} tokens, got {VOCAB}", VOCAB + 1);
    assert_eq!(refused(true, VOCAB + 1), message);
    let message = "RejectionSampler: expected scratch made for this sampler's use_fp64_gumbel, got another's";
    assert_eq!(refused(false, VOCAB), message);
}
