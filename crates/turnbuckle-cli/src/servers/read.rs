//! Reads files of configuration. What is malformed is reported, and the rest is used.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::places::Place;
use super::{Entry, Found, Server};

/// Reads places one after the other, each file once.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) found: Found,
    files: HashMap<PathBuf, Option<Value>>,
}

impl Reader {
    /// Adds what stands in a place.
    pub(super) fn read(&mut self, place: &Place) {
        if !self.files.contains_key(&place.file) {
            let parsed = self.parsed(place);
            self.files.insert(place.file.clone(), parsed);
        }
        let Some(Some(document)) = self.files.get(&place.file) else {
            return;
        };
        let mut table = document;
        for name in &place.table {
            let Some(inner) = table.get(name) else {
                return;
            };
            table = inner;
        }
        let path = place.table.join(".");
        let Some(entries) = table.as_object() else {
            let warning = format!(
                "{}: `{path}` is not a table of servers",
                place.file.display()
            );
            self.found.warnings.push(warning);
            return;
        };
        for (name, value) in entries {
            match Entry::read(value, place.source) {
                Ok(entry) => self.found.servers.push(Server {
                    name: name.clone(),
                    source: place.source,
                    scope: place.scope,
                    file: place.file.clone(),
                    folder: place.folder.clone(),
                    entry,
                }),
                Err(problem) => {
                    let file = place.file.display();
                    let warning = format!("{file}: `{path}.{name}` {problem}");
                    self.found.warnings.push(warning);
                }
            }
        }
    }

    fn parsed(&mut self, place: &Place) -> Option<Value> {
        let text = match text(&place.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !place.expected => {
                return None;
            }
            Err(error) => return self.unreadable(&place.file, &error.to_string()),
        };
        let is_toml = place
            .file
            .extension()
            .is_some_and(|extension| extension == "toml");
        let parsed = if is_toml { toml(&text) } else { jsonc(&text) };
        match parsed {
            Ok(document) => Some(document),
            Err(problem) => self.unreadable(&place.file, &problem),
        }
    }

    fn unreadable(&mut self, file: &Path, problem: &str) -> Option<Value> {
        let warning = format!("{}: {problem}", file.display());
        self.found.warnings.push(warning);
        None
    }
}

fn text(file: &Path) -> io::Result<String> {
    // A pipe or a device under this name would keep us waiting.
    if fs::metadata(file)?.is_file() {
        let text = fs::read_to_string(file)?;
        return Ok(text
            .strip_prefix('\u{feff}')
            .map_or(text.clone(), str::to_owned));
    }
    Err(io::Error::other("is not a file"))
}

fn jsonc(text: &str) -> Result<Value, String> {
    jsonc_parser::parse_to_serde_value(text, &Default::default()).map_err(|error| {
        let (line, column) = (error.line_display(), error.column_display());
        format!("line {line}, column {column}: {}", error.kind())
    })
}

fn toml(text: &str) -> Result<Value, String> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let before = before.unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before
            .chars()
            .rev()
            .take_while(|&letter| letter != '\n')
            .count()
            + 1;
        format!("line {line}, column {column}: {}", error.message())
    })
}
