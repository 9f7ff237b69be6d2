//! Triton kernels of a Python source, read from its syntax tree; no Python is needed.

use std::collections::{BTreeMap, BTreeSet};

use tidelock_codegen::model::DType;
use tree_sitter::Node;

use super::flow::{Flow, Imported, Use};
use super::launch::{Launch, launches};
use super::source::{Kernel, Mistake, Param, Role, access, dtype, dtype_of};
use super::syntax::{children, explain, first_error, literal, parse, walk};

/// A function with `@triton.jit`.
#[derive(Clone, Copy)]
pub struct Function<'a> {
    /// Its name, after `Class.` for a static method.
    pub name: &'a str,
    pub class: Option<&'a str>,
    pub node: Node<'a>,
}

/// How far modules that import each other are followed.
const MAX_DEPTH: usize = 4;

/// The kernels of `text`: functions with `@triton.jit` that are launched, or that neither return anything nor are called by
/// other such functions. `beside` gives the text of a module that lies beside the file.
pub fn read(text: &str, beside: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Kernel>, Mistake> {
    let tree = parse(text)?;
    if let Some(broken) = first_error(tree.root_node()) {
        return Err(explain(broken, text));
    }
    let source = Source { text };
    let functions = source.functions(tree.root_node());
    let launched = launches(tree.root_node(), text);
    let imported = source.imported(tree.root_node(), beside, 0);
    let flow = Flow::new(text, &functions, &imported);
    let called: BTreeSet<&str> = functions.iter().flat_map(|function| flow.called(function.node)).collect();
    let is_kernel = |function: &Function| {
        launched.contains_key(function.name)
            || !called.contains(function.name) && !source.returns_something(function.node)
    };
    let kernels = functions.iter().filter(|function| is_kernel(function));
    Ok(kernels.map(|function| source.kernel(function, &flow, launched.get(function.name))).collect())
}

struct Source<'a> {
    text: &'a str,
}

impl<'a> Source<'a> {
    fn of(&self, node: Node) -> &'a str {
        &self.text[node.byte_range()]
    }

    /// The functions with `@triton.jit`, at the top, in classes, and under conditions.
    fn functions(&self, root: Node<'a>) -> Vec<Function<'a>> {
        let mut found = Vec::new();
        let mut waiting = vec![(root, None)];
        while let Some((node, class)) = waiting.pop() {
            let class = match node.kind() {
                "class_definition" => node.child_by_field_name("name").map(|name| self.of(name)),
                "function_definition" => continue, // what is nested in another function cannot be imported by name
                _ => class,
            };
            if node.kind() == "decorated_definition" && self.is_jit(node) {
                let definition = node.child_by_field_name("definition");
                let function = definition.filter(|definition| definition.kind() == "function_definition");
                if let Some(name) = function.and_then(|function| function.child_by_field_name("name")) {
                    found.push(Function { name: self.of(name), class, node: function.unwrap_or(node) });
                    continue;
                }
            }
            waiting.extend(children(node).map(|child| (child, class)).collect::<Vec<_>>().into_iter().rev());
        }
        found
    }

    /// What the functions do that `from MODULE import NAME` takes from files beside this one, whether at the top or below.
    fn imported(
        &self,
        root: Node<'a>,
        beside: &dyn Fn(&str) -> Option<String>,
        depth: usize,
    ) -> BTreeMap<String, Imported> {
        let mut found = BTreeMap::new();
        let mut statements = Vec::new();
        walk(root, &mut |node| {
            if node.kind() == "import_from_statement" {
                statements.push(node);
            }
        });
        for statement in statements.into_iter().filter(|_| depth < MAX_DEPTH) {
            let Some(module) = statement.child_by_field_name("module_name") else { continue };
            let module = self.of(module).rsplit('.').next().unwrap_or_default();
            let Some((text, tree)) = beside(module).and_then(|text| parse(&text).ok().map(|tree| (text, tree))) else {
                continue;
            };
            let other = Source { text: &text };
            let functions = other.functions(tree.root_node());
            let theirs = other.imported(tree.root_node(), beside, depth + 1);
            let mut exported = Flow::new(&text, &functions, &theirs).exported();
            for name in children(statement).skip(1) {
                let (from, to) = match name.kind() {
                    "aliased_import" => (name.child_by_field_name("name"), name.child_by_field_name("alias")),
                    _ => (Some(name), Some(name)),
                };
                let (Some(from), Some(to)) = (from, to) else { continue };
                if let Some(function) = exported.remove(self.of(from)) {
                    found.insert(self.of(to).to_string(), function);
                }
            }
        }
        found
    }

    /// Whether a constant is a Boolean or an integer, where its use says so.
    fn constant_type(&self, function: Node<'a>, name: &str) -> Option<DType> {
        // Launch options of Triton's own.
        let option = matches!(name, "num_warps" | "num_stages" | "num_ctas");
        let (mut boolean, mut integer) = (false, option);
        walk(function, &mut |node| {
            let Some(parent) = node.parent().filter(|_| node.kind() == "identifier" && self.of(node) == name) else {
                return;
            };
            let is = |field: &str| parent.child_by_field_name(field) == Some(node);
            match parent.kind() {
                "if_statement" | "elif_clause" | "while_statement" => boolean |= is("condition"),
                "not_operator" | "boolean_operator" => boolean = true,
                "conditional_expression" => boolean |= parent.named_child(1) == Some(node),
                "argument_list" => {
                    let callee = parent.parent().and_then(|call| call.child_by_field_name("function"));
                    let callee = callee.map_or("", |callee| self.of(callee)).rsplit('.').next().unwrap_or_default();
                    integer |= matches!(callee, "arange" | "range" | "static_range");
                }
                "binary_operator" => {
                    let operator = parent.child_by_field_name("operator").map_or("", |operator| self.of(operator));
                    integer |= matches!(operator, "//" | "%" | "<<" | ">>");
                }
                _ => {}
            }
        });
        match (boolean, integer) {
            (true, false) => Some(DType::Bool),
            (false, true) => Some(DType::I32),
            _ => None,
        }
    }

    /// Whether a decorator is `@triton.jit`, with or without arguments.
    fn is_jit(&self, decorated: Node<'a>) -> bool {
        children(decorated).filter(|child| child.kind() == "decorator").any(|decorator| {
            let name = self.of(decorator).trim_start_matches('@').split('(').next().unwrap_or_default().trim();
            matches!(name, "jit" | "triton.jit" | "triton.runtime.jit" | "tl.jit")
        })
    }

    fn returns_something(&self, function: Node<'a>) -> bool {
        let mut found = false;
        walk(function, &mut |node| found |= node.kind() == "return_statement" && node.named_child_count() > 0);
        found
    }

    fn kernel(&self, function: &Function<'a>, flow: &Flow<'a>, launch: Option<&Launch>) -> Kernel {
        let uses = flow.uses(function.name);
        let launch = launch.cloned().unwrap_or_default();
        let mut notes = Vec::new();
        let params = function.node.child_by_field_name("parameters");
        let declared: Vec<Node> = params.map_or(vec![], |params| children(params).collect());
        let comments = self.comments(function.node);
        let mut read = Vec::new();
        for node in declared {
            match node.kind() {
                "identifier" | "typed_parameter" | "default_parameter" | "typed_default_parameter" => {}
                "comment" => continue,
                "list_splat_pattern" | "dictionary_splat_pattern" => {
                    notes.push(format!(
                        "`{}` stands for any number of arguments, which a registry cannot hold",
                        self.of(node)
                    ));
                    continue;
                }
                _ => continue,
            }
            let name = node.child_by_field_name("name").or_else(|| node.named_child(0)).unwrap_or(node);
            if matches!(name.kind(), "list_splat_pattern" | "dictionary_splat_pattern") {
                notes.push(format!(
                    "`{}` stands for any number of arguments, which a registry cannot hold",
                    self.of(node)
                ));
                continue;
            }
            let name = self.of(name);
            let comment = comments.get(&node.end_position().row).cloned();
            read.push(self.param(name, node, function.node, &uses, &launch, comment));
        }
        let name = function.node.child_by_field_name("name").unwrap_or(function.node);
        Kernel {
            function: function.class.map_or(String::new(), |class| format!("{class}.")) + function.name,
            line: name.start_position().row + 1,
            doc: self.docstring(function.node),
            grid: launch.grid,
            num_warps: launch.num_warps,
            dynamic_shared: false,
            params: read,
            notes,
        }
    }

    fn param(
        &self,
        name: &str,
        node: Node<'a>,
        function: Node<'a>,
        uses: &BTreeMap<String, Use>,
        launch: &Launch,
        comment: Option<String>,
    ) -> Param {
        let annotation = node.child_by_field_name("type").map_or("", |node| self.of(node)).trim_matches(['"', '\'']);
        let default = node.child_by_field_name("value").and_then(|node| literal(node, self.text));
        let used = uses.get(name).copied().unwrap_or_default();
        let is_pointer =
            annotation.starts_with('*') || annotation.contains("pointer_type") || annotation.contains("Tensor");
        let is_called_so =
            ["_ptr", "_ptrs", "_pointer", "Ptr"].iter().any(|end| name.ends_with(end)) || name.starts_with("ptr_");
        let (mut note, element) = (None, dtype(annotation));
        let role = if annotation.ends_with("constexpr") {
            let value = launch.constants.get(name).cloned().or(default);
            let known = value.as_ref().map(dtype_of);
            Role::Constant { dtype: known.or_else(|| self.constant_type(function, name)), value }
        } else if used.loaded || used.stored || is_pointer || is_called_so {
            if used.descriptor {
                note = Some("used as a tensor descriptor, which a launch cannot pass: pass the tensor".to_string());
            }
            Role::Tensor { element, access: access(used.loaded, used.stored) }
        } else {
            Role::Scalar { element, default }
        };
        Param { name: name.to_string(), role, comment, note }
    }

    /// Comments within the parentheses of a declaration, by the row of what they stand behind.
    fn comments(&self, function: Node<'a>) -> BTreeMap<usize, String> {
        let mut found = BTreeMap::new();
        let mut add = |node: Node<'a>| {
            let row = node.start_position().row;
            let before = self.text[..node.start_byte()].rsplit('\n').next().unwrap_or_default();
            // A comment on a line of its own may head a whole group of parameters.
            if !before.trim().is_empty() {
                found.insert(row, self.of(node).trim_start_matches('#').trim().to_string());
            }
        };
        if let Some(params) = function.child_by_field_name("parameters") {
            walk(params, &mut |node| {
                if node.kind() == "comment" {
                    add(node);
                }
            });
        }
        found
    }

    /// The first paragraph of a function's docstring.
    fn docstring(&self, function: Node<'a>) -> Option<String> {
        let first = function.child_by_field_name("body")?.named_child(0)?;
        let string =
            first.named_child(0).filter(|node| first.kind() == "expression_statement" && node.kind() == "string")?;
        let content = children(string).find(|node| node.kind() == "string_content")?;
        let paragraph = self.of(content).trim().split("\n\n").next()?;
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        (!words.is_empty()).then_some(words)
    }
}
