//! What a launch on a GPU asks of the driver, seen without a GPU: `stand_in.rs` takes libcuda's place and writes it down.
//!
//! A library's place is taken when a process starts, so each test runs a part of this program again, with the stand-in first in
//! the search path. Those parts are the ignored tests.
#![cfg(target_os = "linux")]

mod emulated;
mod mixed;
mod recent;
mod shared_memory;
mod turns;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use cudarc::driver::CudaContext;
use tidelock::kernels::Argmax;
use tidelock::{AsView, AsViewMut, Buffer, Device, REGISTRY};
use tidelock_parity::{Case, Inputs, standard};

const LOG: &str = "STAND_IN_LOG";

/// The folder with the stand-in as a library; `benches/README.md` names it, too.
fn stand_in() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stand_in");
        fs::create_dir_all(&folder).expect("the target folder can be written");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/driver/stand_in.rs");
        let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
        let arguments = ["--edition=2024", "--crate-type=cdylib", "-O", "-Cpanic=abort", "-o"];
        let status = Command::new(rustc).args(arguments).arg(folder.join("libcuda.so")).arg(source).status();
        assert!(status.expect("rustc runs").success(), "the stand-in compiles");
        folder
    })
}

/// Runs the ignored test `part` with the stand-in as the driver, and these environment variables. What it prints.
fn run(part: &str, variables: &[(&str, &OsStr)]) -> String {
    let output = Command::new(std::env::current_exe().expect("this program is a file"))
        .args(["--exact", part, "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", stand_in())
        .envs(variables.iter().copied())
        .output()
        .expect("this program runs");
    assert!(output.status.success(), "{part}:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the driver saw in the ignored test `part`.
fn seen(part: &str) -> String {
    let log = stand_in().join(part.replace("::", "-")).with_extension("log");
    let _ = fs::remove_file(&log);
    run(part, &[(LOG, log.as_os_str())]);
    fs::read_to_string(&log).expect("the driver was asked")
}

/// The file that the stand-in writes to; nothing where libcuda is the real one.
fn log() -> Option<PathBuf> {
    std::env::var_os(LOG).map(PathBuf::from)
}

/// The only stream of its context, so that cudarc tracks no uses of memory.
fn alone() -> Device {
    Device::from_stream(CudaContext::new(0).expect("the stand-in has a GPU").per_thread_stream())
}

/// The most likely of eight tokens.
struct Call {
    logits: Buffer<f32>,
    token: Buffer<i64>,
}

impl Call {
    fn on(device: &Device) -> Call {
        let logits = Buffer::from_slice(device, &[1.0; 8]).expect("the stand-in has memory");
        Call { logits, token: Buffer::zeros(device, 1).expect("the stand-in has memory") }
    }

    fn argmax(&mut self) -> Argmax<'_, f32, i64> {
        let logits = self.logits.view().matrix(1, 8).expect("it fits");
        Argmax { output_token_ids: self.token.view_mut(), logits }
    }
}

fn say(log: &Path, line: &str) {
    let before = fs::read_to_string(log).unwrap_or_default();
    fs::write(log, format!("{before}{line}\n")).expect("the log can be written");
}

#[test]
fn parameters_come_in_their_slots() {
    insta::assert_snapshot!("slots", seen("slots"));
}

/// The first variant of each kernel, and the last: with no optional tensor, and with all of them.
#[test]
#[ignore = "a part of another test"]
fn slots() {
    let Some(log) = log() else { return };
    let device = alone();
    for kernel in REGISTRY {
        let cases = standard(kernel);
        for index in BTreeSet::from([0, kernel.variants.len() - 1]) {
            let fits = |case: &&Case| case.variant_index() == Some(index) && !case.id().contains("=0");
            let case = cases.iter().find(fits).expect("each variant has a case that is not empty");
            say(&log, &format!("{}: {}", kernel.variants[index].name, case.id()));
            Inputs::new(case).run(&device).expect("the case fits");
        }
    }
}

#[test]
fn uses_on_several_streams_wait_for_each_other() {
    insta::assert_snapshot!(seen("streams"), @r#"
    one stream:
    stream 2 launches argmax_kernel, 1 x 1 x 1 blocks of 256, 32 bytes: #2 #1 8 8 0 0
    stream 2 launches argmax_kernel, 1 x 1 x 1 blocks of 256, 32 bytes: #2 #1 8 8 0 0
    prepared before there were two:
    stream 2 waits for event 3
    stream 2 waits for event 4
    stream 2 waits for event 2
    stream 2 launches argmax_kernel, 1 x 1 x 1 blocks of 256, 32 bytes: #2 #1 8 8 0 0
    stream 2 records event 4
    stream 2 records event 1
    on the second stream:
    stream 3 waits for event 3
    stream 3 waits for event 4
    stream 3 waits for event 2
    stream 3 launches argmax_kernel, 1 x 1 x 1 blocks of 256, 32 bytes: #2 #1 8 8 0 0
    stream 3 records event 4
    stream 3 records event 1
    stream 3 waits for event 3
    stream 3 waits for event 4
    stream 3 waits for event 2
    stream 3 records event 4
    stream 3 records event 1
    prepared for it:
    stream 3 waits for event 3
    stream 3 waits for event 4
    stream 3 waits for event 2
    stream 3 launches argmax_kernel, 1 x 1 x 1 blocks of 256, 32 bytes: #2 #1 8 8 0 0
    stream 3 records event 4
    stream 3 records event 1
    "#);
}

#[test]
#[ignore = "a part of another test"]
fn streams() {
    let Some(log) = log() else { return };
    let context = CudaContext::new(0).expect("the stand-in has a GPU");
    let first = Device::from_stream(context.per_thread_stream());
    let mut call = Call::on(&first);
    say(&log, "one stream:");
    call.argmax().launch(&first).expect("it fits");
    let mut prepared = call.argmax().prepare(&first).expect("it fits");
    prepared.launch().expect("it runs");
    let second = Device::from_stream(context.new_stream().expect("the stand-in has streams"));
    say(&log, "prepared before there were two:");
    prepared.launch().expect("it runs");
    say(&log, "on the second stream:");
    call.argmax().launch(&second).expect("it fits");
    let mut prepared = call.argmax().prepare(&second).expect("it fits");
    say(&log, "prepared for it:");
    prepared.launch().expect("it runs");
}

#[test]
fn a_use_is_recorded_where_a_second_stream_comes_during_the_launch() {
    insta::assert_snapshot!(seen("late"), @r#"
    stream 2 launches argmax_kernel, 1 x 1 x 1 blocks of 256, 32 bytes: #2 #1 8 8 0 0
    now there is a second stream
    stream 2 waits for event 3
    stream 2 waits for event 4
    stream 2 waits for event 2
    stream 2 records event 4
    stream 2 records event 1
    "#);
}

#[test]
#[ignore = "a part of another test"]
fn late() {
    let Some(log) = log() else { return };
    let hold = format!("{}.hold", log.display());
    let context = CudaContext::new(0).expect("the stand-in has a GPU");
    let device = Device::from_stream(context.per_thread_stream());
    let mut call = Call::on(&device);
    fs::write(&hold, "").expect("the log's folder can be written");
    let mut second = None;
    std::thread::scope(|scope| {
        scope.spawn(|| call.argmax().launch(&device).expect("it fits"));
        while !fs::read_to_string(&log).unwrap_or_default().contains("launches") {
            std::thread::sleep(Duration::from_millis(1));
        }
        second = context.new_stream().ok();
        say(&log, "now there is a second stream");
        fs::remove_file(&hold).expect("it is there");
    });
    assert!(second.is_some(), "the stand-in has streams");
}

#[test]
fn memory_elsewhere_is_refused_before_anything_is_launched() {
    insta::assert_snapshot!(seen("elsewhere"), @r"
    kernel `argmax`, parameter `output_token_ids`: expected memory of cuda:0, got host memory
    kernel `argmax`, parameter `output_token_ids`: expected memory of cuda:0, got host memory
    kernel `argmax`, parameter `logits`: expected memory of cuda:0, got host memory
    kernel `argmax`, parameter `output_token_ids`: expected memory of cuda:0, got memory of cuda:1
    kernel `argmax`, parameter `output_token_ids`: expected memory of cuda:0, got memory of cuda:1
    kernel `argmax`, parameter `logits`: expected memory of cuda:0, got memory of cuda:1
    kernel `argmax`, parameter `output_token_ids`: expected host memory, got memory of cuda:0
    ");
}

#[test]
#[ignore = "a part of another test"]
fn elsewhere() {
    let Some(log) = log() else { return };
    let device = alone();
    let other = Device::from_stream(CudaContext::new(1).expect("the stand-in has many GPUs").per_thread_stream());
    for owner in [Device::Cpu, other] {
        let mut call = Call::on(&owner);
        let error = call.argmax().launch(&device).expect_err("it is not there");
        say(&log, &error.to_string());
        let error = call.argmax().prepare(&device).err().expect("it is not there");
        say(&log, &error.to_string());
        let mut call = Call { token: Call::on(&device).token, ..call };
        say(&log, &call.argmax().launch(&device).expect_err("half of it is not there").to_string());
    }
    let mut call = Call::on(&device);
    say(&log, &call.argmax().launch(&Device::Cpu).expect_err("the CPU cannot read it").to_string());
}
