//! What is still to be judged: files that the search finds and nobody has looked at, in an order that tells nothing.

use serde::Serialize;

use crate::failure::Failure;
use crate::judged::Judged;
use crate::measure::LOOKED_AT;
use crate::repositories::{self, Found};

/// A query and the files that nobody has graded for it.
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
            // By name, not by rank: whoever judges shall not know what the search thinks of them.
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
