//! `tidelock bench cold-start`: what a new process waits for before its first token, part by part.

use std::io::Write;
use std::time::Instant;

use anyhow::bail;
use serde::Serialize;
use tidelock::kernels::GumbelSample;
use tidelock::sampling::{SamplingMetadata, SamplingScratch, TopKTopPSampler, scratch_words};
use tidelock::{AsView, AsViewMut, Buffer, Device, Purpose};

use crate::output;

/// Tokens of the vocabulary.
const VOCAB: usize = 151_936;

/// Milliseconds of each part, in order.
#[derive(Serialize)]
struct ColdStart {
    /// Starting the driver and making the context: not ours.
    context_ms: f64,
    /// Buffers, the first allocation among them: the driver's memory pool.
    memory_ms: f64,
    /// Loading one kernel, the race: from its cubin, or compiling its PTX.
    load_ms: f64,
    /// Its first launch, to its token on the host.
    first_launch_ms: f64,
    /// The same again, now that all is there.
    next_launch_ms: f64,
    /// A first step with top-k and top-p: the other kernels are loaded and run.
    first_filtered_step_ms: f64,
    /// The same again.
    next_filtered_step_ms: f64,
    /// The driver may have kept what an earlier process compiled; CUDA_CACHE_DISABLE=1 forbids it.
    driver_cache: bool,
    /// The folder of cubins.
    cubins: Option<String>,
}

/// Measures this process, which must not have used the device before.
pub fn run(out: &mut impl Write, device: &str, json: bool) -> anyhow::Result<()> {
    let mut clock = Instant::now();
    let mut lap = || {
        let elapsed = clock.elapsed().as_secs_f64() * 1e3;
        clock = Instant::now();
        elapsed
    };
    let device: Device = device.parse()?;
    if let Device::Cpu = device {
        bail!("cold-start: expected a GPU, got cpu, which has nothing to load");
    }
    let context_ms = lap();
    let logits = Buffer::from_slice(&device, &vec![1f32; VOCAB])?;
    let (temperature, top_p) = (Buffer::from_slice(&device, &[1f32])?, Buffer::from_slice(&device, &[0.9f32])?);
    let (top_k, seeds, positions) = (
        Buffer::from_slice(&device, &[50])?,
        Buffer::from_slice(&device, &[7i64])?,
        Buffer::from_slice(&device, &[0i64])?,
    );
    let (mut tokens, mut sampled) = (Buffer::<i32>::zeros(&device, 1)?, Buffer::<f32>::zeros(&device, 1)?);
    let words = scratch_words("gumbel_sample", VOCAB);
    let (mut noise, mut scratch) = (Buffer::<f64>::zeros(&device, 1)?, Buffer::zeros(&device, words)?);
    device.synchronize()?;
    let memory_ms = lap();
    let mut race = GumbelSample {
        output_token_ids: tokens.view_mut(),
        sampled_logits: sampled.view_mut(),
        sampled_noise: noise.view_mut(),
        scratch: scratch.view_mut().matrix(1, words)?,
        logits: logits.view().matrix(1, VOCAB)?,
        temperature: temperature.view(),
        seeds: seeds.view(),
        positions: positions.view(),
        purpose: Purpose::Sample.into(),
    }
    .prepare(&device)?;
    let load_ms = lap();
    let mut launch = || race.launch().and_then(|()| device.synchronize());
    launch()?;
    let first_launch_ms = lap();
    launch()?;
    let next_launch_ms = lap();
    drop(race);
    let sampler = TopKTopPSampler::new(true);
    let mut scratch = SamplingScratch::new(sampler, 1, VOCAB, &device)?;
    let metadata = SamplingMetadata {
        temperature: temperature.view(),
        all_greedy: false,
        top_k: Some(top_k.view()),
        top_p: Some(top_p.view()),
        min_p: None,
        seeds: seeds.view(),
        positions: positions.view(),
    };
    let mut step = || -> tidelock::Result<f64> {
        lap();
        let logits = logits.view().matrix(1, VOCAB)?.into();
        sampler.forward(tokens.view_mut(), logits, &metadata, Purpose::Sample, &mut scratch, &device)?;
        tokens.to_vec()?;
        Ok(lap())
    };
    let cubins = std::env::var(tidelock::cubin::VARIABLE).ok();
    let compiles_all = std::env::var("CUDA_CACHE_DISABLE").is_ok_and(|value| value == "1");
    let measured = ColdStart {
        context_ms,
        memory_ms,
        load_ms,
        first_launch_ms,
        next_launch_ms,
        first_filtered_step_ms: step()?,
        next_filtered_step_ms: step()?,
        driver_cache: !compiles_all,
        cubins,
    };
    if json { output::json(out, &measured) } else { print(out, &measured) }
}

fn print(out: &mut impl Write, measured: &ColdStart) -> anyhow::Result<()> {
    let mut table = output::table(["part", "ms"], &[1]);
    let parts = [
        ("context", measured.context_ms),
        ("memory", measured.memory_ms),
        ("load of the race", measured.load_ms),
        ("its first launch", measured.first_launch_ms),
        ("its next launch", measured.next_launch_ms),
        ("first step with top-k and top-p", measured.first_filtered_step_ms),
        ("next step with top-k and top-p", measured.next_filtered_step_ms),
    ];
    for (part, ms) in parts {
        table.add_row([part.to_string(), format!("{ms:.2}")]);
    }
    output::print(out, &table, "")?;
    let ours = measured.memory_ms + measured.load_ms + measured.first_launch_ms;
    writeln!(out, "from the context to the first token: {ours:.1} ms")?;
    match &measured.cubins {
        Some(folder) => writeln!(out, "cubins from {folder}")?,
        None if measured.driver_cache => {
            writeln!(out, "the driver may have kept what it compiled; CUDA_CACHE_DISABLE=1 forbids it")?
        }
        None => writeln!(out, "all PTX was compiled now")?,
    }
    Ok(())
}
