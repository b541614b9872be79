//! The rows of `spec/requirements.csv`, compiled in.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// One requirement of the specification, in our words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirement {
    /// A stable name, for example `base.jsonrpc.conform`.
    pub id: Cow<'static, str>,
    /// The part of the specification it belongs to, for example `tools`.
    pub area: Cow<'static, str>,
    /// How strongly it binds: `MUST`, `MUST NOT`, `SHOULD`, `SHOULD NOT` or `MAY`.
    pub level: Cow<'static, str>,
    /// Who is bound: `server`, `client`, `both`, or `as` for an authorization server.
    pub role: Cow<'static, str>,
    /// The dates at which it stands in the text, oldest first.
    pub revisions: Vec<&'static str>,
    /// What it asks for.
    pub summary: Cow<'static, str>,
    /// The page and section it comes from.
    pub source: Cow<'static, str>,
    /// Whether a peer can see it being kept (`wire`) or only its owner can (`local`).
    pub observable: Cow<'static, str>,
}

impl Requirement {
    /// Returns whether a peer can see the requirement being kept or broken.
    pub fn is_on_the_wire(&self) -> bool {
        self.observable == "wire"
    }

    fn from_row(row: Vec<Cow<'static, str>>) -> Self {
        let row: [Cow<'static, str>; COLUMNS.len()] = row
            .try_into()
            .unwrap_or_else(|row| panic!("a row has {} fields each: {row:?}", COLUMNS.len()));
        let [
            id,
            area,
            level,
            role,
            revisions,
            summary,
            source,
            observable,
            _,
        ] = row;
        let Cow::Borrowed(revisions) = revisions else {
            panic!("`{id}`: dates need no quotation marks");
        };
        let revisions = revisions.split(' ').collect();
        Self {
            id,
            area,
            level,
            role,
            revisions,
            summary,
            source,
            observable,
        }
    }
}

/// Returns every requirement, in the order of the file.
pub fn all() -> &'static [Requirement] {
    &TABLE.rows
}

/// Returns the requirement with this id.
pub fn find(id: &str) -> Option<&'static Requirement> {
    TABLE.by_id.get(id).map(|&index| &TABLE.rows[index])
}

const TEXT: &str = include_str!("../../spec/requirements.csv");

const COLUMNS: [&str; 9] = [
    "id",
    "area",
    "level",
    "role",
    "revisions",
    "summary",
    "source",
    "observable",
    "checklist",
];

struct Table {
    rows: Vec<Requirement>,
    by_id: HashMap<&'static str, usize>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut lines = TEXT.lines().map(fields);
    assert_eq!(
        lines.next().as_deref(),
        Some(&COLUMNS.map(Cow::Borrowed)[..]),
        "the heading of the table"
    );
    let rows: Vec<_> = lines.map(Requirement::from_row).collect();
    // The id is the part of its line before the first comma; `every_id_is_plain` keeps that true.
    let ids = TEXT
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next());
    let by_id = ids.enumerate().map(|(index, id)| (id, index)).collect();
    Table { rows, by_id }
});

/// Splits one line of comma-separated values; a field in quotation marks may hold commas and doubled marks.
///
/// No field of the table holds a line break, so a row is a line.
fn fields(line: &str) -> Vec<Cow<'_, str>> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let (field, after) = field(rest);
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return fields,
        }
    }
}

fn field(text: &str) -> (Cow<'_, str>, &str) {
    match text.strip_prefix('"') {
        Some(quoted) => quoted_field(quoted),
        None => {
            let end = text.find(',').unwrap_or(text.len());
            (Cow::Borrowed(&text[..end]), &text[end..])
        }
    }
}

fn quoted_field(text: &str) -> (Cow<'_, str>, &str) {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let end = rest
            .find('"')
            .expect("a quoted field is closed on its line");
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(next) => {
                value.push('"');
                rest = next;
            }
            None => return (Cow::Owned(value), rest),
        }
    }
}

#[cfg(test)]
mod tests;
