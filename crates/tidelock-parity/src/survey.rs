//! The standard cases of every kernel on one device: each run twice, and looked at outside its tensors.

use rayon::prelude::*;
use tidelock::{Device, Kernel};

use crate::case::Case;
use crate::compare::{difference, place};
use crate::digest::digest;
use crate::error::{Error, Result};
use crate::run::Inputs;
use crate::standard::standard;

/// How far a long run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The kernel that is being run.
    pub kernel: &'static str,
    /// What is done of it.
    pub done: u64,
    /// Of how much.
    pub total: u64,
}

/// One case and the digest of what it wrote.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// The case.
    pub case: Case,
    /// The digest of its outputs.
    pub digest: String,
}

/// The standard cases of some kernels, as one device runs them.
#[derive(Clone, Debug)]
pub struct Survey {
    /// In the order of the table, and of a kernel small to large.
    pub cases: Vec<Surveyed>,
}

/// Runs the standard cases of `kernels` on `device`, telling `progress` in cases.
///
/// # Errors
/// The smallest case of the first kernel that fails to launch, writes outside its tensors, or gives two results when it is
/// run twice.
pub fn survey(kernels: &[&'static Kernel], device: &Device, progress: &(dyn Fn(Progress) + Sync)) -> Result<Survey> {
    let mut surveyed = Vec::new();
    for kernel in kernels {
        let cases = standard(kernel);
        let total = cases.len() as u64;
        let done = std::sync::atomic::AtomicU64::new(0);
        let digests: Vec<_> = cases
            .par_iter()
            .map(|case| {
                let digest = run(case, device);
                let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
                progress(Progress { kernel: kernel.name, done, total });
                digest
            })
            .collect();
        for (case, digest) in cases.into_iter().zip(digests) {
            surveyed.push(Surveyed { case, digest: digest? });
        }
    }
    Ok(Survey { cases: surveyed })
}

fn run(case: &Case, device: &Device) -> Result<String> {
    let inputs = Inputs::new(case);
    let run = || inputs.run(device).map_err(|error| Error::case(case, format!("on {device}: {error}")));
    let (first, second) = (run()?, run()?);
    for output in &first {
        if let Some(index) = output.written_outside() {
            return Err(Error::case(case, format!("{device} wrote {}", place(case, output, index))));
        }
    }
    match difference(case, [(format!("first on {device}"), &first), (format!("then on {device}"), &second)]) {
        Some(difference) => Err(Error::new(format!("two runs differ: {difference}"))),
        None => Ok(digest(case, &first)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::testing::{COUNTS, DRAWS};

    #[test]
    fn a_sound_arm_is_surveyed() {
        let survey = survey(&[&DRAWS], &Device::Cpu, &|_| {}).unwrap();
        assert_eq!(survey.cases.len(), standard(&DRAWS).len());
    }

    #[test]
    fn an_arm_that_is_not_a_function_is_caught() {
        let error = survey(&[&COUNTS], &Device::Cpu, &|_| {}).unwrap_err().to_string();
        assert!(error.starts_with("two runs differ: kernel `counts`, case all/n=1/"), "{error}");
        assert!(error.contains("`output[0]`: first on cpu "), "{error}");
    }

    #[test]
    fn a_difference_says_where() {
        let case = Case::parse(&COUNTS, "all/n=5/misaligned/declared").unwrap();
        let difference = compare(&case, &Device::Cpu, &Device::Cpu).unwrap().unwrap();
        assert_eq!((difference.param, difference.index), (0, 5));
        assert!(difference.to_string().contains("`output[4]`"), "{difference}");
    }
}
