//! `tidelock bind`: has bindgen read the C headers that a registry names. Only their author needs it, and libclang with it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use tidelock_codegen::{Project, bindings};

/// Bind the C headers that the registry names to Rust
#[derive(Args)]
pub struct Arguments {
    /// Folder with signatures/, kernels/ and cpu/
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Write nothing, and fail where what is committed differs from what comes out
    #[arg(long)]
    check: bool,
}

impl Arguments {
    /// Binds, and says what was written.
    pub fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let project = Project::read(&self.root).map_err(|error| anyhow!(error))?;
        let registry = match project.registry() {
            Ok(registry) => registry,
            Err(errors) => bail!("{}", errors.render(&project.sources(), false)),
        };
        let wanted = bindings::wanted(&registry);
        if wanted.headers.is_empty() {
            writeln!(out, "the registry names no C header, so there is nothing to bind")?;
            return Ok(ExitCode::SUCCESS);
        }
        let text = self.bind(&wanted)?;
        let text = bindings::committed(&wanted, project.artifacts(), &text).map_err(|error| anyhow!(error))?;
        let path = self.root.join(bindings::PATH);
        let differs = fs::read(&path).ok().as_deref() != Some(text.as_bytes());
        let what = match (differs, self.check) {
            (false, _) => "unchanged",
            (true, true) => "differs  ",
            (true, false) => {
                fs::write(&path, text).with_context(|| path.display().to_string())?;
                "wrote    "
            }
        };
        writeln!(out, "{what}  {}", bindings::PATH)?;
        Ok(if self.check && differs { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn bind(&self, wanted: &bindings::Wanted) -> anyhow::Result<String> {
        let mut builder = bindgen::Builder::default()
            .clang_args(["-x", "c++", "-std=c++17", "-I", &self.root.to_string_lossy()])
            .disable_header_comment()
            .use_core()
            .generate_comments(true)
            .derive_debug(true)
            .derive_partialeq(true)
            .formatter(bindgen::Formatter::None)
            .layout_tests(true)
            .merge_extern_blocks(true)
            .rust_target(bindgen::RustTarget::stable(85, 0).map_err(|error| anyhow!("{error}"))?)
            .rust_edition(bindgen::RustEdition::Edition2024);
        let mut includes = String::new();
        for header in &wanted.headers {
            let path = self.root.join(header);
            if !path.is_file() {
                bail!("{}: expected a C header, which the registry names; there is no such file", path.display());
            }
            includes += &format!("#include \"{header}\"\n");
        }
        builder = builder.header_contents("registry.h", &includes);
        for name in &wanted.structs {
            builder = builder.allowlist_type(name);
        }
        for name in &wanted.functions {
            builder = builder.allowlist_function(name);
        }
        // clang-sys panics where it finds no libclang, and says why.
        let generated = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| builder.generate()))
            .map_err(|_| anyhow!("libclang cannot be used: install it, or name its folder in LIBCLANG_PATH"))?;
        Ok(generated.context("bindgen cannot read the headers")?.to_string())
    }
}
