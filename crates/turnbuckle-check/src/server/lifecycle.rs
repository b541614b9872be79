//! The handshake, and whether the server has what it says.

use serde_json::Value;
use turnbuckle_protocol::method::Method;
use turnbuckle_protocol::revision::Revision;

use crate::outcome::{Outcome, Seen, Unmet};
use crate::overheard::messages;
use crate::rule::{Area, On, Rule};
use crate::session::{Answer, Pending, Session};
use crate::speech::LAST_WITH_HANDSHAKE;
use crate::tape::{Tape, Way};
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "lifecycle.unknown-version",
        Area::Lifecycle,
        &["lifecycle.version.server-other"],
    )
    .says("A version that the server does not know is answered with one that it does.")
    .cure("Answer `initialize` with a version that you support, not with an error, and never with the unknown one.")
    .ask(|visit| Box::pin(unknown_version(visit))),
    Rule::server(
        "lifecycle.offer-kept",
        Area::Lifecycle,
        &["lifecycle.version.server-same"],
    )
    .says("A version that the server offers is confirmed when the client asks for it.")
    .cure("Answer `initialize` with the version of the request whenever you support it.")
    .ask(|visit| Box::pin(offer_kept(visit))),
    Rule::server(
        "lifecycle.newest-offered",
        Area::Lifecycle,
        &["lifecycle.version.server-latest"],
    )
    .says("The version that the server offers is the newest that it supports.")
    .cure("Offer the newest version that you support when the client's is unknown.")
    .ask(|visit| Box::pin(newest_offered(visit))),
    Rule::server(
        "lifecycle.waits-for-initialized",
        Area::Lifecycle,
        &["lifecycle.init.server-wait"],
    )
    .says("Before `notifications/initialized` the server asks nothing but `ping`.")
    .cure("Wait for `notifications/initialized` before you send requests.")
    .on(On::Lines)
    .ask(|visit| Box::pin(waits_for_initialized(visit))),
    Rule::server("lifecycle.ping-before-initialize", Area::Lifecycle, &[])
        .says("`ping` is answered before the handshake too.")
        .cure("Let `ping` through whatever the state of the session is.")
        .on(On::Lines)
        .ask(|visit| Box::pin(ping_before_initialize(visit))),
    Rule::server("lifecycle.initialize-first", Area::Lifecycle, &[])
        .says("Other requests before the handshake are refused.")
        .cure("Answer with an error until `initialize` was answered: nothing is agreed before.")
        .on(On::Lines)
        .ask(|visit| Box::pin(initialize_first(visit))),
    Rule::server("lifecycle.second-initialize", Area::Lifecycle, &[])
        .says("A second `initialize` is answered, and the session goes on.")
        .cure("Refuse it or begin anew, but stay there.")
        .on(On::Lines)
        .ask(|visit| Box::pin(second_initialize(visit))),
    Rule::server(
        "lifecycle.version-kept",
        Area::Lifecycle,
        &["lifecycle.operation.version-must"],
    )
    .says("The server sends only requests and notifications that the negotiated revision defines.")
    .cure("Look at the negotiated revision before you send a method that another revision introduced or removed.")
    .look(version_kept),
];

/// Judges the methods of the server's requests and notifications; methods of no revision are the server's own.
fn version_kept(visit: &Visit, tape: &Tape) -> Outcome {
    let mut seen = Vec::new();
    for message in messages(tape, Way::Received).filter(|message| !message.entry.beside) {
        let Some(method) = message.value["method"].as_str().and_then(Method::named) else {
            continue;
        };
        if !method.is_in(visit.revision) {
            let what = format!("`{}` is no method of {}", method.name, visit.revision);
            return Err(Unmet::broken(what, [message.at]));
        }
        seen.push(message.at);
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested(
            "the server sent no request and no notification",
        )),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

/// A version that nobody will ever speak.
const UNKNOWN: &str = "1999-01-01";

async fn unknown_version(visit: &Visit) -> Outcome {
    let answer = offer(visit, UNKNOWN).await?;
    if answer.value.get("result").is_none() {
        // Whoever lets nobody else in at all refuses something else than the version.
        let control = offer(visit, visit.revision.as_str()).await;
        let control = control.map_err(Unmet::aside)?;
        control.result().map_err(Unmet::aside)?;
    }
    match answer.result()?["protocolVersion"].as_str() {
        Some(UNKNOWN) => Err(answer.broken(format!("the server agrees to {UNKNOWN}"))),
        Some(_) => answer.seen(),
        None => Err(Unmet::not_tested("the answer names no version")),
    }
}

async fn offer_kept(visit: &Visit) -> Outcome {
    let (answer, offered) = counter_offer(visit).await?;
    let again = offer(visit, &offered).await?;
    match again.result()?["protocolVersion"].as_str() {
        Some(kept) if kept == offered => Seen::at(answer.entries().chain(again.entries())),
        other => {
            let other = other.unwrap_or("nothing");
            let what = format!("the server offers {offered}; asked for that it answers {other}");
            let entries = answer.entries().chain(again.entries());
            Err(Unmet::broken(what, entries))
        }
    }
}

async fn newest_offered(visit: &Visit) -> Outcome {
    let (answer, offered) = counter_offer(visit).await?;
    let mut entries: Vec<_> = answer.entries().collect();
    let newer = Revision::ALL.into_iter().rev();
    for newer in newer.filter(|one| *one <= LAST_WITH_HANDSHAKE && one.as_str() > offered.as_str())
    {
        let again = offer(visit, newer.as_str()).await?;
        entries.extend(again.entries());
        if again.value["result"]["protocolVersion"] == newer.as_str() {
            let what = format!("the server offers {offered}, and supports {newer}");
            return Err(Unmet::broken(what, entries));
        }
    }
    Seen::at(entries)
}

/// Returns the version that the server offers for one that it does not know.
async fn counter_offer(visit: &Visit) -> Result<(Answer, String), Unmet> {
    let answer = offer(visit, UNKNOWN).await?;
    let result = answer.result().map_err(Unmet::aside)?;
    match result["protocolVersion"].as_str() {
        Some(version) if version != UNKNOWN => {
            let version = version.to_owned();
            Ok((answer, version))
        }
        _ => Err(Unmet::not_tested("the server offers no version of its own")),
    }
}

/// Begins a handshake with a version in a conversation of its own, unless that was done before.
async fn offer(visit: &Visit, version: &str) -> Result<Answer, Unmet> {
    let mut offers = visit.offers.lock().await;
    if let Some(known) = offers.get(version) {
        return Ok(known.clone());
    }
    let session = visit.beside(visit.revision).await?;
    let mut params = session.speech.initialize();
    params["protocolVersion"] = version.into();
    let answer = session.ask("initialize", params).await?;
    offers.insert(version.to_owned(), answer.clone());
    Ok(answer)
}

async fn waits_for_initialized(visit: &Visit) -> Outcome {
    let session = visit.silent().await?;
    let answer = session.ask("initialize", session.speech.initialize()).await;
    let answer = answer.map_err(Unmet::aside)?;
    let mut heard = answer.before.clone();
    heard.extend(session.listen(visit.options.silence).await);
    for number in heard {
        let message = visit.tape.entry(number).json().unwrap_or_default();
        let method = message["method"].as_str().unwrap_or("ping");
        if message.get("id").is_some() && method != "ping" {
            return Err(Unmet::broken(
                format!("the server asks for `{method}`"),
                answer.entries().chain([number]),
            ));
        }
    }
    answer.seen()
}

async fn ping_before_initialize(visit: &Visit) -> Outcome {
    let session = visit.silent().await?;
    handshake_only(session.speech.has_handshake())?;
    let pending = session.begin("ping", Value::Null).await?;
    let (answer, _) = before_handshake(visit, &session, pending).await?;
    answer.result()?;
    answer.seen()
}

async fn initialize_first(visit: &Visit) -> Outcome {
    let shared = visit.session().await?;
    handshake_only(shared.speech.has_handshake())?;
    let capabilities = shared.capabilities();
    let mut lists = ["tools", "resources", "prompts"].into_iter();
    let Some(list) = lists.find(|list| capabilities.get(list).is_some()) else {
        return Err(Unmet::not_applicable("the server declares no lists"));
    };
    let method = format!("{list}/list");
    let session = visit.silent().await?;
    let pending = session.begin(&method, Value::Null).await?;
    let (answer, handshake) = before_handshake(visit, &session, pending).await?;
    // Whoever keeps a request until the handshake is made has not answered it before.
    let early = answer.received < handshake.received;
    match answer.value.get("result") {
        Some(_) if early => {
            Err(answer.broken(format!("`{method}` is answered before `initialize`")))
        }
        _ => answer.seen(),
    }
}

/// Returns the answer to what was asked before the handshake, and the one to the handshake.
///
/// The handshake is begun at once: when it is answered, what came before it has been, or never will be.
async fn before_handshake(
    visit: &Visit,
    session: &Session,
    pending: Pending,
) -> Result<(Answer, Answer), Unmet> {
    let sent = pending.sent;
    let opening = session.begin("initialize", session.speech.initialize());
    let handshake = session.answer(opening.await?).await?;
    match session.answer_within(pending, visit.options.silence).await {
        Ok(answer) => Ok((answer, handshake)),
        Err(_) => {
            let what = "no answer, though `initialize` after it has one";
            Err(Unmet::broken(
                what,
                sent.into_iter().chain(handshake.entries()),
            ))
        }
    }
}

async fn second_initialize(visit: &Visit) -> Outcome {
    let session = visit.fresh().await?;
    handshake_only(session.speech.has_handshake())?;
    let answer = session
        .ask("initialize", session.speech.initialize())
        .await?;
    let after = session.ask("ping", Value::Null).await?;
    Seen::at(answer.entries().chain(after.entries()))
}

fn handshake_only(has_handshake: bool) -> Result<(), Unmet> {
    match has_handshake {
        true => Ok(()),
        false => Err(Unmet::not_applicable("there is no handshake")),
    }
}
