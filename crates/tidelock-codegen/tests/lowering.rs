//! The registry that is shipped lowers to the model it means, and no text can make the reader panic or hang.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use tidelock_codegen::lower;
use tidelock_codegen::model::*;
use tidelock_codegen::variants::{switches, variants};

const FILES: [(&str, &str); 4] = [
    ("signatures/noise.yaml", include_str!("../../../signatures/noise.yaml")),
    ("signatures/race.yaml", include_str!("../../../signatures/race.yaml")),
    ("signatures/rejection.yaml", include_str!("../../../signatures/rejection.yaml")),
    ("signatures/softmax.yaml", include_str!("../../../signatures/softmax.yaml")),
];

fn registry() -> Registry {
    let files = FILES.map(|(path, text)| (path.to_string(), text.to_string()));
    lower::read(&files).unwrap_or_else(|errors| panic!("{}", errors.render(&files.into_iter().collect(), false)))
}

fn kernel(name: &str) -> Kernel {
    let kernels = registry().families.into_iter().flat_map(|family| family.kernels);
    kernels.into_iter().find(|kernel| kernel.name.value == name).unwrap_or_else(|| panic!("no kernel {name}"))
}

fn tensor(kernel: &Kernel, name: &str) -> Tensor {
    match &kernel.param(name).unwrap().kind {
        ParamKind::Tensor(tensor) => tensor.clone(),
        _ => panic!("{name} is no tensor"),
    }
}

fn scalar(kernel: &Kernel, name: &str) -> Scalar {
    match &kernel.param(name).unwrap().kind {
        ParamKind::Scalar(scalar) => scalar.clone(),
        _ => panic!("{name} is no scalar"),
    }
}

#[test]
fn families_are_the_files() {
    let families = registry().families;
    let names: Vec<&str> = families.iter().map(|family| family.name.as_str()).collect();
    assert_eq!(names, ["noise", "race", "rejection", "softmax"]);
    assert_eq!(families[2].path, "signatures/rejection.yaml");
    assert_eq!(families[2].kernels[2].gpu.value.file, "kernels/rejection.py");
    assert_eq!(families[2].kernels[2].gpu.value.function, "expand_kernel");
}

#[test]
fn sizes_come_from_the_first_required_tensor() {
    let kernel = kernel("rejection_greedy_sample");
    let dims: Vec<_> =
        kernel.dims.iter().map(|dim| (dim.name.value.as_str(), dim.bound_by.as_str(), dim.axis, dim.offset)).collect();
    let output = "output_token_ids";
    assert_eq!(
        dims,
        [("batch_size", output, 0, 0), ("max_spec_len", output, 1, 1), ("num_tokens", "draft_token_ids", 0, 0)]
    );
    assert_eq!(scalar(&kernel, "max_spec_len").source, ScalarSource::Dim);
    assert_eq!(kernel.num_warps, 1);
}

#[test]
fn one_tensor_follows_another() {
    let kernel = kernel("rejection_greedy_sample");
    let rates = "synthetic_conditional_rates".to_string();
    assert_eq!(tensor(&kernel, "uniform_probs").presence, Presence::With(rates.clone()));
    let names: Vec<&str> = switches(&kernel).map(|param| param.name.value.as_str()).collect();
    assert_eq!(names, ["is_greedy", "synthetic_conditional_rates"]);
    assert_eq!(kernel.constants[0].value, ConstantValue::Present(rates));
    assert_eq!(kernel.constants[0].doc, "Whether `synthetic_conditional_rates` is given.");
}

#[test]
fn types_are_declared_or_chosen_by_a_constant() {
    let expand = kernel("expand");
    assert_eq!(expand.types[0].choices, [DType::F32, DType::I32, DType::I64]);
    assert_eq!(expand.types[0].chosen_by, None);
    assert_eq!(scalar(&expand, "replace_from").source, ScalarSource::Default(Literal::Int(0)));

    let recover = kernel("sample_recovered_tokens");
    assert_eq!(recover.types[0].name.value, "USE_FP64_GUMBEL");
    assert_eq!(recover.types[0].choices, [DType::F32, DType::F64]);
    assert_eq!(recover.types[0].chosen_by.as_deref(), Some("USE_FP64_GUMBEL"));
    assert_eq!(tensor(&recover, "inv_q").element.value, Element::Variable("USE_FP64_GUMBEL".into()));
    assert_eq!(tensor(&recover, "inv_q").stride_param.as_deref(), Some("inv_q_stride"));
    assert_eq!(variants(&recover).len(), 8);
    assert_eq!(variants(&recover)[7].name, "sample_recovered_tokens-f64-draft_probs-aligned");
}

#[test]
fn domains_limits_and_grids() {
    let random = kernel("rejection_random_sample");
    let vocab = Expr::Name("vocab_size".into());
    assert_eq!(random.param("draft_token_ids").unwrap().domain, Domain::Range(Expr::Int(-1), vocab));
    assert_eq!(random.param("cu_num_draft_tokens").unwrap().domain, Domain::InclusiveCumsum("num_tokens".into()));
    assert_eq!(scalar(&kernel("softmax"), "vocab_size").max, Some(1 << 22));
    let divided =
        |name: &str| Expr::CeilDiv(Box::new(Expr::Name(name.into())), Box::new(Expr::Name("BLOCK_SIZE".into())));
    assert_eq!(kernel("draw_inverse_exponential").grid[1].value, divided("vocab_size"));
    assert_eq!(kernel("draw_uniform_probs").grid[0].value, divided("num_values"), "cut by YAML at its comma");
}

#[test]
fn spans_point_at_the_text() {
    let kernel = kernel("rejection_greedy_sample");
    let text = FILES[2].1;
    let at = |span: &tidelock_codegen::source::Span| &text[span.start..span.end];
    assert_eq!(at(&kernel.name.span), "rejection_greedy_sample");
    assert_eq!(at(&kernel.params[0].name.span), "output_token_ids");
    assert_eq!(at(&tensor(&kernel, "output_token_ids").shape[1].span), "max_spec_len + 1");
    assert_eq!(at(&kernel.dims[1].name.span), "max_spec_len");
}

/// Reads `text` alone; whatever it is, that ends soon, and errors can be shown.
fn survives(text: &str) {
    let start = Instant::now();
    let files = [("signatures/noise.yaml".to_string(), text.to_string())];
    if let Err(errors) = lower::read(&files) {
        assert!(!errors.is_empty());
        let sources = files.into_iter().collect();
        assert!(errors.render(&sources, true).contains("error"));
        assert!(errors.to_json(&sources).is_array());
    }
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
}

#[test]
fn hostile_texts_end_soon() {
    let many = |entry: &str, count: usize| entry.repeat(count);
    let kernels = |entries: &str| format!("kernels:\n{entries}");
    survives(&many("[", 200_000));
    survives(&many("{a: ", 100_000));
    survives(&many("- ", 100_000));
    survives(&many("a:\n ", 20_000));
    survives(&"x".repeat(2_000_000));
    survives(&format!("kernels: {}", "9".repeat(200_000)));
    survives(&kernels(&many("  x: {}\n", 20_000)));
    survives(&kernels(&(0..5_000).map(|i| format!("  k{i}: {{}}\n")).collect::<String>()));
    let params: String = (0..5_000).map(|i| format!("      p{i}: {{scalar: f32}}\n")).collect();
    survives(&kernels(&format!("  k:\n    params:\n{params}")));
    let bomb = "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nkernels: [*c, *c, *c, *c]\n";
    survives(bomb);
    survives("\u{feff}kernels: {}\n");
    survives("kernels: {k: {grid: ['cdiv(a', é, 'b)']}}");
    let optional: String =
        (0..60).map(|i| format!("      p{i}: {{tensor: f32, shape: [n], optional: true, doc: D.}}\n")).collect();
    survives(&kernels(&format!("  k:\n    doc: D.\n    gpu: kernels/k.py:k\n    grid: [1]\n    params:\n{optional}")));
}

/// One of the real files with pieces of it, or of what YAML and the schema know, put elsewhere.
fn mutated() -> impl Strategy<Value = String> {
    let pieces = [
        "",
        " ",
        "\n",
        ":",
        "{",
        "}",
        "[",
        "]",
        "- ",
        "'",
        "\"",
        "#",
        "&a ",
        "*a",
        "!t ",
        "|\n",
        ">",
        "<<: ",
        "---\n",
        "~",
        "true",
        "-1",
        "1e999",
        "é",
        "..",
        "cdiv(",
        ")",
        "optional: {with: probs}",
        "from: dim",
        "from: stride(probs)",
        "default: 3",
        "type: bool",
        "tensor: {by: X, true: f64, false: f32}",
        "max: 0",
        "domain: 0..n",
        "shape: [a + 1]",
    ];
    let edit = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..12usize);
    (0..FILES.len(), prop::collection::vec(edit, 1..6)).prop_map(move |(file, edits)| {
        let mut text: Vec<char> = FILES[file].1.chars().collect();
        for (at, piece, removed) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, piece.get(&pieces).chars());
        }
        text.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gives_an_answer(text in any::<String>()) {
        survives(&text);
    }

    #[test]
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_damaged_registry_gives_an_answer(text in mutated()) {
        survives(&text);
    }

    #[test]
    fn any_expression_gives_an_answer(text in "[-+*(), .a-cA-C0-9]{0,40}|cdiv\\(.{0,20}\\)") {
        let _ = tidelock_codegen::expr::expression(&text);
        let _ = tidelock_codegen::expr::domain(&text);
    }
}

#[test]
fn what_an_arm_refuses_is_not_compiled_or_not_handed_over() {
    let text = "kernels:
  scale:
    doc: Scales values.
    gpu: kernels/scale.py:scale_kernel
    grid: [n]
    params:
      values: {tensor: f32, shape: [n], access: update, doc: Values.}
      lora: {tensor: f32, shape: [n], optional: true, refused: {cpu: The fallback has no LoRA.}, doc: Scales.}
      mask: {tensor: bool, shape: [n], optional: true, refused: {gpu: The kernel has no mask.}, doc: Which.}
      mask_bias: {tensor: f32, shape: [n], optional: {with: mask}, doc: What the mask adds.}
";
    let registry =
        tidelock_codegen::lower::read(&[("signatures/scale.yaml".into(), text.into())]).expect("it is valid");
    let kernel = &registry.families[0].kernels[0];
    let variants = tidelock_codegen::variants::variants(kernel);
    let names: Vec<_> = variants.iter().map(|variant| (variant.name.as_str(), variant.absent.join(" "))).collect();
    assert_eq!(names, [("scale-no_lora", "mask mask_bias lora".into()), ("scale-lora", "mask mask_bias".into())]);
    let arm: Vec<_> = tidelock_codegen::arms::expected(kernel).into_iter().map(|field| field.field).collect();
    assert_eq!(arm, ["values", "mask", "mask_bias"]);
}
