//! Reads the header of a PTX file: versions, entries, parameter slots and launch bounds.
//!
//! The body of a function is only stepped over, to see whether it ends. Any text gives a [`Module`] or a [`PtxError`].

use std::ops::Range;

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
    let mut reader = Reader { text, at: 0, unclosed: None };
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

/// Words and punctuation, one at a time, without comments.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    unclosed: Option<Range<usize>>,
}

struct Token<'a> {
    text: &'a str,
    span: Range<usize>,
}

impl Token<'_> {
    fn owned(&self) -> Located<String> {
        Located { value: self.text.to_string(), span: self.span.clone() }
    }
}

/// Characters of names, directives and numbers (`8.0`, `%tid`, `$L__func_begin0`, `.b8`).
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'%')
}

impl<'a> Reader<'a> {
    /// The next token; a quoted string is one token.
    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_space();
        let start = self.at;
        let bytes = self.text.as_bytes();
        match *bytes.get(start)? {
            byte if is_word(byte) => {
                let length = bytes[start..].iter().take_while(|&&byte| is_word(byte)).count();
                self.at = start + length;
            }
            b'"' => self.skip_string(),
            // A character of its own, whole even where it is not ASCII.
            _ => self.at += self.text[start..].chars().next().map_or(1, char::len_utf8),
        }
        Some(Token { text: &self.text[start..self.at], span: start..self.at })
    }

    fn peek(&self) -> Option<Token<'a>> {
        Reader { text: self.text, at: self.at, unclosed: None }.next()
    }

    /// Steps over the string that starts here, with its quotes.
    fn skip_string(&mut self) {
        let rest = &self.text.as_bytes()[self.at + 1..];
        self.at = match rest.iter().position(|&byte| byte == b'"') {
            Some(length) => self.at + length + 2,
            None => self.text.len(),
        };
    }

    /// Steps over white space and comments.
    fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            self.at += bytes[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if !self.skip_comment() {
                return;
            }
        }
    }

    /// Steps over the comment that starts here, if one does.
    fn skip_comment(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let (end, length) = match rest.as_bytes() {
            [b'/', b'/', ..] => ("\n", 1),
            [b'/', b'*', ..] => ("*/", 2),
            _ => return false,
        };
        // The search starts behind the opening, since `/*/` is not a whole comment.
        self.at = rest[2..].find(end).map_or(self.text.len(), |found| self.at + 2 + found + length);
        true
    }

    /// Steps to behind the `}` that closes the block whose `{` was read, and stood at `opening`.
    fn skip_block(&mut self, opening: Range<usize>) {
        let bytes = self.text.as_bytes();
        let mut depth = 1;
        while let Some(found) = bytes[self.at..].iter().position(|byte| matches!(byte, b'{' | b'}' | b'/' | b'"')) {
            self.at += found;
            match bytes[self.at] {
                b'"' => self.skip_string(),
                b'/' if self.skip_comment() => {}
                byte => {
                    self.at += 1;
                    match byte {
                        b'{' => depth += 1,
                        b'}' => depth -= 1,
                        _ => {}
                    }
                }
            }
            if depth == 0 {
                return;
            }
        }
        self.at = self.text.len();
        self.unclosed.get_or_insert(opening);
    }

    /// Steps over a declaration, up to its `;`, and says where it ends and whether it is one of shared memory.
    fn declaration(&mut self) -> (usize, bool) {
        let mut shared = false;
        while let Some(token) = self.peek() {
            match token.text {
                // An `.extern .func` has parameters in parentheses and ends the same way.
                ";" => {
                    self.at = token.span.end;
                    return (token.span.end, shared);
                }
                ".entry" | "{" => break,
                text => {
                    shared |= text == ".shared";
                    self.at = token.span.end;
                }
            }
        }
        (self.at, shared)
    }

    fn end(&self, expected: &str) -> PtxError {
        let end = self.text.len();
        PtxError { message: format!("it ends where {expected} should stand"), span: end..end }
    }

    fn expect(&mut self, text: &str, place: &str) -> Result<Token<'a>, PtxError> {
        let token = self.next().ok_or_else(|| self.end(place))?;
        match token.text == text {
            true => Ok(token),
            false => Err(unexpected(&token, place)),
        }
    }

    fn word(&mut self, what: &str) -> Result<Token<'a>, PtxError> {
        let token = self.next().ok_or_else(|| self.end(what))?;
        match token.text.bytes().all(is_word) {
            true => Ok(token),
            false => Err(unexpected(&token, what)),
        }
    }

    fn number<N: std::str::FromStr>(&mut self, what: &str) -> Result<Located<N>, PtxError> {
        let token = self.word(what)?;
        let value = token.text.parse().map_err(|_| unexpected(&token, what))?;
        Ok(Located { value, span: token.span })
    }

    /// An entry, behind the word `.entry`.
    fn entry(&mut self) -> Result<Entry, PtxError> {
        let name = self.word("the name of an entry")?.owned();
        let mut entry = Entry { name, slots: Vec::new(), reqntid: None, maxntid: None, cluster: None };
        if self.peek().is_some_and(|token| token.text == "(") {
            self.next();
            self.slots(&mut entry.slots)?;
        }
        loop {
            let token = self.next().ok_or_else(|| self.end("the body of an entry"))?;
            match token.text {
                "{" => {
                    self.skip_block(token.span);
                    return Ok(entry);
                }
                ".reqntid" => entry.reqntid = Some(self.extents(&token)?),
                ".maxntid" => entry.maxntid = Some(self.extents(&token)?),
                ".explicitcluster" | ".reqnctapercluster" => entry.cluster = Some(token.span),
                // Hints such as `.minnctapersm 2` and `.maxnreg 64`, which change no argument.
                text if text == "," || text.bytes().all(is_word) => {}
                _ => return Err(unexpected(&token, "the body of an entry")),
            }
        }
    }

    /// One to three numbers; those that are left out are 1.
    fn extents(&mut self, directive: &Token) -> Result<Located<[u32; 3]>, PtxError> {
        let mut extents = [1; 3];
        for (axis, extent) in extents.iter_mut().enumerate() {
            if axis > 0 {
                if self.peek().is_none_or(|token| token.text != ",") {
                    break;
                }
                self.next();
            }
            *extent = self.number("a number of threads")?.value;
        }
        Ok(Located { value: extents, span: directive.span.start..self.at })
    }

    /// Parameters up to the closing parenthesis.
    fn slots(&mut self, slots: &mut Vec<Slot>) -> Result<(), PtxError> {
        loop {
            let token = self.next().ok_or_else(|| self.end("a parameter or `)`"))?;
            match token.text {
                ")" => return Ok(()),
                "," if !slots.is_empty() => {}
                ".param" => slots.push(self.slot(token.span.start)?),
                _ => return Err(unexpected(&token, "a parameter or `)`")),
            }
        }
    }

    /// One parameter, behind the word `.param`.
    fn slot(&mut self, start: usize) -> Result<Slot, PtxError> {
        let (mut kind, mut pointer, mut align) = (None, false, 1);
        loop {
            let token = self.word("a parameter's type and name")?;
            match token.text {
                ".align" => align = self.number("an alignment")?.value,
                ".ptr" => pointer = true,
                ".global" | ".shared" | ".const" | ".local" | ".generic" if pointer => {}
                text if text.starts_with('.') => {
                    let Some(known) = scalar(text) else { return Err(unexpected(&token, "a parameter's type")) };
                    kind = Some(known);
                }
                name => {
                    let Some(mut kind) = kind else { return Err(unexpected(&token, "a parameter's type")) };
                    let mut end = token.span.end;
                    if self.peek().is_some_and(|token| token.text == "[") {
                        self.next();
                        let length: u64 = self.number("the size of a parameter")?.value;
                        end = self.expect("]", "`]`")?.span.end;
                        kind = SlotKind::Bytes { size: length.saturating_mul(kind.size()), align };
                    } else if pointer && kind.size() == 8 {
                        kind = SlotKind::Pointer;
                    }
                    return Ok(Slot { name: name.to_string(), kind, span: start..end });
                }
            }
        }
    }
}

fn unexpected(token: &Token, expected: &str) -> PtxError {
    let shown: String = token.text.chars().take(40).collect();
    PtxError { message: format!("`{shown}` stands where {expected} should"), span: token.span.clone() }
}

/// The kind of a type directive.
fn scalar(directive: &str) -> Option<SlotKind> {
    Some(match directive {
        ".u8" | ".s8" | ".b8" => SlotKind::Integer(8),
        ".u16" | ".s16" | ".b16" => SlotKind::Integer(16),
        ".u32" | ".s32" | ".b32" => SlotKind::Integer(32),
        ".u64" | ".s64" | ".b64" => SlotKind::Integer(64),
        ".f16" => SlotKind::Float(16),
        ".f32" => SlotKind::Float(32),
        ".f64" => SlotKind::Float(64),
        _ => return None,
    })
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
