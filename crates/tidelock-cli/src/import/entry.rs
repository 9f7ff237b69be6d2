//! Registry entries as YAML, in the style of the files in `signatures/`.

use std::collections::BTreeSet;

use tidelock_codegen::model::{Access, DType, Literal};
use tidelock_codegen::names::is_keyword;

use super::comment::{self, Comment};
use super::source::{Kernel, Param, Role};
use super::strides::{base, strides};
use crate::words;

const TODO: &str = "TODO";
/// Longest line.
const WIDTH: usize = 130;

/// The registry file of `family`, whose kernels are in the source at `place`.
pub fn file(family: &str, place: &str, kernels: &[Kernel]) -> String {
    let mut text = format!(
        "# Imported from {place}. What it does not say is TODO and is refused until it is said: look at the launches.\n\
         # Check also what was taken from names and comments. `write` says that every element is written; else it is `update`.\n\n\
         kernels:\n"
    );
    let mut taken = BTreeSet::new();
    for kernel in kernels {
        let name = words::snake(&kernel.function.replace('.', "_"));
        let short = name.strip_suffix("_kernel").filter(|short| !short.is_empty()).unwrap_or(&name);
        let name = unique(short, &mut taken);
        if taken.len() > 1 {
            text.push('\n');
        }
        text += &entry(&name, place, kernel);
    }
    debug_assert!(!family.is_empty());
    text
}

/// How many places are left to be said.
pub fn placeholders(yaml: &str) -> usize {
    let code = yaml.lines().map(|line| line.split(" #").next().unwrap_or(line)).filter(|line| !line.starts_with('#'));
    code.map(|line| line.matches(TODO).count()).sum()
}

/// A name that no other has and that Rust does not keep for itself.
fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let name = if is_keyword(name) { format!("{name}_arg") } else { name.to_string() };
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
    let name = free.unwrap_or(name);
    taken.insert(name.clone());
    name
}

fn entry(name: &str, place: &str, kernel: &Kernel) -> String {
    let mut text = String::new();
    for note in &kernel.notes {
        text += &format!("  # {note}\n");
    }
    let doc = kernel.doc.as_deref().map_or(TODO.to_string(), words::yaml);
    text += &format!("  {name}:\n    doc: {doc}\n    gpu: {place}:{}\n", kernel.function);
    let grid = kernel.grid.as_ref().map_or(String::new(), |grid| format!("  # launched with {grid}"));
    text += &format!("    grid: [{TODO}]{grid}\n");
    if let Some(warps) = kernel.num_warps.filter(|warps| [1, 2, 4, 8, 16, 32].contains(warps)) {
        text += &format!("    num_warps: {warps}\n");
    }
    if kernel.dynamic_shared {
        text += &format!("    shared_memory: {TODO}  # bytes of `extern __shared__`\n");
    }
    let names = Names::new(kernel);
    let comments: Vec<Comment> =
        kernel.params.iter().map(|p| p.comment.as_deref().map(comment::read).unwrap_or_default()).collect();
    let writer = Writer { kernel, names: &names, strides: strides(kernel), comments: &comments };
    let is_constant = |param: &Param| matches!(param.role, Role::Constant { .. });
    let places: Vec<usize> = (0..kernel.params.len()).collect();
    let (constants, params): (Vec<usize>, Vec<usize>) =
        places.into_iter().partition(|at| is_constant(&kernel.params[*at]));
    text += "    params:\n";
    if params.is_empty() {
        text += &format!("      {{}}  # {TODO}: the kernel takes no argument\n");
    }
    params.iter().for_each(|&at| text += &writer.line(at));
    if !constants.is_empty() {
        text += "    constants:\n";
        constants.iter().for_each(|&at| text += &writer.line(at));
    }
    text
}

/// The registry's name of each parameter.
struct Names(Vec<String>);

impl Names {
    fn new(kernel: &Kernel) -> Names {
        let mut taken = BTreeSet::new();
        let name = |param: &Param| match param.role {
            Role::Tensor { .. } => unique(&base(&param.name), &mut taken),
            Role::Scalar { .. } => unique(&words::snake(&param.name), &mut taken),
            // The CPU arm has parameters and constants side by side, in lower case.
            Role::Constant { .. } => unique(&words::snake(&param.name), &mut taken).to_uppercase(),
        };
        Names(kernel.params.iter().map(name).collect())
    }
}

struct Writer<'a> {
    kernel: &'a Kernel,
    names: &'a Names,
    strides: Vec<Option<super::strides::Stride>>,
    comments: &'a [Comment],
}

impl Writer<'_> {
    fn line(&self, at: usize) -> String {
        let (param, name, comment) = (&self.kernel.params[at], &self.names.0[at], &self.comments[at]);
        let mut note = param.note.clone();
        let mut keys: Vec<(&str, String)> = match &param.role {
            Role::Tensor { element, access } => self.tensor(at, *element, *access, &mut note),
            Role::Scalar { element, default } => self.scalar(at, *element, default.as_ref(), &mut note),
            Role::Constant { dtype, value } => vec![
                ("type", dtype.filter(|dtype| *dtype != DType::F64).map_or(TODO.into(), |dtype| dtype.name().into())),
                ("value", value.as_ref().map_or(TODO.into(), literal)),
            ],
        };
        if *name != param.name {
            keys.push(("as", param.name.clone()));
        }
        keys.push(("doc", comment.words.as_deref().map_or(TODO.into(), words::yaml)));
        let pairs: Vec<String> = keys.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        let flow = format!("      {name}: {{{}}}", pairs.join(", "));
        let width = flow.chars().count();
        match note {
            Some(note) if width + note.chars().count() + 4 <= WIDTH => return format!("{flow}  # {note}\n"),
            None if width <= WIDTH => return flow + "\n",
            _ => {}
        }
        let note = note.map_or(String::new(), |note| format!("      # {note}\n"));
        if width <= WIDTH {
            return format!("{note}{flow}\n");
        }
        let block: Vec<String> = pairs.iter().map(|pair| format!("        {pair}\n")).collect();
        format!("{note}      {name}:\n{}", block.concat())
    }

    fn strides_of(&self, at: usize) -> usize {
        self.strides.iter().flatten().filter(|(tensor, _)| *tensor == at).count()
    }

    fn tensor(
        &self,
        at: usize,
        element: Option<DType>,
        access: Option<Access>,
        note: &mut Option<String>,
    ) -> Vec<(&'static str, String)> {
        let comment = &self.comments[at];
        let strides = self.strides_of(at);
        let shape = match (&comment.shape, strides) {
            (Some(shape), _) => {
                let quoted = shape
                    .iter()
                    .map(|extent| if extent.contains(',') { format!("\"{extent}\"") } else { extent.clone() });
                format!("[{}]", quoted.collect::<Vec<_>>().join(", "))
            }
            (None, 0) => TODO.to_string(),
            (None, _) => format!("[{TODO}, {TODO}]"),
        };
        if strides > 2 && note.is_none() {
            *note = Some(format!("it has {strides} strides; here a tensor has rows and columns, and a stride of rows"));
        }
        let mut keys = vec![
            ("tensor", element.or(comment.element).map_or(TODO.into(), |dtype| dtype.name().to_string())),
            ("shape", shape),
        ];
        match access {
            Some(Access::Read) => {}
            Some(Access::Write) => keys.push(("access", "write".into())),
            Some(Access::Update) => keys.push(("access", "update".into())),
            None => keys.push(("access", TODO.into())),
        }
        keys
    }

    fn scalar(
        &self,
        at: usize,
        element: Option<DType>,
        default: Option<&Literal>,
        note: &mut Option<String>,
    ) -> Vec<(&'static str, String)> {
        let comment = &self.comments[at];
        let element = element.or(comment.element);
        let derived = element.and_then(|dtype| match dtype {
            DType::I32 | DType::U32 => Some(DType::I32),
            DType::I64 | DType::U64 => Some(DType::I64),
            _ => None,
        });
        let is_size = |shape: &Vec<String>| shape.iter().any(|extent| mentions(extent, &self.names.0[at]));
        if self.comments.iter().filter_map(|comment| comment.shape.as_ref()).any(is_size) {
            return vec![("scalar", derived.unwrap_or(DType::I32).name().into()), ("from", "dim".into())];
        }
        match self.strides[at] {
            Some((tensor, _)) if self.comments[tensor].shape.as_ref().is_some_and(|shape| shape.len() == 1) => {
                let tensor = &self.kernel.params[tensor].name;
                *note = Some(format!("{tensor} has one axis, which is contiguous: take its stride out of the kernel"));
            }
            Some((tensor, 0)) if self.strides_of(tensor) < 3 => {
                let derived = derived.unwrap_or(DType::I64).name();
                return vec![("scalar", derived.into()), ("from", format!("stride({})", self.names.0[tensor]))];
            }
            Some((tensor, number)) if note.is_none() => {
                let ours = &self.names.0[tensor];
                let number = number + 1;
                *note = Some(match self.strides_of(tensor) {
                    2 => format!(
                        "of {ours}: columns are contiguous and have no stride; if this is of rows, it is `from: stride({ours})`"
                    ),
                    count => format!(
                        "stride {number} of {count} of {ours}; that of rows is `from: stride({ours})`, columns are contiguous"
                    ),
                });
            }
            _ => {}
        }
        let mut keys = vec![("scalar", element.map_or(TODO.into(), |dtype| dtype.name().to_string()))];
        keys.extend(default.map(|value| ("default", literal(value))));
        keys
    }
}

/// Whether the expression `extent` has the name `name` in it.
fn mentions(extent: &str, name: &str) -> bool {
    extent.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| word == name)
}

fn literal(value: &Literal) -> String {
    match value {
        Literal::Bool(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Float(value) => format!("{value:?}"),
    }
}
