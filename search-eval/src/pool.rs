//! Lists search results without a grade, sorted by name so that the order does not reveal the rank.

use serde::Serialize;

use crate::{
    failure::Failure,
    judged::Judged,
    measure::LOOKED_AT,
    repositories::{self, Found},
};

/// A query and its files without a grade.
#[derive(Serialize)]
struct Open<'a> {
    package: &'a str,
    query: &'a str,
    files: Vec<String>,
}

/// One JSON object per line and query.
pub(crate) fn to_judge(folders: &[String]) -> Result<String, Failure> {
    let mut lines = String::new();
    for judged in Judged::all()? {
        let found = repositories::found(&judged, folders, LOOKED_AT)?;
        for (query, Found { mut files, .. }) in judged.queries.iter().zip(found) {
            files.retain(|path| !query.is_judged(path));
            // By name, not by rank: the rank must not influence the grade.
            files.sort_unstable();
            let open = Open {
                package: &judged.package,
                query: &query.text,
                files,
            };
            if !open.files.is_empty() {
                lines += &serde_json::to_string(&open)
                    .map_err(|error| Failure::new(error.to_string()))?;
                lines.push('\n');
            }
        }
    }
    Ok(lines)
}
