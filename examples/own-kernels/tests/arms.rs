//! Both arms of every kernel of this crate, on cases that come from its registry.

use std::path::Path;

use own_kernels::kernels::{AddScaled, REGISTRY};
use tidelock::{AsView, AsViewMut, Device};
use tidelock_parity::{Meta, Record, Verdict, compare, record, standard, survey, verify_survey};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/records");

#[test]
fn the_cpu_arms_are_total() {
    let survey = survey(REGISTRY, &Device::Cpu, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    for kernel in REGISTRY {
        assert!(survey.cases.iter().filter(|surveyed| surveyed.case.kernel.name == kernel.name).count() > 10);
    }
}

#[test]
fn the_cpu_arms_give_what_a_gpu_gave() {
    let survey = survey(REGISTRY, &Device::Cpu, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    for kernel in REGISTRY {
        let Some(record) = Record::load(Path::new(FOLDER), kernel.family).unwrap_or_else(|error| panic!("{error}"))
        else {
            eprintln!("no record of family `{}`: run `cargo test -- --ignored record` on a GPU", kernel.family);
            continue;
        };
        for outcome in verify_survey(&record, &survey) {
            let wrong = matches!(outcome.verdict, Verdict::Differs { .. } | Verdict::Missing);
            assert!(!wrong, "{outcome}");
        }
    }
}

#[test]
fn both_arms_agree_where_there_is_a_gpu() {
    let gpu = match Device::cuda(0) {
        Ok(gpu) => gpu,
        Err(error) => return eprintln!("not compared with a GPU: {error}"),
    };
    for case in REGISTRY.iter().flat_map(|kernel| standard(kernel)) {
        let difference = compare(&case, &Device::Cpu, &gpu).unwrap_or_else(|error| panic!("{error}"));
        assert!(difference.is_none(), "the smallest case that differs: {}", difference.unwrap());
    }
}

/// `cargo test -- --ignored record`, on a GPU.
#[test]
#[ignore = "needs a GPU, and writes records/"]
fn record_what_a_gpu_gives() {
    let gpu = Device::cuda(0).unwrap_or_else(|error| panic!("{error}"));
    let Device::Cuda(device) = &gpu else { panic!("expected a GPU, got {gpu}") };
    let meta = Meta {
        card: device.stream().context().name().expect("the driver says the GPU's name"),
        driver: std::fs::read_to_string("/sys/module/nvidia/version").unwrap_or_default().trim().into(),
        date: std::env::var("RECORD_DATE").unwrap_or_default(),
        command: "cargo test -- --ignored record".into(),
    };
    for record in record(REGISTRY, &gpu, &meta, &|_| {}).unwrap_or_else(|error| panic!("{error}")) {
        record.save(Path::new(FOLDER)).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn a_wrong_argument_is_named() {
    let mut output = [7f32; 2];
    let call = AddScaled { output: output.view_mut(), input: [0f32; 2].view(), added: [0f32; 3].view() };
    assert_eq!(
        call.launch(&Device::Cpu).expect_err("the lengths differ").to_string(),
        "kernel `add_scaled`, parameter `added`: expected [size] = [2] (size from `output`), got [3]"
    );
    assert_eq!(output, [7.0; 2]);
}

/// tidelock's own kernels are left out where its feature `sampling` is off.
#[test]
fn no_kernel_of_tidelock_is_compiled_in() {
    let program = std::fs::read(std::env::current_exe().expect("the test has a path")).expect("it can be read");
    let holds = |text: &str| program.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds(".entry add_scaled_kernel"), "the PTX of this crate is in the program");
    // In other letters, so that this text is not what is found.
    assert!(!holds(&".ENTRY ARGMAX_KERNEL".to_lowercase()), "no PTX of tidelock is");
}
