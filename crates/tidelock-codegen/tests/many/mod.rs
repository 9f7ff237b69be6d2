//! A crate with as many kernels as asked for, of five kinds that take turns, to see how the generator's cost grows.
//!
//! Its facts and PTX say what a compiler would say of these kernels; the bodies do nothing, since nobody reads them.

use std::fmt::Write;

use tidelock_codegen::facts::{
    self, Answer, ArgumentFacts, Facts, Hash, KernelFacts, ParamFacts, Toolchain, VariantFacts,
};
use tidelock_codegen::model::{Family, Kernel, Registry};
use tidelock_codegen::plan::{KernelPlan, VariantPlan, gpu_params, plan};
use tidelock_codegen::ptx::SlotKind;
use tidelock_codegen::{Project, abi, arms, names};

const TRITON: &str = "3.6.0";

/// The entry below `kernels:` of the kernel with this number, in this family.
fn entry(family: &str, number: usize) -> String {
    let head = |grid: &str| {
        format!(
            "  kernel_{number}:\n    doc: Kernel number {number}.\n    gpu: kernels/{family}.py:kernel_{number}\n    \
             grid: [{grid}]\n    params:\n"
        )
    };
    match number % 5 {
        0 => {
            head("num_rows")
                + "      output: {tensor: f32, shape: [num_rows, width], access: write, as: output_ptr, doc: The products.}
      input: {tensor: f32, shape: [num_rows, width], as: input_ptr, domain: logits, doc: The rows.}
      factors: {tensor: f32, shape: [num_rows], domain: non_negative, doc: A number for each row.}
      width: {scalar: i32, from: dim, max: 4194304, doc: Numbers in a row.}
      output_stride: {scalar: i64, from: stride(output), doc: Elements from one row to the next.}
      input_stride: {scalar: i64, from: stride(input), doc: Elements from one row to the next.}
    divisible_by_16: [output, input, width, output_stride, input_stride]
    constants:
      BLOCK_SIZE: {type: i32, value: 4096, tuning: true, doc: Numbers in one step.}
"
        }
        1 => {
            head("\"cdiv(size, BLOCK_SIZE)\"").replace("    params:", "    types:\n      T: [f32, i32, i64]\n    params:")
                + "      output: {tensor: T, shape: [size], access: write, doc: The places.}
      value: {scalar: T, default: 0, doc: What is written there.}
      limit: {scalar: i32, doc: How many at most.}
      size: {scalar: i32, from: dim, doc: How many places.}
    constants:
      BLOCK_SIZE: {type: i32, value: 1024, tuning: true, doc: Places of a block.}
      MARK: {type: i32, value: 7, doc: What the first place is.}
"
        }
        2 => {
            head("batch_size")
                + "      output_token_ids: {tensor: i32, shape: [batch_size, max_spec_len + 1], access: update, doc: Tokens.}
      cu_num_tokens: {tensor: i32, shape: [batch_size], domain: inclusive_cumsum(num_tokens), doc: Where requests end.}
      token_ids: {tensor: i32, shape: [num_tokens], domain: -1..vocab_size, doc: Drafted tokens.}
      probs: {tensor: f32, shape: [num_tokens, vocab_size], optional: true, domain: probabilities, doc: Draft distributions.}
      rates: {tensor: f32, shape: [max_spec_len], optional: true, domain: unit, doc: Acceptance rates.}
      uniform: {tensor: f64, shape: [num_tokens], optional: {with: rates}, domain: open_unit, doc: Uniforms.}
      target: {tensor: f32, shape: [num_tokens, vocab_size], domain: probabilities, doc: Target distributions.}
      vocab_size: {scalar: i32, from: dim, doc: Tokens in the vocabulary.}
      max_spec_len: {scalar: i32, from: dim, doc: The longest draft.}
    constants:
      NO_PROBS: {type: bool, from: absent(probs)}
      HAS_RATES: {type: bool, from: present(rates)}
"
        }
        3 => {
            head("num_rows, \"cdiv(vocab_size, BLOCK_SIZE)\"")
                + "      output: {tensor: i64, shape: [num_rows], access: write, domain: token_ids, doc: The tokens.}
      probs: {tensor: f32, shape: [num_rows, vocab_size], domain: probabilities, doc: Distributions.}
      inv_q: {tensor: {by: USE_FP64_GUMBEL, true: f64, false: f32}, shape: [num_rows, vocab_size], domain: positive, doc: Noise.}
      vocab_size: {scalar: i32, from: dim, doc: Tokens in the vocabulary.}
      probs_stride: {scalar: i64, from: stride(probs), doc: Elements from one row to the next.}
    divisible_by_16: [probs, vocab_size, probs_stride]
    constants:
      BLOCK_SIZE: {type: i32, value: 8192, tuning: true, doc: Tokens of a block.}
      USE_FP64_GUMBEL: {type: bool, from: dtype(inv_q)}
"
        }
        _ => {
            let tensors = (0..12).map(|index| {
                let access = if index < 2 { ", access: update" } else { "" };
                format!("      values_{index}: {{tensor: f32, shape: [size + {index}]{access}, doc: Values.}}\n")
            });
            let scale = "      scale: {scalar: f32, default: 1, domain: positive, doc: A factor.}\n";
            head("\"max(size, 1)\"")
                + &tensors.collect::<String>()
                + scale
                + "      size: {scalar: i64, from: dim, doc: Values of the first.}\n"
        }
    }
}

/// `kernels` kernels in files of at most `per_family`, with all that a build reads.
pub fn project(kernels: usize, per_family: usize) -> Project {
    let mut project = Project::default();
    let numbers: Vec<usize> = (0..kernels).collect();
    for (index, numbers) in numbers.chunks(per_family).enumerate() {
        let family = format!("family_{index}");
        let entries: String = numbers.iter().map(|&number| entry(&family, number)).collect();
        project.insert(format!("signatures/{family}.yaml"), format!("kernels:\n{entries}").into_bytes());
    }
    let registry = match project.registry() {
        Ok(registry) => registry,
        Err(errors) => panic!("{}", errors.render(&project.sources(), false)),
    };
    for family in &registry.families {
        project.insert(format!("kernels/{}.py", family.name), python(family).into_bytes());
        project.insert(arms::path(&family.name), arms_of(family).into_bytes());
    }
    let answer = answer(&registry, &project);
    let changes = facts::changes(&registry, answer, project.artifacts()).expect("the answer is of this registry");
    for (path, content) in changes.write {
        project.insert(path, content);
    }
    project
}

fn python(family: &Family) -> String {
    let mut text = "import triton\nimport triton.language as tl\n".to_string();
    for kernel in &family.kernels {
        let params = gpu_params(kernel).map(|param| param.kernel_name.clone());
        let constants = kernel.constants.iter().map(|constant| format!("{}: tl.constexpr", constant.name.value));
        let list: Vec<String> = params.chain(constants).collect();
        let _ = write!(text, "\n\n@triton.jit\ndef {}({}):\n    pass\n", kernel.gpu.value.function, list.join(", "));
    }
    text
}

fn arms_of(family: &Family) -> String {
    let mut text = "use crate::kernels::*;\nuse tidelock::CpuArm;\n".to_string();
    for kernel in &family.kernels {
        let generics = |with_bounds: bool| {
            let one = |variable| match (names::type_parameter(kernel, variable), names::type_bound(kernel, variable)) {
                (parameter, bound) if with_bounds => format!("{parameter}: {bound}"),
                (parameter, _) => format!(", {parameter}"),
            };
            kernel.types.iter().map(one).collect::<String>()
        };
        let fields: Vec<String> = arms::expected(kernel).into_iter().map(|argument| argument.field).collect();
        let fields = fields.join(", ");
        let _ = write!(
            text,
            "\nimpl<{}> CpuArm for {}<'_{}> {{\n    fn run(self) {{\n        let Self {{ {fields} }} = self;\n        \
             let _ = ({fields},);\n    }}\n}}\n",
            generics(true),
            names::cpu_arguments(kernel),
            generics(false),
        );
    }
    text
}

/// What a compiler would answer.
fn answer(registry: &Registry, project: &Project) -> Answer {
    let plan = plan(registry, &[]).expect("everything is selected");
    let all = registry.families.iter().flat_map(|family| &family.kernels);
    let kernels = all.zip(&plan.kernels).map(|(kernel, plan)| (plan.name.clone(), facts_of(kernel, plan, project)));
    let toolchain = Toolchain { triton: TRITON.into(), target: "sm_80".into(), ptx_version: "8.0".into(), nvcc: None };
    Facts { format: facts::FORMAT, toolchain, kernels: kernels.collect() }
}

fn facts_of(kernel: &Kernel, plan: &KernelPlan, project: &Project) -> KernelFacts<String> {
    let source = &project.artifacts().kernels[&plan.file];
    let params = gpu_params(kernel).map(|param| (param.kernel_name.clone(), false));
    let constants = kernel.constants.iter().map(|constant| (constant.name.value.clone(), true));
    let declared = params.chain(constants);
    KernelFacts {
        file: plan.file.clone(),
        function: plan.function.clone(),
        line: 1,
        params: declared.map(|(name, constexpr)| ParamFacts { name, constexpr, line: 1, column: 1 }).collect(),
        sources: [(plan.file.clone(), Hash::of(source))].into(),
        variants: plan.variants.iter().map(|variant| (variant.name.clone(), variant_facts(plan, variant))).collect(),
    }
}

fn variant_facts(kernel: &KernelPlan, variant: &VariantPlan) -> VariantFacts<String> {
    let argument = |(name, kind): &(String, Option<String>)| {
        let divisibility = variant.divisible_by_16.contains(name).then_some(16);
        Some(ArgumentFacts { name: name.clone(), kind: kind.clone()?, divisibility })
    };
    let arguments: Vec<ArgumentFacts> = variant.signature.iter().filter_map(argument).collect();
    let absent = variant.signature.iter().filter(|(_, kind)| kind.is_none());
    VariantFacts {
        entry: kernel.function.clone(),
        ptx: ptx(kernel, &arguments),
        arguments,
        constants: variant.constants.clone(),
        absent: absent.map(|(name, _)| name.clone()).collect(),
        num_warps: kernel.num_warps,
        num_ctas: 1,
        shared: 0,
        global_scratch_size: 0,
        global_scratch_align: 1,
        profile_scratch_size: 0,
        profile_scratch_align: 1,
        registers: None,
    }
}

fn ptx(kernel: &KernelPlan, arguments: &[ArgumentFacts]) -> String {
    let hidden = abi::triton(TRITON).expect("it is known").hidden;
    let own = arguments.iter().map(|argument| abi::slot(&argument.kind).expect("it is a type of Triton"));
    let slots = own.chain(std::iter::repeat_n(SlotKind::Pointer, hidden)).enumerate().map(|(index, slot)| {
        let name = format!("{}_param_{index}", kernel.function);
        match slot {
            SlotKind::Pointer => format!("\t.param .u64 .ptr .global .align 1 {name}"),
            SlotKind::Integer(bits) => format!("\t.param .u{bits} {name}"),
            SlotKind::Float(bits) => format!("\t.param .f{bits} {name}"),
            SlotKind::Bytes { size, align } => format!("\t.param .align {align} .b8 {name}[{size}]"),
        }
    });
    let slots: Vec<String> = slots.collect();
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\n.visible .entry {}(\n{}\n)\n.reqntid {}\n{{\n\tret;\n}}\n",
        kernel.function,
        slots.join(",\n"),
        32 * kernel.num_warps,
    )
}
