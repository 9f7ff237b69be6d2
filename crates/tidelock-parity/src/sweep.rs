//! As many random cases as there is time for, run on two devices.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use tidelock::{Device, Kernel};

use crate::case::{Case, Layout, Values};
use crate::compare::{Difference, compare};
use crate::error::Result;
use crate::random::Random;
use crate::sizes;
use crate::standard::{COLUMNS, choices};
use crate::survey::Progress;

/// Cases that are run before progress is told.
const BATCH: usize = 64;

/// Random cases of one kernel.
#[derive(Clone, Debug)]
pub struct RandomCases {
    kernel: &'static Kernel,
    rows_left: u64,
    seed: u64,
    next: u64,
}

/// Random cases of `kernel` until at least `rows` rows have been asked for, as [`Case::rows`] counts them.
///
/// Rows are mostly short and many; one case in 64 has a vocabulary's length. The same seed gives the same cases.
pub fn random_cases(kernel: &'static Kernel, rows: u64, seed: u64) -> RandomCases {
    RandomCases { kernel, rows_left: rows, seed, next: 0 }
}

impl Iterator for RandomCases {
    type Item = Case;

    fn next(&mut self) -> Option<Case> {
        while self.rows_left > 0 {
            let case = random_case(self.kernel, self.seed, self.next);
            self.next += 1;
            // A case without rows counts as one, so that the end is reached.
            self.rows_left = self.rows_left.saturating_sub(case.rows().max(1));
            if case.is_possible() {
                return Some(case);
            }
        }
        None
    }
}

/// Random case `number` of those that belong to `seed`.
pub(crate) fn random_case(kernel: &'static Kernel, seed: u64, number: u64) -> Case {
    let mut random = Random::new(&["tidelock-parity sweep", kernel.name, &seed.to_string(), &number.to_string()]);
    let choices = choices(kernel);
    let (types, given) = choices[random.below(choices.len() as u64) as usize].clone();
    let (length, most) = match random.below(64) {
        _ if sizes::columns(kernel).is_empty() => (0, 512),
        0 => (random.pick(&COLUMNS[3..]), 4),
        1 => (random.between(2000, 160_000), 4),
        _ => {
            let scale = random.pick(&[8, 40, 200, 1000, 2000]);
            let length = random.between(1, scale);
            // Half of the lengths keep what the aligned variants promise.
            (if random.one_in(2) { length } else { (length / 16 + 1) * 16 }, 256)
        }
    };
    let mut dims = sizes::dims(kernel, length, random.between(1, most), &mut random);
    if sizes::columns(kernel).is_empty() && random.one_in(4) {
        dims.iter_mut().for_each(|dim| *dim = *dim / 16 * 16);
    }
    let layout = random.pick(&[Layout::Packed, Layout::Packed, Layout::Padded, Layout::PaddedBy16, Layout::Misaligned]);
    let values = random.pick(&[Values::Declared, Values::Hostile]);
    let seed = (seed << 32).wrapping_add(number).wrapping_add(1);
    Case { kernel, types, given, dims, layout, values, seed }
}

/// What a sweep of one kernel found.
#[derive(Clone, Debug)]
pub struct KernelSummary {
    /// Rows compared.
    pub rows: u64,
    /// Cases compared.
    pub cases: u64,
    /// Names of the variants that the GPU arm ran.
    pub variants: BTreeSet<&'static str>,
    /// Cases in which the devices differ.
    pub mismatches: u64,
    /// The one of them with the fewest elements.
    pub smallest: Option<Difference>,
}

/// What a sweep found.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The seed of its cases.
    pub seed: u64,
    /// By kernel.
    pub kernels: BTreeMap<&'static str, KernelSummary>,
}

impl Summary {
    /// Cases in which the devices differ, of all kernels.
    pub fn mismatches(&self) -> u64 {
        self.kernels.values().map(|kernel| kernel.mismatches).sum()
    }
}

/// Runs at least `rows` rows of random cases of each kernel on both devices, telling `progress` in rows.
///
/// # Errors
/// The first case that cannot be run at all. That devices differ is no error but a part of the summary.
pub fn sweep(
    kernels: &[&'static Kernel],
    left: &Device,
    right: &Device,
    rows: u64,
    seed: u64,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Summary> {
    let mut summary = Summary { seed, kernels: BTreeMap::new() };
    for kernel in kernels {
        let mut found = KernelSummary { rows: 0, cases: 0, variants: BTreeSet::new(), mismatches: 0, smallest: None };
        let mut cases = random_cases(kernel, rows, seed);
        loop {
            let batch: Vec<Case> = cases.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            let compared: Vec<_> = batch.par_iter().map(|case| compare(case, left, right)).collect();
            for (case, difference) in batch.iter().zip(compared) {
                found.rows += case.rows();
                found.cases += 1;
                found.variants.extend(case.variant().map(|variant| variant.name));
                let Some(difference) = difference? else { continue };
                found.mismatches += 1;
                if found.smallest.as_ref().is_none_or(|smallest| case.elements() < smallest.case.elements()) {
                    found.smallest = Some(difference);
                }
            }
            progress(Progress { kernel: kernel.name, done: found.rows.min(rows), total: rows });
        }
        summary.kernels.insert(kernel.name, found);
    }
    Ok(summary)
}
