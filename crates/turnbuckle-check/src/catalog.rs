//! All rules.

use std::fmt;

use turnbuckle_text::suggestions::most_similar;

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
            suggestions: most_similar(name, rules.chain(areas)),
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use turnbuckle_protocol::revision::Revision;
    use turnbuckle_spec_coverage::table;

    use super::*;
    use crate::rule::{Check, RequirementLevel, Role};

    #[test]
    fn every_rule_is_complete_and_has_a_unique_id() {
        let mut ids = HashSet::new();
        for rule in all() {
            assert!(ids.insert(rule.id), "duplicate rule `{}`", rule.id);
            assert!(
                rule.requirement.ends_with('.') && rule.hint.ends_with('.'),
                "{}",
                rule.id
            );
            assert!(!matches!(rule.check, Check::Unset), "{}", rule.id);
        }
    }

    #[test]
    fn rules_cover_observable_requirements() {
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
    fn rules_do_not_apply_in_revisions_without_their_text() {
        // The page on completion of 2024-11-05 does not list errors.
        for id in ["completion.missing-argument", "completion.unknown-prompt"] {
            let rule = find(id).expect("the rule exists");
            assert!(!rule.applies_in(Revision::V2024_11_05), "{id}");
            assert!(rule.applies_in(Revision::V2025_03_26), "{id}");
        }
    }

    #[test]
    fn violation_breaks_one_requirement_and_has_its_level() {
        let rule = find("tools.names").expect("the rule exists");
        let violated = |id| rule.violated_requirement(id, Revision::V2025_11_25);

        assert!(rule.requirement_ids.len() > 1);
        assert_eq!(violated(None).map(|row| row.id), Some("tools.name.length"));
        let charset = Some("tools.name.charset");
        assert_eq!(violated(charset).map(|row| row.id), charset);
        // `SHOULD` first and `MUST` second.
        let rule = find("client.lifecycle.leaves-unknown-version").expect("the rule exists");
        let level = |id| rule.level_of(id, Revision::V2025_11_25);
        assert_eq!(level(None), RequirementLevel::Warn);
        let must = Some("lifecycle.version.client-disconnect-schema");
        assert_eq!(level(must), RequirementLevel::Fail);
    }

    #[test]
    fn client_rules_have_the_prefix_client() {
        assert!(for_clients().all(|rule| rule.id.starts_with("client.")));
        assert!(for_servers().all(|rule| !rule.id.starts_with("client.")));
    }

    #[test]
    fn most_similar_names_come_first() {
        let names = [
            "tools.unknown-tool",
            "base.unknown-method",
            "tools",
            "roots",
        ];
        let near = |name| most_similar(name, names.iter().map(|&name| name.to_owned()));

        assert_eq!(near("base.unknown-metod"), ["base.unknown-method"]);
        assert_eq!(near("tool"), ["tools", "tools.unknown-tool"]);
        assert_eq!(
            near("unknown"),
            ["base.unknown-method", "tools.unknown-tool"]
        );
        assert!(near("zebra").is_empty());
    }
}
