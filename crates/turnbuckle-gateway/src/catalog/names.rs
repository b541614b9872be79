//! The names that clients see, and the servers they belong to.
//!
//! With several servers a name is `server_name`. Names are resolved by a table, never by splitting them, so that no
//! choice of names reaches another server. The result depends only on the configuration and the lists of the servers.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use turnbuckle_text::percent::{decode_strict, encode_component};

use crate::upstream::server_set::ServerId;

/// Maximum length of a name.
const MAX_NAME_BYTES: usize = 128;
/// Hexadecimal digits of the digest in a name that had to be changed.
const DIGEST_DIGITS: usize = 8;

/// The place of a tool, prompt or resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedName {
    pub(crate) server: ServerId,
    /// The name or URI that the server uses.
    pub(crate) original: String,
}

/// The names of one kind, as clients see them.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameTable {
    by_name: HashMap<String, ResolvedName>,
}

impl NameTable {
    /// Adds the name of a server's item, and returns the name that clients see.
    pub(crate) fn add_prefixed(
        &mut self,
        server: ServerId,
        prefix: &str,
        original: &str,
    ) -> String {
        let name = format!("{prefix}_{original}");
        let name = if name.len() > MAX_NAME_BYTES || self.belongs_to_other(&name, server, original)
        {
            shortened(prefix, original)
        } else {
            name
        };
        self.insert(name, server, original)
    }

    /// Adds a name as it is, unless an earlier server has it. Returns whether it was added.
    pub(crate) fn add_first(&mut self, server: ServerId, name: &str) -> bool {
        if self.belongs_to_other(name, server, name) {
            return false;
        }
        self.insert(name.to_owned(), server, name);
        true
    }

    /// Adds the URI of a server's resource, and returns the URI that clients see: the same one, unless an earlier
    /// server has it.
    pub(crate) fn add_uri(&mut self, server: ServerId, server_name: &str, uri: &str) -> String {
        let seen = if self.belongs_to_other(uri, server, uri) {
            own_uri(server_name, uri)
        } else {
            uri.to_owned()
        };
        self.insert(seen, server, uri)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ResolvedName> {
        self.by_name.get(name)
    }

    /// Returns the only server with resources of the URI's scheme.
    pub(crate) fn only_server_of_scheme(&self, uri: &str) -> Option<ServerId> {
        let scheme = scheme(uri)?;
        let mut servers = self
            .by_name
            .values()
            .filter(|resolved| self::scheme(&resolved.original) == Some(scheme))
            .map(|resolved| resolved.server);
        let first = servers.next()?;
        servers.all(|server| server == first).then_some(first)
    }

    fn belongs_to_other(&self, name: &str, server: ServerId, original: &str) -> bool {
        let existing = self.by_name.get(name);
        existing.is_some_and(|found| found.server != server || found.original != original)
    }

    fn insert(&mut self, name: String, server: ServerId, original: &str) -> String {
        let original = original.to_owned();
        self.by_name
            .insert(name.clone(), ResolvedName { server, original });
        name
    }
}

/// The prefix of URIs that name their server.
const OWN_SCHEME: &str = "turnbuckle://";

/// Returns the URI of a resource that names its server.
pub(crate) fn own_uri(server: &str, uri: &str) -> String {
    format!("{OWN_SCHEME}{server}/{}", encode_component(uri))
}

/// Returns the server and the original URI of a URI that names its server.
pub(crate) fn parse_own_uri(uri: &str) -> Option<(&str, String)> {
    let (server, encoded) = uri.strip_prefix(OWN_SCHEME)?.split_once('/')?;
    Some((server, String::from_utf8(decode_strict(encoded)?).ok()?))
}

fn scheme(uri: &str) -> Option<&str> {
    uri.split_once(':').map(|(scheme, _)| scheme)
}

/// Returns `prefix_`, the end of the name and a digest of the whole name.
fn shortened(prefix: &str, original: &str) -> String {
    let digest = hex(&Sha256::digest(format!("{prefix}\0{original}")));
    let digest = &digest[..DIGEST_DIGITS];
    let room = MAX_NAME_BYTES.saturating_sub(prefix.len() + digest.len() + 2);
    let start = original.len().saturating_sub(room);
    let start = (start..=original.len()).find(|at| original.is_char_boundary(*at));
    let tail = &original[start.unwrap_or(original.len())..];
    format!("{prefix}_{tail}_{digest}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_after_prefixing_reach_their_own_servers() {
        let mut table = NameTable::default();
        let first = table.add_prefixed(0, "a", "b_c");
        let second = table.add_prefixed(1, "a_b", "c");
        assert_eq!(first, "a_b_c");
        assert_ne!(first, second);
        assert_eq!(table.get(&first).unwrap().server, 0);
        assert_eq!(table.get(&second).unwrap().server, 1);
        assert_eq!(table.get(&second).unwrap().original, "c");
    }

    #[test]
    fn long_names_are_shortened_the_same_way_each_time() {
        let long = "é".repeat(200);
        let name = NameTable::default().add_prefixed(0, "server", &long);
        assert!(name.len() <= MAX_NAME_BYTES, "{}", name.len());
        assert_eq!(name, NameTable::default().add_prefixed(3, "server", &long));
    }

    #[test]
    fn the_first_server_keeps_a_uri_and_the_others_get_one_of_their_own() {
        let mut table = NameTable::default();
        assert_eq!(table.add_uri(0, "a", "file:///x"), "file:///x");
        let other = table.add_uri(1, "b", "file:///x");
        assert_eq!(parse_own_uri(&other), Some(("b", "file:///x".to_owned())));
        assert_eq!(table.get(&other).unwrap().server, 1);
    }

    #[test]
    fn malformed_own_uris_are_no_uris() {
        for uri in [
            "turnbuckle://a",
            "turnbuckle://a/%6",
            "turnbuckle://a/%zz",
            "turnbuckle://a/%ff",
        ] {
            assert_eq!(parse_own_uri(uri), None, "{uri}");
        }
    }
}
