//! Where, when and how a record was made.

use std::fs;

use serde::{Deserialize, Serialize};
use tidelock::Device;
use time::OffsetDateTime;

use crate::error::{Error, Result};

/// Where, when and how a record was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The GPU.
    pub card: String,
    /// Its driver.
    pub driver: String,
    /// The day, as year-month-day.
    pub date: String,
    /// The command that made the record, ready to be run again.
    pub command: String,
}

impl Meta {
    /// What is made on `device` today, by `command`.
    ///
    /// # Errors
    /// Where it is no GPU, or the driver does not say its name.
    pub fn today(device: &Device, command: impl Into<String>) -> Result<Meta> {
        let Device::Cuda(cuda) = device else {
            return Err(Error::new(format!("expected a GPU to record, got {device}")));
        };
        let card = cuda.stream().context().name();
        Ok(Meta {
            card: card.map_err(|error| Error::new(format!("the driver does not say the GPU's name: {error}")))?,
            driver: driver_version(),
            date: OffsetDateTime::now_utc().date().to_string(),
            command: command.into(),
        })
    }
}

/// The version that the kernel module of the driver says it has.
pub fn driver_version() -> String {
    let version =
        fs::read_to_string("/sys/module/nvidia/version").or_else(|_| fs::read_to_string("/proc/driver/nvidia/version"));
    let version = version.unwrap_or_default();
    let number =
        |word: &&str| word.contains('.') && word.chars().all(|letter| letter == '.' || letter.is_ascii_digit());
    version.split_whitespace().find(number).unwrap_or("unknown").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gpu_is_recorded() {
        let error = Meta::today(&Device::Cpu, "").unwrap_err().to_string();
        assert_eq!(error, "expected a GPU to record, got cpu");
    }
}
