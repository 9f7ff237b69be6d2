//! One opaque error. Its text names the kernel, the parameter, what was expected and what came.

use std::fmt;

/// Why a call could not be carried out. Nothing was launched and no output was written.
#[derive(Debug)]
pub struct Error(Box<Kind>);

/// The crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug)]
pub(crate) enum Kind {
    /// An argument of a kernel does not fit its signature.
    Argument { kernel: &'static str, param: &'static str, expected: String, got: String },
    /// A launch as a whole is impossible.
    Launch { kernel: &'static str, message: String },
    /// A call of the sampling layer cannot be honoured.
    #[cfg_attr(not(feature = "sampling"), allow(dead_code))]
    Sampling { layer: &'static str, expected: String, got: String },
    /// A view cannot be made.
    View { expected: String, got: String },
    /// A device is not there.
    Device { device: String, message: String },
    /// The driver refused a call.
    Driver { action: String, message: String },
    /// A compiled kernel does not fit the device or its own facts.
    Load { kernel: &'static str, variant: &'static str, message: String },
}

impl Error {
    #[cold]
    pub(crate) fn argument(
        kernel: &'static str,
        param: &'static str,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Error {
        Error(Box::new(Kind::Argument { kernel, param, expected: expected.into(), got: got.into() }))
    }

    #[cold]
    pub(crate) fn launch(kernel: &'static str, message: impl Into<String>) -> Error {
        Error(Box::new(Kind::Launch { kernel, message: message.into() }))
    }

    #[cfg_attr(not(feature = "sampling"), allow(dead_code))]
    #[cold]
    pub(crate) fn sampling(layer: &'static str, expected: impl Into<String>, got: impl Into<String>) -> Error {
        Error(Box::new(Kind::Sampling { layer, expected: expected.into(), got: got.into() }))
    }

    #[cold]
    pub(crate) fn view(expected: impl Into<String>, got: impl Into<String>) -> Error {
        Error(Box::new(Kind::View { expected: expected.into(), got: got.into() }))
    }

    #[cold]
    pub(crate) fn device(device: impl Into<String>, message: impl Into<String>) -> Error {
        Error(Box::new(Kind::Device { device: device.into(), message: message.into() }))
    }

    #[cold]
    pub(crate) fn driver(action: impl Into<String>, error: cudarc::driver::DriverError) -> Error {
        Error(Box::new(Kind::Driver { action: action.into(), message: error.to_string() }))
    }

    #[cold]
    pub(crate) fn load(kernel: &'static str, variant: &'static str, message: impl Into<String>) -> Error {
        Error(Box::new(Kind::Load { kernel, variant, message: message.into() }))
    }

    /// The generated code and the check disagree, which is a bug of the generator.
    #[doc(hidden)]
    pub fn generator(kernel: &crate::Kernel) -> Error {
        Error::launch(kernel.name, "the generated code misreads its arguments; this is a bug of tidelock")
    }

    /// An argument did not fit the kernel's signature, or the views did not fit each other.
    pub fn is_argument(&self) -> bool {
        matches!(*self.0, Kind::Argument { .. } | Kind::View { .. } | Kind::Launch { .. } | Kind::Sampling { .. })
    }

    /// The device that was asked for is not there: no driver, no GPU, no such ordinal.
    pub fn is_device_missing(&self) -> bool {
        matches!(*self.0, Kind::Device { .. })
    }

    /// The name of the parameter at fault, where there is one.
    pub fn parameter(&self) -> Option<&'static str> {
        match *self.0 {
            Kind::Argument { param, .. } => Some(param),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Argument { kernel, param, expected, got } => {
                write!(f, "kernel `{kernel}`, parameter `{param}`: expected {expected}, got {got}")
            }
            Kind::Launch { kernel, message } => write!(f, "kernel `{kernel}`: {message}"),
            Kind::Sampling { layer, expected, got } => write!(f, "{layer}: expected {expected}, got {got}"),
            Kind::View { expected, got } => write!(f, "view: expected {expected}, got {got}"),
            Kind::Device { device, message } => write!(f, "device `{device}`: {message}"),
            Kind::Driver { action, message } => write!(f, "the CUDA driver failed to {action}: {message}"),
            Kind::Load { kernel, variant, message } => {
                write!(f, "kernel `{kernel}`, variant `{variant}`: {message}")
            }
        }
    }
}

impl std::error::Error for Error {}
