//! `tidelock compile --cubins`: machine code of the committed PTX, so that a process can start without the driver's compiler.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, anyhow, bail};
use rayon::prelude::*;
use tidelock::cubin;
use tidelock_codegen::toolchain::{self, Compiled};

use crate::output;
use crate::progress::Progress;

/// What to make machine code for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(u32);

impl FromStr for Target {
    type Err = String;

    /// `sm_90`
    fn from_str(text: &str) -> Result<Target, String> {
        let capability = text.strip_prefix("sm_").and_then(|digits| digits.parse().ok());
        capability.map(Target).ok_or_else(|| format!("expected a target such as `sm_90`, got `{text}`"))
    }
}

/// Makes a cubin of each variant that `selectors` name, for each target, in the folder `out`.
pub fn run(
    out: &mut impl Write,
    root: &Path,
    selectors: &[String],
    targets: &[Target],
    folder: &Path,
) -> anyhow::Result<()> {
    let progress = Progress::new();
    let variants = toolchain::compiled(root, selectors)?;
    let ptxas = toolchain::ptxas(root, &mut |line| progress.say(line))?;
    fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    let work: Vec<_> =
        variants.iter().flat_map(|variant| targets.iter().map(move |target| (variant, *target))).collect();
    let done = AtomicUsize::new(0);
    let sizes = work.par_iter().map(|(variant, target)| {
        let size = make(&ptxas, root, variant, *target, folder)?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress.say_done("cubins made", done as u64, work.len() as u64);
        Ok(size)
    });
    let sizes: Vec<usize> = sizes.collect::<anyhow::Result<_>>()?;
    drop(progress);
    let kilobytes = sizes.iter().sum::<usize>().div_ceil(1024);
    writeln!(out, "{} in {}, {kilobytes} KiB", output::plural(sizes.len(), "cubin"), folder.display())?;
    Ok(writeln!(out, "{}={} makes a process use them", cubin::VARIABLE, folder.display())?)
}

fn make(
    ptxas: &Path,
    root: &Path,
    variant: &Compiled,
    Target(capability): Target,
    folder: &Path,
) -> anyhow::Result<usize> {
    let path = folder.join(cubin::file_name(&variant.sha256, capability));
    let unsealed = path.with_extension("unsealed");
    let mut command = Command::new(ptxas);
    command.arg(format!("-arch=sm_{capability}")).arg("-o").arg(&unsealed).arg(root.join(&variant.path));
    let output = command.output().with_context(|| format!("{} cannot be run", ptxas.display()))?;
    if !output.status.success() {
        let report = String::from_utf8_lossy(&output.stderr);
        bail!("no cubin of {} for sm_{capability}: {}", variant.path, report.trim());
    }
    let bytes = fs::read(&unsealed).map_err(|error| anyhow!("{}: {error}", unsealed.display()))?;
    let sealed = cubin::seal(bytes, &variant.sha256, capability);
    // Renamed into place, so that a process which starts meanwhile sees a whole file or none.
    fs::write(&unsealed, &sealed)
        .and_then(|()| fs::rename(&unsealed, &path))
        .with_context(|| format!("{}", path.display()))?;
    Ok(sealed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        assert_eq!("sm_90".parse(), Ok(Target(90)));
        for wrong in ["90", "sm_", "sm_90a", "compute_90", ""] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
    }
}
