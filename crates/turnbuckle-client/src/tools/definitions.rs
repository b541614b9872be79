//! Fingerprints of listed tools, to detect changes.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Mutex, MutexGuard},
};

use turnbuckle_protocol::types::Tool;

use crate::{
    sync::lock,
    tools::digest::{ToolDigest, ToolFingerprint},
};

/// Maximum number of fingerprints, about 15 MB.
///
/// The first ones are kept, so that a server cannot evict a fingerprint by listing many tools.
const MAX_TOOLS: usize = 100_000;

/// The most recent fingerprint of each tool.
#[derive(Debug, Default)]
pub(super) struct ToolDefinitions {
    listed: Mutex<HashMap<NameHash, ListedDefinition>>,
}

/// The hash of a name, because a name may be as long as a message.
type NameHash = [u8; 16];

#[derive(Debug)]
struct ListedDefinition {
    fingerprint: ToolFingerprint,
    /// The number of announced changes at the time of the listing.
    changes: u64,
}

/// A tool that differs from its previous listing.
#[derive(Debug)]
pub(super) struct ChangedTool {
    pub(super) tool: String,
    pub(super) before: ToolDigest,
    pub(super) now: ToolDigest,
    pub(super) members: Vec<&'static str>,
}

impl ToolDefinitions {
    /// Stores the fingerprint of a listed tool; returns the difference to the previous one.
    pub(super) fn record(&self, tool: &Tool, changes: u64) -> Option<ChangedTool> {
        let fingerprint = ToolFingerprint::for_tool(tool);
        let now = ListedDefinition {
            fingerprint,
            changes,
        };
        let mut all = self.all();
        let full = all.len() >= MAX_TOOLS;
        let before = match all.entry(name_hash(&tool.name)) {
            Entry::Occupied(mut entry) => entry.insert(now).fingerprint,
            Entry::Vacant(slot) => {
                if !full {
                    slot.insert(now);
                }
                return None;
            }
        };
        (before.digest() != fingerprint.digest()).then(|| ChangedTool {
            tool: tool.name.clone(),
            before: before.digest(),
            now: fingerprint.digest(),
            members: fingerprint.changes_since(&before),
        })
    }

    /// Returns the digest of a listed tool, unless the tools may have changed since.
    pub(super) fn digest(&self, tool: &str, changes: u64) -> Option<ToolDigest> {
        let all = self.all();
        let listed = all.get(&name_hash(tool))?;
        (listed.changes == changes).then(|| listed.fingerprint.digest())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<NameHash, ListedDefinition>> {
        lock(&self.listed)
    }
}

fn name_hash(tool: &str) -> NameHash {
    ToolDigest::from_text(tool).short()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        Tool::new(name, Default::default()).description(description)
    }

    #[test]
    fn only_a_difference_from_the_previous_listing_is_a_change() {
        let entry = ToolDefinitions::default();
        let (first, second) = (tool("a", "one"), tool("a", "two"));

        assert!(entry.record(&first, 0).is_none(), "it is new");
        assert!(entry.record(&first, 0).is_none(), "it is the same");
        let changed = entry.record(&second, 0).unwrap();
        assert_eq!(changed.tool, "a");
        assert_eq!(changed.before, ToolDigest::for_tool(&first));
        assert_eq!(changed.now, ToolDigest::for_tool(&second));
        assert_eq!(changed.members, ["description"]);
        assert!(entry.record(&second, 0).is_none(), "it was said");
        assert!(entry.record(&tool("A", "two"), 0).is_none(), "another name");
    }

    #[test]
    fn a_digest_is_unknown_after_an_announced_change() {
        let entry = ToolDefinitions::default();
        let tool = tool("a", "one");

        entry.record(&tool, 7);

        assert_eq!(entry.digest("a", 7), Some(ToolDigest::for_tool(&tool)));
        assert_eq!(entry.digest("a", 8), None);
        assert_eq!(entry.digest("b", 7), None);
    }

    #[test]
    fn many_tools_take_bounded_memory_and_hide_no_change() {
        let entry = ToolDefinitions::default();
        entry.record(&tool("first", "one"), 0);

        let fingerprint = ToolFingerprint::for_tool(&tool("other", "one"));
        let others = (1..MAX_TOOLS).map(|number| {
            let listed = ListedDefinition {
                fingerprint,
                changes: 0,
            };
            (name_hash(&number.to_string()), listed)
        });
        entry.all().extend(others);

        entry.record(&tool("one too many", "one"), 0);

        assert_eq!(entry.all().len(), MAX_TOOLS);
        assert!(entry.record(&tool("first", "two"), 0).is_some());
    }
}
