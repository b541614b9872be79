//! The file of settings.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error as _};

use super::authorization::Section;
use super::place::{self, Place};
use super::quota::{self, Quota};
use crate::arguments;
use crate::environment::Environment;
use crate::failure::{Failure, Result};

/// What the file says. A key that nobody knows is a mistake, and is said so with its line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Config {
    #[serde(default, deserialize_with = "place")]
    pub(super) listen: Option<Place>,
    pub(super) data: Option<PathBuf>,
    #[serde(default, deserialize_with = "duration")]
    pub(super) half_life: Option<Duration>,
    /// An empty list is a list: of no folders at all.
    pub(super) roots: Option<Vec<PathBuf>>,
    #[serde(default, deserialize_with = "quota")]
    pub(super) quota: Option<Quota>,
    #[serde(default, deserialize_with = "duration")]
    pub(super) deadline: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    pub(super) index_deadline: Option<Duration>,
    #[serde(default)]
    pub(super) allow_hosts: Vec<String>,
    #[serde(default)]
    pub(super) http_sse: bool,
    pub(super) embeddings: Option<Embeddings>,
    pub(super) authorization: Option<Section>,
    #[serde(default)]
    pub(super) limits: Limits,
}

/// How much callers may take; what is not said stays as it is.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Limits {
    pub(super) max_connections: Option<NonZeroUsize>,
    pub(super) max_sessions: Option<NonZeroUsize>,
    pub(super) max_sessions_per_caller: Option<NonZeroUsize>,
}

/// Who makes embeddings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Embeddings {
    pub(super) url: String,
    pub(super) model: String,
    /// The variable of the environment that has the key.
    pub(super) api_key_env: Option<String>,
}

impl Config {
    /// Reads the file that was named, or the usual one if it is there.
    pub(super) fn find(named: Option<&Path>, environment: &Environment) -> Result<Self> {
        if let Some(file) = named {
            let file = environment.cwd.join(file);
            let text = std::fs::read_to_string(&file);
            let text = text.map_err(|error| unreadable(&file, &error))?;
            return Self::parse(&text, &file, environment);
        }
        let Some(folder) = environment.config_folder() else {
            return Ok(Self::default());
        };
        let file = folder.join("turnbuckle").join("serve.toml");
        match std::fs::read_to_string(&file) {
            Ok(text) => Self::parse(&text, &file, environment),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(unreadable(&file, &error)),
        }
    }

    fn parse(text: &str, file: &Path, environment: &Environment) -> Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| {
            Failure::not_asked({
                let error = error.to_string();
                format!("{} cannot be used: {}", file.display(), error.trim_end())
            })
        })?;
        let folder = file.parent().unwrap_or(&environment.cwd);
        Ok(config.with_paths(|path| at(path, folder, environment)))
    }

    fn with_paths(mut self, whole: impl Fn(PathBuf) -> PathBuf) -> Self {
        self.data = self.data.map(&whole);
        self.roots = self
            .roots
            .map(|roots| roots.into_iter().map(&whole).collect());
        if let Some(section) = &mut self.authorization {
            section.token_file = section.token_file.take().map(&whole);
        }
        self.listen = self.listen.map(|listen| match listen {
            Place::Unix(path) => Place::Unix(whole(path)),
            place @ Place::Tcp(_) => place,
        });
        self
    }
}

/// Paths in the file are seen from its folder; `~` is the folder of the user.
fn at(path: PathBuf, folder: &Path, environment: &Environment) -> PathBuf {
    match (path.strip_prefix("~"), &environment.home) {
        (Ok(below), Some(home)) => home.join(below),
        _ => folder.join(path),
    }
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::not_asked(format!("{} cannot be read: {error}", file.display()))
}

fn place<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<Place>, D::Error> {
    let text = String::deserialize(from)?;
    place::read(&text).map(Some).map_err(D::Error::custom)
}

fn quota<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<Quota>, D::Error> {
    let text = String::deserialize(from)?;
    quota::read(&text).map(Some).map_err(D::Error::custom)
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    arguments::duration(&text)
        .map(Some)
        .map_err(D::Error::custom)
}

#[cfg(test)]
mod tests;
