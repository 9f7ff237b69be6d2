//! An entry into the text of a registry file, which keeps every other byte as it is.

use tidelock_codegen::check::similar::did_you_mean;
use tidelock_codegen::model::Spanned;
use tidelock_codegen::yaml::{self, Kind, Node};

/// Longest line that is written.
const WIDTH: usize = 120;

/// Where an entry belongs.
pub struct Place<'a> {
    pub kernel: &'a str,
    /// Under `constants`, not `params`.
    pub constant: bool,
    /// The entry that it follows; none means the last.
    pub after: Option<&'a str>,
}

/// The text with the entry.
pub struct Edited {
    pub text: String,
    /// The line of the entry, counted from 1.
    pub line: usize,
    /// What it follows.
    pub after: String,
}

type Entries = [(Spanned<String>, Node)];

/// Writes the entry `name` with its keys and values into `text`, which is that of `file` and is a valid registry.
pub fn insert(file: &str, text: &str, place: &Place, name: &str, pairs: &[(&str, String)]) -> Result<Edited, String> {
    let root = yaml::parse(file, text).map_err(|error| error.message)?;
    let missing = |what: &str| format!("{file}: expected {what}");
    let kernels = get(&root, "kernels").ok_or_else(|| missing("`kernels`"))?;
    let kernel = get(kernels, place.kernel).ok_or_else(|| missing(place.kernel))?;
    let keys = map(kernel).ok_or_else(|| missing("keys"))?;
    let lines = Lines::new(text);
    let level = |at: usize| lines.column(at);
    let section = if place.constant { "constants" } else { "params" };
    let flow = |what: &str| {
        format!(
            "{file}: expected `{what}` of kernel `{}` with one entry a line, got `{{…}}`; put each on a line of its own",
            place.kernel
        )
    };
    let Some((key, node)) = keys.iter().find(|(key, _)| key.value == section) else {
        // The kernel has no constants yet.
        if text[kernel.span.start..].starts_with('{') {
            return Err(flow("constants"));
        }
        let (last, _) = keys.last().ok_or_else(|| missing("keys"))?;
        let indent = level(last.span.start);
        let at = lines.end_of_block(lines.of(last.span.start), indent);
        let block = entry(name, pairs, indent + 2, &lines.ending);
        let new = format!("{}constants:{}{block}", " ".repeat(indent), lines.ending);
        return Ok(Edited { text: lines.insert(at, &new), line: at + 2, after: last.value.clone() });
    };
    let entries = map(node).filter(|entries| !entries.is_empty()).ok_or_else(|| missing("a parameter"))?;
    if text[node.span.start..].starts_with('{') || lines.of(node.span.start) == lines.of(key.span.start) {
        return Err(flow(section));
    }
    let after = match place.after {
        None => &entries[entries.len() - 1].0,
        Some(after) => {
            &entries
                .iter()
                .find(|(name, _)| name.value == after)
                .ok_or_else(|| unknown(after, entries, place.kernel))?
                .0
        }
    };
    let indent = level(after.span.start);
    let at = lines.end_of_block(lines.of(after.span.start), indent);
    let new = entry(name, pairs, indent, &lines.ending);
    Ok(Edited { text: lines.insert(at, &new), line: at + 1, after: after.value.clone() })
}

fn unknown(after: &str, entries: &Entries, kernel: &str) -> String {
    let names = entries.iter().map(|(name, _)| name.value.as_str());
    let help = did_you_mean(after, names.clone())
        .unwrap_or_else(|| format!("there are {}", names.collect::<Vec<_>>().join(", ")));
    format!("--after: kernel `{kernel}` has no `{after}`; {help}")
}

fn map(node: &Node) -> Option<&Entries> {
    match &node.kind {
        Kind::Map(entries) => Some(entries),
        _ => None,
    }
}

fn get<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    map(node)?.iter().find(|(name, _)| name.value == key).map(|(_, node)| node)
}

/// The entry on one line, or on several where one would be too long.
fn entry(name: &str, pairs: &[(&str, String)], indent: usize, ending: &str) -> String {
    let space = " ".repeat(indent);
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    let flow = format!("{space}{name}: {{{}}}", pairs.join(", "));
    if flow.chars().count() <= WIDTH {
        return flow + ending;
    }
    let block: Vec<String> = pairs.iter().map(|pair| format!("{space}  {pair}{ending}")).collect();
    format!("{space}{name}:{ending}{}", block.concat())
}

/// A text by its lines, counted from 0.
struct Lines<'a> {
    lines: Vec<&'a str>,
    starts: Vec<usize>,
    ending: String,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Lines<'a> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let starts = lines.iter().scan(0, |at, line| Some(std::mem::replace(at, *at + line.len()))).collect();
        let ending = if lines.first().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
        Lines { lines, starts, ending: ending.to_string() }
    }

    fn of(&self, at: usize) -> usize {
        self.starts.partition_point(|&start| start <= at).saturating_sub(1)
    }

    fn column(&self, at: usize) -> usize {
        at - self.starts[self.of(at)]
    }

    /// The line behind the entry whose key stands in `line` at `indent`; what comments on the next is not its.
    fn end_of_block(&self, line: usize, indent: usize) -> usize {
        let is_code = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let depth = |line: &str| line.len() - line.trim_start().len();
        let rest = line + 1..self.lines.len();
        let next =
            rest.clone().find(|&at| is_code(self.lines[at]) && depth(self.lines[at]) <= indent).unwrap_or(rest.end);
        // Back over comments and empty lines, but keep a comment that is deeper than the entry's key.
        let own = |at: usize| {
            is_code(self.lines[at]) || (!self.lines[at].trim().is_empty() && depth(self.lines[at]) > indent)
        };
        (line..next).rev().find(|&at| own(at)).map_or(line + 1, |at| at + 1)
    }

    fn insert(&self, at: usize, new: &str) -> String {
        let (before, after) = self.lines.split_at(at);
        let mut text = before.concat();
        if !text.is_empty() && !text.ends_with('\n') {
            text += &self.ending;
        }
        text + new + &after.concat()
    }
}
