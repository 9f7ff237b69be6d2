//! A kernel of tidelock on a stream and buffers of cust, and the CPU arm on the same rows: every bit must be the same.

use std::error::Error;

use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::{Stream, StreamFlags};
use tidelock::kernels::Softmax;
use tidelock::sampling::{Scratch, scratch_words};
use tidelock::{AsView, AsViewMut, Device};
use tidelock_cust::Worker;

const ROWS: usize = 64;
const COLUMNS: usize = 32_000;

fn main() -> Result<(), Box<dyn Error>> {
    let _context = cust::quick_init()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    // SAFETY: `stream` lives to the end of this function, and so does all work on it, which is waited for below.
    let worker = unsafe { Worker::new(&stream) }?;

    let logits: Vec<f32> = (0..ROWS * COLUMNS).map(|index| (index * 7919 % 4001) as f32 / 100.0 - 20.0).collect();
    let temperatures: Vec<f32> = (0..ROWS).map(|row| 0.25 + row as f32 / 32.0).collect();
    let (logits_on_gpu, temperatures_on_gpu) =
        (DeviceBuffer::from_slice(&logits)?, DeviceBuffer::from_slice(&temperatures)?);
    let mut probs_on_gpu = DeviceBuffer::from_slice(&vec![0f32; ROWS * COLUMNS])?;
    let words = scratch_words("softmax", COLUMNS);
    let mut scratch_on_gpu = DeviceBuffer::from_slice(&vec![0i64; ROWS * words])?;
    // SAFETY: the buffers are of the context that is current, are used by nothing else, and live until the work is done.
    let (probs, scores, temperature) =
        unsafe { (worker.view_mut(&mut probs_on_gpu), worker.view(&logits_on_gpu), worker.view(&temperatures_on_gpu)) };
    // SAFETY: as above.
    let scratch = unsafe { worker.view_mut(&mut scratch_on_gpu) }.matrix(ROWS, words)?;
    Softmax { probs: probs.matrix(ROWS, COLUMNS)?, scratch, logits: scores.matrix(ROWS, COLUMNS)?, temperature }
        .launch(worker.device())?;
    stream.synchronize()?;
    let mut on_gpu = vec![0f32; ROWS * COLUMNS];
    probs_on_gpu.copy_to(&mut on_gpu)?;

    let mut on_cpu = vec![0f32; ROWS * COLUMNS];
    let mut scratch = Scratch::new("softmax", ROWS, COLUMNS, &Device::Cpu)?;
    Softmax {
        probs: on_cpu.view_mut().matrix(ROWS, COLUMNS)?,
        scratch: scratch.rows(ROWS)?,
        logits: logits.view().matrix(ROWS, COLUMNS)?,
        temperature: temperatures.view(),
    }
    .launch(&Device::Cpu)?;
    match on_gpu.iter().zip(&on_cpu).position(|(gpu, cpu)| gpu.to_bits() != cpu.to_bits()) {
        None => {
            println!("{} probabilities, the same bits on {} through cust and on the CPU", on_gpu.len(), worker.device())
        }
        Some(at) => return Err(format!("element {at}: {} through cust, {} on the CPU", on_gpu[at], on_cpu[at]).into()),
    }
    Ok(())
}
