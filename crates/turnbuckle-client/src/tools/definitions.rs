//! Which definitions were listed, so that a change is noticed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use turnbuckle_protocol::types::Tool;

use super::digest::ToolDigest;
use super::fingerprint::ToolFingerprint;

/// The definitions of so many tools are remembered, in about 15 MB.
///
/// Those that came first stay: a server cannot have one forgotten by listing many others.
const TOOLS: usize = 100_000;

/// The definitions that were listed last, by names.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    listed: Mutex<HashMap<Name, Listed>>,
}

/// The digest of a name, which may be as long as a message.
type Name = [u8; 16];

#[derive(Debug)]
struct Listed {
    fingerprint: ToolFingerprint,
    /// How often the tools might have changed when it was listed.
    changes: u64,
}

/// A tool that was listed in another way than before.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) tool: String,
    pub(super) before: ToolDigest,
    pub(super) now: ToolDigest,
    pub(super) members: Vec<&'static str>,
}

impl Definitions {
    /// Remembers a tool that was just listed, and says how it differs from the one that was listed before.
    pub(super) fn learn(&self, tool: &Tool, changes: u64) -> Option<Changed> {
        let fingerprint = ToolFingerprint::of(tool);
        let now = Listed {
            fingerprint,
            changes,
        };
        let mut all = self.all();
        let full = all.len() >= TOOLS;
        let before = match all.entry(name(&tool.name)) {
            Entry::Occupied(mut known) => known.insert(now).fingerprint,
            Entry::Vacant(place) => {
                if !full {
                    place.insert(now);
                }
                return None;
            }
        };
        (before.digest() != fingerprint.digest()).then(|| Changed {
            tool: tool.name.clone(),
            before: before.digest(),
            now: fingerprint.digest(),
            members: fingerprint.changes_since(&before),
        })
    }

    /// Returns the digest of a tool as it was listed, unless it may have changed since.
    pub(super) fn digest(&self, tool: &str, changes: u64) -> Option<ToolDigest> {
        let all = self.all();
        let listed = all.get(&name(tool))?;
        (listed.changes == changes).then(|| listed.fingerprint.digest())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Name, Listed>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(tool: &str) -> Name {
    ToolDigest::of_text(tool).short()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        Tool::new(name, Default::default()).description(description)
    }

    #[test]
    fn only_what_differs_from_the_last_time_is_a_change() {
        let known = Definitions::default();
        let (first, second) = (tool("a", "one"), tool("a", "two"));

        assert!(known.learn(&first, 0).is_none(), "it is new");
        assert!(known.learn(&first, 0).is_none(), "it is the same");
        let changed = known.learn(&second, 0).unwrap();
        assert_eq!(changed.tool, "a");
        assert_eq!(changed.before, ToolDigest::of(&first));
        assert_eq!(changed.now, ToolDigest::of(&second));
        assert_eq!(changed.members, ["description"]);
        assert!(known.learn(&second, 0).is_none(), "it was said");
        assert!(known.learn(&tool("A", "two"), 0).is_none(), "another name");
    }

    #[test]
    fn what_may_have_changed_since_is_not_known() {
        let known = Definitions::default();
        let tool = tool("a", "one");

        known.learn(&tool, 7);

        assert_eq!(known.digest("a", 7), Some(ToolDigest::of(&tool)));
        assert_eq!(known.digest("a", 8), None);
        assert_eq!(known.digest("b", 7), None);
    }

    #[test]
    fn a_flood_of_tools_takes_no_memory_and_hides_no_change() {
        let known = Definitions::default();
        known.learn(&tool("first", "one"), 0);

        let fingerprint = ToolFingerprint::of(&tool("other", "one"));
        let others = (1..TOOLS).map(|number| {
            let listed = Listed {
                fingerprint,
                changes: 0,
            };
            (name(&number.to_string()), listed)
        });
        known.all().extend(others);

        known.learn(&tool("one too many", "one"), 0);

        assert_eq!(known.all().len(), TOOLS);
        assert!(known.learn(&tool("first", "two"), 0).is_some());
    }
}
