//! Scopes that others come with.

use std::collections::{BTreeMap, BTreeSet};

/// Which scopes a scope implies.
#[derive(Default)]
pub(super) struct Hierarchy(BTreeMap<String, BTreeSet<String>>);

impl Hierarchy {
    pub(super) fn add(
        &mut self,
        scope: String,
        implied: impl IntoIterator<Item = impl Into<String>>,
    ) {
        let below = self.0.entry(scope).or_default();
        below.extend(implied.into_iter().map(Into::into));
    }

    /// Adds everything that these scopes imply, and what that implies in turn.
    pub(super) fn expand(&self, scopes: &mut BTreeSet<String>) {
        let mut open: Vec<&String> = Vec::new();
        for scope in scopes.iter() {
            open.extend(self.0.get(scope).into_iter().flatten());
        }
        while let Some(scope) = open.pop() {
            if scopes.insert(scope.clone()) {
                open.extend(self.0.get(scope).into_iter().flatten());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_implied_implies_more_and_a_circle_ends() {
        let mut hierarchy = Hierarchy::default();
        hierarchy.add("admin".into(), ["write"]);
        hierarchy.add("write".into(), ["read"]);
        hierarchy.add("read".into(), ["write"]);
        let expanded = |scope: &str| {
            let mut scopes = BTreeSet::from([scope.to_owned()]);
            hierarchy.expand(&mut scopes);
            Vec::from_iter(scopes)
        };

        assert_eq!(expanded("admin"), ["admin", "read", "write"]);
        assert_eq!(expanded("read"), ["read", "write"]);
        assert_eq!(expanded("other"), ["other"]);
    }
}
