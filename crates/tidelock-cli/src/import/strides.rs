//! Whose stride a parameter is: told from names, as kernels everywhere call them (`logits_stride`, `stride_am`, `stride0`).

use super::source::{Kernel, Role};
use crate::words;

/// Which tensor, and the how-manieth of its strides, counted from 0.
pub type Stride = (usize, usize);

/// For each parameter of `kernel`, the tensor whose stride it is, by its place among the parameters.
pub fn strides(kernel: &Kernel) -> Vec<Option<Stride>> {
    let tensors: Vec<(usize, String)> = kernel
        .params
        .iter()
        .enumerate()
        .filter(|(_, param)| matches!(param.role, Role::Tensor { .. }))
        .map(|(at, param)| (at, base(&param.name)))
        .collect();
    let mut counts = vec![0; kernel.params.len()];
    kernel
        .params
        .iter()
        .map(|param| {
            let scalar = matches!(param.role, Role::Scalar { .. });
            let name = words::snake(&param.name);
            if !scalar || !name.contains("stride") {
                return None;
            }
            let tensor = owner(&name, &tensors)?;
            counts[tensor] += 1;
            Some((tensor, counts[tensor] - 1))
        })
        .collect()
}

/// The name of a tensor without what says that it is a pointer.
pub fn base(name: &str) -> String {
    let name = words::snake(name);
    let words: Vec<&str> = name.split('_').collect();
    let is_pointer = |word: &&str| matches!(*word, "ptr" | "ptrs" | "pointer" | "pointers");
    let kept: Vec<&str> = words.iter().filter(|word| !is_pointer(word)).copied().collect();
    if kept.is_empty() { name } else { kept.join("_") }
}

/// The one tensor that what is left of a stride's name speaks of.
fn owner(name: &str, tensors: &[(usize, String)]) -> Option<usize> {
    let is_axis = |word: &str| {
        word.chars().all(|c| c.is_ascii_digit()) || matches!(word, "row" | "col" | "column" | "batch" | "dim" | "head")
    };
    let left: Vec<&str> = name
        .split('_')
        .map(|word| if word.starts_with("stride") { "" } else { word })
        .filter(|word| !word.is_empty())
        .collect();
    let trimmed: Vec<&str> = left.iter().copied().filter(|word| !is_axis(word)).collect();
    let whole = if trimmed.is_empty() { left.join("_") } else { trimmed.join("_") };
    if whole.is_empty() {
        return match tensors {
            [(only, _)] => Some(*only),
            _ => None,
        };
    }
    // From the closest to the loosest likeness; the first that fits one tensor alone decides.
    let equal = |tensor: &str| tensor == whole;
    let longer = |tensor: &str| tensor.starts_with(&whole) && (whole.len() > 2 || tensor.len() == whole.len());
    let axis = |tensor: &str| whole.len() == tensor.len() + 1 && whole.starts_with(tensor);
    let first = |tensor: &str| trimmed.first().is_some_and(|word| *word == tensor);
    let begins = |tensor: &str| trimmed.first().is_some_and(|word| word.len() > 2 && tensor.starts_with(word));
    let likeness: [&dyn Fn(&str) -> bool; 5] = [&equal, &axis, &first, &longer, &begins];
    likeness.iter().find_map(|fits| {
        let mut fitting = tensors.iter().filter(|(_, tensor)| fits(tensor));
        match (fitting.next(), fitting.next()) {
            (Some((at, _)), None) => Some(*at),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_strides() {
        let tensors: Vec<(usize, String)> =
            ["a_ptr", "B", "logits_ptr", "contexts_ptr", "ptr_out"].iter().map(|name| base(name)).enumerate().collect();
        let owner = |name| owner(name, &tensors);
        assert_eq!(owner("stride_am"), Some(0));
        assert_eq!(owner("stride_bn"), Some(1));
        assert_eq!(owner("logits_stride_0"), Some(2));
        assert_eq!(owner("logits_row_stride"), Some(2));
        assert_eq!(owner("context_stride"), Some(3));
        assert_eq!(owner("out_stride"), Some(4));
        assert_eq!(owner("stride_context_tk"), Some(3));
        assert_eq!(owner("stride_xy"), None);
        assert_eq!(owner("stride"), None, "there are several tensors");
    }
}
