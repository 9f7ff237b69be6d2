//! Every code of this stage has its section in `explain/drift.md` or `explain/c.md`.

use std::collections::BTreeSet;

#[test]
fn the_codes_in_the_sources_are_those_explained() {
    let sources = [
        include_str!("../facts.rs"),
        include_str!("mod.rs"),
        include_str!("arm.rs"),
        include_str!("c.rs"),
        include_str!("names.rs"),
        include_str!("ptx.rs"),
        include_str!("sources.rs"),
        include_str!("variants.rs"),
    ];
    let codes = |text: &'static str, mark: &'static str| {
        text.match_indices(mark).filter_map(move |(at, _)| text.get(at + mark.len() - 3..at + mark.len() + 3))
    };
    let used: BTreeSet<&str> = sources.iter().flat_map(|text| codes(text, "\"TL0")).collect();
    let pages = [include_str!("../explain/drift.md"), include_str!("../explain/c.md")];
    let explained: Vec<&str> = pages.iter().flat_map(|page| codes(page, "\n## TL0")).collect();
    assert!(explained.is_sorted_by(|a, b| a < b), "{explained:?}");
    assert_eq!(used, explained.into_iter().collect());
}
