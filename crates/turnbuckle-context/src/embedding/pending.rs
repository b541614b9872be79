//! Which texts have no embedding yet, and giving them one.

use rusqlite::{OptionalExtension as _, Transaction, params};

use super::{Of, vector};
use crate::{ContextError, Database};

/// Bytes of a text that a model gets to see; most read less.
const MOST_TEXT: usize = 6_000;

/// A text without an embedding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// The row of what it is the text of.
    pub row: i64,
    /// The text, as a model shall see it.
    pub text: String,
}

/// How much of what is kept has an embedding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// Things with an embedding.
    pub made: u64,
    /// All things.
    pub all: u64,
}

/// Returns texts that have no embedding of a model, after a row and in the order of rows.
pub fn missing(
    database: &Database,
    of: Of,
    model: &str,
    after: i64,
    limit: usize,
) -> Result<Vec<Pending>, ContextError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    database.read(|db| {
        let mut statement = db.prepare_cached(match of {
            Of::Item => MISSING_ITEMS,
            Of::Chunk => MISSING_CHUNKS,
        })?;
        let pending = statement.query_map(params![model, after, limit], pending)?;
        Ok(pending.collect::<Result<_, _>>()?)
    })
}

/// Keeps embeddings. What was changed or removed since its text was read gets none; says how many were kept.
pub fn put(
    database: &Database,
    of: Of,
    model: &str,
    made: Vec<(Pending, Vec<f32>)>,
) -> Result<usize, ContextError> {
    let unit = |(pending, vector)| Some((pending, vector::unit(vector)?));
    let made: Vec<_> = made.into_iter().filter_map(unit).collect();
    database.write(|db| {
        let mut kept = 0;
        for (pending, vector) in &made {
            // Rows are used again after a removal, so only the text tells that it is still the same.
            if text(db, of, pending.row)?.as_ref() == Some(pending) {
                let insert =
                    "INSERT OR REPLACE INTO vector (of, row, model, data) VALUES (?1, ?2, ?3, ?4)";
                let data = vector::to_bytes(vector);
                db.prepare_cached(insert)?
                    .execute(params![of.name(), pending.row, model, data])?;
                kept += 1;
            }
        }
        Ok(kept)
    })
}

/// Counts what has an embedding of a model, and what could have one.
pub fn coverage(database: &Database, of: Of, model: &str) -> Result<Coverage, ContextError> {
    let select = match of {
        Of::Item => {
            "SELECT count(*), count(v.row) FROM item i
            LEFT JOIN vector v ON v.of = 'item' AND v.row = i.row AND v.model = ?1"
        }
        Of::Chunk => {
            "SELECT count(*), count(v.row) FROM chunk c JOIN file f ON f.id = c.file
            LEFT JOIN vector v ON v.of = 'chunk' AND v.row = c.id AND v.model = ?1
            WHERE f.tree IS NOT NULL"
        }
    };
    database.read(|db| {
        let count = |row: &rusqlite::Row<'_>| {
            Ok(Coverage {
                all: row.get::<_, i64>(0)?.unsigned_abs(),
                made: row.get::<_, i64>(1)?.unsigned_abs(),
            })
        };
        Ok(db.query_row(select, [model], count)?)
    })
}

const MISSING_ITEMS: &str = "SELECT i.row, i.title, i.detail, i.body FROM item i
    WHERE i.row > ?2 AND NOT EXISTS
        (SELECT 1 FROM vector v WHERE v.of = 'item' AND v.row = i.row AND v.model = ?1)
    ORDER BY i.row LIMIT ?3";

const MISSING_CHUNKS: &str = "SELECT c.id, f.path, c.symbol, c.body
    FROM chunk c JOIN file f ON f.id = c.file
    WHERE c.id > ?2 AND f.tree IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM vector v WHERE v.of = 'chunk' AND v.row = c.id AND v.model = ?1)
    ORDER BY c.id LIMIT ?3";

/// The text of a row as it is now.
fn text(db: &Transaction<'_>, of: Of, row: i64) -> rusqlite::Result<Option<Pending>> {
    let select = match of {
        Of::Item => "SELECT row, title, detail, body FROM item WHERE row = ?1",
        Of::Chunk => {
            "SELECT c.id, f.path, c.symbol, c.body
            FROM chunk c JOIN file f ON f.id = c.file WHERE c.id = ?1"
        }
    };
    db.prepare_cached(select)?
        .query_row([row], pending)
        .optional()
}

/// The name comes first, so that it is not what is cut off.
fn pending(row: &rusqlite::Row<'_>) -> rusqlite::Result<Pending> {
    let mut text = String::new();
    for column in 1..4 {
        let part = row.get_ref(column)?.as_str()?;
        let room = MOST_TEXT.saturating_sub(text.len());
        let part = beginning(part, room);
        if !part.trim().is_empty() {
            text.push_str(part);
            text.push('\n');
        }
    }
    let row = row.get(0)?;
    Ok(Pending { row, text })
}

/// So much of a text, up to the last letter that is whole.
/// What a model gets to see of a text that somebody asks about: as much as of those that are kept.
pub(crate) fn seen(text: &str) -> &str {
    beginning(text, MOST_TEXT)
}

fn beginning(text: &str, most: usize) -> &str {
    let mut ends = (0..=most.min(text.len())).rev();
    let end = ends.find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}
