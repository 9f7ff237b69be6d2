//! The long explanation of each code, for `tidelock explain TL0103`.
//!
//! The texts are Markdown pages, one a stage, with a section `## CODE Title` for each code.

/// The pages; a stage with codes of its own adds one.
const PAGES: [&str; 4] = [
    include_str!("explain/registry.md"),
    include_str!("explain/drift.md"),
    include_str!("explain/author.md"),
    include_str!("explain/c.md"),
];

/// What there is to say about a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The rule in a few words.
    pub title: &'static str,
    /// Why there is such a rule, and often an example of how to keep it, in Markdown.
    pub text: &'static str,
}

/// Every code that is explained, in order.
pub fn codes() -> impl Iterator<Item = &'static str> {
    sections().map(|(code, _)| code)
}

/// The explanation of `code`.
pub fn explain(code: &str) -> Option<Explanation> {
    sections().find(|(known, _)| *known == code).map(|(_, explanation)| explanation)
}

fn sections() -> impl Iterator<Item = (&'static str, Explanation)> {
    PAGES.iter().flat_map(|page| page.split("\n## ").skip(1)).map(|section| {
        let (heading, text) = section.split_once('\n').unwrap_or((section, ""));
        let (code, title) = heading.split_once(' ').unwrap_or((heading, ""));
        (code, Explanation { title: title.trim(), text: text.trim() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_have_a_text() {
        assert!(codes().is_sorted_by(|a, b| a < b), "{:?}", codes().collect::<Vec<_>>());
        for (code, Explanation { title, text }) in sections() {
            assert!(code.len() == 6 && code.starts_with("TL") && code[2..].parse::<u16>().is_ok(), "{code}");
            assert!(!title.is_empty() && !text.is_empty(), "{code} has no text");
        }
    }

    #[test]
    fn a_code_is_found() {
        assert_eq!(explain("TL0103").unwrap().title, "A key is not known");
        assert_eq!(explain("TL9999"), None);
    }
}
