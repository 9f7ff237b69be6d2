//! `tidelock compile --watch`: compiles what is out of date, then waits for the next change. The drift checks say what that is.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use std::{fs, thread};

use anyhow::anyhow;
use tidelock_codegen::Project;
use tidelock_codegen::plan::plan;
use tidelock_codegen::toolchain::{self, Error};

use super::print;
use crate::output;
use crate::progress::Progress;

/// How often files are looked at.
const PAUSE: Duration = Duration::from_millis(250);
/// Folders whose files are compiled.
const FOLDERS: [&str; 2] = ["signatures", "kernels"];

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Compiles and watches until the user stops it.
pub fn watch(root: &Path, selectors: &[String], out: &mut impl Write) -> anyhow::Result<ExitCode> {
    ctrlc::set_handler(|| STOPPED.store(true, Ordering::Relaxed))?;
    let mut seen = None;
    while !STOPPED.load(Ordering::Relaxed) {
        let now = files(root)?;
        if seen.as_ref() != Some(&now) {
            // A mistake is shown and not tried again until something else is written.
            if let Err(error) = compile(root, selectors, out) {
                say(&error);
            }
            writeln!(out, "watching {}; Ctrl-C stops", FOLDERS.join("/ and ") + "/")?;
            out.flush()?;
            seen = Some(now);
        }
        thread::sleep(PAUSE);
    }
    writeln!(out, "stopped")?;
    Ok(ExitCode::SUCCESS)
}

/// Size and time of every file that is watched.
fn files(root: &Path) -> anyhow::Result<BTreeMap<String, (u64, SystemTime)>> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<_> = FOLDERS.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir()).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            // An editor's temporary file may be gone by now.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                folders.push(entry.path());
            } else if !entry.file_name().to_string_lossy().starts_with('.') {
                found.insert(entry.path().display().to_string(), (meta.len(), meta.modified()?));
            }
        }
    }
    Ok(found)
}

fn compile(root: &Path, selectors: &[String], out: &mut impl Write) -> Result<(), Error> {
    let project = Project::read(root).map_err(Error::Other)?;
    let registry = project.registry().map_err(|errors| Error::Diagnostics(errors, project.sources()))?;
    let wanted = plan(&registry, selectors).map_err(|error| Error::Other(error.to_string()))?;
    let is_wanted = |name: &str| wanted.kernels.iter().any(|kernel| kernel.name == name);
    let is_stale = |code: &str| code.starts_with("TL02") || code.starts_with("TL03");
    let report = project.check();
    let stale = report
        .kernels
        .iter()
        .filter(|kernel| is_wanted(&kernel.kernel) && kernel.failed.iter().any(|code| is_stale(code)));
    let stale: Vec<String> = stale.map(|kernel| kernel.kernel.clone()).collect();
    if stale.is_empty() {
        return Ok(());
    }
    let progress = Progress::new();
    let changes = toolchain::compile(root, &stale, &mut |line| progress.say(line));
    drop(progress);
    let changes = changes?;
    toolchain::write(root, &changes)?;
    print(out, &changes, false).map_err(|error| Error::Other(error.to_string()))
}

fn say(error: &Error) {
    let stderr = io::stderr();
    let text = match error {
        Error::Diagnostics(diagnostics, sources) => diagnostics.render(sources, output::colour(&stderr)),
        error => format!("error: {:#}\n", anyhow!("{error}")),
    };
    _ = stderr.lock().write_all(text.as_bytes());
}
