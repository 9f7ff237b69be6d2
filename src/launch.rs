//! The only module that talks to the driver directly: is it there, load a compiled kernel, launch it.
//!
//! What makes a launch sound is established elsewhere and stated here once. The build has checked each variant's PTX against
//! the registry: number, order, kind and size of its parameter slots ([`Slots`] holds them in that order). The driver's own
//! view of the slots is compared when a kernel is loaded. The shared check has seen that every address covers the extents
//! that the kernel was written for, on this context's GPU. Values inside tensors need no trust: the kernels are defined, and
//! stay inside their tensors, for any of them.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arrayvec::ArrayVec;
use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};

use crate::error::{Error, Result};
use crate::kernel::{ByValue, Kernel, MAX_PARAMS, Variant};

/// What each parameter slot holds, in order.
pub(crate) type Slots<'a> = ArrayVec<Slot<'a>, { MAX_PARAMS + 2 }>;

/// What a parameter slot holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot<'a> {
    /// An address or a value, in the low bytes.
    Bits(u64),
    /// A struct, of the type that the registry names and so of the size that the build has seen in the PTX.
    Struct(&'a ByValue),
}

impl Slot<'_> {
    /// Where its bytes are. The driver reads them, and writes none.
    fn bytes(&mut self) -> *mut c_void {
        match self {
            Slot::Bits(bits) => std::ptr::from_mut(bits).cast(),
            Slot::Struct(value) => std::ptr::from_ref(*value).cast_mut().cast(),
        }
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
pub(crate) struct Function(sys::CUfunction);

// SAFETY: a CUfunction is a handle; the driver allows its use from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// The kernels that were loaded into one context; unloaded with the last device that uses them.
#[derive(Debug)]
pub(crate) struct Functions {
    context: Arc<CudaContext>,
    loaded: Mutex<HashMap<*const Variant, (Function, Module)>>,
}

#[derive(Clone, Copy, Debug)]
struct Module(sys::CUmodule);

// SAFETY: the map's keys are addresses of statics that are compared and never followed; its values are handles, which the
// driver allows to be used from any thread.
unsafe impl Send for Functions {}
// SAFETY: as above, and the map is behind a mutex.
unsafe impl Sync for Functions {}

impl Functions {
    /// Those of `context`, shared by all devices of it.
    pub(crate) fn of(context: &Arc<CudaContext>) -> Arc<Functions> {
        static ALL: Mutex<Vec<Weak<Functions>>> = Mutex::new(Vec::new());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|functions| functions.strong_count() > 0);
        let found = all.iter().filter_map(Weak::upgrade).find(|functions| Arc::ptr_eq(&functions.context, context));
        found.unwrap_or_else(|| {
            let new = Arc::new(Functions { context: context.clone(), loaded: Mutex::default() });
            all.push(Arc::downgrade(&new));
            new
        })
    }

    /// The function of `variant`, loaded now if it has not been used in this context before.
    pub(crate) fn get(&self, kernel: &'static Kernel, variant: &'static Variant) -> Result<Function> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((function, _)) = loaded.get(&std::ptr::from_ref(variant)) {
            return Ok(*function);
        }
        let fail = |message: String| Error::load(kernel.name, variant.name, message);
        let driver =
            |action: &'static str| move |error: DriverError| fail(format!("the driver failed to {action}: {error}"));
        self.context.bind_to_thread().map_err(driver("make the context current"))?;
        let (major, minor) = self.context.compute_capability().map_err(driver("tell the compute capability"))?;
        let capability = (major * 10 + minor) as u32;
        if capability < variant.capability {
            let (needed, got) = (variant.capability, capability);
            return Err(fail(format!("expected compute capability {needed} or higher, got {got}")));
        }
        let image = CString::new(variant.ptx).map_err(|_| fail("its PTX holds a NUL byte".into()))?;
        // SAFETY: `image` is a text that ends in NUL and lives until the call returns; the driver parses it and refuses
        // what is not PTX. The context is current.
        let module = unsafe { result::module::load_data(image.as_ptr().cast::<c_void>()) }.map_err(|error| {
            fail(format!(
                "the driver cannot load its PTX {} (a newer driver may be needed): {error}",
                variant.ptx_version
            ))
        })?;
        let module = Module(module);
        let function = self.function(variant, module).and_then(|function| {
            param_info(function, variant.slots).map_err(fail)?;
            opt_in_shared(function, variant).map_err(driver("grant its shared memory"))?;
            Ok(function)
        });
        if function.is_err() {
            unload(module);
        }
        let function = function?;
        loaded.insert(variant, (function, module));
        Ok(function)
    }

    fn function(&self, variant: &Variant, module: Module) -> Result<Function> {
        let fail = |error: DriverError| Error::driver(format!("find `{}` in its module", variant.entry), error);
        let entry = CString::new(variant.entry).unwrap_or_default();
        // SAFETY: `module` was loaded just now and has not been unloaded.
        let function = unsafe { result::module::get_function(module.0, entry) }.map_err(fail)?;
        Ok(Function(function))
    }
}

impl Drop for Functions {
    fn drop(&mut self) {
        // Nothing is reported from here: a context that was destroyed or broke has no modules left to unload.
        if self.context.bind_to_thread().is_err() || self.context.synchronize().is_err() {
            return;
        }
        let loaded = self.loaded.get_mut().unwrap_or_else(PoisonError::into_inner);
        loaded.drain().for_each(|(_, (_, module))| unload(module));
    }
}

fn unload(module: Module) {
    // SAFETY: `module` was loaded by `Functions::get`, is unloaded only here, and no launch of it is pending: either none was
    // made, or the context has been synchronised.
    let _ = unsafe { result::module::unload(module.0) };
}

/// Compares the slots that the driver sees with those that a launch fills, where the driver can tell (CUDA 12.4).
///
/// Their number needs no asking: one slot more would have to stand in the PTX, which the build has read. Asking for a slot
/// that is not there would be an error of the driver, which every memory checker reports.
fn param_info(function: Function, slots: &[u8]) -> Result<(), String> {
    let mut version = 0;
    // SAFETY: the pointer is to a live i32.
    let status = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    if status != sys::CUresult::CUDA_SUCCESS || version < 12040 {
        return Ok(());
    }
    for (index, &expected) in slots.iter().enumerate() {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is loaded, the pointers are to live usizes, and a driver of this version has the symbol.
        let status = unsafe { sys::cuFuncGetParamInfo(function.0, index, &raw mut offset, &raw mut size) };
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

/// Asks for more than 48 KiB of dynamic shared memory where the kernel needs it.
fn opt_in_shared(function: Function, variant: &Variant) -> Result<(), DriverError> {
    if variant.shared <= 48 * 1024 {
        return Ok(());
    }
    let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // SAFETY: the function is loaded; the driver refuses a size that the GPU does not have.
    unsafe { result::function::set_function_attribute(function.0, attribute, variant.shared as i32) }
}

/// Queues one launch.
pub(crate) fn launch(
    kernel: &'static Kernel,
    variant: &'static Variant,
    function: Function,
    grid: Grid,
    stream: &CudaStream,
    mut slots: Slots<'_>,
) -> Result<()> {
    let fail = |error| Error::driver(format!("launch kernel `{}`, variant `{}`", kernel.name, variant.name), error);
    stream.context().bind_to_thread().map_err(fail)?;
    let mut pointers: ArrayVec<*mut c_void, { MAX_PARAMS + 2 }> = slots.iter_mut().map(Slot::bytes).collect();
    let Grid([x, y, z]) = grid;
    // SAFETY: the function is loaded in the stream's context, which is current. Each pointer leads to eight live bytes, or
    // to a live struct of the slot's size, of which the driver reads the slot's own size now; their number, order and meaning are those of the PTX (checked by the
    // build, and by the driver's word in `param_info`). The addresses among them are valid for what the kernel reads and
    // writes (checked by the caller of this function), and stay so until it ends: that is what a view's owner or the caller
    // of its unsafe constructor answers for.
    unsafe {
        result::launch_kernel(
            function.0,
            (x, y, z),
            (variant.threads, 1, 1),
            variant.shared,
            stream.cu_stream(),
            &mut pointers,
        )
    }
    .map_err(fail)
}
