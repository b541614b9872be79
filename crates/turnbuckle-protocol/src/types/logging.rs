//! Log messages from server to client.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::setters::setters;
use crate::meta::Meta;

/// How severe a log message is (RFC 5424), ordered from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For whoever develops the server.
    Debug,
    /// What happens normally.
    Info,
    /// Normal but worth noting.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part has failed.
    Critical,
    /// Someone has to act now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// Every level, from least to most severe.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|level| level.as_str() == name)
            .ok_or(UnknownLogLevel)
    }
}

/// The name is none of the eight levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown log level")]
pub struct UnknownLogLevel;

/// Parameters of `logging/setLevel` (handshake revisions only).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SetLevelParams {
    /// The least severe level to send.
    pub level: LogLevel,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl SetLevelParams {
    /// Asks for messages from a level upwards.
    pub fn new(level: LogLevel) -> Self {
        Self {
            level,
            meta: Meta::default(),
        }
    }
}

setters!(SetLevelParams { plain { meta: Meta } });

/// Parameters of `notifications/message`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LoggingMessageParams {
    /// How severe it is.
    pub level: LogLevel,
    /// Which part of the server speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// What is said: a string or any other JSON value.
    pub data: Value,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl LoggingMessageParams {
    /// Creates a log message.
    pub fn new(level: LogLevel, data: impl Into<Value>) -> Self {
        Self {
            level,
            logger: None,
            data: data.into(),
            meta: Meta::default(),
        }
    }
}

setters!(LoggingMessageParams {
    optional { logger: String }
    plain { meta: Meta }
});
