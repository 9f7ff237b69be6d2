//! A launch that was checked once and runs as often as its caller likes.

use std::mem::ManuallyDrop;

use crate::argument::Argument;
use crate::bound::Bound;
use crate::call::{Call, Structs};
use crate::check::PerParam;
use crate::device::CudaDevice;
use crate::dispatch::run_cpu;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::uses::ordered;

/// A kernel with checked arguments, which each [`launch`](Prepared::launch) runs again.
///
/// It holds the views: as long as it lives nobody else can write what it reads, or touch what it writes, and all of it stays
/// where it is. What a caller changes between two launches it views with the `unsafe` constructors from raw addresses.
///
/// ```
/// use tidelock::{AsView, AsViewMut, Device, kernels::Argmax};
///
/// let (logits, mut tokens) = ([0.5f32, 2.0, 1.0], [0i64]);
/// let call = Argmax { output_token_ids: tokens.view_mut(), logits: logits.view().matrix(1, 3)? };
/// let mut prepared = call.prepare(&Device::Cpu)?;
/// for _ in 0..3 {
///     prepared.launch()?;
/// }
/// assert_eq!(tokens, [1]);
/// # Ok::<(), tidelock::Error>(())
/// ```
#[must_use = "nothing runs before it is launched"]
pub struct Prepared<'a> {
    pub(crate) kernel: &'static Kernel,
    /// Their addresses do not change while they are borrowed, so what was found out about them holds.
    pub(crate) args: Vec<Argument<'a>>,
    pub(crate) work: Work<'a>,
}

/// What the check established, for the device that it was made for.
pub(crate) enum Work<'a> {
    Cpu(Box<Bound>),
    /// With the device, which keeps the function loaded.
    Gpu(CudaDevice, Box<Queue<'a>>),
}

/// What each launch on a GPU queues.
pub(crate) struct Queue<'a> {
    pub(crate) call: Call,
    /// Some memory is of an equal context; see `Uses`.
    pub(crate) foreign: bool,
    /// Nothing in it has to be dropped. So a borrow ends with the last launch of a `Prepared`, and not with its scope.
    pub(crate) structs: ManuallyDrop<Structs<'a>>,
}

impl Prepared<'_> {
    /// Runs the kernel: the CPU arm before this returns, the GPU arm in the order of its stream. Allocates nothing.
    ///
    /// # Errors
    /// What the driver says; on the CPU, that the arm panicked.
    pub fn launch(&mut self) -> Result<()> {
        match &self.work {
            Work::Cpu(bound) => {
                let mut args: PerParam<Argument<'_>> = self.args.iter_mut().map(Argument::reborrow).collect();
                run_cpu(self.kernel, &mut args, bound)
            }
            Work::Gpu(_, queue) if queue.call.is_empty() => Ok(()),
            // Uses are recorded at each launch and not when this is dropped, since it may be forgotten.
            Work::Gpu(device, queue) => {
                let stream = device.stream();
                ordered(self.kernel, &mut self.args, stream, queue.foreign, || {
                    queue.call.launch(stream, &queue.structs)
                })
            }
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &'static Kernel {
        self.kernel
    }
}
