//! Finds a kernel's declaration in its source, to point at it and to compare it when its facts are out of date.
//!
//! This is no parser of Python or C++: whatever it does not understand it does not find, and a check then does without.

use std::ops::Range;

/// A function as its source declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: Range<usize>,
    /// Its parameters in order.
    pub params: Vec<Param>,
}

/// A parameter as its source declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Whether it is annotated as `tl.constexpr`.
    pub constexpr: bool,
    /// Where its name stands.
    pub span: Range<usize>,
}

/// The languages of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Triton.
    Python,
    /// CUDA C++.
    Cuda,
}

impl Language {
    /// The language of the file at `path`.
    pub fn of(path: &str) -> Language {
        if path.ends_with(".cu") { Language::Cuda } else { Language::Python }
    }
}

/// The declaration of `name` in `text`, which declares `functions`.
pub fn find(text: &str, functions: &[Range<usize>], name: &str, language: Language) -> Option<Function> {
    let span = match name.split_once('.') {
        Some((class, method)) => method_name(text, class, method)?,
        None => functions.iter().rev().find(|span| &text[(*span).clone()] == name)?.clone(),
    };
    let params = params(text, span.end, language)?;
    Some(Function { name: span, params })
}

/// Where the name of `method` stands in the body of the Python class `class`.
fn method_name(text: &str, class: &str, method: &str) -> Option<Range<usize>> {
    let (mut at, mut inside, mut found) = (0, false, None);
    for line in text.split_inclusive('\n') {
        let code = line.trim_start();
        if code.len() == line.len() && !code.trim_end().is_empty() && !code.starts_with(['#', ')', '@']) {
            let name = code.strip_prefix("class ").unwrap_or_default();
            inside = name.split(|c| !is_word(c)).next() == Some(class);
        }
        let name = code.strip_prefix("def ").unwrap_or_default();
        if inside && name.split('(').next().map(str::trim_end) == Some(method) {
            let start = at + line.len() - name.len();
            found = Some(start..start + method.len());
        }
        at += line.len();
    }
    found
}

/// Where the names of all functions stand that `text` declares.
pub fn functions(text: &str, language: Language) -> Vec<Range<usize>> {
    let marker = match language {
        Language::Python => "def ",
        Language::Cuda => "__global__",
    };
    let mut found = Vec::new();
    let mut markers = text.match_indices(marker).map(|(at, _)| at).peekable();
    while let Some(at) = markers.next() {
        if language == Language::Python && !(at == 0 || text[..at].ends_with('\n')) {
            continue; // a method, a nested function or a comment
        }
        let after = at + marker.len();
        // The name is the word before the first parenthesis, after the type and any launch bounds.
        let mut rest = match language {
            Language::Python => text[after..].lines().next().unwrap_or_default(),
            Language::Cuda => &text[after..markers.peek().copied().unwrap_or(text.len())],
        };
        let mut start = after;
        let Some(mut open) = rest.find('(') else { continue };
        if rest[..open].trim_end().ends_with("__launch_bounds__") {
            let Some(end) = rest[open..].find(')') else { continue };
            (rest, start) = (&rest[open + end + 1..], start + open + end + 1);
            let Some(next) = rest.find('(') else { continue };
            open = next;
        }
        let before = rest[..open].trim_end();
        let name = word_at_end(before);
        start += before.len() - name.len();
        if !name.is_empty() {
            found.push(start..start + name.len());
        }
    }
    found
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn word_at_end(text: &str) -> &str {
    &text[text.trim_end_matches(is_word).len()..]
}

/// The parameters in the parentheses that open at or behind `at`.
fn params(text: &str, at: usize, language: Language) -> Option<Vec<Param>> {
    let open = at + text[at..].find('(')?;
    let (mut params, mut piece, mut depth) = (Vec::new(), Vec::new(), 0usize);
    let mut characters = text[open..].char_indices().map(|(offset, character)| (open + offset, character)).peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '#' if language == Language::Python => {
                while characters.next_if(|(_, character)| *character != '\n').is_some() {}
            }
            '/' if language == Language::Cuda && characters.peek().is_some_and(|(_, next)| *next == '/') => {
                while characters.next_if(|(_, character)| *character != '\n').is_some() {}
            }
            '\'' | '"' => {
                while characters.next_if(|(_, next)| *next != character && *next != '\n').is_some() {}
                characters.next();
            }
            '(' | '[' | '{' => {
                depth += 1;
                if depth > 1 {
                    piece.push((at, character));
                }
            }
            ')' | ']' | '}' => {
                depth -= 1;
                if depth == 0 {
                    params.extend(param(&piece, language));
                    return Some(params);
                }
                piece.push((at, character));
            }
            ',' if depth == 1 => params.extend(param(&std::mem::take(&mut piece), language)),
            _ => piece.push((at, character)),
        }
    }
    None
}

/// The parameter that the characters between two commas declare.
fn param(piece: &[(usize, char)], language: Language) -> Option<Param> {
    let declared = match language {
        Language::Python => piece,
        // What follows `=` is a default.
        Language::Cuda => piece.split(|(_, character)| *character == '=').next()?,
    };
    let mut words = declared.split(|(_, character)| !is_word(*character)).filter(|word| !word.is_empty());
    let word = match language {
        Language::Python => words.next()?,
        Language::Cuda => words.next_back()?,
    };
    let name: String = word.iter().map(|(_, character)| character).collect();
    let text: String = piece.iter().map(|(_, character)| character).collect();
    let constexpr = text.split_once(':').is_some_and(|(_, annotation)| annotation.contains("constexpr"));
    let start = word[0].0;
    Some(Param { constexpr, span: start..start + name.len(), name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, name: &str, language: Language) -> Option<Vec<(String, bool)>> {
        let found = find(text, &functions(text, language), name, language)?;
        assert_eq!(&text[found.name.clone()], name.rsplit('.').next().unwrap());
        assert!(found.params.iter().all(|param| text[param.span.clone()] == param.name));
        Some(found.params.into_iter().map(|param| (param.name, param.constexpr)).collect())
    }

    #[test]
    fn python() {
        let text = "# def f(no):\ndef g(x): pass\n@jit\ndef f(\n    a,  # first, (of all)\n    b: tl.constexpr = (1, 2), c=\"d, e\",\n):\n";
        let expected = [("a", false), ("b", true), ("c", false)].map(|(name, fixed)| (name.to_string(), fixed));
        assert_eq!(shown(text, "f", Language::Python), Some(expected.to_vec()));
        let names: Vec<_> = functions(text, Language::Python).into_iter().map(|span| &text[span]).collect();
        assert_eq!(names, ["g", "f"]);
        assert_eq!(shown(text, "h", Language::Python), None);
        assert_eq!(shown("def f(a, b", "f", Language::Python), None);
        assert_eq!(shown("def f() -> None:", "f", Language::Python), Some(vec![]));
        let text =
            "class A:\n    def f(a): pass\nclass B(C):\n    @jit\n    def f(b, c):\n        pass\n\ndef f(d): pass\n";
        let names = |name| {
            shown(text, name, Language::Python)
                .map(|params| params.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names("B.f"), Some(vec!["b".to_string(), "c".to_string()]));
        assert_eq!((names("A.f"), names("D.f")), (Some(vec!["a".to_string()]), None));
    }

    #[test]
    fn cuda() {
        let text =
            "extern \"C\" __global__ void __launch_bounds__(128) f(float *__restrict__ a, // x, y\n const int n = 1)";
        let expected = [("a", false), ("n", false)].map(|(name, fixed)| (name.to_string(), fixed));
        assert_eq!(shown(text, "f", Language::Cuda), Some(expected.to_vec()));
    }
}
