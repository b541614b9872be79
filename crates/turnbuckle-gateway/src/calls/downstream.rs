//! Notifications of a running call on their way to the client.
//!
//! While no request of the client waits, the newest progress and a limited amount of log messages are kept. They are
//! delivered to its next request, before the result.

use std::collections::VecDeque;

use turnbuckle_protocol::{
    jsonrpc::RawObject,
    meta::keys,
    types::{ClientCapabilities, LogLevel},
};
use turnbuckle_server::relay::RelayedRequest;

use crate::raw_json::edit;

/// Maximum size of the kept notifications of a call, without progress.
const MAX_KEPT_BYTES: usize = 64 * 1024;

/// The request of the client that waits for a call, and the notifications that it has not received.
pub(crate) struct Delivery {
    /// `None` while the call is suspended.
    request: Option<RelayedRequest>,
    /// What the last request of the client accepts.
    log_level: Option<LogLevel>,
    /// The last progress value.
    last_progress: f64,
    /// The parameters of the newest progress notification.
    kept_progress: Option<Box<str>>,
    /// Other notifications: method and parameters.
    kept: VecDeque<(Box<str>, Box<str>)>,
    kept_bytes: usize,
    /// The number of notifications that were dropped for lack of room.
    dropped: u64,
}

impl Delivery {
    pub(crate) fn new(request: &RelayedRequest) -> Self {
        Self {
            request: Some(request.clone()),
            log_level: request.log_level(),
            last_progress: f64::NEG_INFINITY,
            kept_progress: None,
            kept: VecDeque::new(),
            kept_bytes: 0,
            dropped: 0,
        }
    }

    /// The request of the client that waits for the result.
    pub(crate) fn request(&self) -> Option<&RelayedRequest> {
        self.request.as_ref()
    }

    /// The level of log messages that the client accepts.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// Lets another request of the client wait, which receives what was kept.
    pub(crate) fn attach(&mut self, request: &RelayedRequest) {
        self.request = Some(request.clone());
        self.log_level = request.log_level();
        self.flush();
    }

    /// Forgets the request of the client, because it gets a response.
    pub(crate) fn detach(&mut self) {
        self.request = None;
    }

    /// Tests the capabilities that the waiting request declares. `None` if no request waits.
    pub(crate) fn test_declared<T>(&self, test: impl Fn(&ClientCapabilities) -> T) -> Option<T> {
        let context = self.request.as_ref()?.context();
        Some(test(context.client_capabilities()))
    }

    /// Passes progress on, if it exceeds the last value.
    pub(crate) fn progress(&mut self, params: &str) {
        let value = RawObject::parse(params).ok();
        let value = value.and_then(|object| object.get("progress")?.parse::<f64>().ok());
        let Some(value) = value.filter(|value| value.is_finite() && *value > self.last_progress)
        else {
            return;
        };
        self.last_progress = value;
        match &self.request {
            Some(request) => send_progress(request, params),
            None => self.kept_progress = Some(params.into()),
        }
    }

    /// Passes a log message on, if the client accepts messages of this level.
    pub(crate) fn log(&mut self, params: &str) {
        let is_accepted = self
            .log_level
            .is_some_and(|accepted| level_of(params).is_some_and(|level| level >= accepted));
        if is_accepted {
            self.notify("notifications/message", params);
        }
    }

    /// Passes a notification on.
    pub(crate) fn notify(&mut self, method: &str, params: &str) {
        match &self.request {
            Some(request) => request.notify(method, params),
            None => self.keep(method, params),
        }
    }

    /// Sends what was kept.
    fn flush(&mut self) {
        let Some(request) = &self.request else {
            return;
        };
        for (method, params) in self.kept.drain(..) {
            request.notify(&method, &params);
        }
        self.kept_bytes = 0;
        if let Some(params) = self.kept_progress.take() {
            send_progress(request, &params);
        }
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            tracing::debug!(dropped, "notifications of a suspended call were dropped");
        }
    }

    fn keep(&mut self, method: &str, params: &str) {
        let size = method.len() + params.len();
        if size > MAX_KEPT_BYTES {
            self.dropped += 1;
            return;
        }
        self.kept_bytes += size;
        self.kept.push_back((method.into(), params.into()));
        while self.kept_bytes > MAX_KEPT_BYTES {
            let Some((method, params)) = self.kept.pop_front() else {
                return;
            };
            self.kept_bytes -= method.len() + params.len();
            self.dropped += 1;
        }
    }
}

/// Sends progress under the token of the client; nothing without one.
fn send_progress(request: &RelayedRequest, params: &str) {
    let Some(token) = request.progress_token() else {
        return;
    };
    let token = token.raw().into_owned();
    if let Ok(params) = edit(params, &[], &[(keys::PROGRESS_TOKEN, token)]) {
        request.notify("notifications/progress", &params);
    }
}

/// Returns the level of a log message.
pub(crate) fn level_of(params: &str) -> Option<LogLevel> {
    let object = RawObject::parse(params).ok()?;
    object.string("level").ok()??.parse().ok()
}
