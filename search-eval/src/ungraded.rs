//! Lists search results without a grade, sorted by name so that the order does not reveal the rank.

use serde::Serialize;

use crate::{
    error::EvalError,
    query_set::QuerySet,
    repositories::{self, QueryResult},
    score::RESULT_LIMIT,
};

/// A query and its files without a grade.
#[derive(Serialize)]
struct UngradedFiles<'a> {
    package: &'a str,
    query: &'a str,
    files: Vec<String>,
}

/// Returns one JSON object per line and query.
pub(crate) fn list_ungraded(folders: &[String]) -> Result<String, EvalError> {
    let mut lines = String::new();
    for query_set in QuerySet::all()? {
        let found = repositories::found(&query_set, folders, RESULT_LIMIT)?;
        for (query, QueryResult { mut files, .. }) in query_set.queries.iter().zip(found) {
            files.retain(|path| !query.is_graded(path));
            // By name, not by rank: the rank must not influence the grade.
            files.sort_unstable();
            let open = UngradedFiles {
                package: &query_set.package,
                query: &query.text,
                files,
            };
            if !open.files.is_empty() {
                lines += &serde_json::to_string(&open)
                    .map_err(|error| EvalError::new(error.to_string()))?;
                lines.push('\n');
            }
        }
    }
    Ok(lines)
}
