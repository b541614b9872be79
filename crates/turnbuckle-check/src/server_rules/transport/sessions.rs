//! HTTP sessions.

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    rule::{Area, Rule, Transports},
    session::{ProbeResponse, Session},
};

/// The minimum number of different characters of two unpredictable ids.
const MIN_DIFFERENT_CHARACTERS: usize = 6;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "sessions.id-visible",
        Area::Sessions,
        &["http.session.id-charset"],
    )
    .requirement("A session id consists of visible ASCII characters.")
    .hint("Generate session ids of letters, digits and hyphens, such as a UUID.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(visible(ctx))),
    Rule::server(
        "sessions.id-unpredictable",
        Area::Sessions,
        &["security.session.random", "http.session.id-strength"],
    )
    .requirement("Session ids are long and random, and cannot be guessed from others.")
    .hint("Generate session ids from at least 128 bits of a secure random source.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(unpredictable(ctx))),
    Rule::server(
        "sessions.missing-400",
        Area::Sessions,
        &["http.session.missing-400"],
    )
    .requirement("The server responds with 400 to a request without a required session id.")
    .hint("Respond with 400 to a request other than `initialize` without `Mcp-Session-Id`.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(missing(ctx))),
    Rule::server(
        "sessions.ended-404",
        Area::Sessions,
        &["http.session.terminated-404"],
    )
    .requirement("The server responds with 404 to a request in an ended session.")
    .hint("Respond with 404 to an unknown session id, so that clients start a new session.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(ended(ctx))),
    Rule::server("sessions.delete", Area::Sessions, &[])
        .requirement("DELETE ends a session, or the server responds with 405.")
        .hint("Respond to DELETE with 405 if clients may not end sessions.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(delete(ctx))),
];

async fn visible(ctx: &CheckContext) -> Outcome {
    let (id, opening) = session_id(ctx.session().await?)?;
    if id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
        opening.evidence()
    } else {
        Err(opening.violation("the session id has characters other than visible ASCII"))
    }
}

async fn unpredictable(ctx: &CheckContext) -> Outcome {
    let (first, opening) = session_id(ctx.session().await?)?;
    let another = ctx.new_session().await?;
    let (second, other) = session_id(&another)?;
    let entries = || opening.entries().chain(other.entries());
    if first == second {
        return Err(NotPassed::violation(
            "two sessions have the same id",
            entries(),
        ));
    }
    let pairs = first.bytes().zip(second.bytes());
    let longer = first.len().abs_diff(second.len());
    let differ = pairs.filter(|(one, other)| one != other).count() + longer;
    if differ < MIN_DIFFERENT_CHARACTERS {
        let observed = format!("the ids of two sessions differ in only {differ} characters");
        Err(NotPassed::violation(observed, entries()))
    } else {
        Evidence::from_entries(entries())
    }
}

async fn missing(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    session_id(session)?;
    let raw_request = session.noop_request()?.without("mcp-session-id");
    let response = session.send_raw(raw_request.deliberately_invalid()).await?;
    match response.status {
        Some(400) => response.evidence(),
        Some(200) => Err(NotPassed::not_applicable(
            "the server does not require a session id",
        )),
        _ => Err(response.violation(super::http::status(&response))),
    }
}

async fn ended(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    session_id(&session)?;
    let response = delete_session(&session).await?;
    match response.0 {
        405 => return Err(NotPassed::not_applicable("clients may not end sessions")),
        200..300 => {}
        status => {
            let why = format!("HTTP status {status} for DELETE");
            return Err(NotPassed::not_tested(why));
        }
    }
    let after = session
        .send_raw(session.noop_request()?.deliberately_invalid())
        .await?;
    match after.status {
        Some(404) => Evidence::from_entries(response.1.into_iter().chain(after.entries())),
        _ => {
            let observed = format!(
                "{} after the end of the session",
                super::http::status(&after)
            );
            Err(NotPassed::violation(
                observed,
                response.1.into_iter().chain(after.entries()),
            ))
        }
    }
}

async fn delete(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    session_id(&session)?;
    match delete_session(&session).await? {
        (200..300 | 405, entries) => Evidence::from_entries(entries),
        (status, entries) => Err(NotPassed::violation(
            format!("HTTP status {status}"),
            entries,
        )),
    }
}

/// Ends a session; returns the status and the entries.
async fn delete_session(session: &Session) -> Result<(u16, [usize; 2]), NotPassed> {
    let headers = session
        .request_builder
        .headers(&serde_json::Value::Null, session.id.as_deref());
    let raw_request = session.http()?.request("DELETE").headers(headers);
    let response = raw_request.without("content-type").send().await?;
    Ok((response.status, response.entries()))
}

/// Returns the id of a session and the response with it.
fn session_id(session: &Session) -> Result<(&str, &ProbeResponse), NotPassed> {
    match (&session.id, &session.opening) {
        (Some(id), Some(opening)) => Ok((id, opening)),
        _ => Err(NotPassed::not_applicable(
            "the server does not use sessions",
        )),
    }
}
