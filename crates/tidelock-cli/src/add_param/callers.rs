//! Who builds the argument struct of a kernel: struct literals of its name in Rust sources.

use std::fs;
use std::path::Path;

use tidelock_codegen::names;

/// A place that builds the struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its file, relative to the root.
    pub file: String,
    /// Its line, counted from 1.
    pub line: usize,
}

/// Every caller of `kernel` under `root`.
pub fn find(root: &Path, kernel: &str) -> anyhow::Result<Vec<Caller>> {
    let mut found = Vec::new();
    walk(root, "", &names::camel(kernel), &mut found)?;
    Ok(found)
}

fn walk(root: &Path, folder: &str, name: &str, found: &mut Vec<Caller>) -> anyhow::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(root.join(folder))?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let Ok(file) = entry.file_name().into_string() else { continue };
        let path = if folder.is_empty() { file.clone() } else { format!("{folder}/{file}") };
        if entry.file_type()?.is_dir() {
            if !file.starts_with('.') && file != "target" {
                walk(root, &path, name, found)?;
            }
        } else if file.ends_with(".rs") {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            let lines = text.lines().enumerate().filter(|(_, line)| builds(line, name));
            found.extend(lines.map(|(at, _)| Caller { file: path.clone(), line: at + 1 }));
        }
    }
    Ok(())
}

/// Whether a line begins a literal of the struct `name`.
fn builds(line: &str, name: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (code[..at].trim_end(), &code[at + name.len()..]);
        let alone = !code[..at].ends_with(is_word) && after.trim_start().starts_with('{');
        let declares =
            ["struct", "impl", "for", "enum", "trait", "union", "mod", "->"].iter().any(|word| before.ends_with(word));
        alone && !declares
    })
}

#[cfg(test)]
mod tests {
    use super::builds;

    #[test]
    fn literals_of_a_struct() {
        for line in ["    Pick {", "let x = kernels::Pick { a, b }.launch(&device)?;", "f(Pick{a})"] {
            assert!(builds(line, "Pick"), "{line}");
        }
        for line in ["struct Pick {", "impl Pick {", "impl X for Pick {", "PickWith {", "XPick {", "// Pick {", "Pick;"]
        {
            assert!(!builds(line, "Pick"), "{line}");
        }
    }
}
