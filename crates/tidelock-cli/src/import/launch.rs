//! How a source launches its kernels: `kernel[grid](…, BLOCK_SIZE=1024, num_warps=4)`. Only literals are taken, and only
//! where all launches of a kernel agree.

use std::collections::BTreeMap;

use tidelock_codegen::model::Literal;
use tree_sitter::Node;

use super::syntax::{children, literal, walk};

/// What all launches of a kernel have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// The grid, in the source's words.
    pub grid: Option<String>,
    /// Warps of a block.
    pub num_warps: Option<u32>,
    /// Keyword arguments that are literals.
    pub constants: BTreeMap<String, Literal>,
}

/// The launches in a file, by kernel.
pub fn launches<'a>(root: Node<'a>, text: &'a str) -> BTreeMap<&'a str, Launch> {
    let mut found: BTreeMap<&str, Vec<Launch>> = BTreeMap::new();
    walk(root, &mut |node| {
        if let Some((name, launch)) = launch(node, text) {
            found.entry(name).or_default().push(launch);
        }
    });
    found.into_iter().map(|(name, launches)| (name, agreed(launches))).collect()
}

fn launch<'a>(call: Node<'a>, text: &'a str) -> Option<(&'a str, Launch)> {
    let subscript =
        call.child_by_field_name("function").filter(|f| call.kind() == "call" && f.kind() == "subscript")?;
    let kernel = subscript.child_by_field_name("value")?;
    let name = match kernel.kind() {
        "identifier" => kernel,
        "attribute" => kernel.child_by_field_name("attribute")?,
        _ => return None,
    };
    let grid = subscript.child_by_field_name("subscript").map(|grid| text[grid.byte_range()].to_string());
    let mut launch =
        Launch { grid: grid.map(|grid| grid.split_whitespace().collect::<Vec<_>>().join(" ")), ..Launch::default() };
    let arguments = call.child_by_field_name("arguments")?;
    for argument in children(arguments).filter(|argument| argument.kind() == "keyword_argument") {
        let name = argument.child_by_field_name("name").map_or("", |node| &text[node.byte_range()]);
        let Some(value) = argument.child_by_field_name("value").and_then(|node| literal(node, text)) else { continue };
        match value {
            Literal::Int(warps) if name == "num_warps" => launch.num_warps = u32::try_from(warps).ok(),
            value => _ = launch.constants.insert(name.to_string(), value),
        }
    }
    Some((&text[name.byte_range()], launch))
}

fn agreed(launches: Vec<Launch>) -> Launch {
    let mut launches = launches.into_iter();
    let mut agreed = launches.next().unwrap_or_default();
    for other in launches {
        agreed.grid = agreed.grid.filter(|grid| Some(grid) == other.grid.as_ref());
        agreed.num_warps = agreed.num_warps.filter(|warps| Some(*warps) == other.num_warps);
        agreed.constants.retain(|name, value| other.constants.get(name) == Some(value));
    }
    agreed
}
