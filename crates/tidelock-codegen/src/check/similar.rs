//! What a misspelt name may have meant.

/// The candidate that is most like `name`, if any is like it.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = candidates.into_iter().filter(|candidate| *candidate != name && alike(name, candidate));
    near.min_by_key(|candidate| distance(name, candidate))
}

/// Whether one may be a misspelling of the other.
pub fn alike(a: &str, b: &str) -> bool {
    let longest = a.len().max(b.len());
    // Longer names are compared with nothing, which also bounds the time that hostile ones take.
    longest <= 100 && distance(a, b) <= (longest / 3).max(1)
}

/// Number of insertions, removals and substitutions between two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// ` did you mean …` for a help line, or nothing.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(name, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        assert_eq!(closest("draft_prob", ["draft_probs", "target_probs"]), Some("draft_probs"));
        assert_eq!(closest("inv_q", ["vocab_size"]), None);
        assert_eq!(closest("x", ["x"]), None);
        assert_eq!(closest(&"a".repeat(1_000_000), ["a"]), None);
    }
}
