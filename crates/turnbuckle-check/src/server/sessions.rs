//! Sessions on HTTP.

use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::session::{Answer, Session};
use crate::visit::Visit;

/// The fewest places in which two ids differ that nobody could have guessed.
const DIFFERENT: usize = 6;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "sessions.id-visible",
        Area::Sessions,
        &["http.session.id-charset"],
    )
    .says("A session id consists of visible ASCII characters.")
    .cure("Make session ids of letters, digits and hyphens, as a UUID is.")
    .on(On::Http)
    .ask(|visit| Box::pin(visible(visit))),
    Rule::server(
        "sessions.id-unpredictable",
        Area::Sessions,
        &["security.session.random", "http.session.id-strength"],
    )
    .says("Session ids are long and random: whoever knows some cannot guess another.")
    .cure("Make session ids from a secure random source, at least 128 bits of it.")
    .on(On::Http)
    .ask(|visit| Box::pin(unpredictable(visit))),
    Rule::server(
        "sessions.missing-400",
        Area::Sessions,
        &["http.session.missing-400"],
    )
    .says("A request without the session id that it needs is answered with 400.")
    .cure("Answer a request other than `initialize` without `Mcp-Session-Id` with 400.")
    .on(On::Http)
    .ask(|visit| Box::pin(missing(visit))),
    Rule::server(
        "sessions.ended-404",
        Area::Sessions,
        &["http.session.terminated-404"],
    )
    .says("A request in a session that has ended is answered with 404.")
    .cure("Answer a session id that is not known any more with 404, so that clients begin anew.")
    .on(On::Http)
    .ask(|visit| Box::pin(ended(visit))),
    Rule::server("sessions.delete", Area::Sessions, &[])
        .says("DELETE ends a session, or is answered with 405.")
        .cure("Answer DELETE with 405 if clients may not end sessions.")
        .on(On::Http)
        .ask(|visit| Box::pin(delete(visit))),
];

async fn visible(visit: &Visit) -> Outcome {
    let (id, opening) = given(visit.session().await?)?;
    match id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
        true => opening.seen(),
        false => Err(opening.broken("the session id has other characters in it")),
    }
}

async fn unpredictable(visit: &Visit) -> Outcome {
    let (first, opening) = given(visit.session().await?)?;
    let another = visit.fresh().await?;
    let (second, other) = given(&another)?;
    let entries = || opening.entries().chain(other.entries());
    if first == second {
        return Err(Unmet::broken("two sessions have the same id", entries()));
    }
    let pairs = first.bytes().zip(second.bytes());
    let longer = first.len().abs_diff(second.len());
    let differ = pairs.filter(|(one, other)| one != other).count() + longer;
    match differ < DIFFERENT {
        true => {
            let what = format!("the ids of two sessions differ in {differ} characters only");
            Err(Unmet::broken(what, entries()))
        }
        false => Seen::at(entries()),
    }
}

async fn missing(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    given(session)?;
    let draft = session.harmless()?.without("mcp-session-id");
    let answer = session.exchange(draft.deliberate()).await?;
    match answer.status {
        Some(400) => answer.seen(),
        Some(200) => Err(Unmet::not_applicable("the server needs no session id")),
        _ => Err(answer.broken(super::http::status(&answer))),
    }
}

async fn ended(visit: &Visit) -> Outcome {
    let session = visit.fresh().await?;
    given(&session)?;
    let reply = end(&session).await?;
    match reply.0 {
        405 => return Err(Unmet::not_applicable("clients may not end sessions")),
        200..300 => {}
        status => {
            let why = format!("DELETE is answered with the status {status}");
            return Err(Unmet::not_tested(why));
        }
    }
    let answer = session.exchange(session.harmless()?.deliberate()).await?;
    match answer.status {
        Some(404) => Seen::at(reply.1.into_iter().chain(answer.entries())),
        _ => {
            let what = format!(
                "{} after the session was ended",
                super::http::status(&answer)
            );
            Err(Unmet::broken(
                what,
                reply.1.into_iter().chain(answer.entries()),
            ))
        }
    }
}

async fn delete(visit: &Visit) -> Outcome {
    let session = visit.fresh().await?;
    given(&session)?;
    match end(&session).await? {
        (200..300 | 405, entries) => Seen::at(entries),
        (status, entries) => Err(Unmet::broken(format!("the status {status}"), entries)),
    }
}

/// Ends a session; returns the status, and the entries that show it.
async fn end(session: &Session) -> Result<(u16, [usize; 2]), Unmet> {
    let headers = session
        .speech
        .headers(&serde_json::Value::Null, session.id.as_deref());
    let draft = session.http()?.request("DELETE").headers(headers);
    let reply = draft.without("content-type").send().await?;
    Ok((reply.status, reply.entries()))
}

/// Returns the id of a session, and the answer that gave it.
fn given(session: &Session) -> Result<(&str, &Answer), Unmet> {
    match (&session.id, &session.opening) {
        (Some(id), Some(opening)) => Ok((id, opening)),
        _ => Err(Unmet::not_applicable("the server has no sessions")),
    }
}
