//! The URIs of resources that clients see, and the servers they belong to.
//!
//! URIs stay as they are. If several servers have the same one, the first server of the configuration keeps it, and the
//! others get `turnbuckle://server/encoded-uri`. That form is always accepted.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use turnbuckle_text::percent::{decode_strict, encode_component};

/// Maximum number of URIs that are kept for a server.
const MAX_URIS_PER_SERVER: usize = 100_000;

const OWN_SCHEME: &str = "turnbuckle://";
/// Resources of user interfaces keep their scheme, because hosts require it.
const UI_SCHEME: &str = "ui://";

/// Returns the URI of a resource that names its server.
pub(crate) fn own_uri(server: &str, uri: &str) -> String {
    own(server, uri, &encode_component(uri))
}

/// Returns the URI template of a server that names it. The template is not encoded, so that its variables can be used.
pub(crate) fn own_template(server: &str, template: &str) -> String {
    own(server, template, template)
}

fn own(server: &str, uri: &str, written: &str) -> String {
    let own_scheme = if uri.starts_with(UI_SCHEME) {
        UI_SCHEME
    } else {
        OWN_SCHEME
    };
    format!("{own_scheme}{}/{written}", encode_component(server))
}

/// Returns the server and the original URI of a URI that names its server.
pub(crate) fn parse_own_uri(uri: &str) -> Option<(String, String)> {
    let is_ui = uri.starts_with(UI_SCHEME);
    let rest = uri.strip_prefix(if is_ui { UI_SCHEME } else { OWN_SCHEME })?;
    let (server, written) = rest.split_once('/')?;
    let decode = |text: &str| String::from_utf8(decode_strict(text)?).ok();
    // An expanded template always contains a colon, an encoded URI never.
    let original = if written.contains(':') {
        written.to_owned()
    } else {
        decode(written)?
    };
    let is_own = original.contains(':') && (!is_ui || original.starts_with(UI_SCHEME));
    is_own.then_some((decode(server)?, original))
}

/// Returns the scheme of a URI, in lower case.
pub(crate) fn scheme(uri: &str) -> Option<Cow<'_, str>> {
    let (scheme, _) = uri.split_once(':')?;
    Some(if scheme.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(scheme.to_ascii_lowercase())
    } else {
        Cow::Borrowed(scheme)
    })
}

/// The URIs, or URI templates, that servers have listed.
#[derive(Debug, Default)]
pub(crate) struct UriTable {
    /// The names of the servers that have a URI.
    holders: HashMap<Arc<str>, Vec<Arc<str>>>,
    servers: HashMap<Arc<str>, ServerUris>,
}

#[derive(Debug, Default)]
struct ServerUris {
    uris: HashSet<Arc<str>>,
    schemes: HashSet<String>,
}

impl UriTable {
    /// Adds the URIs of a page of a server's list. Returns whether another server has one of them.
    pub(crate) fn add<'u>(
        &mut self,
        server: &Arc<str>,
        uris: impl IntoIterator<Item = &'u str>,
    ) -> bool {
        let mut collides = false;
        let known = self.servers.entry(Arc::clone(server)).or_default();
        for uri in uris {
            if known.uris.len() >= MAX_URIS_PER_SERVER || known.uris.contains(uri) {
                continue;
            }
            if let Some(scheme) = scheme(uri)
                && !known.schemes.contains(&*scheme)
            {
                known.schemes.insert(scheme.into_owned());
            }
            let uri: Arc<str> = uri.into();
            let holders = self.holders.entry(Arc::clone(&uri)).or_default();
            holders.push(Arc::clone(server));
            collides |= holders.len() > 1;
            known.uris.insert(uri);
        }
        collides
    }

    /// Replaces the URIs of a server by those of its complete list. Returns whether another server has one of the new
    /// ones.
    pub(crate) fn replace<'u>(
        &mut self,
        server: &Arc<str>,
        uris: impl IntoIterator<Item = &'u str> + Clone,
    ) -> bool {
        let known = self.servers.get(server).map(|known| &known.uris);
        let is_known = |uri| known.is_some_and(|known| known.contains(uri));
        let mut count = 0;
        if uris
            .clone()
            .into_iter()
            .inspect(|_| count += 1)
            .all(is_known)
            && known.is_none_or(|known| known.len() == count)
        {
            return false;
        }
        let before: HashSet<_> = known.into_iter().flatten().cloned().collect();
        for uri in self.servers.remove(server).unwrap_or_default().uris {
            if let Some(holders) = self.holders.get_mut(&uri) {
                holders.retain(|holder| holder != server);
                if holders.is_empty() {
                    self.holders.remove(&uri);
                }
            }
        }
        self.add(server, uris.clone());
        let new = uris.into_iter().filter(|uri| !before.contains(*uri));
        new.into_iter().any(|uri| self.holders(uri).len() > 1)
    }

    /// Returns the servers that have a URI.
    pub(crate) fn holders(&self, uri: &str) -> &[Arc<str>] {
        self.holders.get(uri).map_or(&[], |holders| holders)
    }

    /// Returns whether a server has a URI that begins with a text.
    pub(crate) fn has_below(&self, server: &str, start: &str) -> bool {
        let known = self.servers.get(server);
        known.is_some_and(|known| known.uris.iter().any(|uri| uri.starts_with(start)))
    }

    /// Returns whether a server has URIs of a scheme.
    pub(crate) fn has_scheme(&self, server: &str, scheme: &str) -> bool {
        let known = self.servers.get(server);
        known.is_some_and(|known| known.schemes.contains(scheme))
    }

    /// Returns whether a URI is an expansion of a template of a server.
    pub(crate) fn matches_template(&self, server: &str, uri: &str) -> bool {
        let known = self.servers.get(server);
        known.is_some_and(|known| {
            let mut templates = known.uris.iter();
            templates.any(|template| template_matches(template, uri))
        })
    }
}

/// Returns whether a URI can be an expansion of a URI template (RFC 6570). Values are not checked exactly: a simple
/// variable matches anything without a slash, and every other expression matches anything.
fn template_matches(template: &str, uri: &str) -> bool {
    let Some((first, mut rest)) = template.split_once('{') else {
        return template == uri;
    };
    let Some(tail) = uri.strip_prefix(first) else {
        return false;
    };
    // The positions in `tail` up to which the template matches.
    let mut reached = vec![false; tail.len() + 1];
    reached[0] = true;
    loop {
        let Some((expression, after)) = rest.split_once('}') else {
            return false;
        };
        let is_simple = !expression.starts_with(['+', '#', '.', '/', ';', '?', '&']);
        for at in 1..=tail.len() {
            let is_value = !is_simple || tail.as_bytes()[at - 1] != b'/';
            reached[at] |= reached[at - 1] && is_value;
        }
        let (literal, next) = match after.split_once('{') {
            Some((literal, next)) => (literal, Some(next)),
            None => (after, None),
        };
        let mut shifted = vec![false; tail.len() + 1];
        for at in (0..=tail.len()).filter(|at| reached[*at]) {
            if tail.as_bytes()[at..].starts_with(literal.as_bytes()) {
                shifted[at + literal.len()] = true;
            }
        }
        reached = shifted;
        match next {
            Some(next) => rest = next,
            None => return reached[tail.len()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_uris_are_parsed_into_what_they_were_made_of() {
        for (server, uri) in [
            ("b", "file:///x y"),
            ("a/b", "https://h/?q=%2F"),
            ("b", "ui://b/ui%3A%2F%2Fc"),
            ("b", "turnbuckle://b/file%3A%2F%2F%2Fx"),
            ("b", "urn:x"),
        ] {
            let own = own_uri(server, uri);
            assert_eq!(
                parse_own_uri(&own),
                Some((server.into(), uri.into())),
                "{own}"
            );
            assert_eq!(own.starts_with("ui://"), uri.starts_with("ui://"));
        }
        assert_eq!(own_uri("b", "ui://x"), "ui://b/ui%3A%2F%2Fx");
    }

    #[test]
    fn templates_keep_their_variables() {
        let own = own_template("b", "file:///{name}");
        assert_eq!(own, "turnbuckle://b/file:///{name}");
        let expanded = own.replace("{name}", "a%20b");
        assert_eq!(
            parse_own_uri(&expanded),
            Some(("b".into(), "file:///a%20b".into()))
        );
    }

    #[test]
    fn other_uris_name_no_server() {
        for uri in [
            "turnbuckle://a",
            "turnbuckle://servers",
            "turnbuckle://a/%6",
            "turnbuckle://a/%zz",
            "turnbuckle://a/%ff",
            "turnbuckle://a/x",
            "ui://a/x",
            "ui://a/file%3A%2F%2Fx",
            "file:///a/b",
        ] {
            assert_eq!(parse_own_uri(uri), None, "{uri}");
        }
    }

    #[test]
    fn templates_match_their_expansions() {
        for (template, uri, expected) in [
            ("file:///{name}", "file:///a", true),
            ("file:///{name}", "file:///a/b", false),
            ("file:///{+path}", "file:///a/b", true),
            ("db://{t}/rows/{id}", "db://x/rows/7", true),
            ("db://{t}/rows/{id}", "db://x/columns/7", false),
            ("db://{t}.x.{u}", "db://a.x.b.x.c", true),
            ("x:{?q}", "x:", true),
            ("x:{broken", "x:1", false),
            ("x:é{a}", "x:é1", true),
            ("plain:x", "plain:x", true),
        ] {
            assert_eq!(
                template_matches(template, uri),
                expected,
                "{template} {uri}"
            );
        }
    }

    #[test]
    fn a_complete_list_replaces_an_older_one() {
        let mut table = UriTable::default();
        let server: Arc<str> = "a".into();
        table.add(&server, ["x:1", "x:2"]);
        table.replace(&server, ["y:1"]);
        assert!(table.holders("x:1").is_empty());
        assert_eq!(table.holders("y:1").len(), 1);
        assert!(!table.has_scheme("a", "x"));
    }
}
