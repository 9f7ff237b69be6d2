//! Reads the CPU arms: which arguments each of them takes apart, and which of those it reads.

use std::ops::Range;

use syn::ext::IdentExt;
use syn::spanned::Spanned;

use crate::model::Kernel;
use crate::names;
use crate::source::{Lines, Span};

/// The arms in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arms(pub Vec<CpuArm>);

impl Arms {
    /// The arm of `kernel`.
    pub fn of(&self, kernel: &str) -> Option<&CpuArm> {
        let name = names::cpu_arguments_name(kernel);
        self.0.iter().find(|arm| arm.name == name)
    }
}

/// One `impl CpuArm for …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuArm {
    /// The type that it is for, such as `SoftmaxCpu`.
    pub name: String,
    /// Where that name stands.
    pub span: Range<usize>,
    /// Its function `run`, if it has one.
    pub run: Option<Run>,
}

/// The function `run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where its name stands.
    pub span: Range<usize>,
    /// How it takes its arguments apart, if its first statement does.
    pub taken: Option<Taken>,
}

/// `let Self { … } = self;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The whole pattern.
    pub span: Range<usize>,
    /// The fields it names.
    pub fields: Vec<Field>,
    /// A `..` at its end.
    pub rest: Option<Range<usize>>,
}

/// A field that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Whether it is bound to a name that can be read.
    pub read: bool,
    /// The field and its pattern.
    pub span: Range<usize>,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRust {
    /// What rustc would say, roughly.
    pub message: String,
    /// Where.
    pub span: Range<usize>,
}

/// An argument that the CPU arm of a kernel is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Name of the field.
    pub field: String,
    /// Where the registry declares it.
    pub declared: Span,
}

/// The arguments that the CPU arm of `kernel` must name, in the order of its struct.
pub fn expected(kernel: &Kernel) -> Vec<Expected> {
    let params = kernel.params.iter().filter(|param| param.reaches_cpu()).map(|param| &param.name);
    let constants = kernel.constants.iter().filter(|constant| constant.cpu_value().is_some());
    let names = params.chain(constants.map(|constant| &constant.name));
    names
        .map(|name| Expected { field: names::field(&name.value).unraw().to_string(), declared: name.span.clone() })
        .collect()
}

/// Path of the CPU arms of `family`.
pub fn path(family: &str) -> String {
    format!("src/cpu/{family}.rs")
}

/// The line, counted from 1, of the arm of `kernel` in `text`.
pub fn line(text: &str, kernel: &str) -> Option<usize> {
    Some(Lines::of(text).line_column(read(text).ok()?.of(kernel)?.span.start).0)
}

/// The arms that `text` implements.
pub fn read(text: &str) -> Result<Arms, NotRust> {
    // syn does not count a byte order mark.
    let shift = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let reader = Reader { shift };
    let file = syn::parse_file(text).map_err(|error| {
        let span = reader.range(error.span());
        NotRust { message: error.to_string(), span: span.start.min(text.len())..span.end.min(text.len()) }
    })?;
    let mut arms = Arms::default();
    reader.items(&file.items, &mut arms);
    Ok(arms)
}

struct Reader {
    shift: usize,
}

impl Reader {
    fn range(&self, span: proc_macro2::Span) -> Range<usize> {
        let range = span.byte_range();
        range.start + self.shift..range.end + self.shift
    }

    fn items(&self, items: &[syn::Item], arms: &mut Arms) {
        for item in items {
            match item {
                syn::Item::Impl(item) => arms.0.extend(self.arm(item)),
                syn::Item::Mod(module) => {
                    if let Some((_, items)) = &module.content {
                        self.items(items, arms);
                    }
                }
                _ => {}
            }
        }
    }

    fn arm(&self, item: &syn::ItemImpl) -> Option<CpuArm> {
        let (_, path, _) = item.trait_.as_ref()?;
        if path.segments.last()?.ident != "CpuArm" {
            return None;
        }
        let syn::Type::Path(kernel) = item.self_ty.as_ref() else { return None };
        let name = &kernel.path.segments.last()?.ident;
        let run = item.items.iter().find_map(|item| match item {
            syn::ImplItem::Fn(function) if function.sig.ident == "run" => Some(function),
            _ => None,
        });
        let run = run.map(|function| Run {
            span: self.range(function.sig.ident.span()),
            taken: function.block.stmts.first().and_then(|statement| self.taken(statement, name)),
        });
        Some(CpuArm { name: name.unraw().to_string(), span: self.range(name.span()), run })
    }

    /// `let Self { … } = self;`, where the type may also be written out.
    fn taken(&self, statement: &syn::Stmt, kernel: &syn::Ident) -> Option<Taken> {
        let syn::Stmt::Local(local) = statement else { return None };
        let syn::Pat::Struct(pattern) = &local.pat else { return None };
        let name = &pattern.path.segments.last()?.ident;
        let mut value = local.init.as_ref()?.expr.as_ref();
        while let syn::Expr::Unary(syn::ExprUnary { expr, .. })
        | syn::Expr::Reference(syn::ExprReference { expr, .. }) = value
        {
            value = expr;
        }
        let is_self = matches!(value, syn::Expr::Path(path) if path.path.is_ident("self"));
        if !is_self || (name != "Self" && name != kernel) {
            return None;
        }
        let fields = pattern.fields.iter().filter_map(|field| {
            let syn::Member::Named(name) = &field.member else { return None };
            let name = name.unraw().to_string();
            Some(Field { name, read: is_read(&field.pat), span: self.range(field.span()) })
        });
        Some(Taken {
            span: self.range(pattern.span()),
            fields: fields.collect(),
            rest: pattern.rest.as_ref().map(|rest| self.range(rest.span())),
        })
    }
}

/// Whether the pattern binds a name that rustc would call unused if nothing read it.
fn is_read(pattern: &syn::Pat) -> bool {
    match pattern {
        syn::Pat::Wild(_) | syn::Pat::Rest(_) => false,
        syn::Pat::Ident(binding) => !binding.ident.to_string().starts_with('_'),
        syn::Pat::Paren(inner) => is_read(&inner.pat),
        syn::Pat::Reference(inner) => is_read(&inner.pat),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> CpuArm {
        let mut arms = read(text).unwrap().0;
        assert_eq!(arms.len(), 1);
        arms.remove(0)
    }

    #[test]
    fn fields_and_what_is_read() {
        let text = "mod inner { impl<'a> crate::CpuArm for super::PickCpu<'a> { fn run(&self) {\n\
                    let PickCpu { a, ref b, c: _, d: _d, mut e, r#type, f: (x, _) } = *self; } } }";
        let arm = only(text);
        assert_eq!((arm.name.as_str(), &text[arm.span.clone()]), ("PickCpu", "PickCpu"));
        let taken = arm.run.unwrap().taken.unwrap();
        let fields: Vec<_> = taken.fields.iter().map(|field| (field.name.as_str(), field.read)).collect();
        let expected = [("a", true), ("b", true), ("c", false), ("d", false), ("e", true), ("type", true), ("f", true)];
        assert_eq!(fields, expected);
        assert_eq!(&text[taken.fields[3].span.clone()], "d: _d");
        assert_eq!(taken.rest, None);
        assert_eq!(line(text, "pick"), Some(1));
        assert_eq!(line(text, "other"), None);
    }

    #[test]
    fn what_does_not_take_self_apart() {
        for body in ["", "let x = 1; let Self { a } = self;", "let Self { a } = other;", "let (a, b) = self;", "self.a"]
        {
            let arm = only(&format!("impl CpuArm for PickCpu {{ fn run(self) {{ {body} }} }}"));
            assert_eq!(arm.run.unwrap().taken, None, "{body}");
        }
        assert_eq!(read("impl Other for PickCpu {} impl PickCpu {}").unwrap(), Arms::default());
        assert_eq!(only("impl CpuArm for PickCpu {}").run, None);
    }

    #[test]
    fn places_count_a_byte_order_mark() {
        let text = "\u{feff}impl CpuArm for PickCpu { fn run(self) { let Self { a, .. } = self; } }";
        let taken = only(text).run.unwrap().taken.unwrap();
        assert_eq!(&text[taken.span], "Self { a, .. }");
        assert_eq!(&text[taken.rest.unwrap()], "..");
    }
}
