//! Why there is nothing to report on.

use std::time::Duration;

use tokio::time::timeout;
use turnbuckle_client::ConnectError;
use turnbuckle_protocol::revision::Revision;

use crate::options::Options;
use crate::report::{Report, excerpt};
use crate::rule::Role;
use crate::run::Visited;
use crate::tape::{Tape, Way};
use crate::target::{Reach, Target};

/// How long a process that speaks no revision may take to die of what ails it.
const DYING: Duration = Duration::from_secs(2);

/// So many characters of a reason are shown: it may quote the other side.
const LONGEST: usize = 1_000;

/// Why a check could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotChecked {
    /// Nobody is there.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The server answers, but not to us.
    #[error("the server wants to know who asks: HTTP status {status}")]
    Denied {
        /// How it said so.
        status: u16,
        /// What could be seen from outside: how the server treats those whom it does not know.
        report: Box<Report>,
    },
    /// The server is there, and says that what was asked for is at another place.
    #[error("the server is to be found at another place: HTTP status {status}, {}", excerpt(.to, LONGEST))]
    Moved {
        /// How it said so.
        status: u16,
        /// Which place it names.
        to: String,
    },
    /// The server is there, and speaks none of the revisions that were asked for.
    #[error("the server speaks no revision that was looked at{}", reasons(.0))]
    NothingSpoken(Vec<(Revision, String)>),
    /// The client was run, and speaks none of the revisions that were asked for.
    #[error("the client speaks no revision that was looked at{}", reasons(.0))]
    ClientSpeaksNothing(Vec<(Revision, String)>),
}

/// Finds out why nothing was spoken in any revision.
pub(crate) async fn why_nothing_was_spoken(
    target: &Target,
    options: &Options,
    mut visits: Vec<Visited>,
) -> NotChecked {
    if let Some(status) = visits.iter().find_map(|visited| visited.denied) {
        let mut report = Report::new(Role::Server, &target.label);
        report.runs = visits.into_iter().map(|visited| visited.run).collect();
        let report = Box::new(report);
        return NotChecked::Denied { status, report };
    }
    if let Err(why) = reached(target, options.patience).await {
        return NotChecked::Unreachable(why);
    }
    if let Some((status, to)) = visits.iter_mut().find_map(|visited| visited.moved.take()) {
        return NotChecked::Moved { status, to };
    }
    let reason = |visited: &Visited| {
        let why = visited.run.not_spoken.clone();
        (visited.run.revision, why.unwrap_or_default())
    };
    NotChecked::NothingSpoken(visits.iter().map(reason).collect())
}

/// Returns the status by which a server said that it does not know us.
pub(crate) fn denied(tape: &Tape) -> Option<u16> {
    let entries = tape.all().into_iter().map(|(_, entry)| entry);
    entries
        .filter(|entry| entry.way == Way::Received)
        .filter_map(|entry| entry.head?.line.parse().ok())
        .find(|status| matches!(status, 401 | 403))
}

/// Returns the status by which a server said that it is elsewhere, and where.
pub(crate) fn moved(tape: &Tape) -> Option<(u16, String)> {
    let entries = tape.all().into_iter().map(|(_, entry)| entry);
    entries
        .filter(|entry| entry.way == Way::Received)
        .filter_map(|entry| entry.head)
        .find_map(|head| {
            let status = head.line.parse().ok()?;
            let is_place = |(name, _): &(String, String)| name == "location";
            let (_, place) = head.headers.into_iter().find(is_place)?;
            matches!(status, 301 | 302 | 303 | 307 | 308).then_some((status, place))
        })
}

/// Sees whether anybody is there at all.
async fn reached(target: &Target, patience: Duration) -> Result<(), String> {
    let limit = || format!("there is no answer within {patience:?}");
    match &target.way {
        Reach::Http(web) => {
            let dialed = timeout(patience, web.http.dial()).await;
            let dialed = dialed.map_err(|_| limit())?;
            dialed.map(drop).map_err(|error| match &error {
                ConnectError::Unreachable(error) => chain(error),
                error => chain(error),
            })
        }
        Reach::Streams(open) => {
            let opened = timeout(patience, open()).await.map_err(|_| limit())?;
            opened.map(drop).map_err(|error| error.to_string())
        }
        Reach::Child(starter) => {
            let started = starter.child.start().map_err(|error| chain(&error))?;
            match timeout(DYING, started.process.died()).await {
                Ok(died) => Err(died.to_string()),
                Err(_) => Ok(()),
            }
        }
    }
}

/// Returns what an error says, and what is below it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        let said = error.to_string();
        // Some errors repeat what is below them.
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        below = error.source();
    }
    text
}

/// Lists the reasons, revisions with the same one together.
fn reasons(reasons: &[(Revision, String)]) -> String {
    let mut groups: Vec<(Vec<&str>, &str)> = Vec::new();
    for (revision, why) in reasons {
        match groups.iter_mut().find(|(_, other)| other == why) {
            Some((revisions, _)) => revisions.push(revision.as_str()),
            None => groups.push((vec![revision.as_str()], why)),
        }
    }
    let line = |(revisions, why): &(Vec<&str>, &str)| {
        format!("\n  {}: {}", revisions.join(", "), excerpt(why, LONGEST))
    };
    groups.iter().map(line).collect()
}
