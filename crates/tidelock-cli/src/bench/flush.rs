//! How caches are emptied of what a step works with, before each time that it is run.

use clap::ValueEnum;
use serde::Serialize;
use tidelock::kernels::GreedySample;
use tidelock::sampling::Scratch;
use tidelock::{AsView, AsViewMut, Buffer, Device};

/// What a cache is full of when a step begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flush {
    /// Lines that were written: a step that reads pays for writing them to memory.
    #[default]
    Written,
    /// Lines that were read after that, and can be forgotten. On a CPU the same as written.
    Read,
}

/// How caches are emptied of what a step works with.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Flushed {
    pub flush: Flush,
    /// Bytes that are written, and then as many read, before each replay.
    pub flushed_bytes: usize,
}

/// Reads as many bytes as are written.
pub struct Reader {
    device: Device,
    rows: usize,
    values: Buffer<f32>,
    found: Buffer<i32>,
    scratch: Scratch,
}

impl Reader {
    const COLUMNS: usize = 1 << 16;

    /// One of `bytes`.
    pub fn new(device: &Device, bytes: usize) -> anyhow::Result<Reader> {
        let rows = bytes.div_ceil(4 * Reader::COLUMNS);
        Ok(Reader {
            values: Buffer::zeros(device, rows * Reader::COLUMNS)?,
            found: Buffer::zeros(device, rows)?,
            scratch: Scratch::new("greedy_sample", rows, Reader::COLUMNS, device)?,
            device: device.clone(),
            rows,
        })
    }

    /// Queues a read of them all.
    pub fn read(&mut self) -> tidelock::Result<()> {
        let rows = self.rows;
        GreedySample {
            output_token_ids: self.found.view_mut(),
            scratch: self.scratch.rows(rows)?,
            logits: self.values.view().matrix(rows, Reader::COLUMNS)?,
        }
        .launch(&self.device)
    }
}
