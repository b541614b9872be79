//! Which files are looked at: a condition in SQL on `file f`.

use std::path::Path;

use rusqlite::types::Value;

use super::CodeQuery;
use crate::ContextError;
use crate::index::{MOST_WILDCARDS, Tree, wildcards};

/// A pattern with more alternatives than these is refused.
const MOST_ALTERNATIVES: usize = 256;
/// So is a longer one, in bytes.
const LONGEST_PATH: usize = 500;

/// A condition and its values, which are numbered from `FIRST_VALUE` on.
pub(super) struct Filter {
    pub(super) condition: String,
    pub(super) values: Vec<Value>,
}

/// The numbers before are those of the question itself.
pub(super) const FIRST_VALUE: usize = 3;

impl Filter {
    pub(super) fn new(tree: &Tree, query: &CodeQuery) -> Result<Self, ContextError> {
        let mut filter = Self {
            condition: String::new(),
            values: Vec::new(),
        };
        let id = filter.value(tree.id);
        filter.condition = format!("f.tree = {id}");
        if let Some(language) = &query.language {
            let language = filter.value(language.trim().to_lowercase());
            filter.and(&format!("f.language = {language}"));
        }
        if let Some(path) = &query.path {
            filter.path(below(&tree.root, path.trim()))?;
        }
        Ok(filter)
    }

    fn path(&mut self, path: &str) -> Result<(), ContextError> {
        if path.len() > LONGEST_PATH {
            return Err(ContextError::refused(format!(
                "`path` has more than {LONGEST_PATH} bytes; give a shorter one"
            )));
        }
        if wildcards(path) > MOST_WILDCARDS {
            return Err(ContextError::refused(format!(
                "`path` has more than {MOST_WILDCARDS} of `*`, `?`, `[` and `{{`; give a simpler one"
            )));
        }
        let path = path.replace('\\', "/");
        let path = path.trim_start_matches("./").trim_start_matches('/');
        if path.is_empty() {
            return Ok(());
        }
        let condition = if path.contains(['*', '?', '[', '{']) {
            let any = alternatives(path)?;
            let any: Vec<String> = any.iter().map(|pattern| self.glob(pattern)).collect();
            format!("({})", any.join(" OR "))
        } else {
            let prefix = self.value(path.to_owned());
            format!("substr(f.path, 1, length({prefix})) = {prefix}")
        };
        self.and(&condition);
        Ok(())
    }

    /// In SQLite `*` goes over `/` too. Where the pattern has as many of them as the path, it did not.
    fn glob(&mut self, pattern: &str) -> String {
        let slashes = pattern.matches('/').count();
        let matches = |value: String| format!("f.path GLOB {value}");
        if slashes == 0 {
            let anywhere = self.value(format!("*/{pattern}"));
            let at_root = self.value(pattern.to_owned());
            return format!("{} OR {}", matches(at_root), matches(anywhere));
        }
        let condition = matches(self.value(pattern.to_owned()));
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

    fn value(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("?{}", FIRST_VALUE - 1 + self.values.len())
    }
}

/// A path in the tree may be given in full.
fn below<'a>(root: &Path, path: &'a str) -> &'a str {
    let root = root.to_str().filter(|root| path.starts_with(root));
    let below = root.map(|root| &path[root.len()..]);
    below
        .filter(|below| below.is_empty() || below.starts_with(['/', '\\']))
        .unwrap_or(path)
}

/// A pattern without braces, and with `**/` meaning no folder as well as some, is several patterns of SQLite.
fn alternatives(pattern: &str) -> Result<Vec<String>, ContextError> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        match braces(&pattern) {
            Some(choices) => open.extend(choices),
            None => done.extend(with_and_without_folders(&pattern)?),
        }
        if done.len() + open.len() > MOST_ALTERNATIVES {
            return Err(too_many());
        }
    }
    Ok(done)
}

/// The patterns that the first group of braces stands for; braces may have others in them.
fn braces(pattern: &str) -> Option<Vec<String>> {
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

fn with_and_without_folders(pattern: &str) -> Result<Vec<String>, ContextError> {
    let mut parts = pattern.split("**/");
    let mut all: Vec<String> = parts.next().map(str::to_owned).into_iter().collect();
    for part in parts {
        let both = |begin: String| [format!("{begin}{part}"), format!("{begin}**/{part}")];
        all = all.into_iter().flat_map(both).collect();
        if all.len() > MOST_ALTERNATIVES {
            return Err(too_many());
        }
    }
    Ok(all)
}

fn too_many() -> ContextError {
    ContextError::refused(format!(
        "`path` stands for more than {MOST_ALTERNATIVES} patterns; give one with fewer braces and `**`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(pattern: &str) -> Vec<String> {
        let mut all = alternatives(pattern).unwrap();
        all.sort();
        all
    }

    #[test]
    fn every_alternative_of_a_pattern_counts() {
        let many = (0..40).map(|number| format!("a{number}"));
        let many = many.collect::<Vec<_>>().join(",");
        assert_eq!(
            alternatives(&format!("src/{{{many}}}.rs")).unwrap().len(),
            40
        );
        assert_eq!(sorted("{a,b{c,d}}.{x,y}").len(), 6);
        assert_eq!(sorted("{a,b{c,d}}"), ["a", "bc", "bd"]);
        assert_eq!(sorted("a/**/b"), ["a/**/b", "a/b"]);
        assert_eq!(sorted("{open"), ["{open"]);
    }

    #[test]
    fn a_pattern_of_too_many_alternatives_is_refused() {
        for wrong in [
            "{a,b}".repeat(9),
            "**/".repeat(9),
            format!("{{{}}}", ",".repeat(300)),
        ] {
            let refused = alternatives(&wrong).unwrap_err();
            assert!(matches!(refused, ContextError::Refused(_)), "{wrong}");
        }
    }
}
