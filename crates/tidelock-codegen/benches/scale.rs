//! What the generator costs, by the number of kernels; see this crate's README.
//!
//! `--write FOLDER` also writes a crate of 1,000 kernels, to time how long its build takes.

#[path = "../tests/many/mod.rs"]
mod many;

use std::fs;
use std::path::Path;
use std::time::Instant;

use tidelock_codegen::Project;

/// Kernels, and kernels in a file.
const SIZES: [(usize, usize); 4] = [(250, 50), (500, 50), (1000, 50), (1000, 500)];
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("                   ms of processors, the least of {ROUNDS}");
    println!("kernels  a family  read and validate  check  emit   all  all on the clock");
    for (kernels, per_family) in SIZES {
        let project = many::project(kernels, per_family);
        let (read, _) = least(|| drop(project.registry().expect("it is valid")));
        let check = least(|| drop(project.check())).0 - read;
        let (all, clock) = least(|| drop(project.generate().expect("nothing has drifted")));
        let emit = all - check - read;
        println!("{kernels:7}  {per_family:8}  {read:17.0}  {check:5.0}  {emit:4.0}  {all:4.0}  {clock:16.0}");
    }
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "--write").map(|at| arguments.get(at + 1)) {
        Some(Some(folder)) => write(Path::new(folder), &many::project(1000, 50)),
        Some(None) => Err("--write: expected a folder".into()),
        None => Ok(()),
    }
}

/// Milliseconds of all threads on processors, so that others on the machine do not count, and milliseconds on the clock,
/// which also stands for processors where the system does not say.
fn least(run: impl Fn()) -> (f64, f64) {
    let times = (0..ROUNDS).map(|_| {
        let (before, start) = (processors(), Instant::now());
        run();
        let clock = start.elapsed().as_secs_f64() * 1e3;
        (processors().zip(before).map_or(clock, |(after, before)| after - before), clock)
    });
    times.reduce(|least, time| (least.0.min(time.0), least.1.min(time.1))).expect("there are rounds")
}

/// Milliseconds that this process has spent on processors, in steps of ten.
fn processors() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // User and system time are fields 14 and 15, in hundredths of a second; the name in field 2 ends with `)`.
    let fields = text.rsplit(')').next()?.split_whitespace();
    fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().ok().map(|ticks| ticks * 10.0)).sum()
}

/// A crate that depends on this checkout by path.
fn write(root: &Path, project: &Project) -> Result<(), Box<dyn std::error::Error>> {
    let house = fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    let house = house.display();
    let manifest = format!(
        "[package]\nname = \"many\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         tidelock = {{ path = {:?} }}\n\n[build-dependencies]\n\
         tidelock-codegen = {{ path = {:?} }}\n\n[profile.dev]\nopt-level = 1\n\n[profile.dev.build-override]\n\
         opt-level = 1\n\n[workspace]\n",
        house.to_string(),
        format!("{house}/crates/tidelock-codegen"),
    );
    let families: Vec<String> =
        project.registry().expect("it is valid").families.into_iter().map(|it| it.name).collect();
    let modules: String = families.iter().map(|family| format!("mod {family};\n")).collect();
    let library =
        "pub mod kernels {\n    include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\"));\n}\nmod cpu;\n".to_string();
    let build = "fn main() {\n    tidelock_codegen::build();\n}\n".to_string();
    let own = [("Cargo.toml", manifest), ("build.rs", build), ("src/lib.rs", library), ("src/cpu/mod.rs", modules)];
    let own = own.map(|(path, text)| (path.to_string(), text));
    for (path, text) in own.into_iter().chain(project.sources()) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("it lies in the folder"))?;
        fs::write(path, text)?;
    }
    Ok(())
}
