//! The files of a crate that has a registry, read once; and what is made of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::check::{self, Artifacts, Report};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Registry;
use crate::source::{Sources, Span};
use crate::{bindings, emit, link, lower};

/// The folder with the registry.
const SIGNATURES: &str = "signatures";

/// A crate's registry, kernels, compiled kernels and CPU arms.
#[derive(Clone, Debug, Default)]
pub struct Project {
    registry: Vec<(String, String)>,
    artifacts: Artifacts,
    unreadable: Vec<Diagnostic>,
}

impl Project {
    /// Reads the crate at `root`. A registry file that is no UTF-8 is reported later, with all else that is wrong.
    ///
    /// # Errors
    /// Where a folder or file cannot be read, or there is no registry.
    pub fn read(root: &Path) -> Result<Project, String> {
        let signatures = root.join(SIGNATURES);
        let fail = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| format!("{path}: {error}")
        };
        if !signatures.is_dir() {
            return Err(format!("{}: expected a folder with the registry's YAML files", signatures.display()));
        }
        let artifacts = Artifacts::read(root).map_err(fail(root))?;
        let mut project = Project { artifacts, ..Project::default() };
        let entries: io::Result<Vec<_>> = fs::read_dir(&signatures).map_err(fail(&signatures))?.collect();
        let mut paths: Vec<PathBuf> = entries.map_err(fail(&signatures))?.iter().map(fs::DirEntry::path).collect();
        paths.sort();
        for path in
            paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml"))
        {
            let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            project.insert(format!("{SIGNATURES}/{name}"), check::read_file(path).map_err(fail(path))?);
        }
        Ok(project)
    }

    /// Puts a file where its path, relative to the crate, says that it belongs, in place of what was there.
    pub fn insert(&mut self, path: String, content: Vec<u8>) {
        if !path.starts_with("signatures/") {
            self.artifacts.insert(path, content);
            return;
        }
        self.registry.retain(|(known, _)| *known != path);
        match String::from_utf8(content) {
            Ok(text) => self.registry.push((path, text)),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let span = Span::new(&path, at, at);
                let message = format!("{path} is not UTF-8");
                self.unreadable.push(Diagnostic::new("TL0001", message, span, "the first byte that is not"));
                self.registry.push((path, text));
            }
        }
        self.registry.sort();
    }

    /// Takes out the file at this path, if there is one.
    pub fn remove(&mut self, path: &str) {
        self.registry.retain(|(known, _)| known != path);
        self.artifacts.remove(path);
    }

    /// The files other than the registry.
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    /// The texts by path, which diagnostics point into.
    pub fn sources(&self) -> Sources {
        let mut sources = self.artifacts.texts();
        sources.extend(self.registry.iter().cloned());
        sources
    }

    /// The validated registry.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn registry(&self) -> Result<Registry, Diagnostics> {
        if self.unreadable.is_empty() { lower::read(&self.registry) } else { Err(Diagnostics(self.unreadable.clone())) }
    }

    /// The registry held against kernels, compiled kernels and CPU arms.
    pub fn check(&self) -> Report {
        match self.registry() {
            Ok(registry) => check::report(&registry, &self.artifacts),
            Err(diagnostics) => Report { diagnostics, ..Report::default() },
        }
    }

    /// The generated Rust.
    ///
    /// # Errors
    /// All that is wrong with the registry, or drifts from it.
    pub fn generate(&self) -> Result<String, Diagnostics> {
        let registry = self.registry()?;
        let report = check::report(&registry, &self.artifacts);
        if !report.diagnostics.is_empty() {
            return Err(report.diagnostics);
        }
        let texts = self.sources();
        let linked = link::link(&registry, &self.artifacts, &texts)?;
        let text = texts.get(bindings::PATH).map_or("", String::as_str);
        // A check without findings has read them.
        Ok(emit::emit(&registry, &linked, &bindings::read(text).unwrap_or_default()))
    }
}
