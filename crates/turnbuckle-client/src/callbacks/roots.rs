//! The roots that a client lists to servers.

use std::{
    path::{MAIN_SEPARATOR, Path},
    sync::Arc,
};

use tokio::sync::watch;
use turnbuckle_protocol::types::Root;
use turnbuckle_text::{formats::has_uri_characters, percent};

/// The roots that a client lists to servers; clones share one list.
///
/// Keep a clone to change the list: connected servers are notified. The program decides which directories to list, and
/// whether they exist.
///
/// ```
/// use turnbuckle_client::Roots;
///
/// # fn main() -> Result<(), turnbuckle_client::RootError> {
/// let roots = Roots::new(["file:///home/ada/engine"])?;
/// roots.add("file:///home/ada/notes")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Roots {
    list: Arc<watch::Sender<Vec<Root>>>,
}

impl Roots {
    /// Creates a list of roots: `file:` URIs, or [`Root`]s with a name.
    pub fn new(roots: impl IntoIterator<Item = impl IntoRoot>) -> Result<Self, RootError> {
        let roots = parse_roots(roots)?;
        Ok(Self {
            list: Arc::new(watch::Sender::new(roots)),
        })
    }

    /// Returns the current list.
    pub fn list(&self) -> Vec<Root> {
        self.list.borrow().clone()
    }

    /// Replaces the list.
    pub fn set(&self, roots: impl IntoIterator<Item = impl IntoRoot>) -> Result<(), RootError> {
        let roots = parse_roots(roots)?;
        self.list.send_if_modified(|list| {
            let differs = *list != roots;
            *list = roots;
            differs
        });
        Ok(())
    }

    /// Adds a root, or replaces the one with the same URI.
    pub fn add(&self, root: impl IntoRoot) -> Result<(), RootError> {
        let root = root.into_root()?;
        self.list.send_if_modified(|list| {
            match list.iter_mut().find(|existing| existing.uri == root.uri) {
                Some(existing) if *existing == root => return false,
                Some(existing) => *existing = root,
                None => list.push(root),
            }
            true
        });
        Ok(())
    }

    /// Removes a root by its URI; returns whether it existed.
    pub fn remove(&self, uri: &str) -> bool {
        self.list.send_if_modified(|list| {
            let before = list.len();
            list.retain(|root| root.uri != uri);
            list.len() != before
        })
    }

    /// Returns a receiver that is notified of changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Vec<Root>> {
        self.list.subscribe()
    }
}

/// Conversion into a root: from the text of a `file:` URI, an absolute path, or a [`Root`].
pub trait IntoRoot {
    /// Converts into a root, if the URI is valid.
    fn into_root(self) -> Result<Root, RootError>;
}

impl IntoRoot for Root {
    fn into_root(self) -> Result<Root, RootError> {
        validate_uri(&self.uri)?;
        Ok(self)
    }
}

impl IntoRoot for &str {
    fn into_root(self) -> Result<Root, RootError> {
        Root::new(self).into_root()
    }
}

impl IntoRoot for String {
    fn into_root(self) -> Result<Root, RootError> {
        Root::new(self).into_root()
    }
}

impl IntoRoot for &Path {
    fn into_root(self) -> Result<Root, RootError> {
        let shown = || self.display().to_string();
        let path = self.to_str().filter(|_| self.is_absolute());
        let path = path.ok_or_else(|| RootError::Path(shown()))?;
        Root::new(file_uri(path)).into_root()
    }
}

/// A root is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    /// The URI is not a `file:` URI of an absolute path.
    #[error("`{0}` is not a `file:///` URI")]
    Uri(String),
    /// The URI contains `..`, or a segment that decodes to it.
    #[error("`{0}` contains `..` or encoded separators")]
    Traversal(String),
    /// The path is relative or not UTF-8.
    #[error("`{0}` is not an absolute path in UTF-8")]
    Path(String),
}

fn parse_roots(roots: impl IntoIterator<Item = impl IntoRoot>) -> Result<Vec<Root>, RootError> {
    roots.into_iter().map(IntoRoot::into_root).collect()
}

fn validate_uri(uri: &str) -> Result<(), RootError> {
    let is_file = uri
        .get(..7)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("file://"));
    let path = is_file
        .then(|| uri[7..].find('/').map(|at| &uri[7 + at..]))
        .flatten();
    let path = path.filter(|path| has_uri_characters(path) && !path.contains(['?', '#']));
    let path = path.ok_or_else(|| RootError::Uri(uri.to_owned()))?;
    if path.split('/').any(escapes_root) {
        Err(RootError::Traversal(uri.to_owned()))
    } else {
        Ok(())
    }
}

/// Returns whether a decoded segment is more than a file name.
fn escapes_root(segment: &str) -> bool {
    let decoded = segment.to_ascii_lowercase().replace("%2e", ".");
    matches!(&*decoded, "." | "..")
        || ["%2f", "%5c", "%00"]
            .iter()
            .any(|hidden| decoded.contains(hidden))
}

/// Returns the `file:` URI of an absolute path.
fn file_uri(path: &str) -> String {
    // `\` separates names on Windows; elsewhere it is part of a name.
    let path = match MAIN_SEPARATOR {
        '\\' => path.replace('\\', "/"),
        _ => path.to_owned(),
    };
    let root = if path.starts_with('/') { "" } else { "/" };
    format!("file://{root}{}", percent::encode_path(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_of_roots_are_notified() {
        let roots = Roots::new(["file:///a"]).unwrap();
        let mut changes = roots.subscribe();
        let mut is_notified = || {
            let changed = changes.has_changed().unwrap();
            changes.mark_unchanged();
            changed
        };

        roots.add("file:///a").unwrap();
        assert!(!is_notified());
        roots.add(Root::new("file:///a").name("A")).unwrap();
        assert!(is_notified());
        roots.clone().add("file:///b").unwrap();
        assert!(is_notified());
        roots.set(roots.list()).unwrap();
        assert!(!is_notified());
        assert!(roots.remove("file:///a") && is_notified());
        assert!(!roots.remove("file:///a") && !is_notified());
        roots.set(Vec::<Root>::new()).unwrap();
        assert!(is_notified());
        assert_eq!(roots.list(), []);
    }

    #[test]
    fn roots_are_file_uris_without_traversal() {
        for uri in [
            "file:///",
            "file:///home/ada",
            "file://host/share",
            "FILE:///a%20b",
        ] {
            assert!(Roots::new([uri]).is_ok(), "{uri}");
        }
        for uri in [
            "",
            "/home",
            "file:",
            "file://",
            "file:/a",
            "https://example.com/",
            "file:///a b",
            "file:///a?b",
            "file:///a#b",
            "file:///ü",
            "file:///%zz",
            "file:///a\0",
        ] {
            assert_eq!(
                Roots::new([uri]).unwrap_err(),
                RootError::Uri(uri.to_owned())
            );
        }
        for uri in [
            "file:///a/..",
            "file:///a/../b",
            "file:///./a",
            "file:///%2e%2E/a",
            "file:///.%2e",
            "file:///a%2f..",
            "file:///a%5C",
            "file:///%00",
        ] {
            assert_eq!(
                Roots::new([uri]).unwrap_err(),
                RootError::Traversal(uri.to_owned())
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn paths_become_uris() {
        let roots = Roots::new([Path::new("/home/ada/my notes/100%")]).unwrap();
        assert_eq!(roots.list()[0].uri, "file:///home/ada/my%20notes/100%25");
        assert!(Roots::new([Path::new("notes")]).is_err());
        assert!(Roots::new([Path::new("/a/../b")]).is_err());
    }
}
