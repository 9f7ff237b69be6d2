//! Names and texts as the registry writes them, made of those that sources have.

/// `vectorAdd`, `_add_kernel`, `01-vector-add` or `Bm1` in snake case.
pub fn snake(name: &str) -> String {
    let mut words = String::new();
    let letters: Vec<char> = name.chars().collect();
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let starts = letter.is_uppercase()
            && (before.is_some_and(|c| c.is_lowercase() || c.is_ascii_digit())
                || before.is_some_and(char::is_uppercase) && letters.get(at + 1).is_some_and(|c| c.is_lowercase()));
        if starts {
            words.push('_');
        }
        words.push(if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' });
    }
    let words: Vec<&str> = words.split('_').filter(|word| !word.is_empty()).collect();
    // A name begins with a letter.
    let start = words.iter().position(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
    match start {
        Some(start) => words[start..].join("_"),
        None => format!("x{}", words.join("_")),
    }
}

/// `text` as a YAML value, in quotes where YAML or the flow style would read it otherwise.
pub fn yaml(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '(')
        && !text.contains([',', '{', '}', '[', ']', '"', '\\', '\n', '\t'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && (text.contains(|c: char| c.is_ascii_alphabetic()) && !matches!(text, "true" | "false" | "null"));
    if plain { text.to_string() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use tidelock_codegen::names;

    use super::*;

    #[test]
    fn names_become_snake_case() {
        let names = [
            "vectorAdd",
            "_add_kernel",
            "01-vector-add",
            "Bm1",
            "MASK_VALUE",
            "HTTPServer",
            "X",
            "__a__b",
            "06.5",
            "d_A",
        ];
        let snakes = names.map(snake);
        assert_eq!(
            snakes,
            ["vector_add", "add_kernel", "vector_add", "bm1", "mask_value", "http_server", "x", "a_b", "x06_5", "d_a"]
        );
        assert!(snakes.iter().all(|name| names::is_snake(name)));
    }

    #[test]
    fn text_is_quoted_where_it_must_be() {
        assert_eq!(yaml("The rows."), "The rows.");
        for text in ["a, b", "a: b", "1.5", "- a", "a #b", "[a]", "true", "x\ny", ""] {
            assert_eq!(yaml(text), serde_json::to_string(text).unwrap(), "{text}");
        }
    }
}
