//! The SQL condition on `file f` for the filters of a query.

use std::path::Path;

use rusqlite::types::Value;

use super::CodeQuery;
use crate::{
    ContextError,
    code_index::{IndexTree, MAX_WILDCARDS, count_wildcards},
};

/// A pattern that expands to more alternatives is rejected.
const MAX_ALTERNATIVES: usize = 256;
/// A longer path is rejected.
const MAX_PATH_BYTES: usize = 500;

/// A condition and its parameters, which are numbered from `FIRST_VALUE`.
pub(super) struct SqlFilter {
    pub(super) condition: String,
    pub(super) values: Vec<Value>,
}

/// Lower parameter numbers belong to the query itself.
pub(super) const FIRST_VALUE: usize = 3;

impl SqlFilter {
    pub(super) fn new(tree: &IndexTree, query: &CodeQuery) -> Result<Self, ContextError> {
        let mut filter = Self {
            condition: String::new(),
            values: Vec::new(),
        };
        let id = filter.bind(tree.id);
        filter.condition = format!("f.tree = {id}");
        if let Some(language) = &query.language {
            let language = filter.bind(language.trim().to_lowercase());
            filter.and(&format!("f.language = {language}"));
        }
        if let Some(path) = &query.path {
            filter.add_path(strip_root(&tree.root, path.trim()))?;
        }
        Ok(filter)
    }

    fn add_path(&mut self, path: &str) -> Result<(), ContextError> {
        if path.len() > MAX_PATH_BYTES {
            return Err(ContextError::invalid(format!(
                "`path` has more than {MAX_PATH_BYTES} bytes; pass a shorter one"
            )));
        }
        if count_wildcards(path) > MAX_WILDCARDS {
            return Err(ContextError::invalid(format!(
                "`path` has more than {MAX_WILDCARDS} of `*`, `?`, `[` and `{{`; pass a simpler one"
            )));
        }
        let path = path.replace('\\', "/");
        let path = path.trim_start_matches("./").trim_start_matches('/');
        if path.is_empty() {
            return Ok(());
        }
        let condition = if path.contains(['*', '?', '[', '{']) {
            let any = expand_alternatives(path)?;
            let any: Vec<String> = any
                .iter()
                .map(|pattern| self.glob_condition(pattern))
                .collect();
            format!("({})", any.join(" OR "))
        } else {
            let prefix = self.bind(path.to_owned());
            format!("substr(f.path, 1, length({prefix})) = {prefix}")
        };
        self.and(&condition);
        Ok(())
    }

    /// Returns the condition for one glob. In SQLite `*` also matches `/`; comparing the number of slashes excludes
    /// such matches.
    fn glob_condition(&mut self, pattern: &str) -> String {
        let slashes = pattern.matches('/').count();
        let matches = |value: String| format!("f.path GLOB {value}");
        if slashes == 0 {
            let anywhere = self.bind(format!("*/{pattern}"));
            let at_root = self.bind(pattern.to_owned());
            return format!("{} OR {}", matches(at_root), matches(anywhere));
        }
        let condition = matches(self.bind(pattern.to_owned()));
        if pattern.contains("**") {
            return condition;
        }
        let count = "length(f.path) - length(replace(f.path, '/', ''))";
        format!("({condition} AND {count} = {slashes})")
    }

    fn and(&mut self, condition: &str) {
        self.condition.push_str(" AND ");
        self.condition.push_str(condition);
    }

    fn bind(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("?{}", FIRST_VALUE - 1 + self.values.len())
    }
}

/// Removes the root from an absolute path inside the tree.
fn strip_root<'a>(root: &Path, path: &'a str) -> &'a str {
    let root = root.to_str().filter(|root| path.starts_with(root));
    let below = root.map(|root| &path[root.len()..]);
    below
        .filter(|below| below.is_empty() || below.starts_with(['/', '\\']))
        .unwrap_or(path)
}

/// Expands braces, and `**/` to both "no folder" and "any folders", because SQLite's GLOB has neither.
fn expand_alternatives(pattern: &str) -> Result<Vec<String>, ContextError> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        match expand_braces(&pattern) {
            Some(choices) => open.extend(choices),
            None => done.extend(expand_globstars(&pattern)?),
        }
        if done.len() + open.len() > MAX_ALTERNATIVES {
            return Err(too_many_alternatives());
        }
    }
    Ok(done)
}

/// Expands the first group of braces, which may contain nested groups.
fn expand_braces(pattern: &str) -> Option<Vec<String>> {
    let begin = pattern.find('{')?;
    let (mut depth, mut from) = (0_usize, begin + 1);
    let mut choices = Vec::new();
    for (at, sign) in pattern.bytes().enumerate().skip(begin) {
        match sign {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' => {}
            _ => continue,
        }
        if depth == 0 || (depth == 1 && sign == b',') {
            choices.push(&pattern[from..at]);
            from = at + 1;
        }
        if depth == 0 {
            let (before, after) = (&pattern[..begin], &pattern[from..]);
            let whole = |choice: &str| format!("{before}{choice}{after}");
            return Some(choices.into_iter().map(whole).collect());
        }
    }
    None
}

fn expand_globstars(pattern: &str) -> Result<Vec<String>, ContextError> {
    let mut parts = pattern.split("**/");
    let mut all: Vec<String> = parts.next().map(str::to_owned).into_iter().collect();
    for part in parts {
        let both = |begin: String| [format!("{begin}{part}"), format!("{begin}**/{part}")];
        all = all.into_iter().flat_map(both).collect();
        if all.len() > MAX_ALTERNATIVES {
            return Err(too_many_alternatives());
        }
    }
    Ok(all)
}

fn too_many_alternatives() -> ContextError {
    ContextError::invalid(format!(
        "`path` expands to more than {MAX_ALTERNATIVES} patterns; use fewer braces and `**`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(pattern: &str) -> Vec<String> {
        let mut all = expand_alternatives(pattern).unwrap();
        all.sort();
        all
    }

    #[test]
    fn all_alternatives_of_a_pattern_are_expanded() {
        let many = (0..40).map(|number| format!("a{number}"));
        let many = many.collect::<Vec<_>>().join(",");
        assert_eq!(
            expand_alternatives(&format!("src/{{{many}}}.rs"))
                .unwrap()
                .len(),
            40
        );
        assert_eq!(sorted("{a,b{c,d}}.{x,y}").len(), 6);
        assert_eq!(sorted("{a,b{c,d}}"), ["a", "bc", "bd"]);
        assert_eq!(sorted("a/**/b"), ["a/**/b", "a/b"]);
        assert_eq!(sorted("{open"), ["{open"]);
    }

    #[test]
    fn a_pattern_with_too_many_alternatives_is_rejected() {
        for wrong in [
            "{a,b}".repeat(9),
            "**/".repeat(9),
            format!("{{{}}}", ",".repeat(300)),
        ] {
            let error = expand_alternatives(&wrong).unwrap_err();
            assert!(matches!(error, ContextError::InvalidRequest(_)), "{wrong}");
        }
    }
}
