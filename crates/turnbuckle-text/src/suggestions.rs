//! Similar names, for messages about an unknown name.

/// The number of suggestions for an unknown name.
const MAX_SUGGESTIONS: usize = 3;

/// The maximum length of a compared name in bytes. The time of a comparison grows with the square of the length.
const MAX_NAME_BYTES: usize = 128;

/// Returns the names that are most similar to `name`, most similar first; at most three.
///
/// ```
/// use turnbuckle_text::suggestions::most_similar;
///
/// let names = ["project_path", "query", "limit"].map(str::to_owned);
/// assert_eq!(most_similar("projectPath", names), ["project_path"]);
/// ```
pub fn most_similar(name: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    if name.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let name = name.to_lowercase();
    let mut similar: Vec<_> = names
        .into_iter()
        .filter_map(|other| Some((distance(&name, &other)?, other)))
        .collect();
    similar.sort();
    similar.dedup();
    let best = similar.into_iter().take(MAX_SUGGESTIONS);
    best.map(|(_, other)| other).collect()
}

/// Returns the edit distance if it is small. A name that contains the other counts as similar.
fn distance(name: &str, other: &str) -> Option<usize> {
    if other.len() > MAX_NAME_BYTES {
        return None;
    }
    let edits = strsim::levenshtein(name, other);
    let max_edits = usize::max(name.len(), other.len()) / 3;
    if edits <= max_edits {
        Some(edits)
    } else if name.len() > 3 && other.contains(name) {
        Some(max_edits + 1)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similar(name: &str) -> Vec<String> {
        most_similar(name, ["content", "project_path", "path"].map(str::to_owned))
    }

    #[test]
    fn the_most_similar_name_is_first() {
        assert_eq!(similar("path"), ["path", "project_path"]);
        assert_eq!(similar("contents"), ["content"]);
        assert_eq!(similar("colour"), [""; 0]);
    }

    #[test]
    fn names_with_few_edits_and_names_that_contain_the_other_are_similar() {
        assert_eq!(distance("base.pong", "base.ping"), Some(1));
        assert_eq!(distance("kitten", "sitting"), None);
        assert_eq!(distance("ping", "base.ping"), Some(4));
    }

    #[test]
    fn a_name_that_is_too_long_is_not_compared() {
        let long = "x".repeat(1_000_000);

        assert_eq!(similar(&long), [""; 0]);
        assert_eq!(most_similar("path", [long]), [""; 0]);
    }

    #[test]
    fn only_small_distances_and_contained_names_are_similar() {
        assert_eq!(distance("base.pong", "base.ping"), Some(1));
        assert_eq!(distance("kitten", "sitting"), None);
        assert_eq!(distance("ping", "base.ping"), Some(4));
    }
}
