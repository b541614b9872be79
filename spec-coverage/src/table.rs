//! The rows of `spec/requirements.csv`, compiled in.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

/// One normative requirement of the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirement {
    /// A stable name, for example `base.jsonrpc.conform`.
    pub id: &'static str,
    /// The part of the specification it belongs to, for example `tools`.
    pub area: &'static str,
    /// The requirement level: `MUST`, `MUST NOT`, `SHOULD`, `SHOULD NOT` or `MAY`.
    pub level: &'static str,
    /// The bound role: `server`, `client`, `both`, or `as` for an authorization server.
    pub role: &'static str,
    /// The revisions that contain it, oldest first.
    pub revisions: Vec<&'static str>,
    /// A summary of the requirement.
    pub summary: Cow<'static, str>,
    /// The page and section of the specification.
    pub source: &'static str,
    /// `wire` if a peer can observe it, otherwise `local`.
    pub observable: &'static str,
    /// The lines of the compliance checklist that it belongs to, each as section and line: `2.2.1/7`.
    pub checklist: Vec<&'static str>,
}

impl Requirement {
    /// Returns whether a peer can observe the requirement.
    pub fn is_on_the_wire(&self) -> bool {
        self.observable == "wire"
    }

    fn from_line(line: &'static str) -> Self {
        let mut fields = fields(line).into_iter();
        let mut next = || fields.next().unwrap_or_else(|| panic!("too short: {line}"));
        Self {
            id: unquoted(next()),
            area: unquoted(next()),
            level: unquoted(next()),
            role: unquoted(next()),
            revisions: unquoted(next()).split(' ').collect(),
            summary: next(),
            source: unquoted(next()),
            observable: unquoted(next()),
            checklist: unquoted(next()).split_whitespace().collect(),
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

/// The revisions that rows name, oldest first.
pub const DATES: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// The newest revision with `initialize`; those after it are stateless.
const LATEST_LEGACY: &str = "2025-11-25";

/// Returns whether a date is that of a stateless revision.
pub(crate) fn is_stateless(date: &str) -> bool {
    DATES.contains(&date) && date > LATEST_LEGACY
}

const TEXT: &str = include_str!("../requirements.csv");

const HEADING: &str = "id,area,level,role,revisions,summary,source,observable,checklist";

struct RequirementTable {
    rows: Vec<Requirement>,
    by_id: HashMap<&'static str, usize>,
}

static TABLE: LazyLock<RequirementTable> = LazyLock::new(|| {
    let mut lines = TEXT.lines();
    assert_eq!(lines.next(), Some(HEADING), "the heading of the table");
    let rows: Vec<_> = lines.map(Requirement::from_line).collect();
    let ids = rows.iter().map(|row| row.id);
    let by_id = ids.enumerate().map(|(index, id)| (id, index)).collect();
    RequirementTable { rows, by_id }
});

fn unquoted(field: Cow<'static, str>) -> &'static str {
    match field {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => panic!("only a summary may need quotation marks: {text}"),
    }
}

/// Splits one line of comma-separated values; a field in quotation marks may hold commas and doubled marks.
///
/// Fields contain no line breaks, so a row is a line.
pub(crate) fn fields(line: &str) -> Vec<Cow<'_, str>> {
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
