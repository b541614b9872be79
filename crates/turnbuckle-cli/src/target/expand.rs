//! Expands variables in configuration files, in the syntax of each program.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    path::{MAIN_SEPARATOR_STR, Path},
};

use turnbuckle_auth::Secret;

use super::{
    config_files::{ConfigScope, ConfiguredServer, VariableSyntax},
    file_text,
};
use crate::environment::{Environment, Platform};

/// The reason why an entry cannot be resolved.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum ExpandError {
    /// A variable is not set.
    #[error("the environment variable `{0}` is not set")]
    Unset(String),
    /// An input that an editor would ask for.
    #[error("`${{input:{0}}}` is a prompt of the editor, which is not supported")]
    Input(String),
    /// A variable that only an editor has.
    #[error("the variable `${{{0}}}` is not supported")]
    Unknown(String),
    /// A `${` without `}`.
    #[error("`${{` without `}}`")]
    Unclosed,
    /// A file with variables cannot be read.
    #[error("cannot read the env file {0}: {1}")]
    EnvFile(String, String),
    /// A path in a project is on another machine, or a device.
    #[error(
        "`{0}` is a network or device path, which is not allowed for a server of a project: {1}"
    )]
    Network(&'static str, String),
    /// The program of a project does not exist.
    #[error("program `{0}` not found")]
    NoProgram(String),
}

/// The maximum size of a file with variables.
const MAX_ENV_FILE: u64 = 1024 * 1024;

/// Expands variables, and records the environment variables that it reads.
#[derive(Debug)]
pub(super) struct VariableExpander<'a> {
    server: &'a ConfiguredServer,
    environment: &'a Environment,
    names: RefCell<BTreeSet<String>>,
}

impl<'a> VariableExpander<'a> {
    /// Creates an expander for the entry of a server.
    pub(super) fn new(server: &'a ConfiguredServer, environment: &'a Environment) -> Self {
        Self {
            server,
            environment,
            names: RefCell::default(),
        }
    }

    /// Returns the names of the environment variables that were read.
    pub(super) fn into_names(self) -> Vec<String> {
        self.names.into_inner().into_iter().collect()
    }

    /// Returns text with its variables expanded.
    pub(super) fn text(&self, text: &str) -> Result<String, ExpandError> {
        let style = self.server.source.variable_syntax();
        if style == VariableSyntax::None {
            return Ok(text.to_owned());
        }
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            expanded += &rest[..at];
            rest = &rest[at + 1..];
            if let Some(inner) = rest.strip_prefix('{') {
                let (name, after) = inner.split_once('}').ok_or(ExpandError::Unclosed)?;
                expanded += &self.braced_variable(name, style)?;
                rest = after;
            } else if style == VariableSyntax::Dollar && name_length(rest) > 0 {
                let (name, after) = rest.split_at(name_length(rest));
                expanded += self.variable(name)?;
                rest = after;
            } else {
                expanded.push('$');
            }
        }
        Ok(expanded + rest)
    }

    /// Returns the value of an environment variable.
    pub(super) fn variable(&self, name: &str) -> Result<&'a str, ExpandError> {
        self.names.borrow_mut().insert(name.to_owned());
        let value = self.environment.vars.get(name).map(String::as_str);
        value.ok_or_else(|| ExpandError::Unset(name.to_owned()))
    }

    /// Returns the directory that paths are relative to.
    pub(super) fn folder(&self) -> &'a Path {
        &self.server.folder
    }

    /// Returns an error for a path in a project that is on another machine or a device. On Windows, looking for such
    /// a file sends the user's credentials there.
    pub(super) fn check_local(&self, member: &'static str, path: &str) -> Result<(), ExpandError> {
        let is_risky = self.server.scope == ConfigScope::Project
            && self.environment.platform == Platform::Windows
            && is_network_path(path)
            && !Path::new(path).starts_with(self.folder());
        if is_risky {
            Err(ExpandError::Network(member, path.to_owned()))
        } else {
            Ok(())
        }
    }

    /// Reads a file of `NAME=value` lines.
    pub(super) fn env_file(&self, file: &Path) -> Result<Vec<(String, Secret)>, ExpandError> {
        let (text, _) = file_text::regular_file(file, MAX_ENV_FILE)
            .map_err(|error| ExpandError::EnvFile(file.display().to_string(), error.to_string()))?;
        let pair = |line: &str| {
            let line = line.trim();
            let line = line.strip_prefix("export ").unwrap_or(line);
            let (name, value) = line.split_once('=')?;
            let name = name.trim();
            let set = !name.is_empty() && !name.starts_with('#');
            set.then(|| (name.to_owned(), Secret::new(unquote(value.trim()))))
        };
        Ok(text.lines().filter_map(pair).collect())
    }

    fn braced_variable(&self, name: &str, style: VariableSyntax) -> Result<String, ExpandError> {
        if let Some(variable) = name.strip_prefix("env:") {
            return self.variable(variable).map(str::to_owned);
        }
        if style == VariableSyntax::Editor {
            return self.editor_variable(name);
        }
        let (variable, fallback) = match name.split_once(":-") {
            Some((variable, fallback)) => (variable, Some(fallback)),
            None => (name, None),
        };
        match (self.variable(variable), fallback) {
            (Ok(""), Some(fallback)) | (Err(_), Some(fallback)) => Ok(fallback.to_owned()),
            (value, _) => value.map(str::to_owned),
        }
    }

    fn editor_variable(&self, name: &str) -> Result<String, ExpandError> {
        let folder = &self.server.folder;
        if let Some(id) = name.strip_prefix("input:") {
            return Err(ExpandError::Input(id.to_owned()));
        }
        let value = match name {
            "workspaceFolder" => Some(folder.display().to_string()),
            "workspaceFolderBasename" => folder
                .file_name()
                .map(|name| name.to_string_lossy().into_owned()),
            "userHome" => self
                .environment
                .home
                .as_ref()
                .map(|home| home.display().to_string()),
            "pathSeparator" | "/" => Some(MAIN_SEPARATOR_STR.to_owned()),
            _ => None,
        };
        value.ok_or_else(|| ExpandError::Unknown(name.to_owned()))
    }
}

/// Returns whether a path is a network or device path on Windows: `\\host\share`, `//host/share`, `\\.\` or `\??\`.
fn is_network_path(path: &str) -> bool {
    let path = path.trim_start_matches('"');
    let is_separator = |ch: char| ch == '/' || ch == '\\';
    let rest = path.strip_prefix(is_separator);
    rest.is_some_and(|rest| rest.starts_with(is_separator) || rest.starts_with("??"))
}

fn name_length(text: &str) -> usize {
    let digit_first = text.starts_with(|ch: char| ch.is_ascii_digit());
    let end = text.find(|ch: char| !ch.is_ascii_alphanumeric() && ch != '_');
    if digit_first {
        0
    } else {
        end.unwrap_or(text.len())
    }
}

fn unquote(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}
