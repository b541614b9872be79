//! The names of tools and prompts that clients see, and the servers they belong to.
//!
//! With several servers a name is `server_name`. Names are resolved by a table, never by splitting them, so that no
//! choice of names reaches another server. The name of an item depends only on the names of the configured servers and
//! on its own name, so it is the same after a restart, whichever server is connected first.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use sha2::{Digest, Sha256};

/// The default maximum length of a name, in bytes.
pub(crate) const DEFAULT_MAX_NAME_LENGTH: usize = 128;
/// The least maximum length that can be set.
pub(crate) const LEAST_MAX_NAME_LENGTH: usize = 16;
/// Hexadecimal digits of the digest in a name that had to be changed.
const DIGEST_DIGITS: usize = 8;
/// Maximum number of names that are kept for a server, including those that it does not list anymore.
const MAX_NAMES_PER_SERVER: usize = 100_000;
/// How often a name is digested again if two digests are equal.
const MAX_ATTEMPTS: u32 = 8;

/// How names are made from the names of servers and their items.
pub(crate) struct Naming<'a> {
    /// The names of all servers, in the order of the configuration.
    servers: Vec<&'a str>,
    pub(crate) has_prefix: bool,
    max_length: usize,
}

impl<'a> Naming<'a> {
    pub(crate) fn new(
        servers: impl IntoIterator<Item = &'a str>,
        has_prefix: bool,
        max_length: usize,
    ) -> Self {
        Self {
            servers: servers.into_iter().collect(),
            has_prefix,
            max_length,
        }
    }

    /// Returns the name that clients see. `attempt` is above 0 if another item has the name.
    fn name<'n>(&self, server: &str, original: &'n str, attempt: u32) -> Cow<'n, str> {
        if !self.has_prefix {
            return Cow::Borrowed(original);
        }
        let name = format!("{server}_{original}");
        if attempt == 0 && name.len() <= self.max_length && !self.is_ambiguous(server, &name) {
            return Cow::Owned(name);
        }
        Cow::Owned(self.digested(server, original, attempt))
    }

    /// Returns whether an item of another server could have the same name: a longer prefix of another server matches,
    /// or the name has the form of a digested one.
    fn is_ambiguous(&self, server: &str, name: &str) -> bool {
        let mut prefixes = self.servers.iter().filter_map(|prefix| {
            let rest = name.strip_prefix(*prefix)?.strip_prefix('_')?;
            Some((*prefix, rest))
        });
        let Some(tail) = without_digest(name) else {
            return prefixes.any(|(prefix, _)| prefix.len() > server.len());
        };
        // A tail that was cut does not show which name was digested.
        let is_cut = name.len() + char::MAX.len_utf8() > self.max_length;
        is_cut
            || prefixes.any(|(prefix, _)| {
                prefix.len() > server.len()
                    || tail
                        .get(prefix.len() + 1..)
                        .is_some_and(|original| name.ends_with(&digest(prefix, original, 0)))
            })
    }

    /// Returns `server_`, the end of the name, and a digest of both.
    fn digested(&self, server: &str, original: &str, attempt: u32) -> String {
        let digest = digest(server, original, attempt);
        let reserved = server.len() + DIGEST_DIGITS + 2;
        if reserved > self.max_length {
            let end = self.max_length.saturating_sub(DIGEST_DIGITS + 1);
            let end = (0..=end).rev().find(|at| server.is_char_boundary(*at));
            return format!("{}_{digest}", &server[..end.unwrap_or(0)]);
        }
        let start = original.len().saturating_sub(self.max_length - reserved);
        let start = (start..=original.len()).find(|at| original.is_char_boundary(*at));
        let tail = &original[start.unwrap_or(original.len())..];
        format!("{server}_{tail}_{digest}")
    }

    fn position(&self, server: &str) -> usize {
        let position = self.servers.iter().position(|name| *name == server);
        position.unwrap_or(usize::MAX)
    }
}

/// Returns the start of a name that ends with the form of a digest.
fn without_digest(name: &str) -> Option<&str> {
    let (start, digest) = name.rsplit_once('_')?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (digest.len() == DIGEST_DIGITS && digest.bytes().all(is_digit)).then_some(start)
}

fn digest(server: &str, original: &str, attempt: u32) -> String {
    let mut text = format!("{server}\0{original}");
    if attempt > 1 {
        text.push_str(&format!("\0{attempt}"));
    }
    let mut digest = hex(&Sha256::digest(text));
    digest.truncate(DIGEST_DIGITS);
    digest
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The place of a tool or prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedItem {
    /// The name of the server.
    pub(crate) server: Arc<str>,
    /// The name that the server uses.
    pub(crate) original: Arc<str>,
}

/// The names of one kind, as clients see them. Names of servers that are down are kept.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    by_name: HashMap<String, NamedItem>,
    counts: HashMap<Arc<str>, usize>,
}

impl NameTable {
    /// Adds an item of a server, and returns the name that clients see. `None` if it cannot be distinguished from an
    /// item of an earlier server, because names are not prefixed.
    pub(crate) fn add<'n>(
        &mut self,
        naming: &Naming<'_>,
        server: &Arc<str>,
        original: &'n str,
    ) -> Option<Cow<'n, str>> {
        for attempt in 0..MAX_ATTEMPTS {
            let name = naming.name(server, original, attempt);
            match self.by_name.get(&*name) {
                Some(known) if known.server == *server && *known.original == *original => {
                    return Some(name);
                }
                // Without prefixes, the first server of the configuration has the name.
                Some(known) if naming.position(&known.server) > naming.position(server) => {}
                Some(_) if naming.has_prefix => continue,
                Some(_) => return None,
                None => {}
            }
            self.insert(&name, server, original);
            return Some(name);
        }
        None
    }

    pub(crate) fn get(&self, name: &str) -> Option<&NamedItem> {
        self.by_name.get(name)
    }

    fn insert(&mut self, name: &str, server: &Arc<str>, original: &str) {
        let count = self.counts.entry(Arc::clone(server)).or_default();
        if *count >= MAX_NAMES_PER_SERVER {
            *count = 0;
            self.by_name.retain(|_, item| item.server != *server);
        }
        *count += 1;
        let item = NamedItem {
            server: Arc::clone(server),
            original: original.into(),
        };
        self.by_name.insert(name.to_owned(), item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERS: [&str; 3] = ["a", "a_b", "server"];

    fn naming(max_length: usize) -> Naming<'static> {
        Naming::new(SERVERS, true, max_length)
    }

    fn add(table: &mut NameTable, server: &str, original: &str) -> String {
        let name = table.add(&naming(128), &server.into(), original);
        name.expect("with a prefix every item has a name")
            .into_owned()
    }

    #[test]
    fn equal_names_after_prefixing_reach_their_own_servers_in_any_order() {
        let items = [("a", "b_c"), ("a_b", "c")];
        let mut table = NameTable::default();
        let names = items.map(|(server, original)| add(&mut table, server, original));
        let mut reversed = NameTable::default();
        for ((server, original), name) in items.iter().zip(&names).rev() {
            assert_eq!(&add(&mut reversed, server, original), name);
            assert_eq!(&*reversed.get(name).unwrap().server, *server);
            assert_eq!(&*table.get(name).unwrap().original, *original);
        }
        assert_eq!(names[1], "a_b_c");
        assert!(names[0].starts_with("a_b_c_"), "{names:?}");
    }

    #[test]
    fn the_form_of_a_digested_name_is_no_way_to_its_item() {
        let mut table = NameTable::default();
        let digested = add(&mut table, "a", "b_c");
        let imitation = digested.strip_prefix("a_b_").unwrap();
        let other = add(&mut table, "a_b", imitation);
        assert_ne!(other, digested);
        assert_eq!(&*table.get(&digested).unwrap().server, "a");
        assert_eq!(
            add(&mut table, "server", "run_20240101"),
            "server_run_20240101"
        );
    }

    #[test]
    fn long_names_are_shortened_the_same_way_each_time() {
        for original in ["é".repeat(200), "x".repeat(200), "a/b\u{1}".repeat(50)] {
            for max_length in [LEAST_MAX_NAME_LENGTH, 64, 128] {
                let naming = naming(max_length);
                let name = naming.name("server", &original, 0);
                assert!(name.len() <= max_length, "{name}");
                assert_eq!(name, naming.name("server", &original, 0));
                assert_ne!(name, naming.name("server", &format!("y{original}"), 0));
            }
        }
        let long = "s".repeat(300);
        assert_eq!(
            Naming::new([&*long], true, 64).name(&long, "x", 0).len(),
            64
        );
    }

    #[test]
    fn unusual_names_are_different_items() {
        let mut table = NameTable::default();
        let originals = ["", "_", "__", "a/b", "a\u{0}b", "a\nb", "x__y", "_x", "x_"];
        let names = originals.map(|original| add(&mut table, "server", original));
        for (name, original) in names.iter().zip(originals) {
            assert_eq!(&*table.get(name).unwrap().original, original);
        }
    }

    #[test]
    fn without_prefixes_the_first_server_has_the_name_in_any_order() {
        let naming = Naming::new(SERVERS, false, 128);
        let mut table = NameTable::default();
        assert!(table.add(&naming, &"a_b".into(), "x").is_some());
        assert!(table.add(&naming, &"a".into(), "x").is_some());
        assert!(table.add(&naming, &"a_b".into(), "x").is_none());
        assert_eq!(&*table.get("x").unwrap().server, "a");
    }

    #[test]
    fn the_number_of_names_is_limited() {
        let mut table = NameTable::default();
        for number in 0..MAX_NAMES_PER_SERVER + 10 {
            add(&mut table, "server", &number.to_string());
        }
        assert_eq!(table.by_name.len(), 10);
    }
}
