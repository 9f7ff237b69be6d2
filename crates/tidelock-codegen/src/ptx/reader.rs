//! Reads PTX word by word: the parts of a declaration, with bodies stepped over.

use std::ops::Range;

use super::{Entry, Located, PtxError, Slot, SlotKind};

/// Words and punctuation, one at a time, without comments.
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The first block that does not end.
    pub(super) unclosed: Option<Range<usize>>,
}

pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) span: Range<usize>,
}

impl Token<'_> {
    pub(super) fn owned(&self) -> Located<String> {
        Located { value: self.text.to_string(), span: self.span.clone() }
    }
}

/// Characters of names, directives and numbers (`8.0`, `%tid`, `$L__func_begin0`, `.b8`).
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'%')
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Reader<'a> {
        Reader { text, at: 0, unclosed: None }
    }

    /// The next token; a quoted string is one token.
    pub(super) fn next(&mut self) -> Option<Token<'a>> {
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
    pub(super) fn skip_block(&mut self, opening: Range<usize>) {
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
    pub(super) fn declaration(&mut self) -> (usize, bool) {
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

    pub(super) fn word(&mut self, what: &str) -> Result<Token<'a>, PtxError> {
        let token = self.next().ok_or_else(|| self.end(what))?;
        match token.text.bytes().all(is_word) {
            true => Ok(token),
            false => Err(unexpected(&token, what)),
        }
    }

    pub(super) fn number<N: std::str::FromStr>(&mut self, what: &str) -> Result<Located<N>, PtxError> {
        let token = self.word(what)?;
        let value = token.text.parse().map_err(|_| unexpected(&token, what))?;
        Ok(Located { value, span: token.span })
    }

    /// An entry, behind the word `.entry`.
    pub(super) fn entry(&mut self) -> Result<Entry, PtxError> {
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
