//! Judged queries: a file per package, ours below `search-eval/queries`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::failure::Failure;

/// The queries about one package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Judged {
    pub(crate) package: String,
    #[expect(dead_code, reason = "for who fetches it")]
    pub(crate) registry: String,
    pub(crate) version: String,
    /// Whether these queries were used to tune the ranking.
    pub(crate) tuned: bool,
    pub(crate) asked: Asked,
    #[serde(rename = "query")]
    pub(crate) queries: Vec<Query>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    pub(crate) text: String,
    pub(crate) kind: Kind,
    /// The category given by the authors of the query, if it is finer than `kind`.
    pub(crate) category: Option<String>,
    pub(crate) relevant: Vec<Relevant>,
}

/// The style of the natural-language queries.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Asked {
    /// In the ordinary words of the matter.
    Plainly,
    /// In other words than the code has.
    Roundabout,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The text of the query.
    Natural,
    /// A name as it stands in the code.
    Symbol,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Relevant {
    pub(crate) path: String,
    /// 3 is the file one wants, 1 one that is related.
    pub(crate) grade: u32,
}

impl Judged {
    /// All of ours, by name.
    pub(crate) fn all() -> Result<Vec<Self>, Failure> {
        Self::all_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("queries"))
    }

    /// All that have their file in this folder, by name.
    pub(crate) fn all_in(folder: &Path) -> Result<Vec<Self>, Failure> {
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| Failure::at(folder, error))? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "toml") {
                files.push(path);
            }
        }
        files.sort();
        files.iter().map(|file| Self::read(file)).collect()
    }

    /// The folder that the package unpacks to.
    pub(crate) fn folder(&self) -> String {
        format!("{}-{}", self.package, self.version)
    }

    fn read(file: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(file).map_err(|error| Failure::at(file, error))?;
        toml::from_str(&text).map_err(|error| Failure::at(file, error))
    }
}

impl Query {
    /// The grade of a file; 0 for one that is not listed.
    pub(crate) fn grade(&self, path: &str) -> u32 {
        let listed = self.relevant.iter().find(|relevant| relevant.path == path);
        listed.map_or(0, |relevant| relevant.grade)
    }

    /// Returns whether a file has been graded for this query.
    pub(crate) fn is_judged(&self, path: &str) -> bool {
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
    fn every_query_is_one_question_with_graded_files() {
        let all = Judged::all().unwrap();
        assert_eq!(all.iter().filter(|judged| judged.tuned).count(), 3);
        assert!(all.iter().any(|judged| !judged.tuned));
        for query in all.iter().flat_map(|judged| &judged.queries) {
            assert!(!query.text.is_empty() && !query.relevant.is_empty());
            let mut paths: Vec<_> = query.relevant.iter().map(|file| &file.path).collect();
            paths.sort_unstable();
            paths.dedup();
            assert_eq!(paths.len(), query.relevant.len(), "{}", query.text);
            assert!(query.grades().iter().all(|grade| (1..=3).contains(grade)));
        }
    }
}
