//! The files that a registry is checked against.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use crate::bindings;
use crate::source::Sources;

/// Contents of files, by their path relative to the crate, with forward slashes.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The files that a registry is checked against, by what they are.
#[derive(Clone, Debug, Default)]
pub struct Artifacts {
    /// `ptx/<family>.json`.
    pub manifests: Files,
    /// `ptx/<family>/<variant>.ptx`.
    pub ptx: Files,
    /// Sources of the GPU arm: everything under `kernels/`.
    pub kernels: Files,
    /// Sources of the CPU arm: `src/cpu/*.rs`.
    pub cpu: Files,
    /// CPU arms in C and C++, and their headers: everything under `cpu/`.
    pub c: Files,
    /// `ptx/<family>.h`.
    pub headers: Files,
    /// `bindings.rs`.
    pub bindings: Option<Vec<u8>>,
}

/// The largest file that is read.
pub const MAX_BYTES: u64 = 32 << 20;

/// The folders that artifacts are in.
pub const FOLDERS: [&str; 4] = ["cpu", "kernels", "ptx", "src/cpu"];

impl Artifacts {
    /// Reads them from the crate at `root`. Folders that do not exist are empty.
    ///
    /// # Errors
    /// Where a file cannot be read, or is larger than [`MAX_BYTES`].
    pub fn read(root: &Path) -> io::Result<Artifacts> {
        let mut artifacts = Artifacts::default();
        for folder in FOLDERS {
            artifacts.read_folder(root, folder)?;
        }
        artifacts.bindings = match std::fs::read(root.join(bindings::PATH)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            content => Some(content?),
        };
        Ok(artifacts)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> io::Result<()> {
        let entries = match std::fs::read_dir(root.join(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = format!("{folder}/{name}");
            match entry.file_type()?.is_dir() {
                true if name.starts_with(['.', '_']) => {}
                true => self.read_folder(root, &path)?,
                false if kind(&path).is_some() => {
                    self.insert(path, read_file(&entry.path())?);
                }
                false => {}
            }
        }
        Ok(())
    }

    /// Puts a file where its path says that it belongs. False if nothing is checked against such a file.
    pub fn insert(&mut self, path: String, content: Vec<u8>) -> bool {
        let files = match kind(&path) {
            Some(Kind::Manifest) => &mut self.manifests,
            Some(Kind::Ptx) => &mut self.ptx,
            Some(Kind::Kernel) => &mut self.kernels,
            Some(Kind::Cpu) => &mut self.cpu,
            Some(Kind::C) => &mut self.c,
            Some(Kind::Header) => &mut self.headers,
            None if path == bindings::PATH => {
                self.bindings = Some(content);
                return true;
            }
            None => return false,
        };
        files.insert(path, content);
        true
    }

    /// Takes out the file at this path, if there is one.
    pub fn remove(&mut self, path: &str) {
        let all =
            [&mut self.manifests, &mut self.ptx, &mut self.kernels, &mut self.cpu, &mut self.c, &mut self.headers];
        all.into_iter().for_each(|files| _ = files.remove(path));
        if path == bindings::PATH {
            self.bindings = None;
        }
    }

    /// Their texts, for rendering what was found in them. Bytes that are not UTF-8 are shown as such.
    pub fn texts(&self) -> Sources {
        let all = [&self.manifests, &self.ptx, &self.kernels, &self.cpu, &self.c, &self.headers];
        let bindings = self.bindings.as_ref().map(|content| (bindings::PATH.to_string(), content.clone()));
        let bindings = Files::from_iter(bindings);
        let texts = all.into_iter().chain([&bindings]).flatten();
        texts.map(|(path, content)| (path.clone(), String::from_utf8_lossy(content).into_owned())).collect()
    }
}

/// The content of a file of a project, which is not larger than a file of one can be.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_BYTES {
        let message = format!("{}: expected at most {MAX_BYTES} bytes, got more", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(content)
}

enum Kind {
    Manifest,
    Ptx,
    Kernel,
    Cpu,
    C,
    Header,
}

fn kind(path: &str) -> Option<Kind> {
    let (folder, name) = path.split_once('/')?;
    match folder {
        "ptx" if name.ends_with(".json") => Some(Kind::Manifest),
        "ptx" if name.ends_with(".ptx") => Some(Kind::Ptx),
        "ptx" if name.ends_with(".h") => Some(Kind::Header),
        "kernels" => Some(Kind::Kernel),
        "cpu" => Some(Kind::C),
        "src" if name.starts_with("cpu/") && name.ends_with(".rs") => Some(Kind::Cpu),
        _ => None,
    }
}
