//! Table columns with passwords or keys, by their headings: in Markdown, in the output of database clients, in CSV.

use std::ops::Range;

use super::{
    placeholders,
    rule::{entropy, lines},
};

/// Headings of columns with passwords chosen by people.
const PASSWORD_HEADINGS: &[&str] = &[
    "password",
    "passwd",
    "passwort",
    "kennwort",
    "passphrase",
    "passcode",
    "pass",
    "pwd",
    "pw",
];
/// Headings of columns with random values.
const KEY_HEADINGS: &[&str] = &[
    "secret",
    "token",
    "key",
    "api key",
    "apikey",
    "access key",
    "secret key",
    "private key",
];
const MAX_HEADING_BYTES: usize = 40;

struct ParsedTable {
    separator: char,
    cells: usize,
    columns: Vec<(usize, ColumnKind)>,
}

#[derive(Clone, Copy)]
enum ColumnKind {
    Password,
    Key,
}

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut table: Option<ParsedTable> = None;
    for (offset, line) in lines(text) {
        if let Some(open) = &table {
            let cells: Vec<_> = cells(line, open.separator).collect();
            if cells.len() == open.cells {
                for &(column, kind) in &open.columns {
                    let (at, value) = trim(cells[column]);
                    let start = offset + at;
                    found.extend(is_candidate(value, kind).then_some(start..start + value.len()));
                }
                continue;
            }
            if is_separator_line(line) {
                continue;
            }
        }
        table = header(line);
    }
    found
}

fn header(line: &str) -> Option<ParsedTable> {
    let separator = ['|', '\t', ',', ';']
        .into_iter()
        .find(|separator| line.contains(*separator))?;
    // Arguments and fields in code are separated by commas, too, but are usually indented.
    if separator != '|' && line.starts_with(char::is_whitespace) {
        return None;
    }
    let headings: Vec<_> = cells(line, separator).map(|cell| trim(cell).1).collect();
    let is_heading = |heading: &&str| {
        let mut chars = heading.chars();
        heading.len() <= MAX_HEADING_BYTES
            && chars.all(|char| char.is_alphanumeric() || " _-/.()".contains(char))
    };
    if headings.len() < 2 || !headings.iter().all(is_heading) {
        return None;
    }
    let column = |(column, heading): (usize, &&str)| Some((column, column_kind(heading)?));
    let columns: Vec<_> = headings.iter().enumerate().filter_map(column).collect();
    (!columns.is_empty()).then_some(ParsedTable {
        separator,
        cells: headings.len(),
        columns,
    })
}

fn column_kind(heading: &str) -> Option<ColumnKind> {
    let heading = heading.to_lowercase().replace(['_', '-'], " ");
    let last = heading.rsplit(' ').next()?;
    if PASSWORD_HEADINGS.contains(&last) {
        Some(ColumnKind::Password)
    } else {
        let is_key = KEY_HEADINGS.iter().any(|key| heading.ends_with(key));
        is_key.then_some(ColumnKind::Key)
    }
}

fn is_candidate(value: &str, kind: ColumnKind) -> bool {
    let is_one_word = !value.contains(char::is_whitespace);
    is_one_word
        && match kind {
            ColumnKind::Password => value.len() >= 6 && entropy(value) >= 2.2,
            ColumnKind::Key => {
                value.len() >= 16 && entropy(value) >= 3.3 && !placeholders::is_name(value)
            }
        }
}

/// Returns the cells of a line with their offsets.
fn cells(line: &str, separator: char) -> impl Iterator<Item = (usize, &str)> {
    let mut offset = 0;
    line.split(separator).map(move |cell| {
        let start = offset;
        offset += cell.len() + separator.len_utf8();
        (start, cell)
    })
}

/// Removes white space, quotes and emphasis.
fn trim((offset, cell): (usize, &str)) -> (usize, &str) {
    let is_around = |char: char| char.is_whitespace() || "\"'`*".contains(char);
    let end = cell.trim_end_matches(is_around);
    let value = end.trim_start_matches(is_around);
    (offset + end.len() - value.len(), value)
}

/// Returns whether a line is a separator between rows, as database clients draw it.
fn is_separator_line(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && line.chars().all(|char| "+-=|:".contains(char))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn values_under_a_heading_are_candidates() {
        let text = "host;user;password\na;b;hunter-22\n\na;b;hunter-33";
        assert_eq!(values(text), ["hunter-22"]);
        let text = "+---+---+\n| id | Password |\n+---+---+\n| 1 | pickle-7 |\n+---+---+\n";
        assert_eq!(values(text), ["pickle-7"]);
        assert_eq!(values("f(user, password)\nf(a, hunter-22)"), [""; 0]);
    }
}
