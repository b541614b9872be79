//! The configuration file `bridge.toml`: settings of servers by name, and servers that no other file defines.
//!
//! Errors have the line and the column, and never quote the file: it may have secrets.

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::Error as _};
use toml::Spanned;
use turnbuckle_protocol::json::JsonError;

pub(super) use super::server_section::{
    AuthKind, AuthSection, ConnectSection, PolicySection, RateSection, SHARED_EXCHANGE,
    SHARED_LOGINS, ServerSection,
};
use crate::{
    environment::Environment,
    error::{CliError, Result},
    target::{
        config_files::{ConfigScope, ConfigSource, ConfiguredServer},
        file_text,
    },
};

/// The maximum size of the file.
const MAX_BYTES: u64 = 1024 * 1024;

/// The settings of `bridge.toml`. Without the file, all are unset.
#[derive(Debug, Default)]
pub(super) struct BridgeConfig {
    /// The sections of servers, in the order of the file.
    pub(super) servers: Vec<NamedSection>,
    pub(super) policy: PolicySection,
    /// The client that finds out who is at a browser.
    pub(super) connect: Option<ConnectSection>,
    file: ConfigText,
}

/// The section `[servers.NAME]`.
#[derive(Debug)]
pub(super) struct NamedSection {
    pub(super) name: String,
    pub(super) settings: ServerSection,
    /// The place of the name in the file.
    span: Range<usize>,
}

/// The file, for errors.
#[derive(Debug, Default)]
struct ConfigText {
    path: PathBuf,
    text: String,
    scope: Option<ConfigScope>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BridgeFile {
    #[serde(default)]
    servers: BTreeMap<Spanned<String>, ServerSection>,
    #[serde(default)]
    policy: PolicySection,
    connect: Option<ConnectSection>,
}

impl BridgeConfig {
    /// Returns the path of the file: the named one, or else that in the user's configuration directory.
    pub(super) fn path(named: Option<&Path>, environment: &Environment) -> Option<PathBuf> {
        match named {
            Some(file) => Some(environment.cwd.join(file)),
            None => Some(environment.config_dir()?.join("turnbuckle/bridge.toml")),
        }
    }

    /// Reads the named file, or the one of the user if it exists.
    pub(super) fn find(named: Option<&Path>, environment: &Environment) -> Result<Self> {
        let own = Self::path(None, environment);
        let Some(path) = Self::path(named, environment) else {
            return Ok(Self::default());
        };
        let (text, metadata) = match file_text::regular_file(&path, MAX_BYTES) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => {
                return Ok(Self::default());
            }
            Err(error) => {
                let message = format!("cannot read {}: {error}", path.display());
                return Err(CliError::could_not_run(message));
            }
        };
        // The user may not have read a file that is named, so its programs need approval.
        let scope = if own.is_some_and(|own| own == path) {
            ConfigScope::User
        } else {
            ConfigScope::Project
        };
        let file = ConfigText {
            path,
            text,
            scope: Some(scope),
        };
        let config = Self::parse(file)?;
        if file_text::is_readable_by_others(&metadata) {
            config.reject_secrets()?;
        }
        Ok(config)
    }

    fn parse(file: ConfigText) -> Result<Self> {
        let parsed: BridgeFile = toml::from_str(&file.text).map_err(|error| {
            // The message may have the terms of Rust.
            let reason = JsonError::custom(error.message()).to_string();
            file.error(error.span().unwrap_or_default(), &reason)
        })?;
        let section = |(name, settings): (Spanned<String>, ServerSection)| NamedSection {
            span: name.span(),
            name: name.into_inner(),
            settings,
        };
        let mut servers: Vec<_> = parsed.servers.into_iter().map(section).collect();
        servers.sort_by_key(|section| section.span.start);
        for section in &servers {
            let checked = section.settings.check();
            checked.map_err(|problem| {
                file.error(
                    problem.span.unwrap_or(section.span.clone()),
                    &problem.reason,
                )
            })?;
        }
        Ok(Self {
            servers,
            policy: parsed.policy,
            connect: parsed.connect,
            file,
        })
    }

    /// Returns the section of a server.
    pub(super) fn section(&self, name: &str) -> Option<&NamedSection> {
        self.servers.iter().find(|section| section.name == name)
    }

    /// Returns the server that a section defines, if it does.
    pub(super) fn definition(
        &self,
        section: &NamedSection,
        environment: &Environment,
    ) -> Option<ConfiguredServer> {
        let folder = match self.file.scope {
            Some(ConfigScope::Project) => self.file.path.parent().map(Path::to_owned),
            _ => None,
        };
        Some(ConfiguredServer {
            name: section.name.clone(),
            source: ConfigSource::Bridge,
            scope: self.file.scope.unwrap_or(ConfigScope::User),
            file: self.file.path.clone(),
            folder: folder.unwrap_or_else(|| environment.cwd.clone()),
            entry: section.settings.entry()?,
        })
    }

    /// Returns an error for a section.
    pub(super) fn error(&self, section: &NamedSection, reason: &str) -> CliError {
        self.file.error(section.span.clone(), reason)
    }

    /// Returns the absolute path of a file that is named in the configuration file; `~` is the home directory.
    pub(super) fn resolve_path(&self, path: &Path, environment: &Environment) -> PathBuf {
        match (path.strip_prefix("~"), &environment.home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => {
                let folder = self.file.path.parent();
                folder.unwrap_or(&environment.cwd).join(path)
            }
        }
    }

    /// Returns the absolute path of the tool lock.
    pub(super) fn lock_path(&self, environment: &Environment) -> Option<PathBuf> {
        let path = self.policy.lock.as_deref();
        path.map(|path| self.resolve_path(path, environment))
    }

    /// Returns an error for the first secret of a file that others can read.
    fn reject_secrets(&self) -> Result {
        let secrets = self
            .servers
            .iter()
            .find_map(|section| section.settings.secrets());
        let Some((what, span)) = secrets else {
            return Ok(());
        };
        let reason = format!("other users can read this file, and it has secrets (`{what}`)");
        let path = self.file.path.display();
        Err(self
            .file
            .error(span, &reason)
            .hint(format!("run `chmod 600 {path}`")))
    }
}

impl ConfigText {
    fn error(&self, span: Range<usize>, reason: &str) -> CliError {
        let (line, column) = file_text::line_and_column(&self.text, span.start);
        let path = self.path.display();
        CliError::could_not_run(format!("{path}:{line}:{column}: {reason}"))
    }
}
