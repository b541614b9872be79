//! Judged queries: one file per package, ours in `search-eval/queries`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::error::EvalError;

/// The queries about one package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuerySet {
    pub(crate) package: String,
    #[expect(dead_code, reason = "read by fetch.py")]
    pub(crate) registry: String,
    pub(crate) version: String,
    /// True if these queries were used to tune the ranking.
    pub(crate) tuned: bool,
    pub(crate) style: QueryStyle,
    #[serde(rename = "query")]
    pub(crate) queries: Vec<JudgedQuery>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JudgedQuery {
    pub(crate) text: String,
    pub(crate) kind: QueryKind,
    /// The category given by the authors of the query, if it is finer than `kind`.
    pub(crate) category: Option<String>,
    pub(crate) relevant: Vec<RelevantFile>,
}

/// The style of the natural-language queries.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QueryStyle {
    /// With the usual words for the topic.
    Plain,
    /// With other words than the code.
    Indirect,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QueryKind {
    /// The text of the query.
    Natural,
    /// A name from the code.
    Symbol,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RelevantFile {
    pub(crate) path: String,
    /// 3 for the expected file, 2 for a helpful file, 1 for a related file.
    pub(crate) grade: u32,
}

impl QuerySet {
    /// Returns all query sets of this repository, ordered by name.
    pub(crate) fn all() -> Result<Vec<Self>, EvalError> {
        Self::all_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("queries"))
    }

    /// Returns all query sets in a folder, ordered by name.
    pub(crate) fn all_in(folder: &Path) -> Result<Vec<Self>, EvalError> {
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| EvalError::at(folder, error))? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "toml") {
                files.push(path);
            }
        }
        files.sort();
        files.iter().map(|file| Self::read(file)).collect()
    }

    /// Returns the name of the unpacked folder of the package.
    pub(crate) fn folder(&self) -> String {
        format!("{}-{}", self.package, self.version)
    }

    fn read(file: &Path) -> Result<Self, EvalError> {
        let text = fs::read_to_string(file).map_err(|error| EvalError::at(file, error))?;
        toml::from_str(&text).map_err(|error| EvalError::at(file, error))
    }
}

impl JudgedQuery {
    /// Returns the grade of a file; 0 if it is not listed.
    pub(crate) fn grade(&self, path: &str) -> u32 {
        let listed = self.relevant.iter().find(|relevant| relevant.path == path);
        listed.map_or(0, |relevant| relevant.grade)
    }

    /// Returns whether a file has been graded for this query.
    pub(crate) fn is_graded(&self, path: &str) -> bool {
        self.grade(path) > 0
    }

    pub(crate) fn grades(&self) -> Vec<u32> {
        self.relevant
            .iter()
            .map(|relevant| relevant.grade)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_has_text_and_graded_files() {
        let all = QuerySet::all().unwrap();
        assert_eq!(all.iter().filter(|query_set| query_set.tuned).count(), 3);
        assert!(all.iter().any(|query_set| !query_set.tuned));
        for query in all.iter().flat_map(|query_set| &query_set.queries) {
            assert!(!query.text.is_empty() && !query.relevant.is_empty());
            let mut paths: Vec<_> = query.relevant.iter().map(|file| &file.path).collect();
            paths.sort_unstable();
            paths.dedup();
            assert_eq!(paths.len(), query.relevant.len(), "{}", query.text);
            assert!(query.grades().iter().all(|grade| (1..=3).contains(grade)));
        }
    }
}
