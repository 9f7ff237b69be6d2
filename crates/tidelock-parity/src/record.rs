//! What a GPU gave: one file a family, kept in version control, so that a machine without a GPU can hold both arms together.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidelock::{Device, Kernel};

use crate::error::{Error, Result};
use crate::meta::Meta;
use crate::survey::{Progress, Survey, survey};
use crate::sweep::Summary;

/// The format of records. A record of another one must be made again.
pub const FORMAT: u32 = 1;

/// What one GPU gave for the kernels of one family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// The family.
    pub family: String,
    /// Where and when.
    pub made: Meta,
    /// By kernel.
    pub kernels: BTreeMap<String, KernelRecord>,
}

/// What one kernel gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRecord {
    /// Random cases on which both arms were compared at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepRecord>,
    /// By variant.
    pub variants: BTreeMap<String, VariantRecord>,
}

/// The standard cases of one variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantRecord {
    /// SHA-256 of the PTX that ran.
    pub ptx_sha256: String,
    /// The digest of each case's outputs.
    pub cases: BTreeMap<String, String>,
}

/// A sweep that found the arms to agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepRecord {
    /// Rows compared.
    pub rows: u64,
    /// Cases compared.
    pub cases: u64,
    /// The seed of its cases.
    pub seed: u64,
    /// Variants that ran.
    pub variants: Vec<String>,
    /// Cases in which the arms differed.
    pub mismatches: u64,
}

/// Runs the standard cases of `kernels` on `device`, a GPU, and makes a record of each family.
///
/// # Errors
/// Where a case fails as [`survey`] says, or runs a variant that has not been compiled.
pub fn record(
    kernels: &[&'static Kernel],
    device: &Device,
    made: &Meta,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Record>> {
    Record::from_survey(&survey(kernels, device, progress)?, made)
}

impl Record {
    /// Records of a survey, one a family.
    ///
    /// # Errors
    /// Where a case runs a variant that has not been compiled.
    pub fn from_survey(survey: &Survey, made: &Meta) -> Result<Vec<Record>> {
        let mut families = BTreeMap::<&str, Record>::new();
        for surveyed in &survey.cases {
            let case = &surveyed.case;
            let variant = case.variant().ok_or_else(|| Error::case(case, "its variant has not been compiled"))?;
            let family = case.kernel.family;
            let record = families.entry(family).or_insert_with(|| Record {
                format: FORMAT,
                family: family.into(),
                made: made.clone(),
                kernels: BTreeMap::new(),
            });
            let new = || KernelRecord { sweep: None, variants: BTreeMap::new() };
            let variants = &mut record.kernels.entry(case.kernel.name.into()).or_insert_with(new).variants;
            let new = || VariantRecord { ptx_sha256: variant.sha256.into(), cases: BTreeMap::new() };
            let cases = &mut variants.entry(variant.name.into()).or_insert_with(new).cases;
            cases.insert(case.id(), surveyed.digest.clone());
        }
        Ok(families.into_values().collect())
    }

    /// Adds what a sweep found of this record's kernels.
    pub fn add_sweep(&mut self, summary: &Summary) {
        for (name, kernel) in &mut self.kernels {
            if let Some(found) = summary.kernels.get(name.as_str()) {
                kernel.sweep = Some(SweepRecord {
                    rows: found.rows,
                    cases: found.cases,
                    seed: summary.seed,
                    variants: found.variants.iter().map(|&name| name.into()).collect(),
                    mismatches: found.mismatches,
                });
            }
        }
    }

    /// The record as a file holds it: the same text for the same record.
    pub fn to_json(&self) -> String {
        // Maps are sorted, and a record holds nothing that JSON cannot.
        serde_json::to_string_pretty(self).map(|json| json + "\n").unwrap_or_default()
    }

    /// Reads what [`Record::to_json`] wrote; `path` is for the text of errors.
    ///
    /// # Errors
    /// Where it is no record of this format, with the line.
    pub fn from_json(json: &str, path: &Path) -> Result<Record> {
        let fail = |message: String| {
            Error::new(format!("{}: {message}; make it again with `tidelock record`", path.display()))
        };
        let record: Record = serde_json::from_str(json).map_err(|error| fail(error.to_string()))?;
        if record.format != FORMAT {
            return Err(fail(format!("expected format {FORMAT}, got {}", record.format)));
        }
        Ok(record)
    }

    /// Reads `<family>.json` in `folder`; `None` where there is no such file.
    ///
    /// # Errors
    /// Where it cannot be read, or is the record of something else.
    pub fn load(folder: &Path, family: &str) -> Result<Option<Record>> {
        let path = folder.join(family).with_extension("json");
        let json = match std::fs::read_to_string(&path) {
            Ok(json) => json,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::new(format!("{}: {error}", path.display()))),
        };
        let record = Record::from_json(&json, &path)?;
        if record.family != family {
            let got = &record.family;
            return Err(Error::new(format!("{}: expected family `{family}`, got `{got}`", path.display())));
        }
        Ok(Some(record))
    }

    /// Writes `<family>.json` in `folder`, which is made where it is missing.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let path = folder.join(&self.family).with_extension("json");
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, self.to_json()));
        written.map_err(|error| Error::new(format!("{}: {error}", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{
  "format": 1,
  "family": "race",
  "made": {
    "card": "NVIDIA H200",
    "driver": "580.95",
    "date": "2026-01-31",
    "command": "tidelock record"
  },
  "kernels": {
    "argmax": {
      "sweep": {
        "rows": 100,
        "cases": 3,
        "seed": 7,
        "variants": [
          "argmax-f32-generic"
        ],
        "mismatches": 0
      },
      "variants": {
        "argmax-f32-generic": {
          "ptx_sha256": "00",
          "cases": {
            "f32/num_rows=1,vocab_size=3/packed/declared": "11"
          }
        }
      }
    }
  }
}
"#;

    fn read(json: &str) -> Result<Record> {
        Record::from_json(json, Path::new("records/race.json"))
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        assert_eq!(read(JSON).unwrap().to_json(), JSON);
    }

    #[test]
    fn a_record_is_read_strictly() {
        let error = |json: String| read(&json).unwrap_err().to_string();
        let unknown = error(JSON.replace("\"seed\"", "\"seeds\""));
        assert!(unknown.contains("records/race.json") && unknown.contains("unknown field `seeds`"), "{unknown}");
        assert!(unknown.contains("line 15"), "{unknown}");
        assert!(error(JSON.replace("\"format\": 1", "\"format\": 2")).contains("expected format 1, got 2"));
        assert!(error(JSON.replace("\"ptx_sha256\": \"00\",", "")).contains("missing field `ptx_sha256`"));
    }
}
