//! One thing is edited at a time; what is reported of it is pinned as people see it. Nothing else may be reported.

mod fixture;

use fixture::Fixture;

/// Checks the edited fixture and pins what is found.
fn pin(name: &str, fixture: Fixture) {
    let found = fixture.found();
    assert!(!found.is_empty(), "{name}: nothing was found");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, found);
    });
}

const KERNEL: &str = "kernels/pick.py";

#[test]
fn the_fixture_has_no_errors() {
    let report = Fixture::read().report();
    assert_eq!(Fixture::read().found(), "");
    let shown: Vec<_> = report.kernels.iter().map(|kernel| (kernel.kernel.as_str(), kernel.variants)).collect();
    assert_eq!(shown, [("pick", 8), ("fill", 2)]);
    assert!(report.kernels.iter().all(|kernel| kernel.family == "pick" && kernel.failed.is_empty()));
}

#[test]
fn a_parameter_is_on_one_side_only() {
    let added = "      noise: {";
    let param = "      bias: {tensor: f32, shape: [size], doc: Bias.}\n      noise: {";
    pin("param_added_to_registry", Fixture::read().yaml(added, param).cpu("noise, size }", "noise, bias, size }"));
    pin("param_added_to_registry_everywhere_missing", Fixture::read().yaml(added, param));
    let optional = "      bias: {tensor: f32, shape: [size], optional: true, doc: Bias.}\n      noise: {";
    let optional = Fixture::read().yaml(added, optional).cpu("noise, size }", "noise, bias, size }");
    pin("optional_param_added_to_registry", optional);
    let typo =
        Fixture::read().yaml("      weights: {", "      wieghts: {").yaml("present(weights)", "present(wieghts)");
    pin("param_misspelt_in_registry", typo.cpu("weights, noise, size }", "wieghts, noise, size }"));
    let stride = "      scores_stride: {scalar: i64, from: stride(scores), doc: Elements from one row to the next.}\n";
    let removed = Fixture::read().yaml(stride, "").yaml("[scores, size, scores_stride]", "[scores, size]");
    pin("param_removed_from_registry", removed);
    let alias = Fixture::read().yaml("as: scores_ptr", "as: score_pointers");
    pin("alias_is_wrong", alias);
}

#[test]
fn parameters_of_the_kernel_differ_after_an_edit_of_its_source() {
    // The source says what the kernel is now; the facts are of what it was.
    let added = Fixture::read().edit(KERNEL, "    noise,\n", "    noise,\n    bias,\n");
    pin("param_added_to_kernel", added);
    let both = Fixture::read()
        .edit(KERNEL, "    noise,\n", "    noise,\n    bias,\n")
        .yaml("      size: {scalar: i32, from: dim, doc: Columns.}", "      bias: {tensor: f32, shape: [size], optional: true, doc: Bias.}\n      size: {scalar: i32, from: dim, doc: Columns.}")
        .cpu("noise, size }", "noise, bias, size }");
    pin("param_added_to_both_and_not_compiled", both);
    pin("body_edited", Fixture::read().edit(KERNEL, "-1.0", "-2.0"));
    pin("shared_code_edited", Fixture::read().edit("kernels/common.py", "value * noise", "value + noise"));
    pin("shared_code_gone", Fixture::read().remove("kernels/common.py"));
}

#[test]
fn parameters_stand_in_another_order() {
    let size = "      size: {scalar: i32, from: dim, doc: Columns.}\n";
    let stride = "      scores_stride: {scalar: i64, from: stride(scores), doc: Elements from one row to the next.}\n";
    pin("reordered", Fixture::read().yaml(&format!("{size}{stride}"), &format!("{stride}{size}")));
}

#[test]
fn constants_differ() {
    pin(
        "constant_changed",
        Fixture::read().yaml("value: 128, tuning: true, doc: Columns", "value: 256, tuning: true, doc: Columns"),
    );
    pin("constant_is_the_opposite", Fixture::read().yaml("present(weights)", "absent(weights)"));
    let mark = "      MARK: {type: i32, value: 7, doc: What is added to the first place.}\n";
    pin("constant_removed", Fixture::read().yaml(mark, "").cpu(", mark }", " }"));
    let added = format!("{mark}      STEP: {{type: i32, value: 2, tuning: true, doc: Step.}}\n");
    pin("constant_added", Fixture::read().yaml(mark, &added));
    pin("constant_renamed", Fixture::read().yaml("MARK:", "LABEL:").cpu(", mark }", ", label }"));
    let alias = Fixture::read().yaml("MARK: {type: i32,", "LABEL: {type: i32, as: MARK,");
    assert_eq!(alias.cpu(", mark }", ", label }").found(), "");
    let alias = Fixture::read().yaml("MARK: {type: i32, value: 7,", "MARK: {type: i32, value: 8, as: mark,");
    pin("constant_alias_is_wrong", alias);
    let mixed = Fixture::read()
        .yaml(
            "      size: {scalar: i32, from: dim, doc: How many",
            "      mark: {scalar: i32, as: MARK, doc: What.}\n      size: {scalar: i32, from: dim, doc: How many",
        )
        .yaml(mark, "");
    pin("constant_is_a_param", mixed);
}

#[test]
fn types_and_variants_differ() {
    pin(
        "scalar_type_changed",
        Fixture::read()
            .yaml("size: {scalar: i32, from: dim, doc: Columns", "size: {scalar: i64, from: dim, doc: Columns"),
    );
    pin("tensor_type_changed", Fixture::read().yaml("scores: {tensor: f32", "scores: {tensor: f16"));
    pin(
        "made_optional",
        Fixture::read().yaml("shape: [num_rows, size], as:", "shape: [num_rows, size], optional: {with: weights}, as:"),
    );
    pin(
        "made_required",
        Fixture::read()
            .yaml("optional: true, doc: Weight", "doc: Weight")
            .yaml(
                "      HAS_WEIGHTS: {type: bool, from: present(weights)}\n",
                "      HAS_WEIGHTS: {type: bool, value: true, doc: Weights.}\n",
            )
            .cpu("noise, size }", "noise, size, has_weights }"),
    );
    pin("type_added", Fixture::read().yaml("T: [f32, i32]", "T: [f32, i32, i64]"));
    pin("type_taken_away", Fixture::read().yaml("T: [f32, i32]", "T: [i32, i64]"));
    pin("promise_changed", Fixture::read().yaml("[scores, size, scores_stride]", "[scores, size, noise]"));
    pin("promise_taken_away", Fixture::read().yaml("    divisible_by_16: [scores, size, scores_stride]\n", ""));
    pin(
        "promise_added",
        Fixture::read().yaml("      T: [f32, i32]\n", "      T: [f32, i32]\n    divisible_by_16: [output]\n"),
    );
    pin("warps_changed", Fixture::read().yaml("num_warps: 4", "num_warps: 8"));
}

#[test]
fn sources_are_elsewhere() {
    pin("file_does_not_exist", Fixture::read().yaml("kernels/pick.py:pick_kernel", "kernels/pik.py:pick_kernel"));
    pin("function_does_not_exist", Fixture::read().yaml(":pick_kernel", ":pick_kernels"));
    pin("another_function", Fixture::read().yaml(":fill_kernel", ":pick_kernel"));
}

#[test]
fn the_registry_has_other_kernels() {
    pin("kernel_renamed", Fixture::read().yaml("  fill:\n", "  fill_all:\n").cpu("FillCpu", "FillAllCpu"));
    let copy = "\n  fill_two:\n    doc: Again.\n    gpu: kernels/pick.py:fill_kernel\n    grid: [size]\n    num_warps: 1\n    params:\n      output: {tensor: f32, shape: [size], access: write, doc: The places.}\n      size: {scalar: i32, from: dim, doc: How many.}\n";
    let mut added = Fixture::read();
    added.yaml += copy;
    pin("kernel_added", added);
    pin("manifest_missing", Fixture::read().remove("ptx/pick.json"));
    let manifest = Fixture::read().text("ptx/pick.json");
    pin("manifest_of_no_family", Fixture::read().add("ptx/pickle.json", &manifest));
}

#[test]
fn the_manifest_is_damaged() {
    let text = Fixture::read().text("ptx/pick.json");
    pin("manifest_cut_off", Fixture::read().add("ptx/pick.json", &text[..text.len() / 2]));
    pin("manifest_empty", Fixture::read().add("ptx/pick.json", ""));
    pin("manifest_of_another_format", Fixture::read().manifest("\"format\": 1", "\"format\": 2"));
    pin("manifest_with_an_unknown_key", Fixture::read().manifest("\"toolchain\": {", "\"tools\": {"));
    pin("manifest_with_a_key_missing", Fixture::read().manifest("    \"target\": \"sm_80\",\n", ""));
    pin("manifest_with_a_bad_hash", Fixture::read().manifest("\"ptx\": \"", "\"ptx\": \"x"));
    pin("manifest_of_an_unknown_compiler", Fixture::read().manifest("\"triton\": \"3.6.0\"", "\"triton\": \"3.10.0\""));
    pin("scratch_is_needed", Fixture::read().manifest("\"global_scratch_size\": 0", "\"global_scratch_size\": 128"));
}

const FILL: &str = "fill-f32";
const SLOT_2: &str = "\t.param .u8 fill_kernel_param_2,\n";

#[test]
fn ptx_is_damaged() {
    pin("ptx_missing", Fixture::read().remove("ptx/pick/fill-f32.ptx"));
    let text = Fixture::read().text("ptx/pick/fill-f32.ptx");
    pin("ptx_unused", Fixture::read().add("ptx/pick/fill-f64.ptx", &text).add("ptx/old/fill.ptx", &text));
    pin("ptx_body_edited", Fixture::read().ptx(FILL, "ret;", "ret; "));
    pin("ptx_cut_off", Fixture::read().add("ptx/pick/fill-f32.ptx", &text[..text.len() - 200]));
    pin("ptx_cut_off_in_the_header", Fixture::read().add("ptx/pick/fill-f32.ptx", &text[..350]));
    pin("ptx_empty", Fixture::read().add("ptx/pick/fill-f32.ptx", ""));
    pin("ptx_slot_taken_out", Fixture::read().ptx(FILL, SLOT_2, ""));
    let renumbered = text.replace(SLOT_2, "").replace("param_3", "param_2").replace("param_4", "param_3");
    let renumbered = renumbered.replace("param_5", "param_4").replace("param_6", "param_5");
    pin("ptx_slot_taken_out_and_renumbered", Fixture::read().add("ptx/pick/fill-f32.ptx", &renumbered));
    pin("ptx_slot_changed", Fixture::read().ptx(FILL, ".param .u8 fill", ".param .u32 fill"));
    let slot_0 = ".param .u64 .ptr .global .align 1 fill_kernel_param_0";
    pin("ptx_pointer_changed", Fixture::read().ptx(FILL, slot_0, ".param .u64 fill_kernel_param_0"));
    pin("ptx_slot_added", Fixture::read().ptx(FILL, SLOT_2, &format!("{SLOT_2}{}", SLOT_2.replace('2', "7"))));
    let hidden = ",\n\t.param .u64 .ptr .global .align 1 fill_kernel_param_6\n";
    pin("ptx_hidden_slot_taken_out", Fixture::read().ptx(FILL, hidden, "\n"));
    pin("ptx_threads_changed", Fixture::read().ptx(FILL, ".reqntid 32", ".reqntid 64"));
    pin("ptx_version_changed", Fixture::read().ptx(FILL, ".version 8.0", ".version 9.4"));
    pin("ptx_target_changed", Fixture::read().ptx(FILL, ".target sm_80", ".target sm_90a"));
    pin("ptx_entry_renamed", Fixture::read().ptx(FILL, ".entry fill_kernel(", ".entry other_kernel("));
    let shared = ".address_size 64\n.extern .shared .align 16 .b8 global_smem[];\n";
    pin("ptx_shared_memory_added", Fixture::read().ptx(FILL, ".address_size 64\n", shared));
    let mut crlf = Fixture::read();
    for path in crlf.artifacts.ptx.clone().into_keys() {
        let text = crlf.text(&path).replace('\n', "\r\n");
        crlf = crlf.add(&path, &text);
    }
    pin("ptx_line_ends_converted", crlf);
}

#[test]
fn the_cpu_arm_differs() {
    pin("cpu_missing", Fixture::read().remove("src/cpu/pick.rs"));
    pin("cpu_is_not_rust", Fixture::read().cpu("weights, noise, size } = self;", "weights, noise, size = self;"));
    pin("cpu_without_a_kernel", Fixture::read().cpu("FillCpu", "FilCpu"));
    pin(
        "cpu_without_run",
        Fixture::read().cpu("fn run(self) {\n        let Self { output", "fn go(self) {\n        let Self { output"),
    );
    pin("cpu_not_taken_apart", Fixture::read().cpu("let Self { output, scores", "let Other { output, scores"));
    pin("cpu_with_rest", Fixture::read().cpu("scores, weights, noise, size }", "scores, noise, .. }"));
    pin("cpu_without_a_field", Fixture::read().cpu("scores, weights, noise, size }", "scores, noise, size }"));
    pin("cpu_with_a_field_unread", Fixture::read().cpu("weights, noise, size }", "weights: _, noise: _noise, size }"));
    pin("cpu_with_an_unknown_field", Fixture::read().cpu("noise, size }", "noise, size, bias }"));
    pin("cpu_with_a_stride", Fixture::read().cpu("noise, size }", "noise, size, scores_stride }"));
    pin("cpu_with_a_misspelt_field", Fixture::read().cpu("weights, noise, size }", "weight, noise, size }"));
}
