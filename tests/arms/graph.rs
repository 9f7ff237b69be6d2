//! A step can be captured into a CUDA graph: it allocates nothing and does not synchronise, or the capture would fail.

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use tidelock::kernels::Argmax;
use tidelock::sampling::{LogitsProcessors, LogprobsMode, Sampler, SamplerOutput, SamplerScratch, SamplingMetadata};
use tidelock::{AsView, AsViewMut, CudaDevice, Device, Purpose};

use crate::support::{on, read};

/// Nothing else is to use a stream of this context then.
fn without_events(cuda: &CudaDevice) {
    // SAFETY: each test launches, reads and frees on one stream, so no events are needed to order it.
    #[allow(unsafe_code)]
    unsafe {
        cuda.stream().context().disable_event_tracking();
    }
}

#[test]
fn a_prepared_launch_is_captured_and_replayed() {
    let Ok(device) = Device::cuda(0) else { return eprintln!("no GPU here, so no graph") };
    let Device::Cuda(cuda) = &device else { unreachable!("the device was asked for") };
    without_events(cuda);
    let (logits, mut tokens) = (on(&device, &[1.0f32, 5.0, 3.0]), on(&device, &[-7i64]));
    let logits = logits.view().matrix(1, 3).expect("it fits");
    let call = Argmax { output_token_ids: tokens.view_mut(), logits };
    // To prepare it loads the kernel, which a capture could not.
    let mut prepared = call.prepare(&device).expect("the arguments fit");
    cuda.stream().begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).expect("capture begins");
    prepared.launch().expect("it was checked");
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = cuda.stream().end_capture(flags).expect("capture ends").expect("there is a graph");
    drop(prepared);
    assert_eq!(read(&tokens), [-7], "a capture runs nothing");
    graph.launch().expect("the graph runs");
    assert_eq!(read(&tokens), [1]);
}

#[test]
fn a_step_is_captured_and_replayed() {
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => return eprintln!("no GPU here, so no graph: {error}"),
    };
    let Device::Cuda(cuda) = &device else { unreachable!("the device was asked for") };
    without_events(cuda);
    let (rows, vocab) = (7, 1000);
    let logits: Vec<f32> = (0..rows * vocab).map(|index| ((index * 7919) % 1013) as f32 / 100.0).collect();
    let logits = on(&device, &logits);
    let (temperature, top_k) = (on(&device, &vec![0.9f32; rows]), on(&device, &vec![50; rows]));
    let seeds = on(&device, &(0..).take(rows).collect::<Vec<i64>>());
    let mut positions = on(&device, &vec![5i64; rows]);
    let mut tokens = on(&device, &vec![-7; rows]);
    let sampler = Sampler::new(true, LogprobsMode::Raw);
    let mut scratch = SamplerScratch::new(&sampler, rows, vocab, &device).expect("there is memory");
    let mut step = |positions: &tidelock::Buffer<i64>, tokens: &mut tidelock::Buffer<i32>| {
        let metadata = SamplingMetadata {
            temperature: temperature.view(),
            all_greedy: false,
            top_k: Some(top_k.view()),
            top_p: None,
            min_p: None,
            seeds: seeds.view(),
            positions: positions.view(),
        };
        let output = SamplerOutput { sampled_token_ids: tokens.view_mut(), logprobs: None };
        let logits = logits.view().matrix(rows, vocab).expect("it fits").into();
        let processors = LogitsProcessors::default();
        sampler
            .forward(output, logits, &processors, &metadata, Purpose::Sample, &mut scratch, &device)
            .expect("the arguments fit");
    };
    // The first step loads the kernels, which a capture could not.
    step(&positions, &mut tokens);
    let at_five = read(&tokens);

    cuda.stream().begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).expect("capture begins");
    step(&positions, &mut tokens);
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = cuda.stream().end_capture(flags).expect("capture ends").expect("there is a graph");

    // New positions in the same memory: the graph reads them when it is replayed.
    let tidelock::Buffer::Cuda(memory) = &mut positions else { unreachable!("the buffer is on the GPU") };
    cuda.stream().memcpy_htod(&vec![6i64; rows], memory).expect("the positions are written");
    graph.launch().expect("the graph runs");
    let replayed = read(&tokens);
    assert_ne!(replayed, at_five, "another position has other noise");
    step(&positions, &mut tokens);
    assert_eq!(read(&tokens), replayed, "a replay gives what a launch gives");
}
