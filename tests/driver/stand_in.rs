//! A stand-in for libcuda that computes nothing. It gives out handles and addresses, and writes down what a launch asks of it:
//! each launch with its parameter slots, each wait for an event, each record of one.
//!
//! `main.rs` has rustc make a library of this file. Addresses are not memory: allocation k, counted since there was none,
//! begins at k << 32 and is written `#k`. A function is launched in the context that it was loaded into, while its module is there, or
//! not at all. While the file `$STAND_IN_LOG.hold` exists, a launch does not return.
//!
//! With the folder `$STAND_IN_KERNELS` it does compute: memory is memory, and a module whose PTX is a file `NAME.ptx` there is the
//! library `NAME.so` beside it, which runs the same kernel on the CPU; see `emulated.rs`.
#![allow(non_snake_case)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::sync::{Mutex, OnceLock};

type Handle = usize;
type Status = c_int;

#[derive(Default)]
struct State {
    streams: usize,
    events: usize,
    allocations: u64,
    freed: u64,
    /// Texts of the modules, by handle.
    modules: Vec<String>,
    functions: Vec<Function>,
}

/// A function, by handle.
#[derive(Clone)]
struct Function {
    name: String,
    module: Handle,
    /// The context that it was loaded into.
    context: Handle,
    /// Bytes of its slots.
    slots: Vec<usize>,
    /// It on the CPU.
    emulated: Option<Emulated>,
}

type Emulated = unsafe extern "C" fn(c_uint, c_uint, c_uint, *mut *mut c_void);

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

/// The folder with kernels for the CPU.
fn kernels() -> Option<&'static str> {
    static FOLDER: OnceLock<Option<String>> = OnceLock::new();
    FOLDER.get_or_init(|| std::env::var("STAND_IN_KERNELS").ok()).as_deref()
}

/// The kernel with this PTX, on the CPU.
fn emulated(ptx: &str) -> Option<Emulated> {
    let folder = std::fs::read_dir(kernels()?).unwrap();
    let is_its = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|ending| ending == "ptx") && std::fs::read_to_string(path).unwrap() == ptx
    };
    let library = folder.map(|entry| entry.unwrap().path()).find(is_its).expect("the kernel was built for the CPU");
    let name = CString::new(library.with_extension("so").to_str().unwrap()).unwrap();
    unsafe {
        let library = dlopen(name.as_ptr(), 2); // RTLD_NOW
        assert!(!library.is_null(), "{name:?} can be opened");
        let function = dlsym(library, c"emulate".as_ptr());
        assert!(!function.is_null(), "{name:?} has it");
        Some(std::mem::transmute::<*mut c_void, Emulated>(function))
    }
}

static STATE: Mutex<State> =
    Mutex::new(State { streams: 0, events: 0, allocations: 0, freed: 0, modules: Vec::new(), functions: Vec::new() });

fn state<R>(change: impl FnOnce(&mut State) -> R) -> R {
    change(&mut STATE.lock().unwrap())
}

/// The file to write to; nothing is written where there is none, as when launches are timed.
fn path() -> Option<&'static str> {
    static PATH: OnceLock<Option<String>> = OnceLock::new();
    PATH.get_or_init(|| std::env::var("STAND_IN_LOG").ok()).as_deref()
}

fn log(line: impl FnOnce() -> String) {
    if let Some(path) = path() {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{}", line()).unwrap();
    }
}

/// Bytes of each parameter of `entry`, from the text of its module.
fn slots(ptx: &str, entry: &str) -> Vec<usize> {
    let start = ptx.find(&format!(".entry {entry}(")).expect("the module has the entry");
    let list = &ptx[start..start + ptx[start..].find(")\n").expect("the list of parameters ends")];
    let sizes = list.lines().filter_map(|line| line.trim_start().strip_prefix(".param ")).map(|param| {
        let words: Vec<&str> = param.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let bytes =
            words.last().and_then(|name| name.split_once('[')).map(|(_, n)| n.trim_end_matches(']').parse().unwrap());
        let bits = |word: &&str| word.trim_start_matches(['.', 'u', 's', 'b', 'f']).parse::<usize>().ok();
        bytes.unwrap_or_else(|| words.iter().find_map(bits).expect("a type says its bits") / 8)
    });
    sizes.collect()
}

macro_rules! driver {
    ($($name:ident($($argument:ident: $ty:ty),*) $body:block)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $ty),*) -> Status {
            #[allow(unused_unsafe)]
            unsafe { $body };
            0
        })*
    };
}

thread_local! {
    static CURRENT: std::cell::Cell<Handle> = const { std::cell::Cell::new(0) };
}

driver! {
    cuInit(_flags: c_uint) {}
    cuDriverGetVersion(version: *mut c_int) { *version = 12040 }
    cuDeviceGet(device: *mut c_int, ordinal: c_int) { *device = ordinal }
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) {
        // 75 and 76 are the compute capability, which is 9.0; 97 is the most shared memory that a block can ask for.
        *value = match attribute { 75 => 9, 76 => 0, 97 => 232_448, _ => 1 }
    }
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) { *context = 0x1000 + device as usize }
    cuDevicePrimaryCtxRelease_v2(_device: c_int) {}
    cuCtxGetCurrent(context: *mut Handle) { *context = CURRENT.get() }
    cuCtxSetCurrent(context: Handle) { CURRENT.set(context) }
    cuCtxSynchronize() {}
    cuStreamCreate(stream: *mut Handle, _flags: c_uint) {
        // 1 and 2 are the legacy stream and that of each thread.
        *stream = state(|state| { state.streams += 1; state.streams + 2 })
    }
    cuStreamDestroy_v2(_stream: Handle) {}
    cuStreamSynchronize(_stream: Handle) {}
    cuStreamWaitEvent(stream: Handle, event: Handle, _flags: c_uint) {
        log(|| format!("stream {stream} waits for event {event}"))
    }
    cuEventCreate(event: *mut Handle, _flags: c_uint) {
        *event = state(|state| { state.events += 1; state.events })
    }
    cuEventDestroy_v2(_event: Handle) {}
    cuEventRecord(event: Handle, stream: Handle) { log(|| format!("stream {stream} records event {event}")) }
    cuMemAllocAsync(address: *mut u64, bytes: usize, _stream: Handle) {
        if kernels().is_some() {
            *address = malloc(bytes) as u64;
            return 0;
        }
        *address = state(|state| { state.allocations += 1; state.allocations << 32 })
    }
    cuMemFreeAsync(address: u64, _stream: Handle) {
        if kernels().is_some() {
            free(address as *mut c_void);
            return 0;
        }
        state(|state| {
            state.freed += 1;
            if state.freed == state.allocations {
                (state.allocations, state.freed) = (0, 0);
            }
        })
    }
    cuMemsetD8Async(address: u64, value: u8, bytes: usize, _stream: Handle) {
        if kernels().is_some() {
            (address as *mut u8).write_bytes(value, bytes)
        }
    }
    cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, _stream: Handle) {
        if kernels().is_some() {
            (to as *mut u8).copy_from_nonoverlapping(from.cast(), bytes)
        }
    }
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, _stream: Handle) {
        match kernels() {
            Some(_) => to.cast::<u8>().copy_from_nonoverlapping(from as *const u8, bytes),
            None => to.cast::<u8>().write_bytes(0, bytes),
        }
    }
    cuModuleLoadData(module: *mut Handle, image: *const c_void) {
        let text = CStr::from_ptr(image.cast()).to_str().expect("PTX is a text").to_string();
        *module = state(|state| { state.modules.push(text); state.modules.len() })
    }
    cuModuleUnload(module: Handle) {
        let is_there = |function: &&mut Function| function.module == module;
        state(|state| state.functions.iter_mut().filter(is_there).for_each(|function| function.context = 0))
    }
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) {
        let name = CStr::from_ptr(name).to_str().expect("a name is a text").to_string();
        let ptx = state(|state| state.modules[module - 1].clone());
        let (slots, emulated, context) = (slots(&ptx, &name), emulated(&ptx), CURRENT.get());
        let its = Function { name, module, context, slots, emulated };
        *function = state(|state| { state.functions.push(its); state.functions.len() })
    }
    cuFuncGetAttribute(value: *mut c_int, _attribute: c_int, _function: Handle) { *value = 1024 }
    cuFuncSetAttribute(function: Handle, _attribute: c_int, value: c_int) {
        let name = state(|state| state.functions[function - 1].name.clone());
        log(|| format!("{name} may have {value} bytes"))
    }
    cuFuncGetParamInfo(function: Handle, index: usize, offset: *mut usize, size: *mut usize) {
        match state(|state| state.functions[function - 1].slots.get(index).copied()) {
            Some(bytes) => (*offset, *size) = (0, bytes),
            None => return 1, // CUDA_ERROR_INVALID_VALUE
        }
    }
    cuLaunchKernel(
        function: Handle, x: c_uint, y: c_uint, z: c_uint, threads: c_uint, _threads_y: c_uint, _threads_z: c_uint,
        shared: c_uint, stream: Handle, params: *mut *mut c_void, _extra: *mut *mut c_void
    ) {
        if kernels().is_some() {
            let emulated = state(|state| state.functions[function - 1].emulated).expect("it was built for the CPU");
            assert_eq!(z, 1, "grids have two dimensions");
            emulated(x, y, threads, params);
            return 0;
        }
        let Some(path) = path() else { return 0 };
        let Function { name, slots: sizes, context, .. } = state(|state| state.functions[function - 1].clone());
        if context != CURRENT.get() {
            return 400; // CUDA_ERROR_INVALID_HANDLE
        }
        let allocations = state(|state| state.allocations);
        let values = sizes.iter().enumerate().map(|(index, &size)| {
            let mut bytes = [0; 8];
            if size > 8 {
                return format!("{size} bytes");
            }
            (*params.add(index)).cast::<u8>().copy_to_nonoverlapping(bytes.as_mut_ptr(), size);
            let value = u64::from_le_bytes(bytes);
            match (value >> 32, value & 0xffff_ffff) {
                (allocation, 0) if (1..=allocations).contains(&allocation) => format!("#{allocation}"),
                (allocation, offset) if (1..=allocations).contains(&allocation) => format!("#{allocation}+{offset}"),
                _ => value.to_string(),
            }
        });
        let values: Vec<String> = values.collect();
        let blocks = format!("{x} x {y} x {z} blocks of {threads}, {shared} bytes");
        log(|| format!("stream {stream} launches {name}, {blocks}: {}", values.join(" ")));
        while std::path::Path::new(&format!("{path}.hold")).exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
