//! Both arms for the same test: the CPU, and the GPU where there is one.

use tidelock::{Buffer, Device, Element};

/// Runs `test` on each arm that this machine has.
pub fn on_each_arm(test: impl Fn(&Device)) {
    test(&Device::Cpu);
    match Device::cuda(0) {
        Ok(gpu) => test(&gpu),
        Err(error) => eprintln!("the CPU arm alone: {error}"),
    }
}

/// `values` on `device`.
pub fn on<T: Element>(device: &Device, values: &[T]) -> Buffer<T> {
    Buffer::from_slice(device, values).expect("the device has memory")
}

/// The values of `buffer`.
pub fn read<T: Element>(buffer: &Buffer<T>) -> Vec<T> {
    buffer.to_vec().expect("the device finished its work")
}

/// Small numbers for random inputs, the same in each run.
pub struct Draw(pub u64);

impl Draw {
    /// A number from 0 to below `end`, which is positive.
    pub fn below(&mut self, end: i32) -> i32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % end as u64) as i32
    }
}
