//! A kernel of tidelock on a stream and buffers of cust, and the CPU arm on the same rows: every bit must be the same.
//!
//! The rows are the standard cases of softmax from f32. Where a folder is named, it gets a record of what the GPU gave.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::{Stream, StreamFlags};
use tidelock::kernels::Softmax;
use tidelock::sampling::scratch_words;
use tidelock::{DType, Device, REGISTRY};
use tidelock_cust::Worker;
use tidelock_parity::{Inputs, Meta, Output, Record, Survey, Surveyed, digest, standard};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What runs this from a checkout; the folder of the record follows.
const COMMAND: &str = "cargo run --manifest-path crates/tidelock-cust/Cargo.toml --example softmax";

fn main() -> ExitCode {
    match compare(std::env::args().nth(1).as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Both arms on every case; then the record, where it has a folder.
fn compare(folder: Option<&str>) -> Result<()> {
    let _context = cust::quick_init()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    // SAFETY: `stream` lives to the end of this function, and so does all work on it, which `through_cust` waits for.
    let worker = unsafe { Worker::new(&stream) }?;

    let softmax = REGISTRY.iter().find(|kernel| kernel.name == "softmax").ok_or("the registry has no softmax")?;
    let mut survey = Survey { cases: Vec::new() };
    for case in standard(softmax).into_iter().filter(|case| case.types == [DType::F32]) {
        let inputs = Inputs::new(&case);
        let on_cpu = inputs.run(&Device::Cpu)?.remove(0);
        let on_gpu = Output { bytes: through_cust(&worker, &stream, &inputs)?, ..on_cpu.clone() };
        if let Some(at) = (0..on_cpu.placement.length).find(|&at| on_gpu.element(at) != on_cpu.element(at)) {
            let (gpu, cpu) = (on_gpu.element(at), on_cpu.element(at));
            return Err(
                format!("case {}: element {at}: {gpu:02x?} through cust, {cpu:02x?} on the CPU", case.id()).into()
            );
        }
        survey.cases.push(Surveyed { digest: digest(&case, &[on_gpu]), case });
    }
    println!("{} cases, the same bits on {} through cust and on the CPU", survey.cases.len(), worker.device());

    if let Some(folder) = folder {
        let made = Meta::today(worker.device(), format!("{COMMAND} {folder}"))?;
        for record in Record::from_survey(&survey, &made)? {
            record.save(Path::new(folder))?;
            println!("wrote {}", Path::new(folder).join(record.family).with_extension("json").display());
        }
    }
    Ok(())
}

/// The probabilities that the GPU gives, as the bytes of the whole buffer.
fn through_cust(worker: &Worker, stream: &Stream, inputs: &Inputs) -> Result<Vec<u8>> {
    let tensor = |param| inputs.tensor::<f32>(param).ok_or("expected three tensors of f32");
    let ((to, probs), (from, logits), (by, temperatures)) = (tensor(0)?, tensor(2)?, tensor(3)?);
    let mut probs_on_gpu = DeviceBuffer::from_slice(probs)?;
    let words = scratch_words("softmax", to.columns);
    let mut scratch_on_gpu = DeviceBuffer::from_slice(&vec![0i64; (to.rows * words).max(1)])?;
    let (logits_on_gpu, temperatures_on_gpu) =
        (DeviceBuffer::from_slice(logits)?, DeviceBuffer::from_slice(temperatures)?);
    // SAFETY: the buffers are of the context that is current, are used by nothing else, and live until the work is done.
    let (probs, logits, temperature) =
        unsafe { (worker.view_mut(&mut probs_on_gpu), worker.view(&logits_on_gpu), worker.view(&temperatures_on_gpu)) };
    // SAFETY: as above.
    let scratch = unsafe { worker.view_mut(&mut scratch_on_gpu) };
    Softmax {
        probs: probs.slice(to.lead..to.length)?.strided(to.rows, to.columns, to.row_stride)?,
        scratch: scratch.slice(0..to.rows * words)?.matrix(to.rows, words)?,
        logits: logits.slice(from.lead..from.length)?.strided(from.rows, from.columns, from.row_stride)?,
        temperature: temperature.slice(by.lead..by.lead + by.columns)?,
    }
    .launch(worker.device())?;
    stream.synchronize()?;
    let mut probs = vec![0f32; to.length];
    probs_on_gpu.copy_to(&mut probs)?;
    Ok(probs.iter().flat_map(|value| value.to_le_bytes()).collect())
}
