//! What was measured: one table for people, one record for version control.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::process::Command;

use anyhow::Context;
use serde::Serialize;
use tidelock::Device;
use time::OffsetDateTime;

use super::clock::Times;
use super::definition::Case;
use super::flush::Flushed;
use super::peers::{Answer, PeerResult, Skipped};
use crate::output;

/// The format of records.
const FORMAT: u32 = 1;

/// One run of `tidelock bench`. An absolute time holds for this card alone; what is compared was measured in one run.
#[derive(Serialize)]
pub struct Report {
    format: u32,
    date: String,
    /// The GPU's name, or `cpu` with its number of threads.
    card: String,
    driver: Option<String>,
    /// The commit of the checkout, where there is one; `+` says that it was changed.
    commit: Option<String>,
    replays: usize,
    #[serde(flatten)]
    flushed: Flushed,
    /// Read and written by a copy.
    bandwidth_bytes_per_s: f64,
    peer_versions: BTreeMap<String, String>,
    peers_skipped: Vec<Skipped>,
    results: Vec<Measured>,
}

/// One workload at one batch size.
#[derive(Serialize)]
struct Measured {
    workload: String,
    batch: usize,
    rows: usize,
    vocab_size: usize,
    #[serde(flatten)]
    times: Times,
    /// What must move, at the bandwidth measured.
    bytes: u64,
    limit_us: f64,
    reach_us: Option<f64>,
    peers: Vec<PeerResult>,
}

impl Report {
    /// An empty one.
    pub fn new(device: &Device, replays: usize, flushed: Flushed, bandwidth: f64) -> anyhow::Result<Report> {
        let (card, driver) = match device {
            Device::Cpu => (format!("cpu, {} threads", rayon::current_num_threads()), None),
            Device::Cuda(cuda) => (cuda.stream().context().name()?, Some(tidelock_parity::driver_version())),
        };
        Ok(Report {
            format: FORMAT,
            date: OffsetDateTime::now_utc().date().to_string(),
            card,
            driver,
            commit: commit(),
            replays,
            flushed,
            bandwidth_bytes_per_s: bandwidth.round(),
            peer_versions: BTreeMap::new(),
            peers_skipped: Vec::new(),
            results: Vec::new(),
        })
    }

    /// Adds what was measured of `case`.
    pub fn add(&mut self, case: &Case<'_>, times: Times) -> anyhow::Result<()> {
        let bytes = case.bytes()?;
        self.results.push(Measured {
            workload: case.workload.name.clone(),
            batch: case.batch,
            rows: case.rows(),
            vocab_size: case.vocab_size,
            times,
            bytes,
            limit_us: (bytes as f64 / self.bandwidth_bytes_per_s * 1e9).round() / 1e3,
            reach_us: case.reach,
            peers: Vec::new(),
        });
        Ok(())
    }

    /// Adds what the peers needed for the same cases.
    pub fn add_peers(&mut self, cases: &[Case<'_>], answer: Answer) {
        for (result, case) in self.results.iter_mut().zip(cases) {
            result.peers = answer.of(case);
        }
        self.peer_versions = answer.versions;
        self.peers_skipped = answer.skipped;
    }

    /// Prints one table: ours, each peer, the limit and the goal.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let driver = self.driver.as_ref().map(|driver| format!(", driver {driver}")).unwrap_or_default();
        writeln!(out, "{}{driver}, {:.0} GB/s copied", self.card, self.bandwidth_bytes_per_s / 1e9)?;
        let mut table = output::table(
            ["workload", "batch", "tokens", "us", "p10", "p90", "limit", "x limit", "reach", "peers, us"],
            &[1, 2, 3, 4, 5, 6, 7, 8],
        );
        for result in &self.results {
            let us = |value: f64| if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
            let Times { median_us, p10_us, p90_us } = result.times;
            let peers = result.peers.iter().map(|peer| format!("{} {}", peer.peer, us(peer.median_us)));
            table.add_row([
                result.workload.clone(),
                result.batch.to_string(),
                result.vocab_size.to_string(),
                us(median_us),
                us(p10_us),
                us(p90_us),
                us(result.limit_us),
                format!("{:.1}", median_us / result.limit_us),
                result.reach_us.map_or_else(|| "-".into(), us),
                peers.collect::<Vec<_>>().join(", "),
            ]);
        }
        output::print(out, &table, "")?;
        let skipped = self.peers_skipped.iter();
        skipped
            .map(|Skipped { workload, peer, why }| format!("{workload}: {peer} did not run: {why}"))
            .try_for_each(|line| writeln!(out, "{line}"))
    }

    /// Writes the record.
    pub fn save(&self, path: &std::path::Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let written = folder.map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
        written.with_context(|| path.display().to_string())
    }
}

fn commit() -> Option<String> {
    let output = Command::new("git").args(["describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}
