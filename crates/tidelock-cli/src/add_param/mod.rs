//! `tidelock add-param`: a parameter into the registry's text, and then every place that does not know it yet.
//!
//! [`spec`] reads what was asked for, [`edit`] writes it where it belongs and leaves the rest of the text as it is,
//! [`callers`] looks for who builds the argument struct; all else is what the drift checks say.

mod callers;
mod edit;
mod spec;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use similar::TextDiff;
use tidelock_codegen::Project;
use tidelock_codegen::check::similar::did_you_mean;
use tidelock_codegen::diagnostic::Diagnostics;
use tidelock_codegen::model::{Kernel, Registry};
use tidelock_codegen::source::Sources;
use tidelock_codegen::variants::variants;

use crate::output;
use spec::{Flags, Spec};

/// Add a parameter to a kernel's entry, and list every place left to change
///
/// The registry's text keeps its comments, order and style. What is left (the kernel, its PTX, the CPU arm, callers) is what
/// the drift checks then say. Examples: `top_k:i32=0`, `noise:tensor<f32>[num_rows]`, `USE_FP64:bool=false`.
#[derive(Args)]
pub struct Arguments {
    /// The kernel
    kernel: String,
    /// NAME:TYPE, with =DEFAULT for a scalar, or =VALUE for a constant, whose name is in upper case
    #[arg(value_name = "NAME:TYPE[=DEFAULT]")]
    spec: String,
    #[command(flatten)]
    flags: Flags,
    /// Name of the parameter or constant that it follows; without it, it is the last
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    /// Write nothing, and print what would change
    #[arg(long)]
    dry_run: bool,
    /// Folder with signatures/, kernels/, ptx/ and src/cpu/
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

impl Arguments {
    /// Edits, and prints what is left to do.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let spec = Spec::read(&self.spec).map_err(|error| anyhow!("{}: {error}", self.spec))?;
        spec.check(&self.flags).map_err(|error| anyhow!("{}: {error}", self.spec))?;
        let mut project = Project::read(&self.root).map_err(|error| anyhow!(error))?;
        let registry = match project.registry() {
            Ok(registry) => registry,
            Err(errors) => return refuse(&errors, &project.sources()),
        };
        let (path, kernel) = find(&registry, &self.kernel)?;
        let old = project.sources().remove(&path).with_context(|| path.clone())?;
        let place = edit::Place { kernel: &self.kernel, constant: spec.is_constant(), after: self.after.as_deref() };
        let written = |said| {
            let pairs = spec.pairs(&self.flags, said);
            edit::insert(&path, &old, &place, &spec.name, &pairs).map_err(|error| anyhow!(error))
        };
        let new = written(false)?;
        // The checks run on it as if all were said, or they would say nothing else.
        let said = written(true)?;
        project.insert(path.clone(), said.text.into_bytes());
        let changed = match project.registry() {
            Ok(registry) => registry,
            Err(errors) => return refuse(&errors, &project.sources()),
        };
        if self.dry_run {
            let diff = TextDiff::from_lines(&old, &new.text);
            write!(
                out,
                "{}",
                diff.unified_diff().context_radius(3).header(&format!("a/{path}"), &format!("b/{path}"))
            )?;
        } else {
            fs::write(self.root.join(&path), &new.text).with_context(|| path.clone())?;
        }
        let verb = if self.dry_run { "would add" } else { "added" };
        let what = if spec.is_constant() { "constant" } else { "parameter" };
        let (name, at) = (&spec.name, new.line);
        writeln!(out, "{verb} {what} `{name}` to kernel `{}`, after `{}`: {path}:{at}", self.kernel, new.after)?;
        self.left(out, &spec, &project, &changed, kernel, &format!("{path}:{at}"))?;
        Ok(ExitCode::SUCCESS)
    }

    /// What does not know the parameter yet.
    fn left(
        &self,
        out: &mut impl Write,
        spec: &Spec,
        project: &Project,
        changed: &Registry,
        before: &Kernel,
        place: &str,
    ) -> anyhow::Result<()> {
        let sources = project.sources();
        let report = project.check();
        let after = find(changed, &self.kernel)?.1;
        writeln!(out, "\nleft to do:")?;
        if self.flags.doc.is_none() {
            writeln!(out, "  {place}  say what it means, in place of TODO")?;
        }
        if spec.is_open(&self.flags) {
            writeln!(out, "  {place}  say its value in place of TODO, or derive it: `from: present(TENSOR)`")?;
        }
        let names_it =
            |text: &str| text.contains(&format!("`{}`", spec.name)) || text.contains(&format!("`{}`", spec.field()));
        let of_it: Vec<_> = report
            .diagnostics
            .0
            .iter()
            .filter(|it| it.message.contains(&format!("`{}`", self.kernel)) || names_it(&it.message))
            .cloned()
            .collect();
        for diagnostic in &of_it {
            let elsewhere = diagnostic
                .others
                .iter()
                .map(|label| &label.span)
                .find(|span| span.file != diagnostic.primary.span.file);
            let span = elsewhere.unwrap_or(&diagnostic.primary.span);
            let line = sources.get(&span.file).map_or(1, |text| span.line_column(text).0);
            writeln!(out, "  {}:{line}  {}", span.file, diagnostic.message)?;
        }
        let (old, new) = (variants(before).len(), variants(after).len());
        let grown = if old == new { String::new() } else { format!(" (there were {old})") };
        writeln!(
            out,
            "  ptx/  {} to compile{grown}: `tidelock compile {}`",
            output::plural(new, "variant"),
            self.kernel
        )?;
        let breaks = spec.breaks_callers(&self.flags);
        let callers = callers::find(&self.root, &self.kernel)?;
        for caller in callers.iter().filter(|_| breaks) {
            writeln!(out, "  {}:{}  a caller: `{}` has one field more", caller.file, caller.line, spec.field())?;
        }
        if !breaks {
            writeln!(out, "  no caller changes (launches in {})", output::plural(callers.len(), "place"))?;
        }
        if !of_it.is_empty() {
            let text = Diagnostics(of_it).render(&sources, output::colour(&io::stdout()));
            write!(out, "\n{text}")?;
        }
        Ok(())
    }
}

/// The kernel of this name and the path of its family's file.
fn find<'a>(registry: &'a Registry, name: &str) -> anyhow::Result<(String, &'a Kernel)> {
    let all = || registry.families.iter().flat_map(|family| family.kernels.iter().map(move |kernel| (family, kernel)));
    match all().find(|(_, kernel)| kernel.name.value == name) {
        Some((family, kernel)) => Ok((family.path.clone(), kernel)),
        None => {
            let names = all().map(|(_, kernel)| kernel.name.value.as_str());
            let all = || format!("there are {}", names.clone().collect::<Vec<_>>().join(", "));
            bail!("the registry has no kernel `{name}`; {}", did_you_mean(name, names.clone()).unwrap_or_else(all))
        }
    }
}

fn refuse(errors: &Diagnostics, sources: &Sources) -> anyhow::Result<ExitCode> {
    let stderr = io::stderr();
    let text = errors.render(sources, output::colour(&stderr));
    write!(stderr.lock(), "{text}")?;
    Ok(ExitCode::FAILURE)
}
