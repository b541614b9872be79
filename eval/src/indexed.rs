//! A folder, indexed and searched as the context server does it.

use std::path::Path;

use turnbuckle_context::Database;
use turnbuckle_context::code::{CodeQuery, search};
use turnbuckle_context::words::identifier_parts;

use crate::failure::Failure;

/// A folder and its index, which is gone with this.
pub(crate) struct Indexed {
    db: Database,
    _place: tempfile::TempDir,
}

impl Indexed {
    pub(crate) fn new(folder: &Path) -> Result<Self, Failure> {
        let place = tempfile::tempdir()?;
        let db = Database::open(place.path().join("index.db"))?;
        let mut files = vec![];
        walk(folder, folder, &mut files);
        db.write(|db| {
            db.execute("INSERT INTO tree (id, root, branch, settings, counts, refreshed) VALUES (1,'r','m','{}','{}',0)", [])?;
            for (path, text) in &files {
                db.execute("INSERT INTO file (tree, path, size, modified, hash, language, indexed) VALUES (1, ?1, 0,0,x'','x',0)", [path])?;
                let file = db.last_insert_rowid();
                let lines: Vec<&str> = text.lines().collect();
                for part in lines.chunks(40) {
                    let body = part.join("\n");
                    let defs = defs(part);
                    db.execute("INSERT INTO chunk (file, first_line, last_line, defs, body) VALUES (?1, 1, 1, ?2, ?3)", (file, &defs, &body))?;
                    let id = db.last_insert_rowid();
                    db.execute("INSERT INTO chunk_fts (rowid, body, idents, path, defs) VALUES (?1, ?2, ?3, ?4, ?5)", (id, &body, identifier_parts(&body), path, defs))?;
                }
            }
            Ok(())
        })?;
        Ok(Self { db, _place: place })
    }

    /// The paths that are found, best first.
    pub(crate) fn search(&self, text: &str, limit: usize) -> Result<Vec<String>, Failure> {
        let mut query = CodeQuery::new(text);
        query.limit = limit;
        let hits = search(&self.db, 1, &query)?;
        Ok(hits.into_iter().map(|hit| hit.path).collect())
    }
}

fn defs(lines: &[&str]) -> String {
    let mut out = vec![];
    for line in lines {
        let w: Vec<&str> = line
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|w| !w.is_empty())
            .collect();
        for pair in w.windows(2).take(4) {
            if [
                "fn",
                "struct",
                "enum",
                "trait",
                "def",
                "class",
                "function",
                "mod",
                "type",
                "macro_rules",
            ]
            .contains(&pair[0])
            {
                out.push(pair[1].to_owned());
                break;
            }
        }
    }
    out.join(" ")
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    let Ok(dir) = std::fs::read_dir(folder) else {
        return;
    };
    for e in dir.flatten() {
        let p = e.path();
        if p.is_dir() {
            walk(root, &p, files)
        } else if let Ok(text) = std::fs::read_to_string(&p) {
            if text.len() < 1_000_000 {
                files.push((p.strip_prefix(root).unwrap().display().to_string(), text));
            }
        }
    }
}
