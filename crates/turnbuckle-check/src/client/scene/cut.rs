//! Servers that lose something: a session, or a connection.

use std::time::Duration;

use crate::client::cue::{Cue, Form, Reply};
use crate::client::part::{ENDPOINT, Heard, Page, Part};
use crate::tape::Head;

/// How long the client is asked to wait before it connects again.
pub(crate) const PAUSE: Duration = Duration::from_millis(700);

/// How long what was said needs to arrive before the stream breaks off.
const ARRIVING: Duration = Duration::from_millis(50);

/// How the ids of events begin.
const IDS: &str = "turnbuckle-event";

/// Forgets the session when it is used for the first time.
pub(super) fn forget(heard: &Heard<'_>) -> Option<Reply> {
    let session = heard
        .head
        .and_then(|head: &Head| head.header("mcp-session-id"));
    let opening = ["initialize", "server/discover"].contains(&heard.method);
    if opening || session != Some("turnbuckle-session-1") {
        return None;
    }
    Some(Reply::error(heard.message, -32001, "Session not found").with_status(404))
}

/// Breaks the first stream off before the answer.
pub(super) fn reply(part: &Part, heard: &Heard<'_>) -> Option<Reply> {
    let opening = ["initialize", "server/discover", "subscriptions/listen"];
    if opening.contains(&heard.method) || !part.first_time("breaks off") {
        return None;
    }
    if !part.has_handshake() {
        return Some(Reply::cues([Cue::Cut]).streamed());
    }
    part.keep(part.plain_answer(heard));
    let cues = [
        Cue::Mark(IDS),
        Cue::Retry(PAUSE),
        Cue::Wait(ARRIVING),
        Cue::Cut,
    ];
    Some(Reply::cues(cues).streamed())
}

/// Goes on with what was broken off.
pub(super) fn page(part: &Part, page: &Page<'_>) -> Option<Reply> {
    let resumes = page.method == "GET"
        && page.path.starts_with(ENDPOINT)
        && page.head.header("last-event-id") == Some("turnbuckle-event-1");
    if !resumes {
        return None;
    }
    part.note("resumed");
    let answer = part.kept()?;
    Some(Reply {
        form: Form::Stream,
        ..Reply::cues([Cue::Say(answer)])
    })
}
