//! `tidelock import`: registry entries from kernels that exist. What the source says is written down; what it does not say
//! is a `TODO` that the registry's reader refuses.
//!
//! A source is read into [`source`], the same for both languages ([`python`] with [`syntax`], [`flow`] and [`launch`]; [`cuda`] with [`cpp`]);
//! [`comment`] takes out what is said beside a parameter, [`strides`] whose stride a parameter is, and [`entry`] writes YAML.

mod comment;
mod cpp;
mod cuda;
mod entry;
mod flow;
mod launch;
mod python;
mod source;
mod strides;
mod syntax;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use tidelock_codegen::diagnostic::{Diagnostic, Diagnostics};
use tidelock_codegen::names;
use tidelock_codegen::source::Span;

use crate::{output, words};

/// What to do where macros make kernels.
const PREPROCESS: &str = "import what `nvcc -E` makes of the file";

/// Write registry entries for the kernels of a Triton or CUDA source
///
/// Every @triton.jit function that is launched, and every __global__ function, becomes an entry: names, order, constants and
/// defaults from its declaration, types from annotations and comments, access from its loads and stores. What the source
/// does not say is written as TODO, which every other command refuses with its place until it is filled in.
#[derive(Args)]
pub struct Arguments {
    /// The source: FILE.py (Triton) or FILE.cu (CUDA C++)
    file: PathBuf,
    /// Name of the family; without it, made of the file's name
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// Write signatures/FAMILY.yaml, which must not exist, instead of printing
    #[arg(long)]
    write: bool,
    /// Folder with signatures/ and kernels/
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

impl Arguments {
    /// Imports, prints or writes, and says on the standard error what is left to be said.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let shown = self.file.display().to_string();
        let family = match self.family {
            Some(name) if names::is_snake(&name) && !names::is_keyword(&name) => name,
            Some(name) => bail!("--family: expected a name in snake case, such as `rejection`, got `{name}`"),
            None => words::snake(&stem(&self.file)),
        };
        let bytes = fs::read(&self.file).with_context(|| shown.clone())?;
        let is_python = match self.file.extension().and_then(|ending| ending.to_str()) {
            Some("py") => true,
            Some("cu" | "cuh") => false,
            _ => bail!("{shown}: expected a Triton source, FILE.py, or a CUDA C++ source, FILE.cu"),
        };
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let span = Span::new(&shown, at, at);
                let error =
                    Diagnostic::new("TL0001", format!("{shown} is not UTF-8"), span, "the first byte that is not");
                return refuse(&shown, text, error);
            }
        };
        let folder = self.file.parent().unwrap_or(Path::new("")).to_path_buf();
        let beside = |module: &str| fs::read_to_string(folder.join(module).with_extension("py")).ok();
        let kernels = match if is_python { python::read(&text, &beside) } else { cuda::read(&text) } {
            Ok(kernels) => kernels,
            Err(mistake) => {
                let span = Span::new(&shown, mistake.span.start, mistake.span.end);
                let message = format!("{shown} cannot be read as {}", mistake.language);
                let error = Diagnostic::new("TL0501", message, span, mistake.message);
                return refuse(&shown, text, error.help("the file must compile; nothing was imported"));
            }
        };
        let hidden = if is_python { 0 } else { cuda::made_by_macros(&text) };
        if kernels.is_empty() && hidden > 0 {
            bail!("{shown}: its kernels are made by macros, which are not expanded here; {PREPROCESS}");
        }
        if kernels.is_empty() {
            let expected =
                if is_python { "a function with @triton.jit that is launched" } else { "a __global__ function" };
            bail!("{shown}: expected a kernel ({expected}), found none");
        }
        let place = place(&self.root, &self.file, &family);
        let yaml = entry::file(&family, &place, &kernels);
        let open = entry::placeholders(&yaml);
        let (kernels, open) = (output::plural(kernels.len(), "kernel"), output::plural(open, "place"));
        let mut said = format!("imported {kernels} of {shown}; {open} left to say (TODO)");
        if self.write {
            let path = self.root.join(format!("signatures/{family}.yaml"));
            create(&path, &yaml)?;
            writeln!(out, "wrote  {}", path.display())?;
        } else {
            write!(out, "{yaml}")?;
        }
        if hidden > 0 {
            said += &format!("\nkernels that {} make were not read; {PREPROCESS}", output::plural(hidden, "macro"));
        }
        if !self.root.join(&place).is_file() {
            said += &format!("\nput the source at {place}, where the entries say that it is");
        }
        writeln!(io::stderr(), "{said}")?;
        Ok(ExitCode::SUCCESS)
    }
}

fn refuse(file: &str, text: String, error: Diagnostic) -> anyhow::Result<ExitCode> {
    let stderr = io::stderr();
    let text = Diagnostics(vec![error]).render(&[(file.to_string(), text)].into(), output::colour(&stderr));
    write!(stderr.lock(), "{text}")?;
    Ok(ExitCode::FAILURE)
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned())
}

/// The path below `kernels/` that entries name: the file's own where it is there already.
fn place(root: &Path, file: &Path, family: &str) -> String {
    let inside = || {
        let (root, file) = (fs::canonicalize(root).ok()?, fs::canonicalize(file).ok()?);
        let path = file.strip_prefix(root).ok()?.to_str()?.replace('\\', "/");
        path.starts_with("kernels/").then_some(path)
    };
    let ending = if file.extension().is_some_and(|ending| ending == "py") { "py" } else { "cu" };
    inside().unwrap_or_else(|| format!("kernels/{family}.{ending}"))
}

/// Writes a file that must not exist yet.
pub fn create(path: &Path, text: &str) -> anyhow::Result<()> {
    let shown = || path.display().to_string();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    match fs::File::options().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).with_context(shown),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!("{}: expected no such file, and it is there; nothing was written", path.display())
        }
        Err(error) => Err(error).with_context(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is read, an entry or a mistake with a place comes of it.
    fn survives(text: &str, is_python: bool) {
        match if is_python { python::read(text, &|_| None) } else { cuda::read(text) } {
            Ok(kernels) => _ = entry::file("any", "kernels/any.py", &kernels),
            Err(mistake) => assert!(text.get(mistake.span.clone()).is_some(), "{mistake:?}"),
        }
        cuda::made_by_macros(text);
    }

    #[test]
    fn damaged_sources() {
        let triton = include_str!("../../../../kernels/race.py");
        let cuda = "/* é */ #define X(a) \\\n a\nextern \"C\" { template <int N> __global__ void __launch_bounds__(64) f(const \
                    float *__restrict__ x, int n[2] = 1, T<int, 4> *y = nullptr, ...) { x[0] += *y; f<<<1, 2>>>(\"\\\"\", 'c'); } }";
        for (text, is_python) in [(triton, true), (cuda, false), (include_str!("../new/templates/kernel.cu"), false)] {
            let borders: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
            let step = if is_python { 41 } else { 1 };
            for &at in borders.iter().step_by(step) {
                survives(&text[..at], is_python);
                survives(&text[at..], is_python);
                let next = borders.iter().find(|&&border| border > at + 2).copied().unwrap_or(text.len());
                survives(&format!("{}{}", &text[..at], &text[next..]), is_python);
                survives(&format!("{}({{[\"{}", &text[..at], &text[at..]), is_python);
            }
        }
    }
}
