//! Reads files of configuration. What is malformed is reported, and the rest is used.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::places::Place;
use super::{Entry, Found, Server, owner};
use crate::output::plain;

/// No file of configuration is larger than this.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Reads places one after the other, each file once.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) found: Found,
    files: HashMap<PathBuf, Option<Value>>,
    user_id: Option<u32>,
}

impl Reader {
    /// Reads on behalf of a user.
    pub(super) fn new(user_id: Option<u32>) -> Self {
        Self {
            found: Found::default(),
            files: HashMap::new(),
            user_id,
        }
    }

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
        let mut problems = Vec::new();
        let Some(entries) = table.as_object() else {
            let problem = format!("`{path}` is not a table of servers");
            self.warn(&place.file, &problem);
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
                    problems.push(format!("`{path}.{name}` {problem}"));
                }
            }
        }
        for problem in problems {
            self.warn(&place.file, &problem);
        }
    }

    fn parsed(&mut self, place: &Place) -> Option<Value> {
        let (text, metadata) = match regular_file(&place.file, MAX_BYTES) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !place.expected => {
                return None;
            }
            Err(error) => return self.warn(&place.file, &error.to_string()),
        };
        if let Some(foreign) = self.foreign(place, &metadata) {
            let problem = format!(
                "is ignored: {} does not belong to you; to use the file anyway, name it with `--config`",
                foreign.display()
            );
            return self.warn(&place.file, &problem);
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let is_toml = place
            .file
            .extension()
            .is_some_and(|extension| extension == "toml");
        let parsed = if is_toml { toml(text) } else { jsonc(text) };
        match parsed {
            Ok(document) => Some(document),
            Err(problem) => self.warn(&place.file, &problem),
        }
    }

    /// Returns the file or folder of a place that belongs to another user, if that matters.
    fn foreign(&self, place: &Place, opened: &Metadata) -> Option<PathBuf> {
        let user_id = self.user_id.filter(|_| place.checks_owner)?;
        owner::find_foreign(&place.file, opened, &place.folder, user_id)
    }

    fn warn(&mut self, file: &Path, problem: &str) -> Option<Value> {
        let warning = format!("{}: {problem}", file.display());
        self.found.warnings.push(plain::line(&warning));
        None
    }
}

/// Reads a regular file of limited size, and says whose it is.
pub(super) fn regular_file(file: &Path, max_bytes: u64) -> io::Result<(String, Metadata)> {
    // A pipe or a device under this name would keep us waiting.
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("is not a file"));
    }
    let open = File::open(file)?;
    let metadata = open.metadata()?;
    let mut text = String::new();
    let too_large = match metadata.len() > max_bytes {
        true => true,
        false => open.take(max_bytes + 1).read_to_string(&mut text)? as u64 > max_bytes,
    };
    match too_large {
        true => Err(io::Error::other(format!(
            "is larger than {max_bytes} bytes"
        ))),
        false => Ok((text, metadata)),
    }
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
