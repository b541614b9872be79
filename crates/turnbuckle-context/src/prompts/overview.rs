//! What an index says of a repository at a glance.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use rusqlite::Transaction;

use crate::{
    ContextError, DataDir, Database,
    answer::{quote_lines, sanitize, truncate},
    index,
};

/// Languages and folders that are named.
const MAX_LISTED: usize = 12;
/// Characters of the read-me that are shown.
const MAX_README_CHARS: usize = 3_000;

/// Languages, folders and the beginning of the read-me, if the folder is indexed.
pub(super) fn repository_overview(
    data_dir: &DataDir,
    database: &Database,
    folder: &Path,
) -> Result<Option<String>, ContextError> {
    let tree = index::tree_for(database, folder)?;
    let Some(tree) = tree.filter(|tree| data_dir.allows(&tree.root)) else {
        return Ok(None);
    };
    let (languages, folders, readme) = database.read(|db| {
        let languages = count_files_by(db, "language", tree.id)?;
        // What is before the first `/`, for files that are in a folder.
        let top =
            "CASE instr(path, '/') WHEN 0 THEN '(top)' ELSE substr(path, 1, instr(path, '/')) END";
        Ok((
            languages,
            count_files_by(db, top, tree.id)?,
            readme(db, tree.id)?,
        ))
    })?;
    let mut text = format!(
        "Its index has {} files.\nLanguages: {}\nFolders: {}",
        tree.counts.files,
        ranked_list(languages),
        ranked_list(folders)
    );
    if let Some(readme) = readme {
        let _ = write!(
            text,
            "\n\nIts read-me begins:\n\n{}",
            quote_lines(&truncate(&readme, MAX_README_CHARS))
        );
    }
    Ok(Some(text))
}

fn count_files_by(
    db: &Transaction<'_>,
    what: &str,
    tree: i64,
) -> rusqlite::Result<BTreeMap<String, i64>> {
    let select = format!("SELECT {what}, count(*) FROM file WHERE tree = ?1 GROUP BY 1");
    let mut select = db.prepare_cached(&select)?;
    let rows = select.query_map([tree], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn readme(db: &Transaction<'_>, tree: i64) -> rusqlite::Result<Option<String>> {
    let mut select = db.prepare_cached(
        "SELECT chunk.body FROM file JOIN chunk ON chunk.file = file.id \
         WHERE tree = ?1 AND path LIKE 'readme%' AND instr(path, '/') = 0 \
         ORDER BY path, first_line LIMIT 20",
    )?;
    let bodies = select.query_map([tree], |row| row.get(0))?;
    let bodies = bodies.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(Some(bodies.join("\n")).filter(|text| !text.is_empty()))
}

/// `rust 120, toml 9`: the most frequent first.
fn ranked_list(counts: BTreeMap<String, i64>) -> String {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = counts.len().saturating_sub(MAX_LISTED);
    let named = counts.into_iter().take(MAX_LISTED);
    let mut named: Vec<_> = named
        .map(|(what, count)| format!("{} {count}", sanitize(&what)))
        .collect();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    named.join(", ")
}
