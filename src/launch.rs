//! The only module that talks to the driver directly: is it there, load a compiled kernel, launch it.
//!
//! What makes a launch sound is established elsewhere and stated here once. The build has checked each variant's PTX against
//! the registry: number, order, kind and size of its parameter slots ([`Slots`] holds them in that order). The driver's own
//! view of the slots is compared when a kernel is loaded. The shared check has seen that every address covers the extents
//! that the kernel was written for, on this context's GPU. Values inside tensors need no trust: the kernels are defined, and
//! stay inside their tensors, for any of them.
#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::marker::PhantomData;
use std::sync::Arc;

use arrayvec::ArrayVec;
use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};

use crate::error::{Error, Result};
use crate::kernel::{ByValue, Kernel, MAX_PARAMS, Variant};

/// Where the bytes of each parameter slot are, in order. The driver reads them, and writes none.
#[derive(Default)]
pub(crate) struct Slots<'a> {
    pointers: ArrayVec<*mut c_void, { MAX_PARAMS + 2 }>,
    of: PhantomData<&'a ()>,
}

impl<'a> Slots<'a> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.pointers.len()
    }

    /// Adds an address or a value, in the low bytes.
    pub(crate) fn push_bits(&mut self, bits: &'a u64) {
        self.pointers.push(std::ptr::from_ref(bits).cast_mut().cast());
    }

    /// Adds a struct, of the type that the registry names and so of the size that the build has seen in the PTX.
    pub(crate) fn push_struct(&mut self, value: &'a ByValue) {
        self.pointers.push(std::ptr::from_ref(value).cast_mut().cast());
    }
}

/// Blocks in x, y and z, each at least 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid(pub [u32; 3]);

/// Whether the CUDA driver's library can be opened.
pub(crate) fn driver_is_present() -> bool {
    // SAFETY: opening libcuda runs the initialisers of a library of the system, which is made to be opened so.
    unsafe { sys::is_culib_present() }
}

/// A kernel that was loaded into a context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    handle: sys::CUfunction,
    most_shared: u32,
    /// Of a block.
    threads: u32,
}

impl Function {
    /// Most bytes of dynamic shared memory that a launch can give it.
    pub(crate) fn most_shared(&self) -> u32 {
        self.most_shared
    }
}

// SAFETY: a CUfunction is a handle; the driver allows its use from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// One variant's code in a context; unloaded when it is dropped.
#[derive(Debug)]
pub(crate) struct Module {
    handle: sys::CUmodule,
    context: Arc<CudaContext>,
}

// SAFETY: a CUmodule is a handle; the driver allows its use from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads `variant` into `context`: its cubin where there is one, which has passed its checksum, else its PTX.
    pub(crate) fn load(
        context: &Arc<CudaContext>,
        variant: &Variant,
        cubin: Option<Vec<u8>>,
    ) -> Result<Module, String> {
        context.bind_to_thread().map_err(|error| format!("the driver failed to make the context current: {error}"))?;
        let is_cubin = cubin.is_some();
        let image = match cubin {
            Some(cubin) => cubin,
            None => CString::new(variant.ptx).map_err(|_| "its PTX holds a NUL byte")?.into_bytes_with_nul(),
        };
        // SAFETY: `image` lives until the call returns. It is a text that ends in NUL, which the driver parses and refuses
        // where it is no PTX; or a cubin as it was made, which says how long it is. The context is current.
        let handle = unsafe { result::module::load_data(image.as_ptr().cast::<c_void>()) }.map_err(|error| {
            if is_cubin {
                format!("the driver cannot load its cubin (another one, or none, may be needed): {error}")
            } else {
                let version = variant.ptx_version;
                format!("the driver cannot load its PTX {version} (a newer driver may be needed): {error}")
            }
        })?;
        Ok(Module { handle, context: context.clone() })
    }

    /// The function of `variant` of `kernel`, whose module this is; it can be launched as long as the module lives.
    pub(crate) fn function(&self, kernel: &Kernel, variant: &Variant) -> Result<Function, String> {
        let entry = CString::new(variant.entry).unwrap_or_default();
        // SAFETY: the module is loaded as long as `self` lives.
        let handle = unsafe { result::module::get_function(self.handle, entry) }
            .map_err(|error| format!("the driver failed to find `{}` in its module: {error}", variant.entry))?;
        param_info(handle, variant.slots)?;
        let shared = match kernel.shared_memory {
            None => Ok(variant.shared),
            Some(_) => self.most_shared(handle),
        };
        let most_shared = shared
            .and_then(|bytes| opt_in_shared(handle, bytes))
            .map_err(|error| format!("the driver failed to grant its shared memory: {error}"))?;
        Ok(Function { handle, most_shared, threads: variant.threads })
    }

    /// What a block of the GPU has of shared memory, less what the function declares with a size.
    fn most_shared(&self, function: sys::CUfunction) -> Result<u32, DriverError> {
        let attribute = sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let all = self.context.attribute(attribute)?;
        let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded.
        let own = unsafe { result::function::get_function_attribute(function, attribute) }?;
        Ok(u32::try_from(all.saturating_sub(own)).unwrap_or(0))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Nothing is reported from here: a context that was destroyed or broke has no modules left to unload.
        if self.context.bind_to_thread().is_err() || self.context.synchronize().is_err() {
            return;
        }
        // SAFETY: the module was loaded by `Module::load` and is unloaded only here. No launch of it is pending, since the
        // context has been synchronised, and none can follow: whoever launches its function holds the `Functions` that own it.
        let _ = unsafe { result::module::unload(self.handle) };
    }
}

/// Compares the slots that the driver sees with those that a launch fills, where the driver can tell (CUDA 12.4).
///
/// Their number needs no asking: one slot more would have to stand in the PTX, which the build has read. Asking for a slot
/// that is not there would be an error of the driver, which every memory checker reports.
fn param_info(function: sys::CUfunction, slots: &[u8]) -> Result<(), String> {
    let mut version = 0;
    // SAFETY: the pointer is to a live i32.
    let status = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    if status != sys::CUresult::CUDA_SUCCESS || version < 12040 {
        return Ok(());
    }
    for (index, &expected) in slots.iter().enumerate() {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is loaded, the pointers are to live usizes, and a driver of this version has the symbol.
        let status = unsafe { sys::cuFuncGetParamInfo(function, index, &raw mut offset, &raw mut size) };
        if status != sys::CUresult::CUDA_SUCCESS {
            return Err(format!(
                "parameter slot {index}: expected {expected} bytes, the driver sees none ({status:?})"
            ));
        }
        if size != usize::from(expected) {
            return Err(format!("parameter slot {index}: expected {expected} bytes, the driver sees {size}"));
        }
    }
    Ok(())
}

/// Asks for `bytes` of dynamic shared memory, which needs asking above 48 KiB.
fn opt_in_shared(function: sys::CUfunction, bytes: u32) -> Result<u32, DriverError> {
    if bytes > 48 * 1024 {
        let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded; the driver refuses a size that the GPU does not have.
        unsafe { result::function::set_function_attribute(function, attribute, bytes as i32) }?;
    }
    Ok(bytes)
}

/// Queues one launch.
#[inline]
pub(crate) fn launch(
    kernel: &'static Kernel,
    variant: &'static Variant,
    function: Function,
    grid: Grid,
    shared: u32,
    stream: &CudaStream,
    slots: &mut Slots<'_>,
) -> Result<()> {
    let fail = |error| Error::driver(format!("launch kernel `{}`, variant `{}`", kernel.name, variant.name), error);
    stream.context().bind_to_thread().map_err(fail)?;
    let Grid([x, y, z]) = grid;
    // SAFETY: the function is loaded in the stream's context, which is current; the device that it was found for is borrowed
    // by the caller, and keeps its module loaded. Each pointer leads to eight live bytes, or to a live struct of the slot's
    // size, of which the driver reads, and never writes, the slot's own size now; their number, order and meaning are those
    // of the PTX (checked by the build, and by the driver's word in `param_info`). The addresses among them are valid for
    // what the kernel reads and writes: they were checked by `Call::place`, which noted them, and its caller holds the borrow of the
    // memory since then. They stay so until the kernel ends: that is what a view's owner or the caller of its unsafe
    // constructor answers for.
    unsafe {
        result::launch_kernel(
            function.handle,
            (x, y, z),
            (function.threads, 1, 1),
            shared,
            stream.cu_stream(),
            &mut slots.pointers,
        )
    }
    .map_err(fail)
}
