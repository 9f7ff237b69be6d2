//! CUDA kernels of a C++ source: every `__global__` function. Declarations are simple enough to be read from words and
//! signs, which needs no C++ compiler and no headers.

use std::collections::BTreeMap;
use std::ops::Range;

use tidelock_codegen::model::{Access, Literal};

use super::cpp::{Comments, Token, is_word, mistake, tokens, typedefs};
use super::source::{Kernel, Mistake, Param, Role, dtype};

/// The kernels of `text`, in its order.
pub fn read(text: &str) -> Result<Vec<Kernel>, Mistake> {
    let (tokens, comments) = tokens(text)?;
    let source = Source { text, tokens: &tokens, comments, names: typedefs(&tokens) };
    let mut kernels: Vec<(Kernel, bool)> = Vec::new();
    for at in 0..tokens.len() {
        let Some(last) = source.global(at) else { continue };
        let Some((kernel, defined)) = source.kernel(at, last)? else { continue };
        // A prototype says nothing that the definition does not say better.
        let same = |other: &(Kernel, bool)| other.0.function == kernel.function && types(&other.0) == types(&kernel);
        match kernels.iter_mut().find(|other| same(other)) {
            Some(other) if defined => *other = (kernel, true),
            Some(_) => {}
            None => kernels.push((kernel, defined)),
        }
    }
    Ok(kernels.into_iter().map(|(kernel, _)| kernel).collect())
}

/// How many macros of `text` define kernels.
pub fn made_by_macros(text: &str) -> usize {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let code = |line: &'_ str| line.split("//").next().and_then(|line| line.split("/*").next()).map(str::to_string);
    let lines = joined.lines().filter(|line| line.trim_start().starts_with("#define")).filter_map(code);
    lines.filter(|line| line.contains("__global__")).count()
}

fn types(kernel: &Kernel) -> Vec<(Option<&str>, bool)> {
    let is_tensor = |param: &Param| matches!(param.role, Role::Tensor { .. });
    kernel.params.iter().map(|param| (param.note.as_deref(), is_tensor(param))).collect()
}

struct Source<'a> {
    text: &'a str,
    tokens: &'a [Token<'a>],
    comments: Comments,
    names: BTreeMap<&'a str, String>,
}

impl<'a> Source<'a> {
    fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// The place behind the sign that closes the one at `open`.
    fn close(&self, open: usize) -> Result<usize, Mistake> {
        let mut waiting: Vec<(usize, &str)> = Vec::new();
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match token.text {
                "(" => waiting.push((at, ")")),
                "{" => waiting.push((at, "}")),
                "[" => waiting.push((at, "]")),
                ")" | "}" | "]" if waiting.pop().is_none_or(|(_, closing)| closing != token.text) => {
                    return Err(mistake(format!("`{}` closes nothing", token.text), token.at..token.at + 1));
                }
                _ => {}
            }
            if waiting.is_empty() {
                return Ok(at + 1);
            }
        }
        let start = self.tokens[waiting.last().map_or(open, |waiting| waiting.0)].at;
        Err(mistake(format!("`{}` is never closed", &self.text[start..start + 1]), start..start + 1))
    }

    /// The last word of what says `__global__` at `at`: itself, or what the preprocessor makes of it.
    fn global(&self, at: usize) -> Option<usize> {
        const EXPANDED: [&str; 6] = ["__attribute__", "(", "(", "global", ")", ")"];
        if self.tokens[at].text == "__global__" {
            return Some(at);
        }
        let expanded = self.tokens.get(at..at + EXPANDED.len())?.iter().map(|token| token.text).eq(EXPANDED);
        expanded.then_some(at + EXPANDED.len() - 1)
    }

    /// The kernel that `__global__`, whose words are from `start` to `last`, declares, and whether its body is here.
    fn kernel(&self, start: usize, last: usize) -> Result<Option<(Kernel, bool)>, Mistake> {
        let place = self.tokens[start].at;
        let mut num_warps = None;
        let mut at = last + 1;
        let (name, open) = loop {
            let Some(token) = self.tokens.get(at) else {
                return Err(mistake(
                    "a kernel begins here and its declaration never ends",
                    place..self.tokens[last].at + self.tokens[last].text.len(),
                ));
            };
            match token.text {
                "(" => {
                    let word = self.tokens[at - 1].text;
                    if !word.starts_with("__") || word == "__global__" {
                        break (self.tokens[at - 1], at);
                    }
                    if word == "__launch_bounds__" {
                        let threads = self.tokens.get(at + 1).and_then(|token| token.text.parse::<u32>().ok());
                        num_warps = threads.filter(|threads| threads % 32 == 0).map(|threads| threads / 32);
                    }
                    at = self.close(at)?;
                }
                ";" | "{" | "}" => return Ok(None), // a macro or a friend, no declaration
                _ => at += 1,
            }
        };
        if !name.text.chars().all(is_word) {
            return Err(mistake(
                "expected the name of a kernel before this",
                self.tokens[open].at..self.tokens[open].at + 1,
            ));
        }
        let end = self.close(open)?;
        let body = match self.tokens.get(end).map(|token| token.text) {
            Some("{") => Some(end..self.close(end)?),
            _ => None,
        };
        let mut notes = Vec::new();
        let before: Vec<&str> = self.tokens[..start].iter().rev().map(|token| token.text).take(12).collect();
        let is_c = before.windows(2).take(4).any(|pair| pair == ["\"C\"", "extern"]) || self.inside_extern_c(start);
        if before.first() == Some(&">") {
            notes.push(format!(
                "`{}` is a template: write an `extern \"C\"` kernel that calls it for one type",
                name.text
            ));
        } else if !is_c {
            notes.push(format!(
                "`{}` needs `extern \"C\"` before `__global__`, so that its PTX has this name",
                name.text
            ));
        }
        let words: Vec<&str> = self.tokens[body.clone().unwrap_or_default()].iter().map(|token| token.text).collect();
        let dynamic_shared = words.windows(2).any(|pair| pair == ["extern", "__shared__"]);
        let params = self.params(open + 1..end - 1, body.clone());
        let line = self.line(name.at);
        let kernel = Kernel {
            function: name.text.to_string(),
            line,
            doc: self.doc(start),
            grid: self.grid(name.text),
            num_warps,
            dynamic_shared,
            params,
            notes,
        };
        Ok(Some((kernel, body.is_some())))
    }

    /// Whether `extern "C" {` is open at `start`.
    fn inside_extern_c(&self, start: usize) -> bool {
        let opens = (0..start.saturating_sub(2)).filter(|at| {
            self.tokens[*at].text == "extern" && self.tokens[at + 1].text == "\"C\"" && self.tokens[at + 2].text == "{"
        });
        opens.into_iter().any(|at| self.close(at + 2).is_ok_and(|end| end > start))
    }

    /// How the kernel is launched: `<<<grid, …>>>`.
    fn grid(&self, name: &str) -> Option<String> {
        let launch = self.text.match_indices(name).find_map(|(at, _)| {
            let rest = self.text[at + name.len()..].trim_start();
            let rest = match rest.strip_prefix('<') {
                Some(template) if !rest.starts_with("<<<") => template.split_once('>')?.1.trim_start(),
                _ => rest,
            };
            Some(rest.strip_prefix("<<<")?.split_once(">>>")?.0)
        })?;
        Some(format!("<<<{}>>>", launch.split_whitespace().collect::<Vec<_>>().join(" ")))
    }

    /// The comment that ends on the line above the declaration, if it is one line.
    fn doc(&self, start: usize) -> Option<String> {
        let mut line = self.line(self.tokens[start].at);
        while line > 1
            && (self.text.lines().nth(line - 1)?.trim_start().starts_with("template")
                || !self.comments.contains_key(&(line - 1)))
        {
            let above = self.text.lines().nth(line.checked_sub(2)?)?.trim();
            if !above.starts_with("template") && !above.starts_with("extern") {
                break;
            }
            line -= 1;
        }
        let comment = self.comments.get(&(line - 1))?;
        let words = comment.split_whitespace().collect::<Vec<_>>().join(" ");
        (words.chars().filter(|c| c.is_alphabetic()).count() > 2 && !words.contains("////")).then_some(words)
    }

    fn params(&self, range: Range<usize>, body: Option<Range<usize>>) -> Vec<Param> {
        let mut params = Vec::new();
        let mut depth = 0usize;
        let mut start = range.start;
        for at in range.start..=range.end {
            let text = if at == range.end { "," } else { self.tokens[at].text };
            match text {
                "(" | "[" | "{" | "<" => depth += 1,
                ")" | "]" | "}" | ">" => depth = depth.saturating_sub(1),
                "," if depth == 0 || at == range.end => {
                    let ends = self.tokens.get(at).map_or(self.text.len(), |token| token.at);
                    params.extend(self.param(&self.tokens[start..at], ends, body.clone()));
                    start = at + 1;
                }
                _ => {}
            }
        }
        params
    }

    fn param(&self, tokens: &[Token<'a>], ends: usize, body: Option<Range<usize>>) -> Option<Param> {
        let declared: Vec<Token> = tokens.iter().copied().take_while(|token| token.text != "=").collect();
        let array = declared.iter().position(|token| token.text == "[");
        let words = &declared[..array.unwrap_or(declared.len())];
        let (name, kind) = words.split_last()?;
        if kind.is_empty() || !name.text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return None; // `void`, or a type without a name
        }
        let qualifiers =
            ["const", "volatile", "__restrict__", "__restrict", "restrict", "struct", "__grid_constant__", "std", "::"];
        let stars = kind.iter().filter(|token| token.text == "*").count() + usize::from(array.is_some());
        let plain: Vec<&str> =
            kind.iter().map(|token| token.text).filter(|text| *text != "*" && !qualifiers.contains(text)).collect();
        let plain = plain.join(" ");
        // A well-known name is what it is everywhere, however this file's headers define it.
        let defined = self.names.get(plain.as_str()).and_then(|other| dtype(other));
        let element = dtype(&plain).or(defined);
        let shown = kind.iter().map(|token| token.text).collect::<Vec<_>>().join(" ");
        let unknown = (element.is_none() || stars > 1).then(|| format!("declared `{shown}`"));
        let element = element.filter(|_| stars < 2);
        let role = if stars > 0 {
            let is_const = kind.iter().take_while(|token| token.text != "*").any(|token| token.text == "const");
            let access = if is_const { Some(Access::Read) } else { body.and_then(|body| self.access(name.text, body)) };
            Role::Tensor { element, access }
        } else {
            let default =
                tokens.iter().skip_while(|token| token.text != "=").nth(1).and_then(|token| match token.text {
                    "true" => Some(Literal::Bool(true)),
                    "false" => Some(Literal::Bool(false)),
                    number => number.parse().ok().map(Literal::Int),
                });
            Role::Scalar { element, default }
        };
        // A comment belongs to a parameter that ends on its line.
        let line = self.line(name.at);
        let alone = !self.text[name.at..ends].contains('\n')
            && self.text[ends..]
                .lines()
                .next()
                .is_some_and(|rest| rest[1.min(rest.len())..].trim_start().starts_with('/'));
        let last = self.text[name.at + name.text.len()..ends].contains("//")
            || self.text[name.at + name.text.len()..ends].contains("/*");
        let comment = self.comments.get(&line).filter(|_| alone || last).cloned();
        Some(Param { name: name.text.to_string(), role, comment, note: unknown })
    }

    /// What a body does with a pointer: certain where it is indexed alone; anything else may load and store.
    fn access(&self, name: &str, body: Range<usize>) -> Option<Access> {
        let (mut loaded, mut stored) = (false, false);
        for at in body.clone().filter(|at| self.tokens[*at].text == name) {
            let before = self.tokens[at - 1].text;
            if matches!(before, "." | "->" | "::") {
                continue; // a member of something else
            }
            let next = self.tokens.get(at + 1).map_or("", |token| token.text);
            let (after, own) = match next {
                "[" => (self.close(at + 1).ok()?, !matches!(before, "&" | "++" | "--")),
                _ if before == "*" => (at + 1, matches!(self.tokens[at - 2].text, ";" | "{" | "}" | "=" | "(")),
                _ => return Some(Access::Update),
            };
            if !own {
                return Some(Access::Update);
            }
            match self.tokens.get(after).map_or("", |token| token.text) {
                "=" => stored = true,
                "+=" | "-=" | "*=" | "/=" | "|=" | "&=" | "^=" | "++" | "--" | "." => return Some(Access::Update),
                _ => loaded = true,
            }
        }
        super::source::access(loaded, stored)
    }
}
