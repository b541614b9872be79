//! Sessions on HTTP.

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    rule::{Area, Rule, Transports},
    session::{ProbeResponse, Session},
};

/// The fewest places in which two ids differ that nobody could have guessed.
const DIFFERENT: usize = 6;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "sessions.id-visible",
        Area::Sessions,
        &["http.session.id-charset"],
    )
    .requirement("A session id consists of visible ASCII characters.")
    .fix("Make session ids of letters, digits and hyphens, as a UUID is.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(visible(ctx))),
    Rule::server(
        "sessions.id-unpredictable",
        Area::Sessions,
        &["security.session.random", "http.session.id-strength"],
    )
    .requirement("Session ids are long and random: whoever knows some cannot guess another.")
    .fix("Make session ids from a secure random source, at least 128 bits of it.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(unpredictable(ctx))),
    Rule::server(
        "sessions.missing-400",
        Area::Sessions,
        &["http.session.missing-400"],
    )
    .requirement("A request without the session id that it needs is answered with 400.")
    .fix("Answer a request other than `initialize` without `Mcp-Session-Id` with 400.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(missing(ctx))),
    Rule::server(
        "sessions.ended-404",
        Area::Sessions,
        &["http.session.terminated-404"],
    )
    .requirement("A request in a session that has ended is answered with 404.")
    .fix("Answer a session id that is not known any more with 404, so that clients begin anew.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(ended(ctx))),
    Rule::server("sessions.delete", Area::Sessions, &[])
        .requirement("DELETE ends a session, or is answered with 405.")
        .fix("Answer DELETE with 405 if clients may not end sessions.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(delete(ctx))),
];

async fn visible(ctx: &CheckContext) -> Outcome {
    let (id, opening) = given(ctx.session().await?)?;
    if id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
        opening.evidence()
    } else {
        Err(opening.violation("the session id has other characters in it"))
    }
}

async fn unpredictable(ctx: &CheckContext) -> Outcome {
    let (first, opening) = given(ctx.session().await?)?;
    let another = ctx.new_session().await?;
    let (second, other) = given(&another)?;
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
    if differ < DIFFERENT {
        let observed = format!("the ids of two sessions differ in {differ} characters only");
        Err(NotPassed::violation(observed, entries()))
    } else {
        Evidence::from_entries(entries())
    }
}

async fn missing(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    given(session)?;
    let raw_request = session.noop_request()?.without("mcp-session-id");
    let response = session.send_raw(raw_request.deliberately_invalid()).await?;
    match response.status {
        Some(400) => response.evidence(),
        Some(200) => Err(NotPassed::not_applicable("the server needs no session id")),
        _ => Err(response.violation(super::http::status(&response))),
    }
}

async fn ended(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    given(&session)?;
    let reply = end(&session).await?;
    match reply.0 {
        405 => return Err(NotPassed::not_applicable("clients may not end sessions")),
        200..300 => {}
        status => {
            let why = format!("DELETE is answered with the status {status}");
            return Err(NotPassed::not_tested(why));
        }
    }
    let response = session
        .send_raw(session.noop_request()?.deliberately_invalid())
        .await?;
    match response.status {
        Some(404) => Evidence::from_entries(reply.1.into_iter().chain(response.entries())),
        _ => {
            let observed = format!(
                "{} after the session was ended",
                super::http::status(&response)
            );
            Err(NotPassed::violation(
                observed,
                reply.1.into_iter().chain(response.entries()),
            ))
        }
    }
}

async fn delete(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    given(&session)?;
    match end(&session).await? {
        (200..300 | 405, entries) => Evidence::from_entries(entries),
        (status, entries) => Err(NotPassed::violation(
            format!("the status {status}"),
            entries,
        )),
    }
}

/// Ends a session; returns the status, and the entries that show it.
async fn end(session: &Session) -> Result<(u16, [usize; 2]), NotPassed> {
    let headers = session
        .request_builder
        .headers(&serde_json::Value::Null, session.id.as_deref());
    let raw_request = session.http()?.request("DELETE").headers(headers);
    let reply = raw_request.without("content-type").send().await?;
    Ok((reply.status, reply.entries()))
}

/// Returns the id of a session, and the answer that gave it.
fn given(session: &Session) -> Result<(&str, &ProbeResponse), NotPassed> {
    match (&session.id, &session.opening) {
        (Some(id), Some(opening)) => Ok((id, opening)),
        _ => Err(NotPassed::not_applicable("the server has no sessions")),
    }
}
