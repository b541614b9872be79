//! The settings of `turnbuckle serve`: command line and configuration file.

use std::{
    io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Deserializer, de::Error as _};
use turnbuckle_auth::Secret;
use turnbuckle_protocol::json::JsonError;
use turnbuckle_store_redis::RedisStoreSettings;

use super::ServeCommand;
use crate::{
    cli,
    commands::{
        context,
        database::DatabaseUrl,
        state_keys::{self, StateKeys},
    },
    context::CommandContext,
    environment::Environment,
    error::{CliError, Result},
    listener::{AccessOptions, ClientAccess, ListenAddress, auth::AuthSection},
};

/// The configuration file. An unknown key is an error with its line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ServeConfig {
    #[serde(default, deserialize_with = "listen_address")]
    pub(super) listen: Option<ListenAddress>,
    pub(super) data: Option<PathBuf>,
    pub(super) database: Option<DatabaseUrl>,
    pub(super) database_file: Option<PathBuf>,
    #[serde(default, deserialize_with = "duration")]
    pub(super) half_life: Option<Duration>,
    /// An empty list allows no directories.
    pub(super) roots: Option<Vec<PathBuf>>,
    pub(super) tools: Option<ToolSetOption>,
    #[serde(default, deserialize_with = "quota")]
    pub(super) quota: Option<QuotaOption>,
    #[serde(default, deserialize_with = "duration")]
    pub(super) deadline: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    pub(super) index_deadline: Option<Duration>,
    #[serde(default)]
    pub(super) allow_hosts: Vec<String>,
    #[serde(default)]
    pub(super) http_sse: bool,
    #[serde(default, deserialize_with = "store_url")]
    pub(super) store: Option<Secret>,
    pub(super) state_key_file: Option<PathBuf>,
    pub(super) log_file: Option<PathBuf>,
    pub(super) embeddings: Option<EmbeddingConfig>,
    pub(super) authorization: Option<AuthSection>,
    #[serde(default)]
    pub(super) limits: ServeLimits,
}

/// The value of `--tools`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum ToolSetOption {
    /// All tools; a URL with ?tools=core lists the core tools
    #[default]
    All,
    /// Memory and search
    Core,
}

/// Limits for callers; unset ones keep their defaults.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ServeLimits {
    pub(super) max_connections: Option<NonZeroUsize>,
    pub(super) max_sessions: Option<NonZeroUsize>,
    pub(super) max_sessions_per_caller: Option<NonZeroUsize>,
}

/// The embeddings service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct EmbeddingConfig {
    pub(super) url: String,
    pub(super) model: String,
    /// The environment variable with the API key.
    pub(super) api_key_env: Option<String>,
}

impl ServeConfig {
    /// Reads the named file, or the default one if it exists.
    pub(super) fn find(named: Option<&Path>, environment: &Environment) -> Result<Self> {
        if let Some(file) = named {
            let file = environment.cwd.join(file);
            let text = std::fs::read_to_string(&file);
            let text = text.map_err(|error| read_error(&file, &error))?;
            return Self::parse(&text, &file, environment);
        }
        let Some(folder) = environment.config_dir() else {
            return Ok(Self::default());
        };
        let file = folder.join("turnbuckle").join("serve.toml");
        match std::fs::read_to_string(&file) {
            Ok(text) => Self::parse(&text, &file, environment),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(read_error(&file, &error)),
        }
    }

    fn parse(text: &str, file: &Path, environment: &Environment) -> Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let text = error.to_string();
            // The location and the line, then the message, which may have the terms of Rust.
            let location = text.trim_end().strip_suffix(error.message());
            let reason = JsonError::custom(error.message());
            CliError::could_not_run(format!(
                "invalid configuration {}: {}{reason}",
                file.display(),
                location.unwrap_or_default(),
            ))
        })?;
        let folder = file.parent().unwrap_or(&environment.cwd);
        Ok(config.resolve_paths(|path| resolve_path(path, folder, environment)))
    }

    fn resolve_paths(mut self, resolve: impl Fn(PathBuf) -> PathBuf) -> Self {
        self.data = self.data.map(&resolve);
        self.database_file = self.database_file.map(&resolve);
        self.log_file = self.log_file.map(&resolve);
        self.state_key_file = self.state_key_file.map(&resolve);
        self.roots = self
            .roots
            .map(|roots| roots.into_iter().map(&resolve).collect());
        if let Some(section) = &mut self.authorization {
            section.token_file = section.token_file.take().map(&resolve);
        }
        self.listen = self.listen.map(|listen| match listen {
            ListenAddress::Unix(path) => ListenAddress::Unix(resolve(path)),
            tcp @ ListenAddress::Tcp(_) => tcp,
        });
        self
    }
}

/// Resolves a path relative to the file; `~` is the home directory.
fn resolve_path(path: PathBuf, folder: &Path, environment: &Environment) -> PathBuf {
    match (path.strip_prefix("~"), &environment.home) {
        (Ok(below), Some(home)) => home.join(below),
        _ => folder.join(path),
    }
}

fn read_error(file: &Path, error: &io::Error) -> CliError {
    CliError::could_not_run(format!("cannot read {}: {error}", file.display()))
}

fn listen_address<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<ListenAddress>, D::Error> {
    let text = String::deserialize(from)?;
    parse_listen_address(&text)
        .map(Some)
        .map_err(D::Error::custom)
}

fn store_url<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<Secret>, D::Error> {
    let text = String::deserialize(from)?;
    parse_store_url(&text).map(Some).map_err(D::Error::custom)
}

fn quota<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<QuotaOption>, D::Error> {
    let text = String::deserialize(from)?;
    parse_quota(&text).map(Some).map_err(D::Error::custom)
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    cli::parse_duration(&text)
        .map(Some)
        .map_err(D::Error::custom)
}

/// The settings of the server.
#[derive(Debug)]
pub(super) struct ServeSettings {
    pub(super) address: ListenAddress,
    pub(super) data: PathBuf,
    /// The database of memory; `None` is the data directory.
    pub(super) database: Option<DatabaseUrl>,
    pub(super) half_life: Option<Duration>,
    /// The directories that projects may be in; `None` allows all.
    pub(super) roots: Option<Vec<PathBuf>>,
    pub(super) tools: ToolSetOption,
    /// The maximum data per caller, if set.
    pub(super) quota: Option<QuotaOption>,
    /// The time limits of a search and of indexing, if set.
    pub(super) deadline: Option<Duration>,
    pub(super) index_deadline: Option<Duration>,
    /// True if HTTP+SSE of 2024-11-05 is served.
    pub(super) http_sse: bool,
    /// The URL of the store that instances share.
    pub(super) store: Option<Secret>,
    pub(super) state_keys: Option<StateKeys>,
    /// The log file; `None` is stderr.
    pub(super) log_file: Option<PathBuf>,
    /// Who may connect.
    pub(super) access: ClientAccess,
    pub(super) embeddings: Option<EmbeddingConfig>,
    pub(super) limits: ServeLimits,
}

impl ServeSettings {
    /// Combines the command line, which takes precedence, with the configuration file.
    pub(super) fn resolve(serve: ServeCommand, context: &CommandContext) -> Result<Self> {
        let environment = &context.environment;
        let config = ServeConfig::find(context.options.config.as_deref(), environment)?;
        let here = |path: PathBuf| environment.cwd.join(path);
        let address = serve
            .listen
            .map(|address| address.relative_to(&environment.cwd))
            .or(config.listen)
            .unwrap_or_else(|| ListenAddress::loopback(DEFAULT_PORT));
        if matches!(address, ListenAddress::Unix(_)) && serve.http_sse {
            return Err(http_sse_on_unix_socket());
        }
        let access = AccessOptions {
            flags: serve.authorization,
            section: config.authorization,
            hosts: serve.hosts.into_iter().chain(config.allow_hosts).collect(),
            is_stdio: serve.stdio,
            allows_unauthenticated: serve.dangerously_allow_unauthenticated,
        };
        let access = access.resolve(&address, DEFAULT_PORT, environment)?;
        let state_key_file = serve.state_key_file.map(here).or(config.state_key_file);
        let state_keys = state_key_file.as_deref().map(StateKeys::read).transpose()?;
        let store = serve.store.or(config.store).filter(|_| !serve.stdio);
        if store.is_some() && state_keys.is_none() {
            return Err(store_without_keys());
        }
        let roots: Vec<_> = serve.roots.into_iter().map(here).collect();
        let data = serve.data.map(here).or(config.data);
        Ok(Self {
            address,
            data: context::data_dir(data, environment)?,
            database: serve
                .database
                .url(config.database, config.database_file, environment)?,
            half_life: config.half_life,
            roots: if roots.is_empty() {
                config.roots
            } else {
                Some(roots)
            },
            tools: serve.tools.or(config.tools).unwrap_or_default(),
            quota: serve.quota.or(config.quota),
            deadline: serve.deadline.or(config.deadline),
            index_deadline: serve.index_deadline.or(config.index_deadline),
            http_sse: serve.http_sse || config.http_sse,
            store,
            state_keys,
            log_file: serve.log_file.map(here).or(config.log_file),
            access,
            embeddings: config.embeddings,
            limits: config.limits,
        })
    }
}

fn http_sse_on_unix_socket() -> CliError {
    CliError::could_not_run("--http-sse needs HTTP, not a Unix socket")
        .hint(format!("use --listen 127.0.0.1:{DEFAULT_PORT} for HTTP"))
}

fn store_without_keys() -> CliError {
    let file = Path::new("state.key");
    let make = state_keys::how_to_make_one(file);
    CliError::could_not_run(
        "--store needs --state-key-file: all instances have to seal values with the same keys",
    )
    .hint(format!(
        "{make}, copy it to all instances, and use --state-key-file state.key"
    ))
}

/// Parses the value of `--store`.
pub(super) fn parse_store_url(text: &str) -> std::result::Result<Secret, String> {
    RedisStoreSettings::check_url(text).map_err(|error| error.to_string())?;
    Ok(Secret::new(text))
}

/// The default port.
pub(super) const DEFAULT_PORT: u16 = 8321;

/// Parses the value of `--listen`.
pub(super) fn parse_listen_address(text: &str) -> std::result::Result<ListenAddress, String> {
    ListenAddress::parse(text, DEFAULT_PORT)
}

/// A number of bytes, or no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuotaOption(pub(super) Option<u64>);

/// Parses a quota: `500MB`, `4GB`, `1GiB`, a plain number of bytes, or `none`.
pub(super) fn parse_quota(text: &str) -> std::result::Result<QuotaOption, String> {
    if text == "none" {
        return Ok(QuotaOption(None));
    }
    let digits = text.find(|ch: char| !ch.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("expected 500MB, 4GB, 1GiB or none".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "expected a number".to_owned())?;
    match number.checked_mul(unit) {
        Some(0) | None => Err("expected a size from 1 to 2^64 - 1 bytes".to_owned()),
        bytes => Ok(QuotaOption(bytes)),
    }
}

#[cfg(test)]
mod tests;
