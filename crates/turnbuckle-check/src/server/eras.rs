//! Old and new clients at one server.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::session::{Answer, Session};
use crate::speech::{LAST_WITH_HANDSHAKE, Speech};
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "eras.modern-beside-session",
        Area::Eras,
        &["versioning.dual.server-select-modern"],
    )
    .says("A request that says its version by itself is answered, whoever has begun a session before.")
    .cure("Look at the `_meta` of a request before you look for a session.")
    .gently()
    .on(On::Http)
    .ask(|visit| Box::pin(modern_beside_session(visit))),
    Rule::server(
        "eras.handshake-after-modern",
        Area::Eras,
        &["versioning.dual.server-select-legacy"],
    )
    .says("Whoever has asked who is there can still begin a session with `initialize`.")
    .cure("Let `initialize` through after `server/discover`, and serve what follows as the older revision says.")
    .gently()
    .ask(|visit| Box::pin(handshake_after_modern(visit))),
    Rule::server(
        "eras.initialize-names-versions",
        Area::Eras,
        &["versioning.modern-only.initialize-error"],
    )
    .says("A server without the handshake answers `initialize` with an error that names its versions.")
    .cure("Name the versions that you support in the message of the error.")
    .ask(|visit| Box::pin(initialize_names_versions(visit))),
    Rule::server("eras.probe", Area::Eras, &[])
        .says("`server/discover` before the handshake is answered, and the handshake works afterwards.")
        .cure("Answer methods that you do not know with an error, also before `initialize`, and go on.")
        .ask(|visit| Box::pin(probe(visit))),
];

async fn modern_beside_session(visit: &Visit) -> Outcome {
    let modern = visit.session().await?;
    let old = legacy(visit).await?;
    let begun = old.opening.as_ref().map(Answer::entries);
    let answer = modern.ask(modern.speech.harmless(), Value::Null).await?;
    answer.result()?;
    Seen::at(begun.into_iter().flatten().chain(answer.entries()))
}

async fn handshake_after_modern(visit: &Visit) -> Outcome {
    // Whoever refuses the handshake at once does not speak an older revision.
    legacy(visit).await?;
    let mut session = visit.beside(visit.revision).await?;
    let probe = session.ask(session.speech.harmless(), Value::Null).await;
    let probe = probe.map_err(Unmet::aside)?;
    session.speech = Speech::new(LAST_WITH_HANDSHAKE);
    let answer = session
        .ask("initialize", session.speech.initialize())
        .await?;
    match session.line() {
        // To serve both in one process is something that a server MAY do.
        Ok(_) if answer.value.get("error").is_some() => Err(Unmet::not_applicable(
            "a process that was asked who is there stays with the later revision",
        )),
        _ => {
            answer.result()?;
            Seen::at(probe.entries().chain(answer.entries()))
        }
    }
}

async fn initialize_names_versions(visit: &Visit) -> Outcome {
    let session = visit.beside(LAST_WITH_HANDSHAKE).await?;
    let answer = session
        .ask("initialize", session.speech.initialize())
        .await?;
    if answer.value.get("result").is_some() {
        return Err(Unmet::not_applicable("the server has the handshake"));
    }
    match answer.value["error"]
        .to_string()
        .contains(visit.revision.as_str())
    {
        true => answer.seen(),
        false => Err(answer.broken(format!(
            "{} does not name {}",
            answer.describe(),
            visit.revision
        ))),
    }
}

async fn probe(visit: &Visit) -> Outcome {
    let mut session = visit.beside(visit.revision).await?;
    if !session.speech.has_handshake() {
        return Err(Unmet::not_applicable("there is no handshake"));
    }
    let own = std::mem::replace(&mut session.speech, Speech::new(Revision::MODERN));
    let pending = session.begin("server/discover", json!({})).await?;
    session.speech = own;
    let (probe, answer) = match session.line() {
        // When the handshake is answered, what came before it has been, or never will be.
        Ok(_) => {
            let opening = session.begin("initialize", session.speech.initialize());
            let answer = session.answer(opening.await?).await?;
            let probe = session.answer_within(pending, visit.options.silence).await;
            (probe, answer)
        }
        Err(_) => {
            let probe = session.answer(pending).await;
            let opening = session.ask("initialize", session.speech.initialize());
            (probe, opening.await?)
        }
    };
    let probe = probe.map_err(|unmet| unmet.at("`server/discover`"))?;
    if probe.status.is_some_and(|status| status >= 500) {
        return Err(probe.broken(format!("`server/discover` gets {}", probe.describe())));
    }
    answer.result()?;
    Seen::at(probe.entries().chain(answer.entries()))
}

/// Begins a session in an older revision beside the visit.
pub(super) async fn legacy(visit: &Visit) -> Result<Session, Unmet> {
    let mut session = visit.beside(LAST_WITH_HANDSHAKE).await?;
    match session.begin_properly().await {
        Ok(()) => Ok(session),
        Err(_) => Err(Unmet::not_applicable("the server has no handshake")),
    }
}
