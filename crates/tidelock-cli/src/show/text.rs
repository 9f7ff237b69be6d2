//! A signature for people.

use std::io::{self, Write};

use super::signature::{ConstantRow, ParamRow, Signature, VariantRow};
use crate::output;

/// Prints what a signature says.
pub fn print(out: &mut impl Write, signature: &Signature) -> io::Result<()> {
    writeln!(out, "{}, of the family {}\n{}\n", signature.name, signature.family, signature.doc.trim_end())?;
    writeln!(out, "signature  {}", signature.signature)?;
    writeln!(out, "GPU arm    {} {}", signature.gpu, signature.gpu_function)?;
    writeln!(out, "CPU arm    {}", signature.cpu)?;
    writeln!(out, "grid       [{}]", signature.grid.join(", "))?;
    if let Some(bytes) = &signature.shared_memory {
        writeln!(out, "shared     {bytes} bytes a block")?;
    }

    writeln!(out, "\nparameters, in order")?;
    let mut table = output::table(["name", "type", "shape or source", "access", "values", "line"], &[]);
    signature.params.iter().for_each(|param| _ = table.add_row(param_row(param)));
    output::print(out, &table, "  ")?;

    if !signature.constants.is_empty() {
        writeln!(out, "\nconstants")?;
        let mut table = output::table(["name", "type", "value", ""], &[]);
        signature.constants.iter().for_each(|constant| _ = table.add_row(constant_row(constant)));
        output::print(out, &table, "  ")?;
    }

    writeln!(out, "\n{}", output::plural(signature.variants.len(), "variant"))?;
    let header = ["PTX", "bytes", "slots", "slot bytes", "threads", "shared", "needs", "sha256"];
    let mut table = output::table(header, &[1, 2, 3, 4, 5]);
    signature.variants.iter().for_each(|variant| _ = table.add_row(variant_row(variant)));
    output::print(out, &table, "  ")
}

fn param_row(param: &ParamRow) -> [String; 6] {
    let element = match param.type_by {
        Some(variable) => format!("{} by {variable}", param.element),
        None => param.element.clone(),
    };
    let shape = match &param.shape {
        None => param.from.clone(),
        Some(shape) if param.strided => format!("[{}], any row stride", shape.join(", ")),
        Some(shape) => format!("[{}]", shape.join(", ")),
    };
    let access: Vec<_> = param.access.into_iter().chain(param.optional.as_deref()).collect();
    let max = param.max.map(|max| format!("at most {max}"));
    let promise = param.divisible_by_16.then(|| "%16 where aligned".to_string());
    let values: Vec<_> = param.domain.clone().into_iter().chain(param.arms.clone()).chain(max).chain(promise).collect();
    [param.name.into(), element, shape, access.join(", "), values.join("; "), param.line.to_string()]
}

fn constant_row(constant: &ConstantRow) -> [String; 4] {
    let tuning = if constant.tuning { "tuning: changes no result" } else { "" };
    [constant.name.into(), constant.dtype.into(), constant.value.clone(), tuning.into()]
}

fn variant_row(variant: &VariantRow) -> [String; 8] {
    let slot_bytes: usize = variant.slots.iter().map(|&bytes| usize::from(bytes)).sum();
    [
        variant.ptx.clone(),
        variant.ptx_bytes.to_string(),
        variant.slots.len().to_string(),
        slot_bytes.to_string(),
        variant.threads.to_string(),
        variant.shared.to_string(),
        format!("sm_{}, PTX {}", variant.capability, variant.ptx_version),
        variant.sha256.chars().take(12).collect(),
    ]
}
