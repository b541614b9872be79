//! What a reference means, seen from a URL: redirects and the `endpoint` event speak in references.

use super::{BadUrl, Url};

impl Url {
    /// Finds what a reference names, as RFC 3986, section 5.2 has it; a fragment is dropped.
    pub(crate) fn resolve(&self, reference: &str) -> Result<Self, BadUrl> {
        let reference = reference.trim_ascii();
        let reference = reference.split('#').next().unwrap_or_default();
        if has_scheme(reference) {
            return reference.parse();
        }
        let (before, own_path, own_query) = self.parts();
        if reference.starts_with("//") {
            let scheme = self.origin().scheme.as_str();
            return format!("{scheme}:{reference}").parse();
        }
        let (path, query) = split_query(reference);
        let path = match path {
            "" => own_path.to_owned(),
            path if path.starts_with('/') => without_dots(path),
            path => {
                let folder = own_path.rfind('/').map_or("/", |end| &own_path[..=end]);
                without_dots(&format!("{folder}{path}"))
            }
        };
        let query = match reference {
            "" => own_query,
            _ => query,
        };
        format!("{before}{path}{query}").parse()
    }

    /// Returns scheme and authority, the path, and the query with its question mark.
    fn parts(&self) -> (&str, &str, &str) {
        let (before, rest) = self.0.text.split_at(self.0.path);
        let (path, query) = split_query(rest);
        (before, path, query)
    }
}

fn split_query(text: &str) -> (&str, &str) {
    text.split_at(text.find('?').unwrap_or(text.len()))
}

/// Says whether a reference is absolute: letters, then a colon before anything of a path.
fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else {
        return false;
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(allowed)
}

/// Walks through the segments `.` and `..`; nothing leads above the root.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            segment => {
                kept.push(segment);
                continue;
            }
        }
        // What ends in a dot segment names a folder.
        if last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}
