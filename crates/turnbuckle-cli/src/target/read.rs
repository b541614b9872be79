//! Reads configuration files. Malformed entries are reported, and the rest is used.

use std::{
    collections::HashMap,
    fs::Metadata,
    io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    config_files::{ConfigFile, ConfiguredServer, ConfiguredServers, find_foreign},
    entry::ServerEntry,
    file_text::{line_and_column, regular_file},
};
use crate::output::sanitize;

/// The maximum size of a configuration file.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Reads tables of servers, each file once.
#[derive(Debug)]
pub(super) struct ConfigReader {
    pub(super) servers: ConfiguredServers,
    files: HashMap<PathBuf, Option<Value>>,
    user_id: Option<u32>,
}

impl ConfigReader {
    /// Creates a reader that checks files against a user id.
    pub(super) fn new(user_id: Option<u32>) -> Self {
        Self {
            servers: ConfiguredServers::default(),
            files: HashMap::new(),
            user_id,
        }
    }

    /// Adds the servers of a table.
    pub(super) fn read(&mut self, config: &ConfigFile) {
        if !self.files.contains_key(&config.file) {
            let parsed = self.parse_file(config);
            self.files.insert(config.file.clone(), parsed);
        }
        let Some(Some(document)) = self.files.get(&config.file) else {
            return;
        };
        let mut table = document;
        for name in &config.table {
            let Some(inner) = table.get(name) else {
                return;
            };
            table = inner;
        }
        let path = config.table.join(".");
        let mut problems = Vec::new();
        let Some(entries) = table.as_object() else {
            let problem = format!("`{path}` is not a table of servers");
            self.warn(&config.file, &problem);
            return;
        };
        for (name, value) in entries {
            match ServerEntry::parse(value, config.source) {
                Ok(entry) => self.servers.servers.push(ConfiguredServer {
                    name: name.clone(),
                    source: config.source,
                    scope: config.scope,
                    file: config.file.clone(),
                    folder: config.folder.clone(),
                    entry,
                }),
                Err(problem) => {
                    problems.push(format!("`{path}.{name}` {problem}"));
                }
            }
        }
        for problem in problems {
            self.warn(&config.file, &problem);
        }
    }

    fn parse_file(&mut self, config: &ConfigFile) -> Option<Value> {
        let (text, metadata) = match regular_file(&config.file, MAX_BYTES) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !config.must_exist => {
                return None;
            }
            Err(error) => return self.warn(&config.file, &error.to_string()),
        };
        if let Some(foreign) = self.foreign_path(config, &metadata) {
            let problem = format!(
                "ignored: {} does not belong to you; to use the file anyway, pass it with `--config`",
                foreign.display()
            );
            return self.warn(&config.file, &problem);
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let is_toml = config
            .file
            .extension()
            .is_some_and(|extension| extension == "toml");
        let parsed = if is_toml {
            parse_toml(text)
        } else {
            parse_jsonc(text)
        };
        match parsed {
            Ok(document) => Some(document),
            Err(problem) => self.warn(&config.file, &problem),
        }
    }

    /// Returns the file or directory that belongs to another user, if ownership is checked.
    fn foreign_path(&self, config: &ConfigFile, opened: &Metadata) -> Option<PathBuf> {
        let user_id = self.user_id.filter(|_| config.checks_owner)?;
        find_foreign(&config.file, opened, &config.folder, user_id)
    }

    fn warn(&mut self, file: &Path, problem: &str) -> Option<Value> {
        let warning = format!("{}: {problem}", file.display());
        self.servers.warnings.push(sanitize::line(&warning));
        None
    }
}

fn parse_jsonc(text: &str) -> Result<Value, String> {
    jsonc_parser::parse_to_serde_value(text, &Default::default()).map_err(|error| {
        let (line, column) = (error.line_display(), error.column_display());
        format!("line {line}, column {column}: {}", error.kind())
    })
}

fn parse_toml(text: &str) -> Result<Value, String> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let (line, column) = line_and_column(text, start);
        format!("line {line}, column {column}: {}", error.message())
    })
}
