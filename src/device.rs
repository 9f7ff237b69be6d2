//! Where kernels run: on the CPU, or on one stream of a GPU.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};

use crate::error::{Error, Result};
use crate::functions::Functions;
use crate::{cubin, launch};

/// The CPU, or one CUDA stream.
#[derive(Clone)]
pub enum Device {
    /// The CPU arm. A launch returns when its work is done.
    Cpu,
    /// The GPU arm. A launch returns when its work is queued.
    Cuda(CudaDevice),
}

/// One stream of a GPU, with the kernels that were loaded into its context.
#[derive(Clone)]
pub struct CudaDevice {
    stream: Arc<CudaStream>,
    pub(crate) functions: Arc<Functions>,
}

impl Device {
    /// A new stream on GPU `ordinal`.
    ///
    /// # Errors
    /// Where there is no driver, or no such GPU.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        let name = format!("cuda:{ordinal}");
        if !launch::driver_is_present() {
            return Err(Error::device(name, "no CUDA driver library was found on this machine"));
        }
        // cudarc panics where a driver lacks a function that it needs; a caller is to see an error instead.
        let context = std::panic::catch_unwind(|| CudaContext::new(ordinal))
            .map_err(|_| {
                Error::device(&name, "the CUDA driver lacks functions that this build needs; update the driver")
            })?
            .map_err(|error| Error::device(&name, error.to_string()))?;
        let stream = context.new_stream().map_err(|error| Error::device(&name, error.to_string()))?;
        Ok(Device::from_stream(stream))
    }

    /// The caller's own stream.
    ///
    /// Kernels are compiled by the driver from their PTX when they are first launched, or come from the folder of cubins that
    /// the environment variable `TIDELOCK_CUBINS` names, where it has them.
    pub fn from_stream(stream: Arc<CudaStream>) -> Device {
        let folder = std::env::var_os(cubin::VARIABLE).filter(|folder| !folder.is_empty());
        let functions = Functions::of(stream.context(), folder.map(|folder| PathBuf::from(folder).into()));
        Device::Cuda(CudaDevice { stream, functions })
    }

    /// The same device, with kernels from this folder of cubins (`tidelock compile --cubins`) where it has them, so that the
    /// first launch of each need not wait for a compiler. The others are compiled from their PTX. The CPU has no use for it.
    ///
    /// A folder that is missing and a cubin that is damaged are errors of the first launch that looks for it. What is in the
    /// folder runs on the GPU: trust it as you trust the program.
    #[must_use]
    pub fn with_cubins(self, folder: impl AsRef<Path>) -> Device {
        match self {
            Device::Cpu => Device::Cpu,
            Device::Cuda(CudaDevice { stream, .. }) => {
                let functions = Functions::of(stream.context(), Some(folder.as_ref().into()));
                Device::Cuda(CudaDevice { stream, functions })
            }
        }
    }

    /// GPU 0 where there is one, otherwise the CPU.
    pub fn auto() -> Device {
        Device::cuda(0).unwrap_or(Device::Cpu)
    }

    /// Waits until everything that was launched here has finished.
    ///
    /// # Errors
    /// What went wrong in that work, as the driver tells it.
    pub fn synchronize(&self) -> Result<()> {
        match self {
            Device::Cpu => Ok(()),
            Device::Cuda(device) => {
                device.stream.synchronize().map_err(|error| Error::driver("synchronize the stream", error))
            }
        }
    }
}

impl CudaDevice {
    /// The stream that kernels are launched on.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(device) => write!(f, "cuda:{}", device.stream.context().ordinal()),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Device {
    type Err = Error;

    /// `cpu`, `cuda`, `cuda:N` or `auto`.
    fn from_str(text: &str) -> Result<Device> {
        let wrong = || Error::device(text, "expected `auto`, `cpu`, `cuda` or `cuda:N`");
        match text {
            "auto" => Ok(Device::auto()),
            "cpu" => Ok(Device::Cpu),
            "cuda" => Device::cuda(0),
            _ => {
                let ordinal = text.strip_prefix("cuda:").ok_or_else(wrong)?;
                Device::cuda(ordinal.parse().map_err(|_| wrong())?)
            }
        }
    }
}
