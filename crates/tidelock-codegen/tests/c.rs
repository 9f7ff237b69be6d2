//! What a registry takes from C: headers, structs by value, CPU arms in C++. The crate is `examples/own-kernels`, with one
//! thing changed at a time.

use std::path::{Path, PathBuf};

use tidelock_codegen::bindings;
use tidelock_codegen::facts::Hash;
use tidelock_codegen::{Project, header};

const YAML: &str = "signatures/quantize.yaml";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/own-kernels")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The crate with `from`, which stands once in the file at `path`, replaced by `to`.
fn edited(path: &str, from: &str, to: &str) -> Project {
    let text = read(path);
    assert_eq!(text.matches(from).count(), 1, "`{from}` in {path}");
    let mut project = Project::read(&root()).unwrap();
    project.insert(path.into(), text.replace(from, to).into_bytes());
    project
}

fn said(project: &Project) -> String {
    let diagnostics = match project.registry() {
        Ok(_) => project.check().diagnostics,
        Err(errors) => errors,
    };
    diagnostics.render(&project.sources(), false)
}

/// The code and message of each error.
fn messages(project: &Project) -> Vec<String> {
    let said = said(project);
    let lines = said.lines().filter_map(|line| line.strip_prefix("error["));
    lines.map(|line| line.replace("]: ", " ")).collect()
}

#[test]
fn nothing_is_wrong_with_it() {
    assert_eq!(messages(&Project::read(&root()).unwrap()), [""; 0]);
}

#[test]
fn a_header_is_what_the_registry_declares() {
    let project = Project::read(&root()).unwrap();
    let headers = header::emit_all(&project.registry().unwrap(), project.artifacts());
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["quantize"], "a family of Triton kernels needs none");
    assert_eq!(headers["quantize"], read("ptx/quantize.h"));
    insta::assert_snapshot!("quantize_header", headers["quantize"]);
}

#[test]
fn a_header_that_is_old_edited_or_missing_is_reported() {
    let doc = edited(YAML, "doc: The integers.", "doc: The bytes.");
    assert_eq!(messages(&doc), [""; 0], "a doc is in no header");
    let edited = edited("ptx/quantize.h", "int32_t width", "int64_t width");
    insta::assert_snapshot!("header_edited", said(&edited));
    let mut missing = Project::read(&root()).unwrap();
    missing.remove("ptx/quantize.h");
    assert_eq!(
        messages(&missing),
        ["TL0601 family `quantize` has CUDA C++ kernels and no header: there is no ptx/quantize.h"]
    );
}

#[test]
fn bindings_are_of_the_headers_at_hand() {
    let changed = edited("kernels/quantization.h", "int32_t zero_point", "int64_t zero_point");
    let found = messages(&changed);
    assert!(found.contains(&"TL0602 kernels/quantization.h changed since it was bound".to_string()), "{found:?}");
    assert!(
        found.contains(&"TL0206 kernels/quantization.h changed since its PTX was compiled".to_string()),
        "{found:?}"
    );
    let changed = edited("cpu/quantize.h", "#pragma once", "#pragma once // changed");
    insta::assert_snapshot!("header_not_bound", said(&changed));
    let hash = edited(bindings::PATH, "// cpu/quantize.h ", "// cpu/other.h ");
    assert_eq!(messages(&hash), ["TL0602 cpu/quantize.h has never been bound"]);
    let broken = edited(bindings::PATH, "pub struct Quantization {", "pub struct {");
    assert!(messages(&broken)[0].starts_with("TL0602 bindings.rs is not Rust: "), "{:?}", messages(&broken));
    let mut missing = Project::read(&root()).unwrap();
    missing.remove(bindings::PATH);
    let found = messages(&missing);
    assert!(
        found.contains(
            &"TL0602 the C that kernel `dequantize_rows` names has never been bound: there is no bindings.rs".into()
        ),
        "{found:?}"
    );
}

#[test]
fn a_struct_with_another_layout_does_not_fit_its_slot() {
    // As if it had been bound so: the hash is of the header.
    let wider = edited(bindings::PATH, "pub zero_point: i32,", "pub zero_point: i64,");
    let found = messages(&wider);
    assert!(
        found.iter().any(|it| it.starts_with("TL0306")
            && it.contains("slot 4 (`quantization`): expected .align 8 .b8[32], found .align 8 .b8[24]")),
        "{found:?}"
    );
}

#[test]
fn what_a_kernel_cannot_take_is_refused() {
    let struct_of = |text: &str| edited(YAML, "kernels/quantization.h:Quantization", text);
    let first = |project: &Project| messages(project).remove(0);
    for (text, message) in [
        (
            "kernels/quantisation.h:Quantization",
            "TL0603 the header of parameter `quantization` of kernel `dequantize_rows`, kernels/quantisation.h, does not exist",
        ),
        (
            "kernels/quantization.h:Quantisation",
            "TL0603 kernels/quantization.h has no struct `Quantisation`, parameter `quantization` of kernel `dequantize_rows`",
        ),
        (
            "src/quantization.h:Quantization",
            "TL0114 `src/quantization.h:Quantization` does not name a struct of a header, in parameter `quantization` of kernel \
             `dequantize_rows`",
        ),
        (
            "kernels/quantization.h:quantization",
            "TL0114 `kernels/quantization.h:quantization` does not name a struct of a header, in parameter `quantization` of \
             kernel `dequantize_rows`",
        ),
    ] {
        let found = messages(&struct_of(text));
        assert!(found.contains(&message.to_string()), "{text}: {found:?}");
    }
    let pointer = edited(bindings::PATH, "pub zero_point: i32,", "pub zero_point: *const i32,");
    assert_eq!(
        first(&pointer),
        "TL0603 struct `Quantization`, parameter `quantization` of kernel `dequantize_rows`, cannot be passed by value: its \
         field `zero_point` is no number, Boolean, or array of them"
    );
    let optional = edited(YAML, "quantization: {struct:", "quantization: {optional: true, struct:");
    assert_eq!(
        first(&optional),
        "TL0106 key `optional` does not belong in parameter `quantization` of kernel `dequantize_rows`"
    );
    let triton = edited(
        "signatures/blend.yaml",
        "factor: {scalar: f32, default: 1.0,",
        "factor: {struct: kernels/quantization.h:Quantization,",
    );
    let found = messages(&triton);
    let expected = "TL0605 parameter `factor` of kernel `add_scaled` is a struct, which a Triton kernel cannot take";
    assert!(found.contains(&expected.to_string()), "{found:?}");
}

#[test]
fn a_cpu_arm_in_c_is_where_the_registry_says() {
    let arm = |text: &str| messages(&edited(YAML, "cpu/quantize.cpp:dequantize_rows", text));
    assert!(arm("cpu/quantise.cpp:dequantize_rows").contains(
        &"TL0604 the CPU arm of kernel `dequantize_rows` needs cpu/quantise.cpp, which does not exist".to_string()
    ));
    assert_eq!(
        arm("cpu/quantize.cpp:dequantise_rows"),
        [
            "TL0604 cpu/quantize.cpp defines no function `dequantise_rows_f32`, the CPU arm of kernel `dequantize_rows`",
            "TL0604 cpu/quantize.cpp defines no function `dequantise_rows_f64`, the CPU arm of kernel `dequantize_rows`",
        ]
    );
    assert_eq!(
        arm("src/cpu/quantize.rs:dequantize_rows"),
        ["TL0114 `src/cpu/quantize.rs:dequantize_rows` does not name a CPU arm's source, in kernel `dequantize_rows`"]
    );
    let overload = edited("cpu/quantize.cpp", "extern \"C\" void dequantize_rows_f64", "void dequantize_rows_f64");
    assert_eq!(
        messages(&overload),
        [
            "TL0604 cpu/quantize.cpp defines `dequantize_rows_f64` without `extern \"C\"`, the CPU arm of kernel `dequantize_rows`"
        ]
    );
    let unbound = edited(bindings::PATH, "pub fn dequantize_rows_f64(", "pub fn other(");
    insta::assert_snapshot!("function_not_bound", said(&unbound));
}

#[test]
fn the_generated_code_has_the_type_of_the_arm_in_c() {
    let text = Project::read(&root()).unwrap().generate().unwrap_or_else(|_| panic!("nothing is wrong with it"));
    let (_, arm) = text.split_once("fn dequantize_rows_cpu(").unwrap();
    insta::assert_snapshot!("arm_in_c", arm.split_once("\nstatic ").unwrap().0);
}

/// nvcc itself refuses a kernel whose parameters are not the registry's; it needs a Python that has it, in `TIDELOCK_PYTHON`.
#[test]
fn nvcc_refuses_other_parameters() {
    if std::env::var_os("TIDELOCK_PYTHON").is_none() {
        return eprintln!("not tried with nvcc: TIDELOCK_PYTHON names no Python that has it");
    }
    let source = "const int8_t *__restrict__ input, int64_t input_stride, const float";
    for (what, other) in [
        ("a type", "const uint8_t *__restrict__ input, int64_t input_stride, const float"),
        ("an element that is written", "int8_t *__restrict__ input, int64_t input_stride, const float"),
        ("a narrower scalar", "const int8_t *__restrict__ input, int32_t input_stride, const float"),
        ("an order", "int64_t input_stride, const int8_t *__restrict__ input, const float"),
    ] {
        let error = compile("kernels/quantize.cu", source, other);
        assert!(error.contains("kernels/quantize.cu(7): error:"), "{what}: {error}");
        assert!(
            error.contains("the registry declares it in ptx/quantize.h as\nextern \"C\" __global__ void"),
            "{what}: {error}"
        );
    }
    let missing = compile("kernels/quantize.cu", source, "const int8_t *__restrict__ input, const float");
    let expected =
        "kernels/quantize.cu:7: dequantize_rows_kernel has no parameter input_stride, which the registry lists";
    assert!(missing.contains(expected), "{missing}");
    let layout = compile("kernels/quantization.h", "int32_t zero_point", "int64_t zero_point");
    assert!(layout.contains("ptx/quantize.h(") && layout.contains("run `tidelock bind`"), "{layout}");
}

/// What compiling a copy of the crate says, with one edit.
fn compile(path: &str, from: &str, to: &str) -> String {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-kernels");
    for folder in ["signatures", "kernels", "cpu", "ptx"] {
        std::fs::create_dir_all(copy.join(folder)).unwrap();
    }
    for file in
        [YAML, "kernels/quantize.cu", "kernels/quantization.h", "cpu/quantize.h", "cpu/quantize.cpp", bindings::PATH]
    {
        let text = read(file);
        let text = if file == path {
            assert_eq!(text.matches(from).count(), 1, "`{from}` in {path}");
            text.replace(from, to)
        } else {
            text
        };
        std::fs::write(copy.join(file), text).unwrap();
    }
    match tidelock_codegen::toolchain::compile(&copy, &[], &mut |_| {}) {
        Ok(_) => panic!("{path} compiles with `{to}`"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn dynamic_shared_memory_is_what_the_registry_says() {
    let path = "ptx/quantize/dequantize_rows-f32-no_ceilings.ptx";
    let declared = ".address_size 64\n\n.extern .shared .align 16 .b8 cached[];\n";
    let ptx = read(path).replace(".address_size 64\n", declared);
    let [before, after] = [&read(path), &ptx].map(|text| Hash::of(text.as_bytes()).as_str().to_string());
    let mut project = edited("ptx/quantize.json", &before, &after);
    project.insert(path.into(), ptx.into_bytes());
    insta::assert_snapshot!("shared_memory", said(&project));

    let yaml = read(YAML).replace("num_warps: 4\n", "num_warps: 4\n    shared_memory: 8 * min(width, BLOCK_SIZE)\n");
    project.insert(YAML.into(), yaml.into_bytes());
    let text = project.generate().unwrap_or_else(|errors| panic!("{}", errors.render(&project.sources(), false)));
    let ops = "Some (& [Op :: Int (8i64) , Op :: Dim (1usize) , Op :: Int (128i64) , Op :: Min , Op :: Mul])";
    assert!(text.contains(&format!("shared_memory : {ops}")));
}
