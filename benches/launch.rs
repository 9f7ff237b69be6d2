//! What a launch costs its caller: with the check, and prepared.
//!
//! With a GPU, both are compared with a bare `cuLaunchKernel` of the same function with the same arguments. Without one,
//! the CPU arm runs on one row of 16 tokens: the difference between the two is the check.

use divan::Bencher;
use tidelock::kernels::GumbelSample;
use tidelock::sampling::scratch_words;
use tidelock::{AsView, AsViewMut, Buffer, Device};

const VOCAB: usize = 16;
/// The memory of one call, on one device.
struct Memory {
    tokens: Buffer<i32>,
    sampled_logits: Buffer<f32>,
    sampled_noise: Buffer<f64>,
    scratch: Buffer<i64>,
    scratch_words: usize,
    logits: Buffer<f32>,
    temperature: Buffer<f32>,
    seeds: Buffer<i64>,
    positions: Buffer<i64>,
}

impl Memory {
    fn new(device: &Device) -> tidelock::Result<Memory> {
        let scratch_words = scratch_words("gumbel_sample", VOCAB);
        Ok(Memory {
            tokens: Buffer::zeros(device, 1)?,
            sampled_logits: Buffer::zeros(device, 1)?,
            sampled_noise: Buffer::zeros(device, 1)?,
            scratch: Buffer::zeros(device, scratch_words)?,
            scratch_words,
            logits: Buffer::from_slice(device, &[1.0; VOCAB])?,
            temperature: Buffer::from_slice(device, &[1.0])?,
            seeds: Buffer::from_slice(device, &[7])?,
            positions: Buffer::from_slice(device, &[3])?,
        })
    }

    /// Twelve parameters, of which eleven are passed or follow from the views.
    fn call(&mut self) -> GumbelSample<'_, f32, f64> {
        GumbelSample {
            output_token_ids: self.tokens.view_mut(),
            sampled_logits: self.sampled_logits.view_mut(),
            sampled_noise: self.sampled_noise.view_mut(),
            scratch: self.scratch.view_mut().matrix(1, self.scratch_words).expect("it fits"),
            logits: self.logits.view().matrix(1, VOCAB).expect("it fits"),
            temperature: self.temperature.view(),
            seeds: self.seeds.view(),
            positions: self.positions.view(),
            purpose: 0,
        }
    }
}

#[divan::bench]
fn checked(bencher: Bencher) {
    let mut memory = Memory::new(&Device::Cpu).expect("the host has memory");
    bencher.bench_local(|| memory.call().launch(&Device::Cpu));
}

#[divan::bench]
fn prepared(bencher: Bencher) {
    let mut memory = Memory::new(&Device::Cpu).expect("the host has memory");
    let mut prepared = memory.call().prepare(&Device::Cpu).expect("it fits");
    bencher.bench_local(|| prepared.launch());
}

fn main() {
    match Device::cuda(0) {
        Ok(device) => gpu::compare(&device).expect("the GPU works"),
        Err(error) => {
            println!("the CPU arm, since there is no GPU: {error}");
            divan::main();
        }
    }
}

mod gpu {
    use std::ffi::{CString, c_void};
    use std::time::Instant;

    use cudarc::driver::{CudaContext, CudaStream, result, sys};
    use tidelock::{Device, REGISTRY};

    use super::{Memory, VOCAB};

    const ROUNDS: usize = 400;
    const LAUNCHES: usize = 200;

    /// Times the three ways in turn, so that all meet the same clocks, and prints the medians and the differences.
    pub fn compare(device: &Device) -> tidelock::Result<()> {
        let tracked = with_tracking(device)?;
        // The only stream of its context, so cudarc tracks no events between streams.
        let stream = CudaContext::new(0).expect("there is a GPU").per_thread_stream();
        let device = &Device::from_stream(stream.clone());
        let [mut first, mut second, mut third] = [Memory::new(device)?, Memory::new(device)?, Memory::new(device)?];
        let bare = Bare::new(&mut first, &stream);
        let mut prepared = second.call().prepare(device)?;
        third.call().launch(device)?;
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            times[0].push(time(device, || bare.launch(&stream))?);
            times[1].push(time(device, || third.call().launch(device))?);
            times[2].push(time(device, || prepared.launch())?);
        }
        println!("one launch of gumbel_sample, 12 parameters, host side, median of {ROUNDS} rounds of {LAUNCHES}");
        println!("cuLaunchKernel            {:7.3} us", median(times[0].clone()));
        for (name, times_of) in [("checked", &times[1]), ("prepared", &times[2])] {
            let differences = times_of.iter().zip(&times[0]).map(|(time, bare)| time - bare).collect();
            println!("{name:<25} {:7.3} us   {:+.3} us", median(times_of.clone()), median(differences));
        }
        println!("checked, events tracked   {tracked:7.3} us");
        Ok(())
    }

    fn with_tracking(device: &Device) -> tidelock::Result<f64> {
        let mut memory = Memory::new(device)?;
        memory.call().launch(device)?;
        let times: Result<Vec<_>, _> = (0..ROUNDS).map(|_| time(device, || memory.call().launch(device))).collect();
        Ok(median(times?))
    }

    /// Microseconds of a launch, over many that are queued on an idle stream.
    fn time(device: &Device, mut launch: impl FnMut() -> tidelock::Result<()>) -> tidelock::Result<f64> {
        device.synchronize()?;
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            launch()?;
        }
        let elapsed = start.elapsed();
        device.synchronize()?;
        Ok(elapsed.as_secs_f64() * 1e6 / LAUNCHES as f64)
    }

    fn median(mut times: Vec<f64>) -> f64 {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    /// The same launch without anything around it.
    struct Bare<'a> {
        function: sys::CUfunction,
        threads: u32,
        shared: u32,
        slots: Vec<u64>,
        _memory: &'a mut Memory,
    }

    impl<'a> Bare<'a> {
        fn new(memory: &'a mut Memory, stream: &CudaStream) -> Bare<'a> {
            let kernel = REGISTRY.iter().find(|kernel| kernel.name == "gumbel_sample").expect("it is registered");
            let variant = kernel.variants.iter().find(|variant| variant.name == "gumbel_sample-f32-f64-aligned");
            let variant = variant.expect("it is compiled");
            let (image, entry) = (CString::new(variant.ptx), CString::new(variant.entry));
            let (image, entry) = (image.expect("it is text"), entry.expect("it is text"));
            stream.context().bind_to_thread().expect("the context is alive");
            // SAFETY: the image is a text that ends in NUL, and lives until the call returns.
            #[allow(unsafe_code)]
            let module = unsafe { result::module::load_data(image.as_ptr().cast()) }.expect("the PTX loads");
            // SAFETY: the module is loaded, and never unloaded.
            #[allow(unsafe_code)]
            let function = unsafe { result::module::get_function(module, entry) }.expect("the entry is there");
            let mut slots = vec![
                address(&memory.tokens, stream),
                address(&memory.sampled_logits, stream),
                address(&memory.sampled_noise, stream),
                address(&memory.scratch, stream),
                address(&memory.logits, stream),
                address(&memory.temperature, stream),
                address(&memory.seeds, stream),
                address(&memory.positions, stream),
            ];
            slots.extend([0, 0, VOCAB as u64, VOCAB as u64]); // purpose, vocab_start, vocab_size, logits_stride
            slots.resize(variant.slots.len(), 0);
            Bare { function, threads: variant.threads, shared: variant.shared, slots, _memory: memory }
        }

        fn launch(&self, stream: &CudaStream) -> tidelock::Result<()> {
            let mut pointers: [*mut c_void; 16] = [std::ptr::null_mut(); 16];
            for (pointer, slot) in pointers.iter_mut().zip(&self.slots) {
                *pointer = std::ptr::from_ref(slot).cast_mut().cast();
            }
            let (pointers, (grid, block)) = (&mut pointers[..self.slots.len()], ((1, 1, 1), (self.threads, 1, 1)));
            // SAFETY: the slots are those of the kernel's PTX, in order; the memory is borrowed as long as `self` lives.
            #[allow(unsafe_code)]
            unsafe { result::launch_kernel(self.function, grid, block, self.shared, stream.cu_stream(), pointers) }
                .expect("it is launched");
            Ok(())
        }
    }

    fn address<T: tidelock::Element>(buffer: &tidelock::Buffer<T>, stream: &CudaStream) -> u64 {
        use cudarc::driver::DevicePtr;
        match buffer {
            tidelock::Buffer::Cuda(slice) => slice.device_ptr(stream).0,
            tidelock::Buffer::Host(_) => unreachable!("the buffer was made on the GPU"),
        }
    }
}
