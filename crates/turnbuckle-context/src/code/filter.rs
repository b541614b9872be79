//! Which files are looked at: a condition in SQL on `file f`.

use std::path::Path;

use rusqlite::types::Value;

use super::CodeQuery;
use crate::index::Tree;

/// A pattern with more alternatives than these is cut off there.
const MOST_ALTERNATIVES: usize = 16;

/// A condition and its values, which are numbered from `FIRST_VALUE` on.
pub(super) struct Filter {
    pub(super) condition: String,
    pub(super) values: Vec<Value>,
}

/// The numbers before are those of the question itself.
pub(super) const FIRST_VALUE: usize = 3;

impl Filter {
    pub(super) fn new(tree: &Tree, query: &CodeQuery) -> Self {
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
            filter.path(below(&tree.root, path.trim()));
        }
        filter
    }

    fn path(&mut self, path: &str) {
        let path = path.replace('\\', "/");
        let path = path.trim_start_matches("./").trim_start_matches('/');
        if path.is_empty() {
            return;
        }
        let condition = if path.contains(['*', '?', '[', '{']) {
            let any = alternatives(path);
            let any: Vec<String> = any.iter().map(|pattern| self.glob(pattern)).collect();
            format!("({})", any.join(" OR "))
        } else {
            let prefix = self.value(path.to_owned());
            format!("substr(f.path, 1, length({prefix})) = {prefix}")
        };
        self.and(&condition);
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
fn alternatives(pattern: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        if done.len() + open.len() >= MOST_ALTERNATIVES {
            break;
        }
        match braces(&pattern) {
            Some((before, inside, after)) => {
                let choices = inside.split(',').take(MOST_ALTERNATIVES);
                open.extend(choices.map(|choice| format!("{before}{choice}{after}")));
            }
            None => {
                if let Some((before, after)) = pattern.split_once("**/") {
                    done.push(format!("{before}{after}"));
                }
                done.push(pattern);
            }
        }
    }
    done
}

fn braces(pattern: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = pattern.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    Some((before, inside, after))
}
