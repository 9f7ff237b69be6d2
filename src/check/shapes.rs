//! Shapes: which value each named size has, and that every extent agrees with it.

use arrayvec::ArrayVec;

use crate::argument::Argument;
use crate::check::presence;
use crate::error::{Error, Result};
use crate::kernel::{Arm, Dim, Expr, Kernel, MAX_DIMS, Op, Param, ParamKind, evaluate};
use crate::layout::Layout;

/// The dimensions, each read from the extent that binds it.
pub(super) fn dims(
    kernel: &'static Kernel,
    args: &[Argument<'_>],
    arm: Arm,
    dims: &mut ArrayVec<i64, MAX_DIMS>,
) -> Result<()> {
    for dim in kernel.dims {
        let param = &kernel.params[dim.param];
        let (ParamKind::Tensor { shape, .. }, Argument::Tensor(tensor)) = (&param.kind, &args[dim.param]) else {
            presence(kernel, param, args, &args[dim.param], arm)?;
            return Err(Error::argument(kernel.name, param.name, "a view", "none"));
        };
        if shape.len() != tensor.layout.rank() {
            return Err(wrong_rank(kernel, param, shape, &tensor.layout));
        }
        let extent = tensor.layout.extent(dim.axis) as i64;
        if extent < dim.offset {
            let expected = format!("at least {} in axis {} ({} + {})", dim.offset, dim.axis, dim.name, dim.offset);
            return Err(Error::argument(kernel.name, param.name, expected, tensor.layout.to_string()));
        }
        dims.push(extent - dim.offset);
    }
    Ok(())
}

/// Every extent of a tensor is what its expression says, and rows are contiguous where no stride is passed.
#[inline]
pub(super) fn extents(
    kernel: &'static Kernel,
    param: &Param,
    shape: &'static [Expr],
    strided: bool,
    layout: &Layout,
    dims: &[i64],
) -> Result<()> {
    if shape.len() != layout.rank() {
        return Err(wrong_rank(kernel, param, shape, layout));
    }
    for (axis, expr) in shape.iter().enumerate() {
        if evaluate(expr, dims) != Some(layout.extent(axis) as i64) {
            let expected = expected(kernel, shape, dims);
            return Err(Error::argument(kernel.name, param.name, expected, layout.to_string()));
        }
    }
    if !strided && !layout.is_contiguous() {
        return Err(Error::argument(kernel.name, param.name, "contiguous rows", layout.to_string()));
    }
    Ok(())
}

#[cold]
fn wrong_rank(kernel: &'static Kernel, param: &Param, shape: &[Expr], layout: &Layout) -> Error {
    let expected = format!("rank {}, that is {}", shape.len(), describe(kernel, shape));
    Error::argument(kernel.name, param.name, expected, format!("rank {}, {layout}", layout.rank()))
}

/// `[num_tokens, vocab_size] = [64, 8192] (num_tokens from `draft_token_ids`, vocab_size from `target_probs`)`
#[cold]
fn expected(kernel: &Kernel, shape: &[Expr], dims: &[i64]) -> String {
    let values = shape.iter().map(|expr| match evaluate(expr, dims) {
        Some(value) => value.to_string(),
        None => "?".into(),
    });
    let values: Vec<_> = values.collect();
    let named = |dim: &&Dim| {
        shape.iter().any(|expr| expr.iter().any(|op| matches!(op, Op::Dim(i) if kernel.dims[*i].name == dim.name)))
    };
    let sources =
        kernel.dims.iter().filter(named).map(|dim| format!("{} from `{}`", dim.name, kernel.params[dim.param].name));
    let sources: Vec<_> = sources.collect();
    format!("{} = [{}] ({})", describe(kernel, shape), values.join(", "), sources.join(", "))
}

fn describe(kernel: &Kernel, shape: &[Expr]) -> String {
    let extents: Vec<_> = shape.iter().map(|expr| kernel.display(expr)).collect();
    format!("[{}]", extents.join(", "))
}
