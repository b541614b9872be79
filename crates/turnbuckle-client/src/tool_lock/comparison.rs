//! The differences between a lock and the definitions of a server.

use std::fmt;

use super::{DefinitionDigests, DefinitionKind, ServerLock};

/// How a definition relates to a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockState {
    /// It is the accepted one.
    Same,
    /// It is not in the lock.
    Added,
    /// It differs from the accepted one in these members.
    Changed(Vec<&'static str>),
}

/// A difference between a lock and the definitions of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The server has a definition that is not in the lock.
    Added(DefinitionKind, String),
    /// The server has lost a definition.
    Removed(DefinitionKind, String),
    /// A definition has another name, and is otherwise the same.
    Renamed {
        /// What it defines.
        kind: DefinitionKind,
        /// The name in the lock.
        from: String,
        /// The name at the server.
        to: String,
    },
    /// A definition has changed.
    Changed {
        /// What it defines.
        kind: DefinitionKind,
        /// Its name.
        name: String,
        /// The members that were added, removed or changed.
        members: Vec<&'static str>,
    },
    /// The instructions for models have changed.
    Instructions,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(kind, name) => write!(f, "{} `{name}` was added", kind.as_str()),
            Self::Removed(kind, name) => write!(f, "{} `{name}` was removed", kind.as_str()),
            Self::Renamed { kind, from, to } => {
                write!(f, "{} `{from}` was renamed to `{to}`", kind.as_str())
            }
            Self::Changed {
                kind,
                name,
                members,
            } => {
                let members = members.join(", ");
                write!(f, "{} `{name}` has changed: {members}", kind.as_str())
            }
            Self::Instructions => f.write_str("the instructions have changed"),
        }
    }
}

impl ServerLock {
    /// Compares one definition of a server with the lock.
    pub fn state(&self, kind: DefinitionKind, name: &str, now: &DefinitionDigests) -> LockState {
        match self.get(kind, name) {
            None => LockState::Added,
            Some(accepted) if accepted.digest == now.digest => LockState::Same,
            Some(accepted) => LockState::Changed(now.changes_since(accepted)),
        }
    }

    /// Compares all definitions of a server with the lock. Empty if they are the same.
    pub fn compare(&self, now: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        if self.instructions != now.instructions {
            differences.push(Difference::Instructions);
        }
        for kind in DefinitionKind::ALL {
            self.compare_kind(kind, now, &mut differences);
        }
        differences
    }

    fn compare_kind(&self, kind: DefinitionKind, now: &Self, differences: &mut Vec<Difference>) {
        let mut removed: Vec<_> = self
            .definitions(kind)
            .filter(|(name, _)| now.get(kind, name).is_none())
            .collect();
        for (name, digests) in now.definitions(kind) {
            match self.state(kind, name, digests) {
                LockState::Same => {}
                LockState::Changed(members) => differences.push(Difference::Changed {
                    kind,
                    name: name.to_owned(),
                    members,
                }),
                LockState::Added => {
                    // A definition without other members would equal any other one.
                    let is_same = |(_, before): &(&str, &DefinitionDigests)| {
                        !digests.members.is_empty() && before.members == digests.members
                    };
                    differences.push(match removed.iter().position(is_same) {
                        Some(at) => Difference::Renamed {
                            kind,
                            from: removed.remove(at).0.to_owned(),
                            to: name.to_owned(),
                        },
                        None => Difference::Added(kind, name.to_owned()),
                    });
                }
            }
        }
        let removed = removed.into_iter();
        differences.extend(removed.map(|(name, _)| Difference::Removed(kind, name.to_owned())));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lock(tools: &[(&str, &str)]) -> ServerLock {
        let mut lock = ServerLock::new();
        for (name, description) in tools {
            let tool = json!({ "name": name, "description": description, "inputSchema": {} });
            let digests = DefinitionDigests::new(DefinitionKind::Tool, &tool);
            lock.insert(DefinitionKind::Tool, *name, digests);
        }
        lock
    }

    fn differences(before: &ServerLock, now: &ServerLock) -> Vec<String> {
        let differences = before.compare(now);
        differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_difference_is_named() {
        let before = lock(&[("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")]);
        let mut now = lock(&[("a", "A"), ("b", "other"), ("e", "E"), ("z", "D")]);
        now.set_instructions(Some("Use a."));
        assert_eq!(
            differences(&before, &now),
            [
                "the instructions have changed",
                "tool `b` has changed: description",
                "tool `e` was added",
                "tool `d` was renamed to `z`",
                "tool `c` was removed",
            ]
        );
        assert_eq!(differences(&before, &before), [""; 0]);
    }

    #[test]
    fn one_removed_tool_is_renamed_once() {
        let before = lock(&[("a", "same")]);
        let now = lock(&[("b", "same"), ("c", "same")]);
        assert_eq!(
            differences(&before, &now),
            ["tool `a` was renamed to `b`", "tool `c` was added"]
        );
    }
}
