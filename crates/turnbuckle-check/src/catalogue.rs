//! All rules.

mod nearest;

use std::fmt;

use crate::client;
use crate::rule::{Area, Rule};
use crate::server;

/// Returns the rules for servers, in the order of reports.
pub fn for_servers() -> impl Iterator<Item = &'static Rule> {
    server::AREAS.iter().copied().flatten()
}

/// Returns the rules for clients, in the order of reports.
pub fn for_clients() -> impl Iterator<Item = &'static Rule> {
    client::AREAS.iter().copied().flatten()
}

/// Returns all rules, those for servers first.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    for_servers().chain(for_clients())
}

/// Returns the rule of this name.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}

/// Makes sure that a name means a rule, several, or an area.
///
/// # Errors
///
/// If nothing has that name; the error says which names are near.
pub fn ensure(name: &str) -> Result<(), Unknown> {
    let known =
        all().any(|rule| rule.is_called(name)) || Area::ALL.iter().any(|area| area.is_called(name));
    match known {
        true => Ok(()),
        false => Err(Unknown::new(name)),
    }
}

/// There is no rule of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unknown {
    /// The name.
    pub name: String,
    /// Names that are near, nearest first.
    pub nearest: Vec<String>,
}

impl Unknown {
    pub(crate) fn new(name: &str) -> Self {
        let rules = all().map(|rule| rule.id.to_owned());
        let areas = Area::ALL.iter().map(|area| area.id());
        Self {
            name: name.to_owned(),
            nearest: nearest::of(name, rules.chain(areas)),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no rule `{}`", self.name)?;
        match self.nearest.is_empty() {
            true => Ok(()),
            false => write!(f, " (nearest: `{}`)", self.nearest.join("`, `")),
        }
    }
}

impl std::error::Error for Unknown {}

/// Returns where a rule stands in the order of reports.
pub(crate) fn position(rule: &Rule) -> usize {
    let found = all().position(|other| other.id == rule.id);
    found.unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use turnbuckle_ledger::table;

    use super::*;
    use crate::rule::{Check, Role};

    #[test]
    fn every_rule_is_whole_and_has_a_name_of_its_own() {
        let mut ids = HashSet::new();
        for rule in all() {
            assert!(ids.insert(rule.id), "`{}` is there twice", rule.id);
            assert!(
                rule.says.ends_with('.') && rule.cure.ends_with('.'),
                "{}",
                rule.id
            );
            assert!(!matches!(rule.check, Check::Unset), "{}", rule.id);
        }
    }

    #[test]
    fn rules_judge_what_can_be_seen_on_the_wire() {
        for rule in all() {
            for id in rule.rows {
                let row = table::find(id).unwrap_or_else(|| panic!("{}: no row `{id}`", rule.id));
                assert!(
                    row.is_on_the_wire(),
                    "{}: `{id}` is nobody else's business",
                    rule.id
                );
                let side = match rule.role {
                    Role::Server => "server",
                    Role::Client => "client",
                };
                assert!([side, "both"].contains(&row.role), "{}: `{id}`", rule.id);
                assert_ne!(row.level, "MAY", "{}: `{id}` binds nobody", rule.id);
            }
        }
    }

    #[test]
    fn rules_for_clients_are_known_by_their_names() {
        assert!(for_clients().all(|rule| rule.id.starts_with("client.")));
        assert!(for_servers().all(|rule| !rule.id.starts_with("client.")));
    }
}
