//! Names, quoting for messages, and "did you mean".

use super::context::Context;
use crate::diagnostic::Diagnostic;
use crate::model::Spanned;
pub(super) use crate::names::{is_identifier, is_keyword, is_snake};

use crate::names::MAX_LENGTH;

/// `text` in backquotes, short and without control characters.
pub(super) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_LENGTH).flat_map(char::escape_debug).collect();
    short = short.replace("\\\"", "\"").replace("\\'", "'");
    if text.chars().nth(MAX_LENGTH).is_some() {
        short.push('…');
    }
    format!("`{short}`")
}

/// Words as a list: "`a`, `b` or `c`".
pub(super) fn listed<'a>(words: impl IntoIterator<Item = &'a str>, last: &str) -> String {
    let words: Vec<String> = words.into_iter().map(quoted).collect();
    match words.split_last() {
        None => "nothing".to_string(),
        Some((only, [])) => only.clone(),
        Some((end, rest)) => format!("{} {last} {end}", rest.join(", ")),
    }
}

/// A help line: the candidate that `word` is a slip of, if there is one, and all of them after `intro`.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>, intro: &str) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = candidates.iter().map(|candidate| (distance(word, candidate), candidate)).min_by_key(|pair| pair.0);
    let all = listed(candidates.iter().copied(), if intro.ends_with("are") { "and" } else { "or" });
    let all = if candidates.is_empty() { "none is known here".to_string() } else { format!("{intro} {all}") };
    match near {
        Some((edits, candidate)) if edits <= word.chars().count().max(3) / 3 && edits < word.chars().count() => {
            format!("did you mean {}? {all}", quoted(candidate))
        }
        _ => all,
    }
}

/// How many letters must be added, removed, changed or swapped with a neighbour; large where the words are long.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().max(b.len()) > MAX_LENGTH {
        return usize::MAX;
    }
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = a[i - 1].eq_ignore_ascii_case(&b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + usize::from(!same));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

impl Context<'_> {
    /// Checks the name of a kernel, a parameter or a dimension.
    pub(super) fn snake_name(&mut self, name: &Spanned<String>, what: &str) {
        let help = "write words of lower-case letters and digits joined by single underscores, such as `num_tokens`";
        self.name(name, what, is_snake(&name.value), "not snake case", help);
    }

    /// Checks the name of a constant.
    pub(super) fn constant_name(&mut self, name: &Spanned<String>) {
        let lower = name.value.to_ascii_lowercase();
        let good = is_snake(&lower) && name.value == lower.to_ascii_uppercase();
        let help = "write it in upper case, such as `BLOCK_SIZE`; where the kernel does not, `as` says what it is called there";
        self.name(name, "constant", good, "not upper case", help);
    }

    /// Checks the name of a type variable.
    pub(super) fn type_name(&mut self, name: &Spanned<String>) {
        let good = name.value.starts_with(|c: char| c.is_ascii_uppercase())
            && name.value != "Self"
            && name.value.len() <= MAX_LENGTH
            && name.value.chars().all(|c| c.is_ascii_alphanumeric());
        let help = "write letters and digits after an upper-case letter, such as `T`";
        self.name(name, "type", good, "not the name of a type", help);
    }

    fn name(&mut self, name: &Spanned<String>, what: &str, good: bool, label: &str, help: &str) {
        let keyword = is_keyword(&name.value);
        if good && !keyword {
            return;
        }
        let label = if keyword { "a keyword of Rust" } else { label };
        let help = match (keyword, what) {
            (true, "parameter" | "constant") => "choose another name; `as` says what the kernel calls it",
            (true, _) => "choose another name",
            _ => help,
        };
        let message = format!("{} cannot be the name of a {what}{}", quoted(&name.value), self.inside());
        self.push(Diagnostic::new("TL0107", message, name.span.clone(), label).help(help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found() {
        let help = |word| did_you_mean(word, ["doc", "shape"], "the keys are");
        assert_eq!(help("shpe"), "did you mean `shape`? the keys are `doc` and `shape`");
        assert_eq!(help("zebra"), "the keys are `doc` and `shape`");
        assert_eq!([distance("", "abc"), distance("abcd", "acbd"), distance("F32", "f32")], [3, 1, 0]);
    }

    #[test]
    fn quoting_is_short_and_harmless() {
        assert_eq!(quoted("a\u{1b}[31m\n"), "`a\\u{1b}[31m\\n`");
        assert_eq!(quoted(&"x".repeat(70)).chars().count(), 67);
    }
}
