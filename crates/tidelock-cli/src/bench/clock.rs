//! How long a step takes: replays of its CUDA graph between events, or calls of the CPU arm, with cold caches.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use cudarc::driver::sys::{CUdevice_attribute, CUevent_flags, CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use rayon::prelude::*;
use serde::Serialize;
use tidelock::Device;

use super::flush::{Flush, Flushed, Reader};
use super::steps::Step;

/// Bytes that are copied to measure the bandwidth of a GPU; far beyond its cache.
const GPU_COPY: usize = 2 << 30;
/// The same for a CPU.
const CPU_COPY: usize = 256 << 20;
/// Replays before the first that counts.
const WARM_UP: usize = 5;

/// What was measured of one step, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    pub median_us: f64,
    /// A tenth of the replays were faster.
    pub p10_us: f64,
    /// A tenth of the replays were slower.
    pub p90_us: f64,
}

impl Times {
    fn new(mut micros: Vec<f64>) -> Times {
        micros.sort_by(f64::total_cmp);
        // Nanoseconds; the clocks know no more.
        let at = |part: f64| (micros[((micros.len() - 1) as f64 * part).round() as usize] * 1e3).round() / 1e3;
        Times { median_us: at(0.5), p10_us: at(0.1), p90_us: at(0.9) }
    }
}

/// Times steps on one device.
pub enum Clock {
    Cpu { cache: Vec<u8> },
    Gpu { stream: Arc<CudaStream>, cache: CudaSlice<u8>, reader: Option<Box<Reader>> },
}

impl Clock {
    /// The clock of the device that `name` names, and the device to make steps on.
    pub fn new(name: &str, flush: Flush) -> anyhow::Result<(Clock, Device)> {
        match name.parse()? {
            Device::Cpu => Ok((Clock::Cpu { cache: vec![0; 64 << 20] }, Device::Cpu)),
            Device::Cuda(cuda) => {
                // A context with one stream alone needs no events between streams, which a capture could not hold.
                let context = CudaContext::new(cuda.stream().context().ordinal())?;
                let stream = context.per_thread_stream();
                let l2 = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?;
                let bytes = usize::try_from(l2)? * 5 / 2;
                let cache = stream.alloc_zeros(bytes).context("no memory beside the cache")?;
                let device = Device::from_stream(stream.clone());
                let reader = (flush == Flush::Read).then(|| Reader::new(&device, bytes)).transpose()?.map(Box::new);
                Ok((Clock::Gpu { stream, cache, reader }, device))
            }
        }
    }

    /// What is done between replays, so that the step finds nothing in a cache.
    pub fn flushed(&self) -> Flushed {
        match self {
            Clock::Cpu { cache } => Flushed { flush: Flush::Written, flushed_bytes: cache.len() },
            Clock::Gpu { cache, reader, .. } => Flushed {
                flush: if reader.is_some() { Flush::Read } else { Flush::Written },
                flushed_bytes: cache.len(),
            },
        }
    }

    /// Bytes a second that a copy reads and writes.
    pub fn bandwidth(&self) -> anyhow::Result<f64> {
        let (bytes, times) = match self {
            Clock::Cpu { .. } => {
                let (from, mut to) = (vec![1u8; CPU_COPY], vec![0u8; CPU_COPY]);
                let part = CPU_COPY.div_ceil(rayon::current_num_threads());
                let copy = || {
                    let start = Instant::now();
                    to.par_chunks_mut(part).zip(from.par_chunks(part)).for_each(|(to, from)| to.copy_from_slice(from));
                    start.elapsed().as_secs_f64() * 1e6
                };
                (CPU_COPY, std::iter::repeat_with(copy).take(10).collect())
            }
            Clock::Gpu { stream, .. } => {
                let (from, mut to) = (stream.alloc_zeros::<u8>(GPU_COPY)?, stream.alloc_zeros::<u8>(GPU_COPY)?);
                (GPU_COPY, between_events(stream, 10, || Ok(stream.memcpy_dtod(&from, &mut to)?), || Ok(()))?)
            }
        };
        Ok(2.0 * bytes as f64 / (Times::new(times).median_us / 1e6))
    }

    /// Runs `step` once, and then `replays` times under the clock. It has to give `expected` before and after.
    pub fn time(&mut self, step: &mut dyn Step, replays: usize, expected: &[u8]) -> anyhow::Result<Times> {
        let times = match self {
            Clock::Cpu { cache } => {
                step.run()?;
                check(step, expected)?;
                let mut once = |round: usize| -> anyhow::Result<f64> {
                    cache.fill(round as u8);
                    let start = Instant::now();
                    step.run()?;
                    Ok(start.elapsed().as_secs_f64() * 1e6)
                };
                (0..replays).map(&mut once).collect::<anyhow::Result<_>>()?
            }
            Clock::Gpu { stream, cache, reader } => {
                step.run()?; // loads the kernels, which a capture could not
                stream.synchronize()?;
                check(step, expected)?;
                stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
                let captured = step.run();
                let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
                let graph = stream.end_capture(flags);
                captured?;
                let graph = graph?.context("the capture is empty")?;
                graph.upload()?;
                let flush = || {
                    stream.memset_zeros(cache)?;
                    Ok(reader.as_mut().map_or(Ok(()), |reader| reader.read())?)
                };
                between_events(stream, replays, || Ok(graph.launch()?), flush)?
            }
        };
        check(step, expected)?;
        Ok(Times::new(times))
    }
}

/// Microseconds of each of `replays` runs of `work` on the stream, with `before` ahead of each and outside of its time.
fn between_events(
    stream: &Arc<CudaStream>,
    replays: usize,
    mut work: impl FnMut() -> anyhow::Result<()>,
    mut before: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Vec<f64>> {
    let mut events = Vec::new();
    for _ in 0..WARM_UP + replays {
        before()?;
        let start = stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
        work()?;
        events.push((start, stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?));
    }
    stream.synchronize()?;
    let micros = |(start, end): &(_, _)| Ok(f64::from(cudarc::driver::CudaEvent::elapsed_ms(start, end)?) * 1e3);
    events[WARM_UP..].iter().map(micros).collect()
}

fn check(step: &dyn Step, expected: &[u8]) -> anyhow::Result<()> {
    let output = step.output()?;
    if output == expected {
        return Ok(());
    }
    let differ = output.iter().zip(expected).filter(|(got, expected)| got != expected).count();
    bail!("expected the CPU arm's output, got one that differs in {differ} of {} bytes", expected.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_and_its_spread() {
        let times = Times::new((0..=100).rev().map(f64::from).collect());
        assert_eq!((times.p10_us, times.median_us, times.p90_us), (10.0, 50.0, 90.0));
        assert_eq!(Times::new(vec![3.0]).median_us, 3.0);
    }

    #[test]
    fn a_step_that_gives_something_else_is_no_measurement() {
        struct Wrong;
        impl Step for Wrong {
            fn run(&mut self) -> tidelock::Result<()> {
                Ok(())
            }
            fn output(&self) -> tidelock::Result<Vec<u8>> {
                Ok(vec![1, 2, 3])
            }
        }
        let (mut clock, _) = Clock::new("cpu", Flush::Written).expect("there is a CPU");
        assert!(clock.time(&mut Wrong, 3, &[1, 2, 3]).is_ok());
        let error = clock.time(&mut Wrong, 3, &[1, 9, 9]).expect_err("it is wrong").to_string();
        assert_eq!(error, "expected the CPU arm's output, got one that differs in 2 of 3 bytes");
    }
}
