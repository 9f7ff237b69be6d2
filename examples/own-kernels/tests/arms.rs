//! Both arms of every kernel of this crate, on cases that come from its registry.

use std::path::Path;
use std::sync::OnceLock;

use own_kernels::kernels::{AddScaled, DequantizeRows, Quantization, REGISTRY};
use tidelock::{Argument, AsView, AsViewMut, Device};
use tidelock_parity::{Meta, Record, Survey, Verdict, compare, record, standard, survey, verify_survey};

/// The records, in the folder of this crate, which is where cargo runs its tests.
const FOLDER: &str = "records";

/// What makes them, on a GPU.
const COMMAND: &str = "cargo test -- --ignored record";

/// The standard cases on the CPU arms: none panics, writes outside its tensors, or gives two results.
fn cpu() -> &'static Survey {
    static SURVEY: OnceLock<Survey> = OnceLock::new();
    SURVEY.get_or_init(|| survey(REGISTRY, &Device::Cpu, &|_| {}).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn the_cpu_arms_are_total() {
    for kernel in REGISTRY {
        assert!(cpu().cases.iter().filter(|surveyed| surveyed.case.kernel.name == kernel.name).count() > 10);
    }
}

#[test]
fn the_cpu_arms_give_what_a_gpu_gave() {
    let folder = Path::new(FOLDER);
    if !folder.exists() {
        return eprintln!("nothing holds the CPU arms to a GPU here; run `{COMMAND}` on one");
    }
    for family in REGISTRY.iter().map(|kernel| kernel.family) {
        let record = Record::load(folder, family).unwrap_or_else(|error| panic!("{error}"));
        let record = record.unwrap_or_else(|| panic!("no record of family `{family}`: run `{COMMAND}` on a GPU"));
        assert_agrees(&record);
    }
}

fn assert_agrees(record: &Record) {
    for outcome in verify_survey(record, cpu()) {
        assert!(outcome.verdict == Verdict::Agrees, "{outcome}: this one is made by `{COMMAND}`");
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

/// [`COMMAND`].
#[test]
#[ignore = "needs a GPU, and writes records/"]
fn record_what_a_gpu_gives() {
    let gpu = Device::cuda(0).unwrap_or_else(|error| panic!("{error}"));
    let meta = Meta::today(&gpu, COMMAND).unwrap_or_else(|error| panic!("{error}"));
    for record in record(REGISTRY, &gpu, &meta, &|_| {}).unwrap_or_else(|error| panic!("{error}")) {
        assert_agrees(&record);
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

const HALF: Quantization = Quantization { scale: 0.5, zero_point: -3, rectify: false, bias: [0.0, 0.25] };

#[test]
fn a_struct_reaches_the_arm_in_c_as_it_was_given() {
    let (mut output, input) = ([7f64; 6], [0i8, 1, 9, -128, 127, 9]);
    DequantizeRows {
        output: output.view_mut().matrix(2, 2).unwrap(),
        input: input.view().strided(2, 2, 3).unwrap(),
        ceilings: Some([100f32, 64.0].view()),
        quantization: &HALF,
    }
    .launch(&Device::Cpu)
    .unwrap();
    assert_eq!(output, [1.5, 2.25, -62.5, 64.0, 7.0, 7.0]);

    let not_a_number = Quantization { scale: f64::NAN, ..HALF };
    let mut output = [7f32; 1];
    let (input, output_view) =
        (input.view().slice(0..1).unwrap().matrix(1, 1).unwrap(), output.view_mut().matrix(1, 1));
    let call = DequantizeRows { output: output_view.unwrap(), input, ceilings: None, quantization: &not_a_number };
    call.launch(&Device::Cpu).unwrap();
    assert_eq!(output, [0.0]);
}

#[test]
fn another_struct_is_refused() {
    static INTEGER: [i8; 1] = [1];
    fn refuse(given: Argument<'static>) -> String {
        let kernel = REGISTRY.iter().find(|kernel| kernel.name == "dequantize_rows").expect("the registry has it");
        let output: &'static mut [f32] = Box::leak(Box::new([7f32]));
        let mut args = [
            output.view_mut().matrix(1, 1).unwrap().into(),
            INTEGER.view().matrix(1, 1).unwrap().into(),
            Argument::Absent,
            Argument::Absent,
            given,
            Argument::Absent,
        ];
        kernel.launch(&mut args, &Device::Cpu).expect_err("it is no Quantization").to_string()
    }
    let expected = "kernel `dequantize_rows`, parameter `quantization`: expected the struct `Quantization`, got ";
    assert_eq!(refuse(Argument::Struct(&0u64)), format!("{expected}another struct"));
    assert_eq!(refuse(Argument::Absent), format!("{expected}none"));
    assert_eq!(refuse(INTEGER.view().into()), format!("{expected}a view"));
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
