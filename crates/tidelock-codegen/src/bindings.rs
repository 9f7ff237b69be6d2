//! The C that a registry names: structs that kernels take by value, and CPU arms in C or C++.
//!
//! Their authors write headers; `tidelock bind` has bindgen read those, and what it says is committed as `bindings.rs`, so
//! that nobody else needs libclang. A build compares the hashes in it with the headers, and the layouts with the registry's
//! other arm. A struct is made of the registry's element types and arrays of them, since both arms and the generated test
//! cases must know what its values mean.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::Artifacts;
use crate::facts::Hash;
use crate::model::{DType, Kernel, Param, ParamKind, Registry, Struct};

/// Path of the committed bindings, relative to the crate.
pub const PATH: &str = "bindings.rs";

/// What the committed bindings define.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    /// Structs by name; otherwise why a struct cannot be passed to a kernel.
    pub structs: BTreeMap<String, Result<Layout, String>>,
    /// Names of functions.
    pub functions: BTreeSet<String>,
}

/// How C lays out a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the whole.
    pub size: usize,
    /// Alignment of the whole in bytes.
    pub align: usize,
    /// Its fields, in order.
    pub fields: Vec<Field>,
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type, or that of its elements.
    pub dtype: DType,
    /// Elements of an array; none for a single value.
    pub count: Option<usize>,
    /// Bytes before it.
    pub offset: usize,
}

/// What a registry needs of C.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Headers, relative to the crate.
    pub headers: BTreeSet<String>,
    /// Structs by name.
    pub structs: BTreeSet<String>,
    /// Functions by name.
    pub functions: BTreeSet<String>,
}

/// The structs that `kernel` takes, with their parameters.
pub fn structs(kernel: &Kernel) -> impl Iterator<Item = (&Param, &Struct)> {
    kernel.params.iter().filter_map(|param| match &param.kind {
        ParamKind::Struct(value) => Some((param, value)),
        _ => None,
    })
}

/// The names of the C functions that are the CPU arm of `kernel`: its own, or one for each choice of element types.
pub fn functions(kernel: &Kernel) -> Vec<String> {
    let Some(cpu) = &kernel.cpu else { return Vec::new() };
    let extend = |names: Vec<String>, choices: &[DType]| {
        names.iter().flat_map(|name| choices.iter().map(move |choice| format!("{name}_{}", choice.name()))).collect()
    };
    kernel.types.iter().fold(vec![cpu.value.function.clone()], |names, variable| extend(names, &variable.choices))
}

/// What `registry` needs of C; nothing, where all of it is Rust and Triton.
pub fn wanted(registry: &Registry) -> Wanted {
    let mut wanted = Wanted::default();
    for kernel in registry.families.iter().flat_map(|family| &family.kernels) {
        for (_, value) in structs(kernel) {
            wanted.headers.insert(value.header.clone());
            wanted.structs.insert(value.name.value.clone());
        }
        wanted.headers.extend(kernel.cpu.iter().map(|cpu| cpu.value.header()));
        wanted.functions.extend(functions(kernel));
    }
    wanted
}

/// The first lines of the bindings of `wanted`: each header, and each that it includes, with its hash.
pub fn stamp(wanted: &Wanted, artifacts: &Artifacts) -> String {
    let (mut found, mut waiting) = (BTreeMap::new(), wanted.headers.iter().cloned().collect::<Vec<_>>());
    while let Some(path) = waiting.pop() {
        let Some(content) = artifacts.kernels.get(&path).or_else(|| artifacts.c.get(&path)) else { continue };
        if found.insert(path.clone(), Hash::of(content)).is_none() {
            waiting.extend(includes(&path, &String::from_utf8_lossy(content)));
        }
    }
    let lines = found.iter().map(|(path, hash)| format!("// {path} {}\n", hash.as_str()));
    format!(
        "// What bindgen reads in these headers. Made by `tidelock bind`, never edited.\n{}",
        lines.collect::<String>()
    )
}

/// The text to commit, of what bindgen says of `wanted`.
///
/// # Errors
/// Where that is not Rust.
pub fn committed(wanted: &Wanted, artifacts: &Artifacts, bindgen: &str) -> Result<String, String> {
    let file = syn::parse_file(bindgen).map_err(|error| format!("what bindgen wrote is not Rust: {error}"))?;
    Ok(format!("{}\n{}", stamp(wanted, artifacts), prettyplease::unparse(&file)))
}

/// The files that `text`, which is that of `path`, includes from beside it, as paths relative to the crate.
fn includes(path: &str, text: &str) -> Vec<String> {
    let folder: Vec<&str> = path.rsplit_once('/').map_or(vec![], |(folder, _)| folder.split('/').collect());
    let included = text.lines().filter_map(|line| {
        let name = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
        name.strip_prefix('"')?.split_once('"').map(|(name, _)| name)
    });
    let resolve = |name: &str| {
        let mut parts = folder.clone();
        for part in name.split('/') {
            match part {
                "." => {}
                ".." => _ = parts.pop(),
                part => parts.push(part),
            }
        }
        parts.join("/")
    };
    included.map(resolve).collect()
}

/// Reads the committed bindings.
///
/// # Errors
/// Where they are not Rust.
pub fn read(text: &str) -> Result<Bindings, String> {
    let mut bindings = Bindings::default();
    for item in syn::parse_file(text).map_err(|error| error.to_string())?.items {
        match item {
            syn::Item::Struct(item) => _ = bindings.structs.insert(item.ident.to_string(), layout(&item)),
            syn::Item::ForeignMod(block) => {
                bindings.functions.extend(block.items.iter().filter_map(|item| match item {
                    syn::ForeignItem::Fn(function) => Some(function.sig.ident.to_string()),
                    _ => None,
                }))
            }
            _ => {}
        }
    }
    Ok(bindings)
}

/// The layout that C gives the struct. What bindgen asserts about it in Rust and the header in C holds this to both.
fn layout(item: &syn::ItemStruct) -> Result<Layout, String> {
    let repr = item.attrs.iter().filter(|attribute| attribute.path().is_ident("repr"));
    let plain = |attribute: &syn::Attribute| attribute.parse_args::<syn::Ident>().is_ok_and(|repr| repr == "C");
    if !repr.clone().all(plain) || repr.count() != 1 {
        return Err("it is packed, or aligned to more than its fields are".into());
    }
    let (mut fields, mut end, mut align) = (Vec::new(), 0usize, 1);
    for field in &item.fields {
        let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        let (dtype, count) =
            element(&field.ty).ok_or_else(|| format!("its field `{name}` is no number, Boolean, or array of them"))?;
        let offset = end.next_multiple_of(dtype.size());
        end = offset + dtype.size() * count.unwrap_or(1);
        align = align.max(dtype.size());
        fields.push(Field { name, dtype, count, offset });
    }
    match end.next_multiple_of(align) {
        0 => Err("it has no fields".into()),
        size @ 1..=MAX_BYTES => Ok(Layout { size, align, fields }),
        size => Err(format!("it has {size} bytes, more than {MAX_BYTES}")),
    }
}

/// Most bytes of a struct, so that the size of any parameter slot is a byte.
const MAX_BYTES: usize = 248;

fn element(ty: &syn::Type) -> Option<(DType, Option<usize>)> {
    match ty {
        syn::Type::Path(path) => {
            let name = path.path.segments.last()?.ident.to_string();
            // What C leaves to the platform is not the same in both arms.
            DType::from_name(&name)
                .filter(|dtype| !matches!(dtype, DType::F16 | DType::BF16))
                .or(match name.as_str() {
                    "c_float" => Some(DType::F32),
                    "c_double" => Some(DType::F64),
                    "c_int" => Some(DType::I32),
                    "c_uint" => Some(DType::U32),
                    _ => None,
                })
                .map(|dtype| (dtype, None))
        }
        syn::Type::Array(array) => {
            let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(length), .. }) = &array.len else { return None };
            match (element(&array.elem)?, length.base10_parse().ok()?) {
                ((dtype, None), count @ 1..) => Some((dtype, Some(count))),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Layout, String> {
        read(text).unwrap().structs.remove("S").unwrap()
    }

    #[test]
    fn layouts_are_those_of_c() {
        let layout =
            one("#[repr(C)] #[derive(Copy)] pub struct S { pub a: u8, pub b: f64, pub c: [i16; 3usize], pub d: bool }");
        let layout = layout.unwrap();
        assert_eq!((layout.size, layout.align), (24, 8));
        let offsets: Vec<_> =
            layout.fields.iter().map(|field| (field.name.as_str(), field.offset, field.count)).collect();
        assert_eq!(offsets, [("a", 0, None), ("b", 8, None), ("c", 16, Some(3)), ("d", 22, None)]);
        let c_names = one("#[repr(C)] struct S { a: ::core::ffi::c_int, b: ::std::os::raw::c_double }").unwrap();
        assert_eq!((c_names.size, c_names.align), (16, 8));
    }

    #[test]
    fn what_a_kernel_cannot_take() {
        for (text, reason) in [
            ("#[repr(C)] struct S { a: *mut f32 }", "its field `a` is no number"),
            ("#[repr(C)] struct S { a: Other }", "its field `a` is no number"),
            ("#[repr(C)] struct S { a: ::core::ffi::c_long }", "its field `a` is no number"),
            ("#[repr(C)] struct S { a: [[f32; 2usize]; 2usize] }", "its field `a` is no number"),
            ("#[repr(C)] struct S { a: [f32; 0usize] }", "its field `a` is no number"),
            ("#[repr(C, packed)] struct S { a: u8 }", "packed"),
            ("#[repr(C)] #[repr(align(16))] struct S { a: u8 }", "aligned"),
            ("struct S { a: u8 }", "packed"),
            ("#[repr(C)] struct S {}", "no fields"),
            ("#[repr(C)] struct S { a: [f64; 32usize] }", "256 bytes"),
        ] {
            let error = one(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(read("struct").is_err());
    }

    #[test]
    fn includes_are_found_beside_the_file() {
        let text = "#include <stdint.h>\n  # include \"../kernels/a.h\" // first\n#include \"b.h\"\n";
        assert_eq!(includes("cpu/x.h", text), ["kernels/a.h", "cpu/b.h"]);
    }

    #[test]
    fn functions_are_found() {
        let bindings = read("unsafe extern \"C\" { pub fn f(a: i32); pub fn g(); }").unwrap();
        assert_eq!(bindings.functions.into_iter().collect::<Vec<_>>(), ["f", "g"]);
    }
}
