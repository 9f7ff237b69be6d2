//! Which parameters of a Triton function are pointers: those that reach a load or a store, directly, through variables and
//! pointer arithmetic, or through another function of the file.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::python::Function;
use super::syntax::{children, walk};

/// What a function does with a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub loaded: bool,
    pub stored: bool,
    /// It is loaded from or stored to as an object (`x.load(…)`), not as an address.
    pub descriptor: bool,
}

/// What a function does with its parameters, by name.
pub type Uses = BTreeMap<String, Use>;

/// A function of another file: its parameters in order, and what it does with them.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    pub params: Vec<String>,
    pub uses: Uses,
}

/// Functions of `tl` that give a pointer made of their first argument.
const SAME_POINTER: [&str; 8] = [
    "make_block_ptr",
    "make_tensor_descriptor",
    "_experimental_make_tensor_descriptor",
    "advance",
    "multiple_of",
    "max_contiguous",
    "cast",
    "broadcast_to",
];

/// All that is known of a file's functions.
pub struct Flow<'a> {
    text: &'a str,
    functions: BTreeMap<&'a str, Node<'a>>,
    imported: &'a BTreeMap<String, Imported>,
    known: RefCell<BTreeMap<&'a str, Uses>>,
    /// Functions being looked at, so that a recursion ends.
    open: RefCell<BTreeSet<&'a str>>,
}

/// One function: its parameters and what is assigned to its variables.
struct Scope<'a> {
    params: Vec<&'a str>,
    assigned: BTreeMap<&'a str, Vec<Node<'a>>>,
}

impl<'a> Flow<'a> {
    pub fn new(text: &'a str, functions: &[Function<'a>], imported: &'a BTreeMap<String, Imported>) -> Flow<'a> {
        let functions = functions.iter().map(|function| (function.name, function.node)).collect();
        Flow { text, functions, imported, known: RefCell::default(), open: RefCell::default() }
    }

    /// The functions of this file, for others that import them.
    pub fn exported(&self) -> BTreeMap<String, Imported> {
        let export = |(name, function): (&&'a str, &Node<'a>)| {
            let params = self.scope(*function).params.into_iter().map(str::to_string).collect();
            ((*name).to_string(), Imported { params, uses: self.uses(name) })
        };
        self.functions.iter().map(export).collect()
    }

    /// A function that is called by its name alone.
    fn known_function(&self, name: &str) -> Option<Imported> {
        match self.functions.get(name) {
            Some(function) => {
                let params = self.scope(*function).params.into_iter().map(str::to_string).collect();
                Some(Imported { params, uses: self.uses(name) })
            }
            None => self.imported.get(name).cloned(),
        }
    }

    /// The functions of the file that `function` calls.
    pub fn called(&self, function: Node<'a>) -> Vec<&'a str> {
        let mut called = Vec::new();
        walk(function, &mut |node| {
            if let Some(callee) = self.callee(node).filter(|name| self.functions.contains_key(name)) {
                called.push(callee);
            }
        });
        called
    }

    /// What the function `name` does with each of its parameters.
    pub fn uses(&self, name: &str) -> Uses {
        let Some((&name, &function)) = self.functions.get_key_value(name) else { return Uses::new() };
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        if !self.open.borrow_mut().insert(name) {
            return Uses::new();
        }
        let scope = self.scope(function);
        let mut uses = Uses::new();
        walk(function, &mut |node| {
            if node.kind() == "call" {
                self.call(node, &scope, &mut uses);
            }
        });
        self.open.borrow_mut().remove(name);
        self.known.borrow_mut().insert(name, uses.clone());
        uses
    }

    fn is_known(&self, name: &str) -> bool {
        self.functions.contains_key(name) || self.imported.contains_key(name)
    }

    fn of(&self, node: Node) -> &'a str {
        &self.text[node.byte_range()]
    }

    /// The name of a called function that stands without a module.
    fn callee(&self, call: Node<'a>) -> Option<&'a str> {
        let function = call.child_by_field_name("function").filter(|_| call.kind() == "call")?;
        (function.kind() == "identifier").then(|| self.of(function))
    }

    fn scope(&self, function: Node<'a>) -> Scope<'a> {
        let params = function.child_by_field_name("parameters").map_or(vec![], |params| children(params).collect());
        let name = |node: Node<'a>| match node.kind() {
            "identifier" => Some(self.of(node)),
            "comment" => None,
            _ => Some(self.of(node.child_by_field_name("name").or_else(|| node.named_child(0))?)),
        };
        let mut scope = Scope { params: params.into_iter().filter_map(name).collect(), assigned: BTreeMap::new() };
        walk(function, &mut |node| {
            let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
            else {
                return;
            };
            if node.kind() != "assignment" {
                return;
            }
            if left.kind() == "identifier" {
                scope.assigned.entry(self.of(left)).or_default().push(right);
                return;
            }
            let (names, values): (Vec<_>, Vec<_>) = (children(left).collect(), children(right).collect());
            let paired = matches!(right.kind(), "expression_list" | "tuple") && names.len() == values.len();
            for (at, name) in names.into_iter().enumerate().filter(|(_, name)| name.kind() == "identifier") {
                scope.assigned.entry(self.of(name)).or_default().push(if paired { values[at] } else { right });
            }
        });
        scope
    }

    fn call(&self, call: Node<'a>, scope: &Scope<'a>, uses: &mut Uses) {
        let Some(function) = call.child_by_field_name("function") else { return };
        let Some(arguments) = call.child_by_field_name("arguments") else { return };
        let mut mark = |node: Node<'a>, used: Use| {
            for name in self.bases(node, scope, &mut BTreeSet::new()) {
                let known = uses.entry(name.to_string()).or_default();
                known.loaded |= used.loaded;
                known.stored |= used.stored;
                known.descriptor |= used.descriptor;
            }
        };
        match function.kind() {
            "identifier" if self.is_known(self.of(function)) => {
                let theirs = self.known_function(self.of(function)).unwrap_or_default();
                let mut positions = theirs.params.iter();
                for argument in children(arguments) {
                    let (name, value) = match argument.kind() {
                        "comment" => continue,
                        "keyword_argument" => {
                            let name = argument.child_by_field_name("name").map_or("", |name| self.of(name));
                            (name, argument.child_by_field_name("value").unwrap_or(argument))
                        }
                        _ => (positions.next().map_or("", String::as_str), argument),
                    };
                    if let Some(used) = theirs.uses.get(name) {
                        mark(value, *used);
                    }
                }
            }
            "identifier" => {
                if let Some(used) = access_of(self.of(function))
                    && let Some(pointer) = self.argument(arguments, "pointer")
                {
                    mark(pointer, used);
                }
            }
            "attribute" => {
                let (Some(object), Some(name)) =
                    (function.child_by_field_name("object"), function.child_by_field_name("attribute"))
                else {
                    return;
                };
                let Some(used) = access_of(self.of(name)) else { return };
                let is_module =
                    matches!(self.of(object), "tl" | "language" | "triton.language" | "tle" | "ttgl" | "gl");
                if is_module {
                    if let Some(pointer) = self.argument(arguments, "pointer") {
                        mark(pointer, used);
                    }
                } else {
                    let direct = object.kind() == "identifier"
                        && scope.params.contains(&self.of(object))
                        && !scope.assigned.contains_key(self.of(object));
                    mark(object, Use { descriptor: direct, ..used });
                }
            }
            _ => {}
        }
    }

    /// The first positional argument, or the one that is called `name`.
    fn argument(&self, arguments: Node<'a>, name: &str) -> Option<Node<'a>> {
        let named = children(arguments)
            .filter(|argument| argument.kind() == "keyword_argument")
            .find(|argument| argument.child_by_field_name("name").is_some_and(|node| self.of(node) == name));
        let positional =
            children(arguments).find(|argument| !matches!(argument.kind(), "keyword_argument" | "comment"));
        named.and_then(|argument| argument.child_by_field_name("value")).or(positional)
    }

    /// The parameters whose address `node` may be made of. In a sum that is the left-most, unless names say otherwise.
    fn bases(&self, node: Node<'a>, scope: &Scope<'a>, seen: &mut BTreeSet<&'a str>) -> Vec<&'a str> {
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "identifier" => {
                let name = self.of(node);
                if !seen.insert(name) {
                    return vec![];
                }
                let mut found: Vec<&str> = scope.params.iter().copied().filter(|param| *param == name).collect();
                if found.is_empty() {
                    let values = scope.assigned.get(name).map_or(&[][..], Vec::as_slice);
                    found = values.iter().flat_map(|value| self.bases(*value, scope, seen)).collect();
                }
                seen.remove(name);
                found
            }
            "binary_operator" if field("operator").is_some_and(|operator| matches!(operator.kind(), "+" | "-")) => {
                let mut side = |name| field(name).map_or(vec![], |node| self.bases(node, scope, seen));
                let (left, right) = (side("left"), side("right"));
                let pointers =
                    |side: &[&str]| side.iter().any(|name| super::strides::base(name) != crate::words::snake(name));
                if left.is_empty() || (!pointers(&left) && pointers(&right)) { right } else { left }
            }
            "parenthesized_expression" => node.named_child(0).map_or(vec![], |inner| self.bases(inner, scope, seen)),
            "conditional_expression" => {
                let sides = [node.named_child(0), node.named_child(2)];
                sides.into_iter().flatten().flat_map(|side| self.bases(side, scope, seen)).collect()
            }
            "subscript" => field("value").map_or(vec![], |value| self.bases(value, scope, seen)),
            "call" => self.bases_of_call(node, scope, seen),
            _ => vec![],
        }
    }

    fn bases_of_call(&self, call: Node<'a>, scope: &Scope<'a>, seen: &mut BTreeSet<&'a str>) -> Vec<&'a str> {
        let (Some(function), Some(arguments)) =
            (call.child_by_field_name("function"), call.child_by_field_name("arguments"))
        else {
            return vec![];
        };
        let name = function.child_by_field_name("attribute").map_or(self.of(function), |name| self.of(name));
        if SAME_POINTER.contains(&name) {
            return self.argument(arguments, "base").map_or(vec![], |base| self.bases(base, scope, seen));
        }
        if name == "where" {
            let sides: Vec<_> = children(arguments).skip(1).take(2).collect();
            return sides.into_iter().flat_map(|side| self.bases(side, scope, seen)).collect();
        }
        match function.child_by_field_name("object") {
            Some(object) if name == "to" => self.bases(object, scope, seen),
            _ => vec![],
        }
    }
}

/// What a function of this name does with the address that it is given.
fn access_of(name: &str) -> Option<Use> {
    let (loaded, stored) = match name {
        "load" | "load_tensor_descriptor" | "gather" | "_experimental_descriptor_load" => (true, false),
        "store" | "store_tensor_descriptor" | "scatter" | "_experimental_descriptor_store" => (false, true),
        name if name.starts_with("atomic_") => (true, true),
        _ => return None,
    };
    Some(Use { loaded, stored, descriptor: false })
}
