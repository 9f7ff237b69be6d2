//! The shared check: each wrong argument gives an error that names the kernel, the parameter, what was expected and what came,
//! and leaves the outputs as they were.

use tidelock::kernels::{Argmax, Expand, RandomSample, RejectionGreedySample, SampleRecoveredTokens, Softmax};
use tidelock::{Argument, AsView, AsViewMut, Device, Element, Kernel, REGISTRY};

fn kernel(name: &str) -> &'static Kernel {
    REGISTRY.iter().find(|kernel| kernel.name == name).expect("the registry has the kernel")
}

fn message(result: tidelock::Result<()>) -> String {
    let error = result.expect_err("the check refuses it");
    assert!(error.is_argument(), "{error}");
    error.to_string()
}

#[test]
fn a_view_that_is_too_short_is_refused_when_it_is_made() {
    let error = [0f32; 11].view().matrix(3, 4).err().expect("12 elements are needed");
    assert_eq!(error.to_string(), "view: expected at least 12 elements for [3, 4], got 11");
    let error = [0f32; 11].view().strided(2, 4, 3).err().expect("rows would overlap");
    assert_eq!(
        error.to_string(),
        "view: expected a row stride of at least 4 elements, so that rows do not overlap, got 3"
    );
    let error = [0f32; 4].view().matrix(usize::MAX, usize::MAX).err().expect("no memory is that large");
    assert!(error.to_string().contains("extents that memory can hold"), "{error}");
}

#[test]
fn extents_that_disagree_name_where_each_size_comes_from() {
    let (logits, mut tokens) = ([0f32; 12], [7i64; 2]);
    let logits = logits.view().matrix(3, 4).expect("it fits");
    let result = Argmax { output_token_ids: tokens.view_mut(), logits }.launch(&Device::Cpu);
    assert_eq!(
        message(result),
        "kernel `argmax`, parameter `logits`: expected [num_rows, vocab_size] = [2, 4] (num_rows from `output_token_ids`, \
         vocab_size from `logits`), got [3, 4]"
    );
    assert_eq!(tokens, [7; 2], "nothing was written");
}

#[test]
fn a_wrong_rank_is_refused() {
    let (logits, mut tokens) = ([0f32; 4], [7i64; 1]);
    let result = Argmax { output_token_ids: tokens.view_mut(), logits: logits.view() }.launch(&Device::Cpu);
    assert_eq!(
        message(result),
        "kernel `argmax`, parameter `logits`: expected rank 2, that is [num_rows, vocab_size], got rank 1, [4]"
    );
}

#[test]
fn rows_with_gaps_are_taken_where_a_stride_is_passed_and_refused_elsewhere() {
    let (logits, mut tokens) = ([0f32, 3.0, 99.0, 5.0, 1.0, 99.0], [7i64; 2]);
    let strided = logits.view().strided(2, 2, 3).expect("it fits");
    Argmax { output_token_ids: tokens.view_mut(), logits: strided }.launch(&Device::Cpu).expect("strides are honoured");
    assert_eq!(tokens, [1, 0]);

    let (mut output, cu, drafts, target, bonus) = ([7i32; 5], [1i32, 2], [3i32, 4], [3i64, 4], [8i32, 9]);
    let result = RejectionGreedySample {
        output_token_ids: output.view_mut().strided(2, 2, 3).expect("it fits"),
        cu_num_draft_tokens: cu.view(),
        draft_token_ids: drafts.view(),
        target_argmax: target.view(),
        bonus_token_ids: bonus.view(),
        is_greedy: None,
        uniform_probs: None,
        synthetic_conditional_rates: None,
    }
    .launch(&Device::Cpu);
    assert_eq!(
        message(result),
        "kernel `rejection_greedy_sample`, parameter `output_token_ids`: expected contiguous rows, got [2, 2] with row stride 3"
    );
    assert_eq!(output, [7; 5]);
}

#[test]
fn a_tensor_that_goes_with_another_cannot_be_given_alone() {
    let (mut output, cu, drafts, target, bonus, uniforms) = ([7i32; 2], [1i32], [3i32], [3i64], [8i32], [0.5f64]);
    let result = RejectionGreedySample {
        output_token_ids: output.view_mut().matrix(1, 2).expect("it fits"),
        cu_num_draft_tokens: cu.view(),
        draft_token_ids: drafts.view(),
        target_argmax: target.view(),
        bonus_token_ids: bonus.view(),
        is_greedy: None,
        uniform_probs: Some(uniforms.view()),
        synthetic_conditional_rates: None,
    }
    .launch(&Device::Cpu);
    assert_eq!(
        message(result),
        "kernel `rejection_greedy_sample`, parameter `uniform_probs`: expected to be given exactly when \
         `synthetic_conditional_rates` is, got this one alone"
    );
}

#[test]
fn an_extent_below_its_offset_is_refused() {
    let (mut output, cu, none, target, bonus) = ([0i32; 0], [0i32], [0i32; 0], [0i64; 0], [8i32]);
    let result = RejectionGreedySample {
        output_token_ids: output.view_mut().matrix(1, 0).expect("it fits"),
        cu_num_draft_tokens: cu.view(),
        draft_token_ids: none.view(),
        target_argmax: target.view(),
        bonus_token_ids: bonus.view(),
        is_greedy: None,
        uniform_probs: None,
        synthetic_conditional_rates: None,
    }
    .launch(&Device::Cpu);
    assert_eq!(
        message(result),
        "kernel `rejection_greedy_sample`, parameter `output_token_ids`: expected at least 1 in axis 1 (max_spec_len + 1), \
         got [1, 0]"
    );
}

#[test]
fn a_dimension_beyond_its_limit_is_refused() {
    let columns = 4_194_305;
    let (logits, mut probs, temperature) = (vec![0f32; columns], vec![7f32; columns], [1f32]);
    let mut scratch = vec![0i64; 2 * columns.div_ceil(4096) + 8];
    let words = scratch.len();
    let result = Softmax {
        probs: probs.view_mut().matrix(1, columns).expect("it fits"),
        scratch: scratch.view_mut().matrix(1, words).expect("it fits"),
        logits: logits.view().matrix(1, columns).expect("it fits"),
        temperature: temperature.view(),
    }
    .launch(&Device::Cpu);
    assert_eq!(message(result), "kernel `softmax`, parameter `vocab_size`: expected at most 4194304, got 4194305");
    assert!(probs.iter().all(|&p| p == 7.0));
}

#[test]
fn memory_of_a_gpu_is_refused_by_the_cpu_arm() {
    let mut tokens = [7i64; 1];
    // SAFETY: the check refuses the view before anything reads it.
    #[allow(unsafe_code)]
    let logits = unsafe { tidelock::View::<f32>::from_raw_device(0x1000, 4, 3) };
    let logits = logits.matrix(1, 4).expect("it fits");
    let result = Argmax { output_token_ids: tokens.view_mut(), logits }.launch(&Device::Cpu);
    assert_eq!(message(result), "kernel `argmax`, parameter `logits`: expected host memory, got memory of cuda:3");
}

#[test]
fn empty_tensors_do_nothing_and_fail_nothing() {
    let (logits, mut tokens) = ([0f32; 0], [0i64; 0]);
    let logits = logits.view().matrix(0, 4).expect("it fits");
    Argmax { output_token_ids: tokens.view_mut(), logits }.launch(&Device::Cpu).expect("no rows are fine");

    let (mut output, input, cu) = ([0f32; 0], [1f32; 2], [0i32; 2]);
    let call = Expand { output: output.view_mut(), input: input.view(), cu_num_tokens: cu.view() };
    call.launch(&Device::Cpu).expect("no tokens are fine");

    let (probs, inv_q, mut tokens) = ([0f32; 0], [0f64; 0], [5i32; 1]);
    let probs = probs.view().matrix(1, 0).expect("it fits");
    let inv_q = inv_q.view().matrix(1, 0).expect("it fits");
    let call = RandomSample { output_token_ids: tokens.view_mut(), probs, inv_q };
    call.launch(&Device::Cpu).expect("an empty vocabulary is fine");
    assert_eq!(tokens, [-1], "no token can be drawn from no vocabulary");
}

fn row(logits: &[f32; 4]) -> Argument<'_> {
    logits.view().matrix(1, 4).expect("it fits").into()
}

#[test]
fn rows_without_columns_may_be_any_distance_apart() {
    let (probs, inv_q, mut tokens) = ([0f32; 0], [0f64; 0], [5i32; 3]);
    let probs = probs.view().strided(3, 0, 7).expect("it fits");
    let inv_q = inv_q.view().strided(3, 0, 9).expect("it fits");
    let call = RandomSample { output_token_ids: tokens.view_mut(), probs, inv_q };
    call.launch(&Device::Cpu).expect("an empty vocabulary is fine");
    assert_eq!(tokens, [-1; 3]);
}

#[test]
fn the_untyped_call_checks_what_the_types_would() {
    let argmax = kernel("argmax");
    let (logits, mut tokens) = ([0f32; 4], [0i64; 1]);

    let few = argmax.launch(&mut [Argument::Absent], &Device::Cpu);
    assert_eq!(message(few), "kernel `argmax`: expected 4 arguments, got 1");

    let mut absent = [Argument::Absent, row(&logits), Argument::Absent, Argument::Absent];
    let absent = argmax.launch(&mut absent, &Device::Cpu);
    assert_eq!(message(absent), "kernel `argmax`, parameter `output_token_ids`: expected a view, got none");

    let constant = [0i64; 1];
    let mut read_only = [constant.view().into(), row(&logits), Argument::Absent, Argument::Absent];
    let read_only = argmax.launch(&mut read_only, &Device::Cpu);
    assert_eq!(
        message(read_only),
        "kernel `argmax`, parameter `output_token_ids`: expected a view that can be written, got one that can only be read"
    );

    let mut wide = [0f32; 1];
    let mut wide = [wide.view_mut().into(), row(&logits), Argument::Absent, Argument::Absent];
    let wide = argmax.launch(&mut wide, &Device::Cpu);
    assert_eq!(message(wide), "kernel `argmax`, parameter `output_token_ids`: expected one of i64, i32, got f32");

    let integers = [0i32; 4];
    let integers = Argument::from(integers.view().matrix(1, 4).expect("it fits"));
    let mut integers = [tokens.view_mut().into(), integers, Argument::Absent, Argument::Absent];
    let integers = argmax.launch(&mut integers, &Device::Cpu);
    assert_eq!(message(integers), "kernel `argmax`, parameter `logits`: expected one of f32, f16, bf16, got i32");

    let mut derived = [tokens.view_mut().into(), row(&logits), Argument::Scalar(5i32.to_scalar()), Argument::Absent];
    let derived = argmax.launch(&mut derived, &Device::Cpu);
    assert_eq!(message(derived), "kernel `argmax`, parameter `vocab_size`: expected a value of type i32, got I32(5)");
}

#[test]
fn one_type_variable_is_one_type() {
    let expand = kernel("expand");
    let (mut output, input, cu) = ([0f32; 3], [1i64; 2], [1i32, 3]);
    let mut args: Vec<Argument<'_>> = vec![output.view_mut().into(), input.view().into(), cu.view().into()];
    args.extend([Argument::Absent, Argument::Absent, Argument::Absent]);
    let result = expand.launch(&mut args, &Device::Cpu);
    assert_eq!(message(result), "kernel `expand`, parameter `input`: expected f32, as `output` has, got i64");
}

#[test]
fn a_device_that_is_not_there_is_an_ordinary_error() {
    for name in ["cuda:4096", "gpu", "cuda:", "cuda:-1"] {
        let error = name.parse::<Device>().expect_err("there is no such device");
        assert!(error.is_device_missing() && error.to_string().starts_with(&format!("device `{name}`")), "{error}");
    }
    assert_eq!("cpu".parse::<Device>().expect("there is a CPU").to_string(), "cpu");
}

#[test]
fn recovered_tokens_need_one_noise_row_a_request() {
    let (mut output, cu, drafts) = ([7i32; 2], [1i32, 2], [0i32, 1]);
    let (target, noise) = ([0.25f32; 8], [1f64; 4]);
    let result = SampleRecoveredTokens {
        output_token_ids: output.view_mut(),
        cu_num_draft_tokens: cu.view(),
        draft_token_ids: drafts.view(),
        draft_probs: None,
        target_probs: target.view().matrix(2, 4).expect("it fits"),
        inv_q: noise.view().matrix(1, 4).expect("it fits"),
    }
    .launch(&Device::Cpu);
    assert_eq!(
        message(result),
        "kernel `sample_recovered_tokens`, parameter `inv_q`: expected [batch_size, vocab_size] = [2, 4] (batch_size from \
         `cu_num_draft_tokens`, vocab_size from `target_probs`), got [1, 4]"
    );
    assert_eq!(output, [7; 2]);
}

#[test]
fn what_an_arm_refuses_is_an_error_with_its_reason() {
    use tidelock::DType;
    use tidelock::kernel::{Access, Arm, Dim, Domain, ElementType, KernelId, Op, Param, ParamKind, Place, Presence};

    const fn tensor(name: &'static str, presence: Presence, refused: Option<(Arm, &'static str)>) -> Param {
        let kind = ParamKind::Tensor {
            element: ElementType::Fixed(DType::F32),
            shape: &[&[Op::Dim(0)]],
            access: Access::Read,
            presence,
            strided: false,
        };
        Param { name, doc: "", line: 1, kind, domain: Domain::Any, only: None, refused, divisible_by_16: false }
    }
    static KERNEL: Kernel = Kernel {
        name: "scale",
        family: "scale",
        doc: "",
        signature: Place { file: "signatures/scale.yaml", line: 1 },
        gpu: Place { file: "kernels/scale.py", line: 1 },
        gpu_function: "scale_kernel",
        cpu: Place { file: "src/cpu/scale.rs", line: 1 },
        grid: &[&[Op::Int(1)]],
        shared_memory: None,
        types: &[],
        dims: &[Dim { name: "n", param: 0, axis: 0, offset: 0 }],
        params: &[
            tensor("values", Presence::Required, None),
            tensor("lora", Presence::Optional, Some((Arm::Cpu, "the fallback has no LoRA"))),
            tensor("mask", Presence::Optional, Some((Arm::Gpu, "the kernel has no mask"))),
        ],
        constants: &[],
        switches: &[1],
        variants: &[],
        run_cpu: |_, _| Ok(()),
        id: KernelId::new(),
    };
    let values = [1f32; 3];
    let mut refused = [values.view().into(), values.view().into(), Argument::Absent];
    assert_eq!(
        message(KERNEL.launch(&mut refused, &Device::Cpu)),
        "kernel `scale`, parameter `lora`: expected none, since the CPU arm refuses it (the fallback has no LoRA), got a view"
    );
    let mut taken = [values.view().into(), Argument::Absent, values.view().into()];
    KERNEL.launch(&mut taken, &Device::Cpu).expect("the CPU arm takes what the GPU arm refuses");
    // The GPU arm has variants for `lora` alone.
    assert_eq!(KERNEL.variant_index(&[], |index| index == 1, false), Some(1));
    assert_eq!(KERNEL.variant_index(&[], |index| index == 2, false), Some(0));
}
