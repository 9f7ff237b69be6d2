//! What the compiler saw of a kernel: its answer, and the manifest that is kept of it in `ptx/<family>.json`.
//!
//! The compiler's answer carries the PTX itself; the manifest carries the hash of the file the PTX was written to.

#![allow(clippy::result_large_err)] // a diagnostic is made once, when something is wrong

mod changes;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

use crate::diagnostic::Diagnostic;
use crate::plan::Value;
use crate::source::Span;

pub use changes::{Changes, changes};

/// Version of the compiler's request and answer, and of the manifest.
pub const FORMAT: u32 = 1;

/// Name under which diagnostics show the compiler's answer.
pub const ANSWER: &str = "compiler answer";

/// The compiler's answer, with the text of each PTX.
pub type Answer = Facts<String>;

/// The facts of one family, with the hash of each PTX.
pub type Manifest = Facts<Hash>;

/// Facts of kernels. `P` is the text of a PTX or its hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "P: DeserializeOwned"))]
pub struct Facts<P> {
    /// Version of this format.
    #[serde(deserialize_with = "known_format")]
    pub format: u32,
    /// What compiled them.
    pub toolchain: Toolchain,
    /// Kernels by their name in the registry.
    #[serde(deserialize_with = "unique")]
    pub kernels: BTreeMap<String, KernelFacts<P>>,
}

/// The compilers and what they compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toolchain {
    /// Version of Triton.
    pub triton: String,
    /// Architecture, such as `sm_80`.
    pub target: String,
    /// Version of PTX, such as `8.0`.
    pub ptx_version: String,
    /// Version of nvcc, where it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvcc: Option<String>,
}

/// Facts of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "P: DeserializeOwned"))]
pub struct KernelFacts<P> {
    /// Source file, relative to the crate.
    pub file: String,
    /// Function in the source file.
    pub function: String,
    /// Line of the function, counted from 1.
    pub line: usize,
    /// Every parameter in order, constants included.
    pub params: Vec<ParamFacts>,
    /// SHA-256 of every file of the crate that the kernel was compiled from.
    #[serde(deserialize_with = "unique")]
    pub sources: BTreeMap<String, Hash>,
    /// Every compiled form by its name.
    #[serde(deserialize_with = "unique")]
    pub variants: BTreeMap<String, VariantFacts<P>>,
}

/// A parameter as the source declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamFacts {
    /// Its name.
    pub name: String,
    /// Whether it is fixed when the kernel is compiled (`tl.constexpr`).
    pub constexpr: bool,
    /// Its line, counted from 1.
    pub line: usize,
    /// Its column, counted from 1.
    pub column: usize,
}

/// Facts of one compiled form of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "P: DeserializeOwned"))]
pub struct VariantFacts<P> {
    /// Name of the PTX entry.
    pub entry: String,
    /// Arguments that have a slot, in order.
    pub arguments: Vec<ArgumentFacts>,
    /// The value of each constant.
    #[serde(deserialize_with = "unique")]
    pub constants: BTreeMap<String, ConstantFact>,
    /// Parameters that are not given and have no slot.
    pub absent: Vec<String>,
    /// Warps a block has.
    pub num_warps: u32,
    /// Blocks a cluster has.
    pub num_ctas: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u64,
    /// Registers of a thread, as ptxas counts them for the target; unknown where it was not at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// Bytes of global scratch that a launch must bring.
    pub global_scratch_size: u64,
    /// Their alignment.
    pub global_scratch_align: u64,
    /// Bytes of profiling scratch that a launch must bring.
    pub profile_scratch_size: u64,
    /// Their alignment.
    pub profile_scratch_align: u64,
    /// The PTX, or its hash.
    pub ptx: P,
}

/// An argument that has a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentFacts {
    /// Its name in the source.
    pub name: String,
    /// Its Triton type, such as `*fp32`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the compiler was promised to divide it (a pointer: its address).
    #[serde(deserialize_with = "Option::deserialize")]
    pub divisibility: Option<u32>,
}

/// The value of a constant.
pub type ConstantFact = Value;

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        struct AnyValue;
        impl Visitor<'_> for AnyValue {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "true, false or a number")
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Int(value))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
                i64::try_from(value).map(Value::Int).map_err(|_| E::custom("the number is too large"))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Float(value))
            }
        }
        deserializer.deserialize_any(AnyValue)
    }
}

/// A SHA-256 in lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Hash(String);

impl Hash {
    /// The hash of `content`.
    pub fn of(content: &[u8]) -> Hash {
        Hash(Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Its 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let digits = String::deserialize(deserializer)?;
        match digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            true => Ok(Hash(digits)),
            false => Err(D::Error::custom("a SHA-256 has 64 hexadecimal digits in lower case")),
        }
    }
}

fn known_format<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        FORMAT => Ok(FORMAT),
        other => Err(D::Error::custom(format!("format {other} is not known, this tidelock reads format {FORMAT}"))),
    }
}

/// A map in which no key stands twice.
fn unique<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error> {
    struct Unique<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Unique<T> {
        type Value = BTreeMap<String, T>;
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            write!(f, "an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some(key) = access.next_key::<String>()? {
                if map.contains_key(&key) {
                    return Err(A::Error::custom(format!("key `{key}` stands twice")));
                }
                map.insert(key, access.next_value()?);
            }
            Ok(map)
        }
    }
    deserializer.deserialize_map(Unique(PhantomData))
}

/// Path of the manifest of `family`.
pub fn manifest_path(family: &str) -> String {
    format!("ptx/{family}.json")
}

/// Path of the PTX of a variant of a kernel of `family`.
pub fn ptx_path(family: &str, variant: &str) -> String {
    format!("ptx/{family}/{variant}.ptx")
}

/// The family whose manifest is at `path`.
pub fn manifest_family(path: &str) -> Option<&str> {
    path.strip_prefix("ptx/")?.strip_suffix(".json")
}

/// Reads the manifest of a family.
pub fn read_manifest(path: &str, content: &[u8]) -> Result<Manifest, Diagnostic> {
    let family = manifest_family(path).unwrap_or(path);
    read(path, content).map_err(|(error, span)| {
        Diagnostic::new("TL0202", format!("{path} cannot be read: {error}"), span, "")
            .help(format!("it is written by the compiler and never edited: run `tidelock compile {family}`"))
    })
}

/// Reads what the compiler wrote to its standard output.
pub fn read_answer(content: &[u8]) -> Result<Answer, Diagnostic> {
    read(ANSWER, content).map_err(|(error, span)| {
        Diagnostic::new("TL0202", format!("the kernel compiler's answer cannot be read: {error}"), span, "")
            .help("the compiler script and tidelock must be of the same version")
    })
}

fn read<T: DeserializeOwned>(path: &str, content: &[u8]) -> Result<T, (String, Span)> {
    let text = std::str::from_utf8(content).map_err(|error| {
        let at = error.valid_up_to();
        ("it is not UTF-8".to_string(), Span::new(path, at, at))
    })?;
    serde_json::from_str(text).map_err(|error| {
        let line = Span::of_line(path, text, error.line());
        // serde_json stops behind what it objects to.
        let end = floor(text, (line.start + error.column()).min(text.len()));
        let start = floor(text, end.saturating_sub(1)).max(line.start.min(end));
        let message = error.to_string();
        // The span says the line and the column.
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
        (message.to_string(), Span::new(path, start, end))
    })
}

/// The last boundary between characters at or before `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The text of a manifest's file.
pub fn text(manifest: &Manifest) -> String {
    // Serialising cannot fail: no key is anything but a string, and no number is infinite.
    serde_json::to_string_pretty(manifest).expect("a manifest is plain data") + "\n"
}
