//! Cancellation, progress and log messages.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient_number;
use crate::{RequestId, meta::Meta};

/// Parameters of `notifications/cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledParams {
    /// The cancelled request. It may be absent in 2025-11-25; such a notification is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The reason, for logs and users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CancelledParams {
    /// Cancels a request.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        Self {
            request_id: Some(request_id.into()),
            ..Self::default()
        }
    }
}

setters!(CancelledParams {
    optional { reason: String }
    plain { meta: Meta }
});

/// Parameters of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressParams {
    /// The progress token of the request.
    pub progress_token: RequestId,
    /// The progress so far; it grows with every notification.
    #[serde(serialize_with = "lenient_number::without_fraction")]
    pub progress: f64,
    /// The total, if known.
    #[serde(
        default,
        serialize_with = "lenient_number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub total: Option<f64>,
    /// A progress message (since 2025-03-26).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ProgressParams {
    /// Reports progress for a token.
    pub fn new(progress_token: impl Into<RequestId>, progress: impl Into<f64>) -> Self {
        Self {
            progress_token: progress_token.into(),
            progress: progress.into(),
            total: None,
            message: None,
            meta: Meta::default(),
        }
    }
}

setters!(ProgressParams {
    optional {
        total: f64,
        message: String,
    }
    plain { meta: Meta }
});

/// The severity of a log message (RFC 5424), ordered from least to most severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Normal events.
    Info,
    /// Normal but significant events.
    Notice,
    /// Warnings.
    Warning,
    /// Errors.
    Error,
    /// Failure of a component.
    Critical,
    /// Immediate action is required.
    Alert,
    /// The system is unusable.
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

/// The name is not one of the eight levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown log level")]
pub struct UnknownLogLevel;

/// Parameters of `logging/setLevel` (legacy era only).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SetLevelParams {
    /// The minimum level.
    pub level: LogLevel,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl SetLevelParams {
    /// Requests messages from a minimum level.
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
    /// The severity.
    pub level: LogLevel,
    /// The component that logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The message: a string or any other JSON value.
    pub data: Value,
    /// The `_meta` object.
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
