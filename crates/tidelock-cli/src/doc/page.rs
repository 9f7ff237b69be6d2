//! What every page has: its head, the way back to the index, and the style.

use maud::{DOCTYPE, Markup, html};

/// The style of all pages, dark where the reader's system is.
pub const STYLE: &str = include_str!("style.css");

/// A page at `depth` folders below the index.
pub fn page(title: &str, depth: usize, body: &Markup) -> String {
    let up = "../".repeat(depth);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href={ (up) "style.css" };
            }
            body {
                header { nav aria-label="Site" { a href={ (up) "index.html" } { "Kernels" } } }
                main { (body) }
                footer { "Made by " code { "tidelock doc" } " from the registry, the compiled kernels and their checks." }
            }
        }
    };
    page.into_string()
}

/// A table that scrolls by itself where the window is narrow.
pub fn table(caption: &str, header: &[&str], rows: &[Vec<Markup>]) -> Markup {
    html! {
        div.scroll role="region" aria-label=(caption) tabindex="0" {
            table {
                thead { tr { @for name in header { th scope="col" { (name) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                @if index == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
