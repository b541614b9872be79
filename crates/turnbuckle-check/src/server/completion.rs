//! Completion of what a user types.

use serde_json::{Value, json};
use turnbuckle_protocol::{revision::Revision, uri_template::UriTemplate};

use crate::outcome::{Outcome, Unmet};
use crate::rule::{Area::Completion, Rule};
use crate::session::{Answer, Session};
use crate::visit::Visit;

/// How many arguments are looked at to find one that can be completed.
const TRIED: usize = 10;

pub(crate) const RULES: &[Rule] = &[
    Rule::server("completion.capability", Completion, &["completion.capability"])
        .says("A server that completes arguments declares the capability `completions`.")
        .cure("Declare the capability `completions`, for clients ask for none without it.")
        .ask(|visit| Box::pin(capability(visit))),
    Rule::server("completion.unsupported", Completion, &["completion.error.unsupported"])
        .says("A server that completes nothing answers `completion/complete` with the error -32601.")
        .cure("Answer with the error -32601, as for every method that is not there.")
        .ask(|visit| Box::pin(unsupported(visit))),
    Rule::server("completion.unknown-prompt", Completion, &["completion.error.bad-ref", "completion.server.validate"])
        .says("Completion for a prompt that is not there is refused with the error -32602.")
        .cure("Answer with the error -32602 when no prompt has the name.")
        .ask(|visit| Box::pin(unknown_prompt(visit))),
    Rule::server("completion.missing-argument", Completion, &["completion.error.missing-args"])
        .says("Completion without an argument to complete is refused with the error -32602.")
        .cure("Answer with the error -32602 when `argument` is missing.")
        .ask(|visit| Box::pin(missing_argument(visit))),
    Rule::server("completion.has-more", Completion, &["completion.has-more"])
        .says("`total` and `hasMore` agree with the values that are there.")
        .cure("Set `total` to the number of all matches, and `hasMore` if there are more than the values sent.")
        .ask(|visit| Box::pin(has_more(visit))),
    Rule::server("completion.typed-matters", Completion, &[])
        .says("What is offered depends on what was typed.")
        .cure("Offer only values that match the beginning that the user has typed.")
        .ask(|visit| Box::pin(typed_matters(visit))),
];

async fn capability(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    if session.capabilities().get("completions").is_some() {
        let opening = session.opening.as_ref();
        return opening.map_or_else(
            || Err(Unmet::not_tested("nothing was declared")),
            Answer::seen,
        );
    }
    for (reference, name) in arguments(visit).await?.into_iter().take(TRIED) {
        let answer = complete(session, &reference, &name, "")
            .await
            .map_err(Unmet::aside)?;
        if offers_something(&answer) {
            return Err(answer.broken("completion works, but `completions` is not declared"));
        }
        // Whoever knows the method may still complete another argument.
        if answer.value.get("result").is_none() {
            break;
        }
    }
    Err(Unmet::not_applicable("the server completes nothing"))
}

async fn unsupported(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    if session.capabilities().get("completions").is_some() {
        return Err(Unmet::not_applicable("the server completes arguments"));
    }
    let reference = json!({ "type": "ref/prompt", "name": "turnbuckle-no-such-prompt" });
    let answer = complete(session, &reference, "argument", "").await?;
    match offers_something(&answer) {
        true => Err(Unmet::not_tested(
            "the server completes something all the same",
        )),
        false => answer.expect_error(&[-32601]),
    }
}

async fn unknown_prompt(visit: &Visit) -> Outcome {
    offered(visit).await?;
    let session = visit.session().await?;
    let reference = json!({ "type": "ref/prompt", "name": "turnbuckle-no-such-prompt" });
    let answer = complete(session, &reference, "argument", "").await?;
    answer.expect_error(&[-32602])
}

async fn missing_argument(visit: &Visit) -> Outcome {
    let (reference, _) = offered(visit).await?.swap_remove(0);
    let session = visit.session().await?;
    let params = json!({ "ref": reference });
    let message = session
        .speech
        .request("no-argument", "completion/complete", params);
    let pending = session.send(message, true).await?;
    session.answer(pending).await?.expect_error(&[-32602])
}

async fn has_more(visit: &Visit) -> Outcome {
    let (answer, _) = completed(visit).await?;
    let completion = &answer.value["result"]["completion"];
    let count = completion["values"].as_array().map_or(0, Vec::len) as u64;
    let (total, more) = (
        completion["total"].as_u64(),
        completion["hasMore"].as_bool(),
    );
    let what = match (total, more) {
        (Some(total), _) if total < count => format!("{count} values, but a total of {total}"),
        (Some(total), Some(false)) if total > count => {
            format!("{count} values of {total}, but there are no more")
        }
        (Some(total), Some(true)) if total == count => {
            format!("all {total} values, but there are more")
        }
        _ => return answer.seen(),
    };
    Err(answer.broken(what))
}

async fn typed_matters(visit: &Visit) -> Outcome {
    let (all, (reference, name)) = completed(visit).await?;
    let session = visit.session().await?;
    let typed = "\u{2047}zqx-turnbuckle";
    let answer = complete(session, &reference, &name, typed)
        .await
        .map_err(Unmet::aside)?;
    let values = |answer: &Answer| {
        answer.value["result"]["completion"]["values"]
            .as_array()
            .cloned()
    };
    let (before, after) = (
        values(&all).unwrap_or_default(),
        values(&answer).unwrap_or_default(),
    );
    match !after.is_empty() && before == after {
        true => Err(answer.broken(format!(
            "the same {} values for `{name}` whatever is typed",
            after.len()
        ))),
        false => answer.seen(),
    }
}

/// Finds an argument for which something is offered, and returns the answer.
async fn completed(visit: &Visit) -> Result<(Answer, (Value, String)), Unmet> {
    let session = visit.session().await?;
    for (reference, name) in offered(visit).await?.into_iter().take(TRIED) {
        let answer = complete(session, &reference, &name, "")
            .await
            .map_err(Unmet::aside)?;
        if offers_something(&answer) {
            return Ok((answer, (reference, name)));
        }
    }
    Err(Unmet::not_tested(
        "nothing was offered for the arguments that were tried",
    ))
}

/// Returns what can be completed, if the server completes anything.
async fn offered(visit: &Visit) -> Result<Vec<(Value, String)>, Unmet> {
    // The first revisions have no word for it: whoever answers completes.
    if visit.revision >= Revision::V2025_03_26 {
        visit.capability("/completions").await?;
    }
    let arguments = arguments(visit).await?;
    if visit.capability("/completions").await.is_err() {
        let (reference, name) = &arguments[0];
        let session = visit.session().await?;
        let answer = complete(session, reference, name, "")
            .await
            .map_err(Unmet::aside)?;
        if answer.value["error"]["code"] == -32601 {
            return Err(Unmet::not_applicable("the server completes nothing"));
        }
    }
    Ok(arguments)
}

/// Returns what could be completed: arguments of prompts, variables of templates; at least one.
async fn arguments(visit: &Visit) -> Result<Vec<(Value, String)>, Unmet> {
    let discovered = visit.discovered().await?;
    let mut all = Vec::new();
    for prompt in &discovered.prompts {
        let arguments = prompt["arguments"].as_array().into_iter().flatten();
        for name in arguments.filter_map(|argument| argument["name"].as_str()) {
            all.push((
                json!({ "type": "ref/prompt", "name": prompt["name"] }),
                name.to_owned(),
            ));
        }
    }
    for template in &discovered.templates {
        let uri = template["uriTemplate"].as_str().unwrap_or_default();
        let Ok(parsed) = UriTemplate::parse_for_expansion(uri) else {
            continue;
        };
        let reference = json!({ "type": "ref/resource", "uri": uri });
        all.extend(
            parsed
                .variables()
                .map(|name| (reference.clone(), name.to_owned())),
        );
    }
    match all.is_empty() {
        true => Err(Unmet::not_applicable("there is nothing to complete")),
        false => Ok(all),
    }
}

fn offers_something(answer: &Answer) -> bool {
    let values = answer.value["result"]["completion"]["values"].as_array();
    values.is_some_and(|values| !values.is_empty())
}

async fn complete(
    session: &Session,
    reference: &Value,
    name: &str,
    typed: &str,
) -> Result<Answer, Unmet> {
    let params = json!({ "ref": reference, "argument": { "name": name, "value": typed } });
    session.ask("completion/complete", params).await
}
