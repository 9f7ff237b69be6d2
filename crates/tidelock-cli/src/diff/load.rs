//! A registry to compare: of a folder, or of a revision that git knows.

use std::fs;
use std::path::Path;
use std::process::Command;

use tidelock_codegen::source::Sources;

/// The registry's files, each by its path relative to the crate.
pub type Files = Vec<(String, String)>;

/// The files of `what`: a folder with signatures/ or with the YAML files themselves, or else a revision of the repository
/// that `root` is in.
pub fn load(root: &Path, what: &str) -> Result<Files, String> {
    let folder = if what == "." { root.to_path_buf() } else { what.into() };
    let files = if folder.is_dir() { of_folder(&folder)? } else { of_revision(root, what)? };
    match files.is_empty() {
        true => Err(format!("{what}: expected a registry (signatures/*.yaml), found no YAML file")),
        false => Ok(files),
    }
}

fn of_folder(folder: &Path) -> Result<Files, String> {
    let signatures = folder.join("signatures");
    let folder = if signatures.is_dir() { signatures } else { folder.to_path_buf() };
    let fail = |error| format!("{}: {error}", folder.display());
    let mut files = Files::new();
    for entry in fs::read_dir(&folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".yaml")) else {
            continue;
        };
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        files.push((format!("signatures/{name}"), text));
    }
    Ok(files)
}

fn of_revision(root: &Path, revision: &str) -> Result<Files, String> {
    if revision.starts_with('-') {
        return Err(format!("{revision}: expected a folder or a git revision"));
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(arguments).output();
        let output = output.map_err(|error| format!("`git` cannot be run: {error}"))?;
        if output.status.success() {
            return String::from_utf8(output.stdout).map_err(|_| format!("{}: not UTF-8", arguments.join(" ")));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("it says nothing").to_string();
        Err(format!("{revision}: expected a folder or a git revision; git says: {said}"))
    };
    git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{tree}}")])
        .map_err(|_| format!("{revision}: expected a folder or a git revision, and it is neither"))?;
    let names = git(&["ls-tree", "--name-only", revision, "signatures/"])?;
    let names = names.lines().filter(|name| name.ends_with(".yaml"));
    names.map(|name| Ok((name.to_string(), git(&["show", &format!("{revision}:./{name}")])?))).collect()
}

/// The texts that spans point into.
pub fn sources(files: &Files) -> Sources {
    files.iter().cloned().collect()
}
