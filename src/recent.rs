//! The calls that a thread has launched last, so that a launch which is like one of them is not checked from the start.
//!
//! Each thread has its own, found by the kernel's number without a lock; there are [`KEPT`] of each kernel. They hold nothing that
//! has to be released: what they know of a device is told by a number that no other device ever has.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::argument::Argument;
use crate::call::Call;
use crate::device::CudaDevice;
use crate::error::Result;
use crate::kernel::Kernel;

/// Calls of a kernel that a thread keeps: an engine may call one kernel with several shapes in turn.
const KEPT: usize = 4;

/// The number of a kernel in every thread's table of calls; it has one once it is launched.
#[derive(Debug, Default)]
pub struct KernelId(OnceLock<usize>);

impl KernelId {
    /// One without a number yet.
    pub const fn new() -> KernelId {
        KernelId(OnceLock::new())
    }

    fn number(&self) -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        *self.0.get_or_init(|| NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Those of one kernel, the one that was checked last first.
type Calls = [Option<Box<Call>>; KEPT];

thread_local! {
    /// By the kernel's number.
    static RECENT: RefCell<Vec<Calls>> = const { RefCell::new(Vec::new()) };
}

/// Runs `launch` with a checked call of `args`: one from before that is like it, or a new one.
///
/// # Errors
/// Where the check refuses `args`, and as `launch`.
pub(crate) fn with_call(
    kernel: &'static Kernel,
    args: &mut [Argument<'_>],
    device: &CudaDevice,
    launch: fn(&mut Call, &mut [Argument<'_>], &CudaDevice) -> Result<()>,
) -> Result<()> {
    let launched = RECENT.try_with(|recent| {
        let mut recent = recent.try_borrow_mut().ok()?;
        let calls = match recent.get_mut(kernel.id.number()) {
            Some(calls) => calls,
            None => first(kernel, &mut recent),
        };
        if let Some(call) = calls.iter_mut().flatten().find(|call| call.is_like(args, device)) {
            return Some(launch(call, args, device));
        }
        Some(check(kernel, args, device, calls).and_then(|call| launch(call, args, device)))
    });
    // A thread that ends keeps nothing.
    let Ok(Some(launched)) = launched else {
        let mut call = Call::none(kernel);
        call.check(args, device)?;
        return launch(&mut call, args, device);
    };
    launched
}

/// Room for the first call of `kernel`.
#[cold]
fn first<'r>(kernel: &Kernel, recent: &'r mut Vec<Calls>) -> &'r mut Calls {
    let number = kernel.id.number();
    recent.resize_with(number + 1, Calls::default);
    &mut recent[number]
}

/// Checks a new call of `args`; the one that was checked first makes room for it.
#[cold]
fn check<'c>(
    kernel: &'static Kernel,
    args: &[Argument<'_>],
    device: &CudaDevice,
    calls: &'c mut Calls,
) -> Result<&'c mut Call> {
    let oldest = calls[KEPT - 1].get_or_insert_with(|| Box::new(Call::none(kernel)));
    oldest.check(args, device)?;
    calls.rotate_right(1);
    Ok(calls[0].get_or_insert_with(|| Box::new(Call::none(kernel))))
}
