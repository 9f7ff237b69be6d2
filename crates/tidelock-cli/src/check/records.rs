//! Whether what a GPU was last seen to compute is still of the PTX that is there now. Never an error: making a record
//! needs a GPU.

use std::collections::BTreeMap;
use std::path::Path;

use tidelock_codegen::Project;
use tidelock_codegen::facts::{self, Hash, Manifest};
use tidelock_parity::Record;

/// The folder of the records.
const FOLDER: &str = "records";

/// The records of a checkout and the hashes that they are held against.
pub struct Records<'a> {
    root: &'a Path,
    project: &'a Project,
    families: BTreeMap<String, Family>,
}

struct Family {
    record: Result<Option<Record>, String>,
    manifest: Option<Manifest>,
}

impl<'a> Records<'a> {
    /// The records of the checkout at `root`.
    pub fn new(root: &'a Path, project: &'a Project) -> Records<'a> {
        Records { root, project, families: BTreeMap::new() }
    }

    /// How the record of a kernel stands.
    pub fn status(&mut self, family: &str, kernel: &str) -> String {
        let (root, project) = (self.root, self.project);
        let entry = self.families.entry(family.into()).or_insert_with(|| Family::read(root, project, family));
        let record = match &entry.record {
            Err(error) => return format!("unreadable ({error})"),
            Ok(record) => record.as_ref().and_then(|record| record.kernels.get(kernel)),
        };
        let manifest = entry.manifest.as_ref().and_then(|manifest| manifest.kernels.get(kernel));
        match (record, manifest) {
            (None, _) => "missing".into(),
            (Some(record), Some(facts)) => {
                let recorded = |name: &String, hash: &Hash| {
                    record.variants.get(name).is_some_and(|variant| variant.ptx_sha256 == hash.as_str())
                };
                let current = facts.variants.iter().all(|(name, variant)| recorded(name, &variant.ptx));
                if current { "current".into() } else { "older than its PTX".into() }
            }
            (Some(_), None) => "of PTX that is not there".into(),
        }
    }
}

impl Family {
    fn read(root: &Path, project: &Project, family: &str) -> Family {
        let path = facts::manifest_path(family);
        let manifest = project.artifacts().manifests.get(&path);
        Family {
            record: Record::load(&root.join(FOLDER), family).map_err(|error| error.to_string()),
            manifest: manifest.and_then(|content| facts::read_manifest(&path, content).ok()),
        }
    }
}
