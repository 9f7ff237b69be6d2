//! NumPy's `.npy`, formats 1.0 and 2.0, read strictly. The crate npyz reads every type and order; for these two it would
//! bring a parser generator and big integers.

use anyhow::{Context, anyhow, bail, ensure};
use safetensors::Dtype;

use super::file::Array;

const MAGIC: &[u8] = b"\x93NUMPY";

/// The array in `bytes`: f32 or f16, little-endian, in C order.
pub fn parse(bytes: &[u8]) -> anyhow::Result<Array<'_>> {
    let rest = bytes.strip_prefix(MAGIC).context("expected a .npy file, got one that begins otherwise")?;
    let ends_early = || anyhow!("expected a whole .npy header, got a file that ends in it");
    let (version, rest) = rest.split_at_checked(2).ok_or_else(ends_early)?;
    let (length, rest) = match version {
        [1, 0] => rest.split_first_chunk().map(|(length, rest)| (u16::from_le_bytes(*length) as usize, rest)),
        [2, 0] => rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length) as usize, rest)),
        other => bail!("expected .npy format 1.0 or 2.0, got {}.{}", other[0], other[1]),
    }
    .ok_or_else(ends_early)?;
    let (header, data) = rest.split_at_checked(length).ok_or_else(ends_early)?;
    let header = String::from_utf8_lossy(header);
    let [descr, order, shape] = fields(header.trim())
        .with_context(|| format!("expected a header with descr, fortran_order and shape, got {:?}", header.trim()))?;
    let (dtype, size) = match descr {
        "'<f4'" => (Dtype::F32, 4),
        "'<f2'" => (Dtype::F16, 2),
        other => bail!("expected type '<f4' or '<f2' (f32 or f16, little-endian), got {other}"),
    };
    ensure!(order == "False", "expected C order (fortran_order False), got fortran_order {order}");
    let shape = axes(shape).with_context(|| format!("expected a shape such as (64, 8192), got {shape}"))?;
    let needed = shape.iter().try_fold(size, |product: usize, &axis| product.checked_mul(axis));
    let got = data.len();
    ensure!(needed == Some(got), "expected {} bytes of data for shape {shape:?}, got {got}", shown(needed));
    Ok(Array { name: "array".into(), dtype, shape, data })
}

fn shown(bytes: Option<usize>) -> String {
    bytes.map_or("too many".into(), |bytes| bytes.to_string())
}

/// The values of the three keys of a header, each of which is there once; nothing where it is otherwise.
fn fields(header: &str) -> Option<[&str; 3]> {
    let mut rest = header.strip_prefix('{')?.strip_suffix('}')?.trim();
    let mut found = [None; 3];
    while !rest.is_empty() {
        let (key, after) = rest.strip_prefix('\'')?.split_once('\'')?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        let place = ["descr", "fortran_order", "shape"].iter().position(|name| *name == key)?;
        // A comma ends a value outside of its brackets.
        let mut depth = 0;
        let end = value.find(|letter| {
            depth += i32::from(matches!(letter, '(' | '[')) - i32::from(matches!(letter, ')' | ']'));
            letter == ',' && depth == 0
        });
        let (value, after) = value.split_at(end.unwrap_or(value.len()));
        if found[place].replace(value.trim_end()).is_some() {
            return None;
        }
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    Some([found[0]?, found[1]?, found[2]?])
}

fn axes(shape: &str) -> Option<Vec<usize>> {
    let inside = shape.strip_prefix('(')?.strip_suffix(')')?.trim();
    let inside = inside.strip_suffix(',').unwrap_or(inside);
    if inside.is_empty() {
        return Some(Vec::new());
    }
    inside.split(',').map(|axis| axis.trim().parse().ok()).collect()
}
