//! Which names somebody may have meant.

/// So many names are offered.
const MOST: usize = 3;

/// Returns the names that are near, nearest first.
pub(super) fn of(name: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let name = name.to_lowercase();
    let mut near: Vec<_> = names
        .filter_map(|other| Some((distance(&name, &other)?, other)))
        .collect();
    near.sort();
    near.dedup();
    let best = near.into_iter().take(MOST);
    best.map(|(_, other)| other).collect()
}

/// Returns how many letters have to be changed, if they are few; a name that contains the other is near, too.
fn distance(name: &str, other: &str) -> Option<usize> {
    let edits = edits(name, other);
    let few = usize::max(name.len(), other.len()) / 3;
    match edits <= few {
        true => Some(edits),
        false if name.len() > 3 && other.contains(name) => Some(few + 1),
        false => None,
    }
}

/// The distance of Levenshtein.
fn edits(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, left) in one.bytes().enumerate() {
        let mut above_left = row[0];
        row[0] = at + 1;
        for (to, right) in other.bytes().enumerate() {
            let changed = above_left + usize::from(left != right);
            above_left = row[to + 1];
            row[to + 1] = changed.min(row[to] + 1).min(above_left + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let names = [
            "tools.unknown-tool",
            "base.unknown-method",
            "tools",
            "roots",
        ];
        let near = |name| of(name, names.iter().map(|&name| name.to_owned()));

        assert_eq!(near("base.unknown-metod"), ["base.unknown-method"]);
        assert_eq!(near("tool"), ["tools", "tools.unknown-tool"]);
        assert_eq!(
            near("unknown"),
            ["base.unknown-method", "tools.unknown-tool"]
        );
        assert!(near("zebra").is_empty());
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
    }
}
