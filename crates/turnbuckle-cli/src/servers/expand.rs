//! Variables in configurations, each written as its program writes them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{MAIN_SEPARATOR_STR, Path};

use super::source::Variables;
use super::{Scope, Server, read};
use crate::environment::{Environment, Platform};
use crate::secret::Secret;

/// Why a value could not be had.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum ExpandError {
    /// A variable is not set.
    #[error("the environment variable `{0}` is not set")]
    Unset(String),
    /// An editor would ask for this.
    #[error("`${{input:{0}}}` is asked for by the editor, and not known here")]
    Input(String),
    /// Nobody but an editor knows this.
    #[error("`${{{0}}}` is not known here")]
    Unknown(String),
    /// There is no end to it.
    #[error("`${{` has no `}}`")]
    Unclosed,
    /// A file of variables cannot be used.
    #[error("the file of variables {0} cannot be read: {1}")]
    EnvFile(String, String),
    /// A path of a project would be looked for on another machine, or is a device.
    #[error(
        "its `{0}` is a network or device path, which is not used for a server of a project: {1}"
    )]
    Network(&'static str, String),
    /// No file is what a project's command would run.
    #[error("there is no program `{0}`")]
    NoProgram(String),
}

/// No file of variables is larger than this.
const MAX_ENV_FILE: u64 = 1024 * 1024;

/// Replaces variables by what they stand for, and keeps in mind which ones it met.
#[derive(Debug)]
pub(super) struct Expansion<'a> {
    server: &'a Server,
    environment: &'a Environment,
    names: RefCell<BTreeSet<String>>,
}

impl<'a> Expansion<'a> {
    /// Expands what one server says.
    pub(super) fn new(server: &'a Server, environment: &'a Environment) -> Self {
        Self {
            server,
            environment,
            names: RefCell::default(),
        }
    }

    /// Returns the names of the environment's variables that were met.
    pub(super) fn into_names(self) -> Vec<String> {
        self.names.into_inner().into_iter().collect()
    }

    /// Returns text with its variables replaced.
    pub(super) fn text(&self, text: &str) -> Result<String, ExpandError> {
        let style = self.server.source.variables();
        if style == Variables::None {
            return Ok(text.to_owned());
        }
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            expanded += &rest[..at];
            rest = &rest[at + 1..];
            if let Some(inner) = rest.strip_prefix('{') {
                let (name, after) = inner.split_once('}').ok_or(ExpandError::Unclosed)?;
                expanded += &self.braces(name, style)?;
                rest = after;
            } else if style == Variables::Dollar && name_length(rest) > 0 {
                let (name, after) = rest.split_at(name_length(rest));
                expanded += self.variable(name)?;
                rest = after;
            } else {
                expanded.push('$');
            }
        }
        Ok(expanded + rest)
    }

    /// Returns the value of a variable of the environment.
    pub(super) fn variable(&self, name: &str) -> Result<&'a str, ExpandError> {
        self.names.borrow_mut().insert(name.to_owned());
        let value = self.environment.vars.get(name).map(String::as_str);
        value.ok_or_else(|| ExpandError::Unset(name.to_owned()))
    }

    /// Returns the folder that paths are relative to.
    pub(super) fn folder(&self) -> &'a Path {
        &self.server.folder
    }

    /// Refuses a path of a project that leads to another machine or to a device: on Windows merely to look for such a file
    /// sends the user's credentials there.
    pub(super) fn check_local(&self, member: &'static str, path: &str) -> Result<(), ExpandError> {
        let is_risky = self.server.scope == Scope::Project
            && self.environment.platform == Platform::Windows
            && is_network_path(path)
            && !Path::new(path).starts_with(self.folder());
        match is_risky {
            true => Err(ExpandError::Network(member, path.to_owned())),
            false => Ok(()),
        }
    }

    /// Reads a file of `NAME=value` lines.
    pub(super) fn env_file(&self, file: &Path) -> Result<Vec<(String, Secret)>, ExpandError> {
        let (text, _) = read::regular_file(file, MAX_ENV_FILE)
            .map_err(|error| ExpandError::EnvFile(file.display().to_string(), error.to_string()))?;
        let pair = |line: &str| {
            let line = line.trim();
            let line = line.strip_prefix("export ").unwrap_or(line);
            let (name, value) = line.split_once('=')?;
            let name = name.trim();
            let set = !name.is_empty() && !name.starts_with('#');
            set.then(|| (name.to_owned(), Secret::new(unquoted(value.trim()))))
        };
        Ok(text.lines().filter_map(pair).collect())
    }

    fn braces(&self, name: &str, style: Variables) -> Result<String, ExpandError> {
        if let Some(variable) = name.strip_prefix("env:") {
            return self.variable(variable).map(str::to_owned);
        }
        if style == Variables::Editor {
            return self.of_editor(name);
        }
        let (variable, otherwise) = match name.split_once(":-") {
            Some((variable, otherwise)) => (variable, Some(otherwise)),
            None => (name, None),
        };
        match (self.variable(variable), otherwise) {
            (Ok(""), Some(otherwise)) | (Err(_), Some(otherwise)) => Ok(otherwise.to_owned()),
            (value, _) => value.map(str::to_owned),
        }
    }

    fn of_editor(&self, name: &str) -> Result<String, ExpandError> {
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

/// Says whether Windows takes a path for one of another machine or of a device, as `\\host\share`, `//host/share`, `\\.\` and `\??\`.
fn is_network_path(path: &str) -> bool {
    let path = path.trim_start_matches('"');
    let is_separator = |letter: char| letter == '/' || letter == '\\';
    let rest = path.strip_prefix(is_separator);
    rest.is_some_and(|rest| rest.starts_with(is_separator) || rest.starts_with("??"))
}

fn name_length(text: &str) -> usize {
    let digit_first = text.starts_with(|letter: char| letter.is_ascii_digit());
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    if digit_first {
        0
    } else {
        end.unwrap_or(text.len())
    }
}

fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}
