//! Reads the header of a PTX file: versions, entries, parameter slots and launch bounds.
//!
//! The body of a function is only stepped over, to see whether it ends. Any text gives a [`Module`] or a [`PtxError`].

mod reader;

use std::ops::Range;

use reader::Reader;

/// What a PTX file declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// `.version`, such as `8.0`.
    pub version: Located<String>,
    /// The first word of `.target`, such as `sm_80`.
    pub target: Located<String>,
    /// `.address_size`, where it is stated.
    pub address_size: Option<Located<u32>>,
    /// Where dynamic shared memory is declared (`.extern .shared`), if it is.
    pub dynamic_shared: Option<Range<usize>>,
    /// Every kernel of the file.
    pub entries: Vec<Entry>,
    /// The first `{` without its `}`: the file was cut off.
    pub unclosed: Option<Range<usize>>,
}

/// A value and the bytes that say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Range<usize>,
}

/// One kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: Located<String>,
    /// Its parameters in order.
    pub slots: Vec<Slot>,
    /// `.reqntid`: the exact number of threads.
    pub reqntid: Option<Located<[u32; 3]>>,
    /// `.maxntid`: the largest number of threads.
    pub maxntid: Option<Located<[u32; 3]>>,
    /// `.explicitcluster` or `.reqnctapercluster`: it must be launched as a cluster.
    pub cluster: Option<Range<usize>>,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its name in the file, such as `softmax_kernel_param_0`.
    pub name: String,
    /// What it holds.
    pub kind: SlotKind,
    /// The whole declaration.
    pub span: Range<usize>,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// An address: `.u64 .ptr …`.
    Pointer,
    /// An integer of so many bits; PTX does not keep the sign of a parameter.
    Integer(u32),
    /// A floating-point number of so many bits.
    Float(u32),
    /// Bytes passed by value: a structure, or a 16-bit float as `.align 2 .b8 x[2]`.
    Bytes {
        /// Size in bytes.
        size: u64,
        /// Alignment in bytes.
        align: u64,
    },
}

impl SlotKind {
    /// Its size in bytes.
    pub fn size(self) -> u64 {
        match self {
            SlotKind::Pointer => 8,
            SlotKind::Integer(bits) | SlotKind::Float(bits) => u64::from(bits / 8),
            SlotKind::Bytes { size, .. } => size,
        }
    }
}

impl std::fmt::Display for SlotKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SlotKind::Pointer => write!(f, "a .u64 pointer"),
            SlotKind::Integer(bits) => write!(f, ".u{bits}"),
            SlotKind::Float(bits) => write!(f, ".f{bits}"),
            SlotKind::Bytes { size, align } => write!(f, ".align {align} .b8[{size}]"),
        }
    }
}

/// Why a text is not PTX that this reader knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxError {
    /// What is wrong.
    pub message: String,
    /// Where.
    pub span: Range<usize>,
}

/// Reads the header of `text`.
pub fn read(text: &str) -> Result<Module, PtxError> {
    let mut reader = Reader::new(text);
    let (mut version, mut target, mut address_size) = (None, None, None);
    let (mut dynamic_shared, mut entries) = (None, Vec::new());
    while let Some(token) = reader.next() {
        match token.text {
            ".version" => version = Some(reader.word("the PTX version")?.owned()),
            ".target" => target = Some(reader.word("the target")?.owned()),
            ".address_size" => address_size = Some(reader.number("the address size")?),
            ".entry" => entries.push(reader.entry()?),
            ".extern" => {
                let (end, shared) = reader.declaration();
                if shared {
                    dynamic_shared = Some(token.span.start..end);
                }
            }
            "{" => reader.skip_block(token.span),
            _ => {}
        }
    }
    let missing = |what: &str| PtxError { message: format!("it has no `{what}`"), span: 0..0 };
    let version = version.ok_or_else(|| missing(".version"))?;
    let target = target.ok_or_else(|| missing(".target"))?;
    Ok(Module { version, target, address_size, dynamic_shared, entries, unclosed: reader.unclosed })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = ".version 8.0\n.target sm_80, debug\n.address_size 64\n";

    fn entry(text: &str) -> Entry {
        let module = read(&format!("{HEADER}{text}")).unwrap();
        assert_eq!(module.unclosed, None);
        module.entries.into_iter().next().unwrap()
    }

    #[test]
    fn every_kind_of_slot() {
        let entry = entry(
            ".visible .entry f(\n.param .u64 .ptr .global .align 1 f_param_0, // a comment, with .param\n.param .u32 a,\
             .param .f64 b, .param .align 2 .b8 c[2], .param .align 64 .b8 d[128], .param .u8 e, .param .b64 g,\
             .param .u64 .ptr .align 16 h /* , .param .u8 i */)\n{ ret; }",
        );
        let kinds: Vec<SlotKind> = entry.slots.iter().map(|slot| slot.kind).collect();
        let expected = [
            SlotKind::Pointer,
            SlotKind::Integer(32),
            SlotKind::Float(64),
            SlotKind::Bytes { size: 2, align: 2 },
            SlotKind::Bytes { size: 128, align: 64 },
            SlotKind::Integer(8),
            SlotKind::Integer(64),
            SlotKind::Pointer,
        ];
        assert_eq!(kinds, expected);
        assert_eq!(kinds.iter().map(|kind| kind.size()).sum::<u64>(), 8 + 4 + 8 + 2 + 128 + 1 + 8 + 8);
        assert_eq!(entry.slots[0].name, "f_param_0");
    }

    #[test]
    fn launch_bounds_and_clusters() {
        let found = entry(".entry f()\n.maxntid 128, 2\n.minnctapersm 2\n.maxnreg 64\n{ { } \"}\" }");
        assert_eq!(found.maxntid.unwrap().value, [128, 2, 1]);
        assert_eq!(found.reqntid, None);
        let found = entry(".entry f\n.reqntid 32, 1, 1\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n{ // }\n }");
        assert_eq!(found.reqntid.unwrap().value, [32, 1, 1]);
        assert!(found.cluster.is_some());
    }

    #[test]
    fn the_header() {
        let text =
            format!("{HEADER}.extern .func (.param .b32 r) g (.param .b64 x);\n.extern .shared .align 16 .b8 s[];\n");
        let module = read(&text).unwrap();
        assert_eq!((module.version.value.as_str(), module.target.value.as_str()), ("8.0", "sm_80"));
        assert_eq!(&text[module.version.span], "8.0");
        assert_eq!(module.address_size.unwrap().value, 64);
        assert_eq!(&text[module.dynamic_shared.unwrap()], ".extern .shared .align 16 .b8 s[];");
        assert_eq!(module.entries, []);
    }

    #[test]
    fn strange_text_is_an_error_with_a_place() {
        let refused = |text: &str| {
            let text = format!("{HEADER}{text}");
            let error = read(&text).unwrap_err();
            (error.message, text[error.span].to_string())
        };
        let expected = ("`.v4` stands where a parameter's type should".to_string(), ".v4".to_string());
        assert_eq!(refused(".entry f(.param .v4 x)"), expected);
        let expected = ("it ends where `]` should stand".to_string(), String::new());
        assert_eq!(refused(".entry f(.param .b8 x[2"), expected);
        let expected = ("`99999999999` stands where a number of threads should".to_string(), "99999999999".to_string());
        assert_eq!(refused(".entry f() .reqntid 99999999999 {}"), expected);
        let expected = ("`é` stands where the name of an entry should".to_string(), "é".to_string());
        assert_eq!(refused(".entry é()"), expected);
        assert_eq!(read("").unwrap_err().message, "it has no `.version`");
        assert_eq!(read(".version 8.0 .target").unwrap_err().message, "it ends where the target should stand");
    }

    #[test]
    fn a_file_that_is_cut_off_has_an_open_brace() {
        let text = format!("{HEADER}.entry f() {{ {{ }} // }}");
        assert_eq!(&text[read(&text).unwrap().unclosed.unwrap()], "{");
        let text = format!("{HEADER}.entry f() {{ }} .section .debug_info {{ .b8 1");
        assert!(read(&text).unwrap().unclosed.is_some());
    }
}
