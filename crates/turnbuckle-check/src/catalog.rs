//! All rules.

use std::fmt;

use crate::{
    client_rules,
    rule::{Area, Rule},
    server_rules,
};

/// Returns the rules for servers, in report order.
pub fn for_servers() -> impl Iterator<Item = &'static Rule> {
    server_rules::AREAS.iter().copied().flatten()
}

/// Returns the rules for clients, in report order.
pub fn for_clients() -> impl Iterator<Item = &'static Rule> {
    client_rules::AREAS.iter().copied().flatten()
}

/// Returns all rules, server rules first.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    for_servers().chain(for_clients())
}

/// Returns the rule with this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}

/// Checks that a name selects a rule, several rules or an area.
///
/// # Errors
///
/// If the name selects nothing; the error lists similar names.
pub fn validate_name(name: &str) -> Result<(), UnknownRule> {
    let known = all().any(|rule| rule.matches_name(name))
        || Area::ALL.iter().any(|area| area.matches_name(name));
    if known {
        Ok(())
    } else {
        Err(UnknownRule::new(name))
    }
}

/// No rule has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownRule {
    /// The name.
    pub name: String,
    /// Similar names, most similar first.
    pub suggestions: Vec<String>,
}

impl UnknownRule {
    pub(crate) fn new(name: &str) -> Self {
        let rules = all().map(|rule| rule.id.to_owned());
        let areas = Area::ALL.iter().map(|area| area.id());
        Self {
            name: name.to_owned(),
            suggestions: nearest(name, rules.chain(areas)),
        }
    }
}

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown rule `{}`", self.name)?;
        if self.suggestions.is_empty() {
            Ok(())
        } else {
            write!(f, " (nearest: `{}`)", self.suggestions.join("`, `"))
        }
    }
}

impl std::error::Error for UnknownRule {}

/// Returns the position of a rule in report order.
pub(crate) fn position(rule: &Rule) -> usize {
    let found = all().position(|other| other.id == rule.id);
    found.unwrap_or(usize::MAX)
}

/// The number of suggestions for an unknown name.
const MAX_SUGGESTIONS: usize = 3;

/// Returns the most similar names, best first.
fn nearest(name: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let name = name.to_lowercase();
    let mut near: Vec<_> = names
        .filter_map(|other| Some((distance(&name, &other)?, other)))
        .collect();
    near.sort();
    near.dedup();
    let best = near.into_iter().take(MAX_SUGGESTIONS);
    best.map(|(_, other)| other).collect()
}

/// Returns the edit distance if it is small. A name that contains the other counts as similar.
fn distance(name: &str, other: &str) -> Option<usize> {
    let edits = edits(name, other);
    let few = usize::max(name.len(), other.len()) / 3;
    if edits <= few {
        Some(edits)
    } else if name.len() > 3 && other.contains(name) {
        Some(few + 1)
    } else {
        None
    }
}

/// Returns the Levenshtein distance.
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
    use std::collections::HashSet;

    use turnbuckle_spec_coverage::table;

    use super::*;
    use crate::rule::{Check, Role};

    #[test]
    fn every_rule_is_whole_and_has_a_name_of_its_own() {
        let mut ids = HashSet::new();
        for rule in all() {
            assert!(ids.insert(rule.id), "duplicate rule `{}`", rule.id);
            assert!(
                rule.requirement.ends_with('.') && rule.fix.ends_with('.'),
                "{}",
                rule.id
            );
            assert!(!matches!(rule.check, Check::Unset), "{}", rule.id);
        }
    }

    #[test]
    fn rules_judge_what_can_be_seen_on_the_wire() {
        for rule in all() {
            for id in rule.requirement_ids {
                let row = table::find(id)
                    .unwrap_or_else(|| panic!("{}: unknown requirement `{id}`", rule.id));
                assert!(
                    row.is_on_the_wire(),
                    "{}: `{id}` cannot be observed on the wire",
                    rule.id
                );
                let side = match rule.role {
                    Role::Server => "server",
                    Role::Client => "client",
                };
                assert!([side, "both"].contains(&row.role), "{}: `{id}`", rule.id);
                assert_ne!(row.level, "MAY", "{}: `{id}` is optional", rule.id);
            }
        }
    }

    #[test]
    fn rules_for_clients_are_known_by_their_names() {
        assert!(for_clients().all(|rule| rule.id.starts_with("client.")));
        assert!(for_servers().all(|rule| !rule.id.starts_with("client.")));
    }

    #[test]
    fn the_nearest_names_come_first() {
        let names = [
            "tools.unknown-tool",
            "base.unknown-method",
            "tools",
            "roots",
        ];
        let near = |name| nearest(name, names.iter().map(|&name| name.to_owned()));

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
