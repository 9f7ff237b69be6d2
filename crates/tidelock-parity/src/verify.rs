//! Compares what a device gives now with what a record says a GPU gave.

use std::fmt;

use tidelock::{Device, Kernel};

use crate::case::Case;
use crate::error::Result;
use crate::record::Record;
use crate::survey::{Survey, survey};

/// What a record says of one standard case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The case.
    pub case: Case,
    /// What came out.
    pub verdict: Verdict,
}

/// What came out of comparing one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The digests are equal.
    Agrees,
    /// They are not.
    Differs {
        /// The record's digest.
        recorded: String,
        /// The device's.
        got: String,
    },
    /// The record is of another PTX than the one that is compiled in now.
    Stale,
    /// The record has no digest of this case.
    Missing,
}

/// Runs the standard cases of `record`'s kernels on `device` and compares each.
///
/// # Errors
/// Where a case fails as [`survey`] says.
pub fn verify(record: &Record, kernels: &[&'static Kernel], device: &Device) -> Result<Vec<Outcome>> {
    let own: Vec<_> = kernels.iter().copied().filter(|kernel| kernel.family == record.family).collect();
    Ok(verify_survey(record, &survey(&own, device, &|_| {})?))
}

/// Compares those cases of a survey that are of `record`'s family.
pub fn verify_survey(record: &Record, survey: &Survey) -> Vec<Outcome> {
    let own = survey.cases.iter().filter(|surveyed| surveyed.case.kernel.family == record.family);
    own.map(|surveyed| {
        let case = surveyed.case.clone();
        let recorded = record.kernels.get(case.kernel.name);
        let verdict = match (case.variant(), recorded) {
            (_, None) => Verdict::Missing,
            (None, Some(_)) => Verdict::Stale,
            (Some(variant), Some(kernel)) => match kernel.variants.get(variant.name) {
                None => Verdict::Missing,
                Some(recorded) if recorded.ptx_sha256 != variant.sha256 => Verdict::Stale,
                Some(recorded) => match recorded.cases.get(&case.id()) {
                    None => Verdict::Missing,
                    Some(digest) if *digest == surveyed.digest => Verdict::Agrees,
                    Some(digest) => Verdict::Differs { recorded: digest.clone(), got: surveyed.digest.clone() },
                },
            },
        };
        Outcome { case, verdict }
    })
    .collect()
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.case.variant().map_or(self.case.kernel.name, |variant| variant.name);
        let id = self.case.id();
        match &self.verdict {
            Verdict::Agrees => write!(f, "variant `{name}`, case {id}: agrees"),
            Verdict::Differs { recorded, got } => {
                write!(f, "variant `{name}`, case {id}: the GPU gave {recorded}, this device {got}")
            }
            Verdict::Stale => {
                write!(
                    f,
                    "variant `{name}`, case {id}: the record is of another PTX; make it again with `tidelock record`"
                )
            }
            Verdict::Missing => {
                write!(f, "variant `{name}`, case {id}: not in the record; make it again with `tidelock record`")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::meta::Meta;
    use crate::record::{FORMAT, KernelRecord, VariantRecord};
    use crate::survey::Surveyed;
    use crate::testing::DRAWS;

    /// A survey and a record of it, of one case.
    fn one() -> (Record, Survey) {
        let case = Case::parse(&DRAWS, "f32/rows=2,length=5/packed/declared").unwrap();
        let (variant, id) = (case.variant().unwrap(), case.id());
        let survey = Survey { cases: vec![Surveyed { case, digest: "11".into() }] };
        let variant_record =
            VariantRecord { ptx_sha256: variant.sha256.into(), cases: BTreeMap::from([(id, "11".into())]) };
        let kernel_record =
            KernelRecord { sweep: None, variants: BTreeMap::from([(variant.name.into(), variant_record)]) };
        let nowhere = Meta { card: "".into(), driver: "".into(), date: "".into(), command: "".into() };
        let kernels = BTreeMap::from([(DRAWS.name.into(), kernel_record)]);
        (Record { format: FORMAT, family: DRAWS.family.into(), made: nowhere, kernels }, survey)
    }

    fn verdict(change: impl Fn(&mut VariantRecord)) -> Verdict {
        let (mut record, survey) = one();
        record.kernels.values_mut().flat_map(|kernel| kernel.variants.values_mut()).for_each(change);
        verify_survey(&record, &survey)[0].verdict.clone()
    }

    #[test]
    fn each_verdict() {
        let wrong = |variant: &mut VariantRecord| variant.cases.values_mut().for_each(|digest| *digest = "22".into());
        assert_eq!(verdict(|_| {}), Verdict::Agrees);
        assert_eq!(verdict(wrong), Verdict::Differs { recorded: "22".into(), got: "11".into() });
        assert_eq!(verdict(|variant| variant.cases.clear()), Verdict::Missing);
        assert_eq!(verdict(|variant| variant.ptx_sha256 = "other".into()), Verdict::Stale);
    }
}
