//! The public signature of each generated wrapper, pinned, so that a reviewer sees what a change of the registry does to callers.

use syn::{File, ImplItem, Item, Visibility};

/// The generated module, less bodies and less everything that a caller cannot name.
fn public_items(file: File) -> Vec<Item> {
    file.items.into_iter().filter_map(public).collect()
}

fn public(mut item: Item) -> Option<Item> {
    match &mut item {
        Item::Struct(structure) if !is_public(&structure.vis) => return None,
        Item::Trait(definition) if !is_public(&definition.vis) => return None,
        Item::Impl(implementation) => {
            implementation.items.retain_mut(|item| match item {
                ImplItem::Fn(function) => {
                    function.block.stmts.clear();
                    function.attrs.retain(|attribute| !attribute.path().is_ident("inline"));
                    is_public(&function.vis)
                }
                _ => true,
            });
        }
        Item::Struct(_) | Item::Trait(_) => {}
        _ => return None,
    }
    Some(item)
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The type that an item is about, by which items are told apart.
fn subject(item: &Item) -> String {
    let text = match item {
        Item::Struct(structure) => structure.ident.to_string(),
        Item::Trait(definition) => definition.ident.to_string(),
        Item::Impl(implementation) => match &implementation.trait_ {
            Some((_, path, _)) => path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default(),
            None => match &*implementation.self_ty {
                syn::Type::Path(path) => {
                    path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
                }
                _ => String::new(),
            },
        },
        _ => String::new(),
    };
    text.to_lowercase()
}

/// Less the line numbers of the registry, which move with every entry above.
fn without_lines(text: &str) -> String {
    let mut parts = text.split(".yaml:");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + ".yaml" + part.trim_start_matches(|letter: char| letter.is_ascii_digit()))
}

#[test]
fn every_wrapper_has_the_pinned_signature() {
    let text = include_str!(concat!(env!("OUT_DIR"), "/kernels.rs"));
    let items = public_items(syn::parse_file(text).expect("generated code parses"));
    let mut seen = 0;
    for kernel in tidelock::REGISTRY {
        let stem = kernel.name.replace('_', "");
        // A kernel's items begin with its name; of two kernels whose names begin alike, the longer takes its own.
        let longer: Vec<_> = tidelock::REGISTRY
            .iter()
            .map(|other| other.name.replace('_', ""))
            .filter(|other| other.len() > stem.len() && other.starts_with(&stem))
            .collect();
        let mine = |item: &&Item| {
            let subject = subject(item);
            subject.starts_with(&stem) && !longer.iter().any(|other| subject.starts_with(other))
        };
        let items: Vec<_> = items.iter().filter(mine).cloned().collect();
        seen += items.len();
        let file = File { shebang: None, attrs: vec![], items };
        insta::assert_snapshot!(kernel.name, without_lines(&prettyplease::unparse(&file)));
    }
    assert_eq!(seen, items.len(), "each public item belongs to one kernel");
}
