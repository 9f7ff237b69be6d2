//! C++ as words and signs, without comments and preprocessor lines.

use std::collections::BTreeMap;
use std::ops::Range;

use super::source::Mistake;

/// A word, a number, a string or a sign, and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub text: &'a str,
    pub at: usize,
}

/// What is wrong at `span`.
pub fn mistake(message: impl Into<String>, span: Range<usize>) -> Mistake {
    Mistake { language: "CUDA C++", message: message.into(), span }
}

/// Whether a name can have it.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Comments by the line that they begin in.
pub type Comments = BTreeMap<usize, String>;

/// Words and signs without comments and preprocessor lines.
pub fn tokens(text: &str) -> Result<(Vec<Token<'_>>, Comments), Mistake> {
    let (mut tokens, mut comments) = (Vec::new(), BTreeMap::new());
    let (mut at, mut line, mut fresh) = (0, 1, true);
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if letter == '\n' {
            fresh = true;
            1
        } else if letter.is_whitespace() {
            letter.len_utf8()
        } else if rest.starts_with("//") {
            let comment = rest.lines().next().unwrap_or(rest);
            comments.insert(line, comment.trim_start_matches('/').trim().to_string());
            comment.len()
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").ok_or_else(|| mistake("this comment has no end", at..at + 2))?;
            comments.insert(line, rest[2..end].trim_matches(|c: char| c == '*' || c.is_whitespace()).to_string());
            end + 2
        } else if letter == '#' && fresh {
            // A preprocessor line, which a backslash continues.
            let mut end = 0;
            for line in rest.split_inclusive('\n') {
                end += line.len();
                if !line.trim_end().ends_with('\\') {
                    break;
                }
            }
            end - usize::from(rest[..end].ends_with('\n'))
        } else if letter == '"' || letter == '\'' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let ends = !escaped && *c == letter;
                escaped = !escaped && *c == '\\';
                ends
            });
            let end = end.map(|(end, _)| end + 1).ok_or_else(|| mistake("this text has no end", at..at + 1))?;
            tokens.push(Token { text: &rest[..end], at });
            end
        } else if is_word(letter) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token { text: &rest[..end], at });
            end
        } else {
            let two = rest.get(..2).filter(|two| {
                matches!(
                    *two,
                    "==" | "<="
                        | ">="
                        | "!="
                        | "+="
                        | "-="
                        | "*="
                        | "/="
                        | "|="
                        | "&="
                        | "^="
                        | "++"
                        | "--"
                        | "::"
                        | "->"
                        | "&&"
                        | "||"
                )
            });
            let end = two.map_or(letter.len_utf8(), str::len);
            tokens.push(Token { text: &rest[..end], at });
            end
        };
        if letter != '\n' && !letter.is_whitespace() {
            fresh = false;
        }
        line += text[at..at + length].matches('\n').count();
        at += length;
    }
    Ok((tokens, comments))
}

/// Names that `typedef TYPE NAME;` and `using NAME = TYPE;` give to types.
pub fn typedefs<'a>(tokens: &[Token<'a>]) -> BTreeMap<&'a str, String> {
    let mut names = BTreeMap::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| matches!(token.text, "typedef" | "using")) {
        let words: Vec<&str> =
            tokens[at + 1..].iter().map(|token| token.text).take_while(|text| *text != ";").take(8).collect();
        match (token.text, words.as_slice()) {
            ("typedef", [kind @ .., name]) if kind.iter().all(|word| word.chars().all(is_word)) => {
                names.insert(*name, kind.join(" "));
            }
            ("using", [name, "=", kind @ ..]) => _ = names.insert(*name, kind.concat()),
            _ => {}
        }
    }
    names
}
