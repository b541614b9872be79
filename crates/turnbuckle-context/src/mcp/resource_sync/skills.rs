//! Publishes saved skills with the skills extension.

use std::collections::BTreeMap;

use turnbuckle_server::{Server, Skill};

use super::scan::PartitionSnapshots;
use crate::{mcp::display::truncate, memory::MemoryItem};

/// Maximum length of a skill name in the extension.
const MAX_NAME_BYTES: usize = 64;
/// Maximum length of a description that clients must accept.
const MAX_DESCRIPTION_CHARS: usize = 1024;

/// The published skills: ids and versions by URI.
#[derive(Default)]
pub(super) struct PublishedSkills {
    by_uri: BTreeMap<String, (String, i64)>,
}

impl PublishedSkills {
    /// Publishes exactly the skills in the snapshots.
    pub(super) fn update(&mut self, server: &Server, seen: &PartitionSnapshots) {
        let mut by_name = BTreeMap::new();
        let mut items: Vec<&MemoryItem> = seen.values().flat_map(|seen| &seen.skills).collect();
        // If two skills have the same name, the older one keeps it.
        items.sort_by_key(|item| (item.created, &item.id));
        for item in items {
            let taken = |name: &str| by_name.contains_key(name);
            let name = name(item, taken);
            by_name.insert(name, item);
        }
        let mut now = BTreeMap::new();
        for (name, item) in by_name {
            let Some(skill) = skill(&name, item) else {
                continue;
            };
            let version = (item.id.clone(), item.updated);
            let uri = skill.uri();
            if self.by_uri.get(&uri) != Some(&version) {
                server.add_skill(skill);
            }
            now.insert(uri, version);
        }
        for uri in self.by_uri.keys().filter(|uri| !now.contains_key(*uri)) {
            server.remove_skill(uri);
        }
        self.by_uri = now;
    }
}

fn skill(name: &str, item: &MemoryItem) -> Option<Skill> {
    let description = match item.detail.trim() {
        "" => &item.title,
        detail => detail,
    };
    let made = Skill::new(
        name,
        truncate(description, MAX_DESCRIPTION_CHARS),
        &item.body,
    );
    made.inspect_err(|error| tracing::warn!(%error, id = item.id, "a skill is not published"))
        .ok()
}

/// Returns the name of a skill in the form of the extension: lower-case letters, digits and single hyphens.
fn name(item: &MemoryItem, taken: impl Fn(&str) -> bool) -> String {
    let slug = slug(&item.title, MAX_NAME_BYTES);
    if !slug.is_empty() && !taken(&slug) {
        return slug;
    }
    // The id makes the name unique.
    let id = item.id.replace('_', "-");
    match self::slug(&item.title, MAX_NAME_BYTES - id.len() - 1).as_str() {
        "" => id,
        short => format!("{short}-{id}"),
    }
}

fn slug(title: &str, longest: usize) -> String {
    let mut slug = String::new();
    for char in title.chars().flat_map(char::to_lowercase) {
        if slug.len() == longest {
            break;
        }
        match char {
            'a'..='z' | '0'..='9' => slug.push(char),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_converted_to_valid_skill_names() {
        assert_eq!(slug("Deploy to PROD!", 64), "deploy-to-prod");
        assert_eq!(slug("  --a__b--  ", 64), "a-b");
        assert_eq!(slug("日本語", 64), "");
        assert_eq!(slug("İstanbul", 64), "i-stanbul");
        assert_eq!(slug(&"ab ".repeat(60), 63).len(), 62);
        assert_eq!(slug(&"x".repeat(300), 64).len(), 64);
    }
}
