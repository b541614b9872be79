//! What the client has declared, and what it has not.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::capability_for;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::overheard::Question;
use crate::session::Session;
use crate::speech::Speech;
use crate::trials::{Trial, Trials};
use crate::visit::Visit;

pub(super) async fn only_declared(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    let asking = asking(visit, trials)?;
    for trial in &asking {
        within(visit, trial, &trials.session.speech.capabilities)?;
    }
    // One that can do nothing, and one that has only forms.
    let mut seen = Vec::new();
    for capabilities in [json!({}), json!({ "elicitation": {} })] {
        let forms = capabilities.get("elicitation").is_some();
        let session = fresh_with(visit, capabilities.clone()).await?;
        let tried = asking
            .iter()
            .filter(|trial| !forms || asks_for_page(visit, trial));
        for trial in tried {
            let again = Trial::make(visit, &session, &trial.call, json!({})).await;
            within(visit, &again, &capabilities)?;
            seen.extend(again.entries());
        }
    }
    Seen::at(seen)
}

pub(super) async fn missing_capability(visit: &Visit) -> Outcome {
    let (trial, refused) = refused(visit).await?;
    let answer = refused.answer()?;
    let code = answer.error()?;
    if code != -32021 {
        return Err(answer.broken(format!("{} instead of -32021", answer.describe())));
    }
    let required = &answer.value["error"]["data"]["requiredCapabilities"];
    // Whoever wants several things may find out about one after the other.
    let asked = trial.questions(visit);
    let mut wanted = asked
        .iter()
        .filter_map(|question| capability_for(&question.method));
    match wanted.clone().any(|wanted| required.get(wanted).is_some()) {
        true => answer.seen(),
        false => Err(answer.broken(format!(
            "`requiredCapabilities` is {required} and does not name `{}`",
            wanted.next().unwrap_or_default()
        ))),
    }
}

pub(super) async fn missing_capability_status(visit: &Visit) -> Outcome {
    let (_, refused) = refused(visit).await?;
    let answer = refused.answer()?;
    match (answer.error(), answer.status) {
        (Ok(-32021), Some(400)) => answer.seen(),
        (Ok(-32021), Some(status)) => Err(answer.broken(format!("the status {status}"))),
        _ => Err(Unmet::not_tested("the error -32021 was not seen")),
    }
}

/// Returns a trial that asks something, and what came of it where the client can do nothing.
async fn refused(visit: &Visit) -> Result<(&Trial, Trial), Unmet> {
    let trials = visit.trials().await?;
    let session = fresh_with(visit, json!({})).await?;
    for trial in asking(visit, trials)? {
        let again = Trial::make(visit, &session, &trial.call, json!({})).await;
        if again.answer()?.error().is_ok() {
            return Ok((trial, again));
        }
    }
    Err(Unmet::not_tested(
        "the tools that ask something do without if they have to",
    ))
}

/// Returns the trials in which the server asked something.
fn asking<'a>(visit: &Visit, trials: &'a Trials) -> Result<Vec<&'a Trial>, Unmet> {
    match trials.that_asked(visit) {
        asking if asking.is_empty() => Err(trials.none("asks the client anything")),
        asking => Ok(asking),
    }
}

/// Makes sure that nothing is asked for that is not declared.
fn within(visit: &Visit, trial: &Trial, capabilities: &Value) -> Result<(), Unmet> {
    let handshake = Speech::new(visit.revision).has_handshake();
    // Where no server asks by a request, that it does so is for another rule to say.
    let questions = trial.questions(visit).into_iter();
    for question in questions.filter(|question| handshake || !question.by_request) {
        if let Some(missing) = undeclared(visit.revision, &question, capabilities) {
            let what = format!(
                "`{}` of a client that does not declare `{missing}`",
                question.method
            );
            return Err(Unmet::broken(what, trial.entries().chain([question.at])));
        }
    }
    Ok(())
}

/// Returns the capability that a question takes and the client has not declared.
fn undeclared(
    revision: Revision,
    question: &Question,
    capabilities: &Value,
) -> Option<&'static str> {
    let name = capability_for(&question.method)?;
    let Some(declared) = capabilities.get(name) else {
        return Some(name);
    };
    let tools =
        question.params.get("tools").is_some() || question.params.get("toolChoice").is_some();
    let modes = revision >= Revision::V2025_11_25;
    let only_forms = modes && declared.get("url").is_none();
    let only_pages = modes && declared.get("url").is_some() && declared.get("form").is_none();
    match name {
        "sampling" if tools && declared.get("tools").is_none() => Some("sampling.tools"),
        "elicitation" if question.params["mode"] == "url" && only_forms => Some("elicitation.url"),
        "elicitation" if question.params["mode"] != "url" && only_pages => Some("elicitation.form"),
        _ => None,
    }
}

fn asks_for_page(visit: &Visit, trial: &Trial) -> bool {
    let mut questions = trial.questions(visit).into_iter();
    questions.any(|question| question.params["mode"] == "url")
}

/// Begins a conversation as a client with these capabilities.
async fn fresh_with(visit: &Visit, capabilities: Value) -> Result<Session, Unmet> {
    let mut session = visit.silent().await?;
    session.speech.capabilities = capabilities;
    session.begin_properly().await.map_err(Unmet::aside)?;
    Ok(session)
}
