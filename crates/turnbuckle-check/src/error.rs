//! Reasons why a check produced no report.

use std::time::Duration;

use tokio::time::timeout;
use turnbuckle_client::ConnectError;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_text::error_chain;

use crate::{
    engine::{
        run::RevisionRun,
        transcript::{Direction, Transcript},
    },
    options::CheckOptions,
    report::{Report, excerpt},
    rule::Role,
    target::{ServerTarget, TargetTransport},
};

/// The time that a process without a supported revision gets to exit and report its error.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// The maximum length of a reason, which may quote the peer.
const MAX_REASON_CHARS: usize = 1_000;

/// The check could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// No connection could be made.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The server requires authorization.
    #[error("the server requires authorization: HTTP status {status}")]
    Unauthorized {
        /// The HTTP status.
        status: u16,
        /// The results that do not need authorization.
        report: Box<Report>,
    },
    /// The server redirects to another URL.
    #[error("the server redirects to another URL: HTTP status {status}, {}", excerpt(.location, MAX_REASON_CHARS))]
    Redirected {
        /// The HTTP status.
        status: u16,
        /// The value of `Location`.
        location: String,
    },
    /// The server supports none of the requested revisions.
    #[error("the server supports none of the requested revisions{}", reasons(.0))]
    NoSupportedRevision(Vec<(Revision, String)>),
    /// The client supports none of the requested revisions.
    #[error("the client supports none of the requested revisions{}", reasons(.0))]
    ClientNoSupportedRevision(Vec<(Revision, String)>),
}

/// Finds out why no revision is supported.
pub(crate) async fn explain_no_revision(
    target: &ServerTarget,
    options: &CheckOptions,
    mut revision_runs: Vec<RevisionRun>,
) -> CheckError {
    if let Some(status) = revision_runs
        .iter()
        .find_map(|revision_run| revision_run.unauthorized)
    {
        let mut report = Report::new(Role::Server, &target.label);
        report.runs = revision_runs
            .into_iter()
            .map(|revision_run| revision_run.run)
            .collect();
        let report = Box::new(report);
        return CheckError::Unauthorized { status, report };
    }
    if let Err(why) = probe_reachable(target, options.response_timeout).await {
        return CheckError::Unreachable(why);
    }
    if let Some((status, location)) = revision_runs
        .iter_mut()
        .find_map(|revision_run| revision_run.redirect.take())
    {
        return CheckError::Redirected { status, location };
    }
    let reason = |revision_run: &RevisionRun| {
        let why = revision_run.run.unsupported.clone();
        (revision_run.run.revision, why.unwrap_or_default())
    };
    CheckError::NoSupportedRevision(revision_runs.iter().map(reason).collect())
}

/// Returns the HTTP status with which the server required authorization.
pub(crate) fn unauthorized(transcript: &Transcript) -> Option<u16> {
    let entries = transcript.all().into_iter().map(|(_, entry)| entry);
    entries
        .filter(|entry| entry.direction == Direction::Received)
        .filter_map(|entry| entry.head?.start_line.parse().ok())
        .find(|status| matches!(status, 401 | 403))
}

/// Returns the status and the location of a redirect.
pub(crate) fn redirect(transcript: &Transcript) -> Option<(u16, String)> {
    let entries = transcript.all().into_iter().map(|(_, entry)| entry);
    entries
        .filter(|entry| entry.direction == Direction::Received)
        .filter_map(|entry| entry.head)
        .find_map(|head| {
            let status = head.start_line.parse().ok()?;
            let is_location = |(name, _): &(String, String)| name == "location";
            let (_, location) = head.headers.into_iter().find(is_location)?;
            matches!(status, 301 | 302 | 303 | 307 | 308).then_some((status, location))
        })
}

/// Tries to connect.
async fn probe_reachable(target: &ServerTarget, response_timeout: Duration) -> Result<(), String> {
    let limit = || format!("no response within {response_timeout:?}");
    match &target.transport {
        TargetTransport::Http(endpoint) => {
            let connected = timeout(response_timeout, endpoint.http.dial()).await;
            let connected = connected.map_err(|_| limit())?;
            connected.map(drop).map_err(|error| match &error {
                ConnectError::Unreachable(error) => error_chain(error),
                error => error_chain(error),
            })
        }
        TargetTransport::Streams(open) => {
            let opened = timeout(response_timeout, open())
                .await
                .map_err(|_| limit())?;
            opened.map(drop).map_err(|error| error.to_string())
        }
        TargetTransport::ServerCommand(prewarmer) => {
            let started = prewarmer
                .child
                .start()
                .map_err(|error| error_chain(&error))?;
            match timeout(EXIT_GRACE, started.process.wait()).await {
                Ok(exit) => Err(exit.to_string()),
                Err(_) => Ok(()),
            }
        }
    }
}

/// Lists the reasons, grouping revisions with the same one.
fn reasons(reasons: &[(Revision, String)]) -> String {
    let mut groups: Vec<(Vec<&str>, &str)> = Vec::new();
    for (revision, why) in reasons {
        match groups.iter_mut().find(|(_, other)| other == why) {
            Some((revisions, _)) => revisions.push(revision.as_str()),
            None => groups.push((vec![revision.as_str()], why)),
        }
    }
    let line = |(revisions, why): &(Vec<&str>, &str)| {
        format!(
            "\n  {}: {}",
            revisions.join(", "),
            excerpt(why, MAX_REASON_CHARS)
        )
    };
    groups.iter().map(line).collect()
}
