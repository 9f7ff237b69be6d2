//! Tokens as text: the decoding half of a byte-level BPE `tokenizer.json`.
//!
//! Such a vocabulary writes each byte as one printable character, by the table that GPT-2 introduced. The crate tokenizers
//! does this and very much more, so it would bring more code than the rest of this command has.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// The text of each token.
pub struct Tokenizer {
    texts: HashMap<i32, String>,
}

#[derive(Deserialize)]
struct Document {
    model: Model,
    decoder: Typed,
    #[serde(default)]
    added_tokens: Vec<Added>,
}

#[derive(Deserialize)]
struct Model {
    vocab: HashMap<String, i32>,
}

#[derive(Deserialize)]
struct Typed {
    r#type: String,
}

#[derive(Deserialize)]
struct Added {
    id: i32,
    content: String,
}

impl Tokenizer {
    /// Reads the file at `path`.
    pub fn read(path: &Path) -> anyhow::Result<Tokenizer> {
        let name = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read the tokenizer {name}"))?;
        let document: Document = serde_json::from_str(&text)
            .with_context(|| format!("{name}: expected a tokenizer with a BPE vocabulary"))?;
        let decoder = document.decoder.r#type;
        ensure!(decoder == "ByteLevel", "{name}: expected a decoder of type ByteLevel, got {decoder}");
        let bytes = byte_alphabet();
        let mut texts: HashMap<_, _> =
            document.model.vocab.iter().map(|(token, &id)| (id, decode(token, &bytes))).collect();
        texts.extend(document.added_tokens.into_iter().map(|added| (added.id, added.content)));
        Ok(Tokenizer { texts })
    }

    /// The text of token `id`; nothing where it is no token. Bytes that are no UTF-8 by themselves become U+FFFD.
    pub fn text(&self, id: i32) -> Option<String> {
        self.texts.get(&id).cloned()
    }
}

fn decode(token: &str, alphabet: &HashMap<char, u8>) -> String {
    let mut bytes = Vec::with_capacity(token.len());
    for letter in token.chars() {
        match alphabet.get(&letter) {
            Some(&byte) => bytes.push(byte),
            None => bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The byte that each character of a vocabulary stands for: printable Latin-1 for itself, and the characters from U+0100
/// on, in order, for the bytes that are left.
fn byte_alphabet() -> HashMap<char, u8> {
    let printable = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let (own, others): (Vec<u8>, Vec<u8>) = (0..=255).partition(printable);
    let own = own.into_iter().map(|byte| (char::from(byte), byte));
    own.chain(('\u{100}'..).zip(others)).collect()
}
