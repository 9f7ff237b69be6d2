//! Python as tree-sitter's syntax tree, and what every reader of it needs.

use tidelock_codegen::model::Literal;
use tree_sitter::{Node, Parser, Tree};

use super::source::Mistake;

/// What is wrong at `span`.
pub fn mistake(message: &str, span: std::ops::Range<usize>) -> Mistake {
    Mistake { language: "Python", message: message.to_string(), span }
}

/// The tree of `text`, which may have errors.
pub fn parse(text: &str) -> Result<Tree, Mistake> {
    let mut parser = Parser::new();
    let language = tree_sitter_python::LANGUAGE.into();
    parser.set_language(&language).map_err(|error| mistake(&error.to_string(), 0..0))?;
    parser.parse(text, None).ok_or_else(|| mistake("the parser gave up", 0..0))
}

/// The children of `node` that have names in the grammar.
pub fn children<'a>(node: Node<'a>) -> impl Iterator<Item = Node<'a>> {
    (0..node.named_child_count()).filter_map(move |at| node.named_child(at))
}

/// `node` and all below it, in the order of the text.
pub fn walk<'a>(node: Node<'a>, visit: &mut impl FnMut(Node<'a>)) {
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        visit(node);
        let below: Vec<_> = (0..node.child_count()).filter_map(|at| node.child(at)).collect();
        waiting.extend(below.into_iter().rev());
    }
}

/// The first place that is no Python.
pub fn first_error(root: Node) -> Option<Node> {
    let mut found = None;
    if root.has_error() {
        walk(root, &mut |node| {
            if found.is_none() && (node.is_error() || node.is_missing()) {
                found = Some(node);
            }
        });
    }
    found
}

/// What is wrong at `broken`: a bracket that is never closed, if there is one.
pub fn explain(broken: Node, text: &str) -> Mistake {
    let mut open: Vec<Node> = Vec::new();
    walk(broken, &mut |node| match node.kind() {
        "(" | "[" | "{" => open.push(node),
        ")" | "]" | "}" => _ = open.pop(),
        _ => {}
    });
    if let Some(bracket) = open.first() {
        return mistake(&format!("`{}` is never closed", bracket.kind()), bracket.byte_range());
    }
    if broken.is_missing() {
        return mistake(&format!("expected {} here", broken.kind()), broken.byte_range());
    }
    let start = broken.start_byte();
    let line = text[broken.byte_range()].lines().next().map_or(0, str::len);
    mistake("not Python", start..start + line)
}

/// A literal that a registry can hold.
pub fn literal(node: Node, text: &str) -> Option<Literal> {
    let text = text.get(node.byte_range())?.replace('_', "");
    match node.kind() {
        "true" => Some(Literal::Bool(true)),
        "false" => Some(Literal::Bool(false)),
        "integer" => text.parse().ok().map(Literal::Int),
        "float" => text.parse().ok().map(Literal::Float),
        "unary_operator" => match text.strip_prefix('-')?.trim() {
            number if number.contains(['.', 'e', 'E']) => {
                number.parse().ok().map(|number: f64| Literal::Float(-number))
            }
            number => number.parse().ok().map(|number: i64| Literal::Int(-number)),
        },
        "parenthesized_expression" => literal(node.named_child(0)?, &text),
        _ => None,
    }
}
