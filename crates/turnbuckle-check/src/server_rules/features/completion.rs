//! Completion of what a user types.

use serde_json::{Value, json};
use turnbuckle_protocol::{revision::Revision, uri_template::UriTemplate};

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{NotPassed, Outcome},
    },
    rule::{Area::Completion, Rule},
    session::{ProbeResponse, Session},
};

/// How many arguments are looked at to find one that can be completed.
const TRIED: usize = 10;

pub(crate) const RULES: &[Rule] = &[
    Rule::server("completion.capability", Completion, &["completion.capability"])
        .requirement("A server that completes arguments declares the capability `completions`.")
        .fix("Declare the capability `completions`, for clients ask for none without it.")
        .active(|ctx| Box::pin(capability(ctx))),
    Rule::server("completion.unsupported", Completion, &["completion.error.unsupported"])
        .requirement("A server that completes nothing answers `completion/complete` with the error -32601.")
        .fix("Answer with the error -32601, as for every method that is not there.")
        .active(|ctx| Box::pin(unsupported(ctx))),
    Rule::server("completion.unknown-prompt", Completion, &["completion.error.bad-ref", "completion.server.validate"])
        .requirement("Completion for a prompt that is not there is refused with the error -32602.")
        .fix("Answer with the error -32602 when no prompt has the name.")
        .active(|ctx| Box::pin(unknown_prompt(ctx))),
    Rule::server("completion.missing-argument", Completion, &["completion.error.missing-args"])
        .requirement("Completion without an argument to complete is refused with the error -32602.")
        .fix("Answer with the error -32602 when `argument` is missing.")
        .active(|ctx| Box::pin(missing_argument(ctx))),
    Rule::server("completion.has-more", Completion, &["completion.has-more"])
        .requirement("`total` and `hasMore` agree with the values that are there.")
        .fix("Set `total` to the number of all matches, and `hasMore` if there are more than the values sent.")
        .active(|ctx| Box::pin(has_more(ctx))),
    Rule::server("completion.typed-matters", Completion, &[])
        .requirement("What is offered depends on what was typed.")
        .fix("Offer only values that match the beginning that the user has typed.")
        .active(|ctx| Box::pin(typed_matters(ctx))),
];

async fn capability(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    if session.capabilities().get("completions").is_some() {
        let opening = session.opening.as_ref();
        return opening.map_or_else(
            || Err(NotPassed::not_tested("nothing was declared")),
            ProbeResponse::evidence,
        );
    }
    for (reference, name) in arguments(ctx).await?.into_iter().take(TRIED) {
        let response = complete(session, &reference, &name, "")
            .await
            .map_err(NotPassed::as_not_tested)?;
        if offers_something(&response) {
            return Err(response.violation("completion works, but `completions` is not declared"));
        }
        // Whoever knows the method may still complete another argument.
        if response.value.get("result").is_none() {
            break;
        }
    }
    Err(NotPassed::not_applicable("the server completes nothing"))
}

async fn unsupported(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    if session.capabilities().get("completions").is_some() {
        return Err(NotPassed::not_applicable("the server completes arguments"));
    }
    let reference = json!({ "type": "ref/prompt", "name": "turnbuckle-no-such-prompt" });
    let response = complete(session, &reference, "argument", "").await?;
    if offers_something(&response) {
        Err(NotPassed::not_tested(
            "the server completes something all the same",
        ))
    } else {
        response.expect_error(&[-32601])
    }
}

async fn unknown_prompt(ctx: &CheckContext) -> Outcome {
    completions(ctx).await?;
    let session = ctx.session().await?;
    let reference = json!({ "type": "ref/prompt", "name": "turnbuckle-no-such-prompt" });
    let response = complete(session, &reference, "argument", "").await?;
    response.expect_error(&[-32602])
}

async fn missing_argument(ctx: &CheckContext) -> Outcome {
    let (reference, _) = completions(ctx).await?.swap_remove(0);
    let session = ctx.session().await?;
    let params = json!({ "ref": reference });
    let message = session
        .request_builder
        .request("no-argument", "completion/complete", params);
    let pending = session.send_message(message, true).await?;
    session
        .wait_response(pending)
        .await?
        .expect_error(&[-32602])
}

async fn has_more(ctx: &CheckContext) -> Outcome {
    let (response, _) = completed(ctx).await?;
    let completion = &response.value["result"]["completion"];
    let count = completion["values"].as_array().map_or(0, Vec::len) as u64;
    let (total, more) = (
        completion["total"].as_u64(),
        completion["hasMore"].as_bool(),
    );
    let observed = match (total, more) {
        (Some(total), _) if total < count => format!("{count} values, but a total of {total}"),
        (Some(total), Some(false)) if total > count => {
            format!("{count} values of {total}, but there are no more")
        }
        (Some(total), Some(true)) if total == count => {
            format!("all {total} values, but there are more")
        }
        _ => return response.evidence(),
    };
    Err(response.violation(observed))
}

async fn typed_matters(ctx: &CheckContext) -> Outcome {
    let (all, (reference, name)) = completed(ctx).await?;
    let session = ctx.session().await?;
    let typed = "\u{2047}zqx-turnbuckle";
    let response = complete(session, &reference, &name, typed)
        .await
        .map_err(NotPassed::as_not_tested)?;
    let values = |response: &ProbeResponse| {
        response.value["result"]["completion"]["values"]
            .as_array()
            .cloned()
    };
    let (before, after) = (
        values(&all).unwrap_or_default(),
        values(&response).unwrap_or_default(),
    );
    if !after.is_empty() && before == after {
        Err(response.violation(format!(
            "the same {} values for `{name}` whatever is typed",
            after.len()
        )))
    } else {
        response.evidence()
    }
}

/// Finds an argument for which something is offered, and returns the answer.
async fn completed(ctx: &CheckContext) -> Result<(ProbeResponse, (Value, String)), NotPassed> {
    let session = ctx.session().await?;
    for (reference, name) in completions(ctx).await?.into_iter().take(TRIED) {
        let response = complete(session, &reference, &name, "")
            .await
            .map_err(NotPassed::as_not_tested)?;
        if offers_something(&response) {
            return Ok((response, (reference, name)));
        }
    }
    Err(NotPassed::not_tested(
        "nothing was offered for the arguments that were tried",
    ))
}

/// Returns what can be completed, if the server completes anything.
async fn completions(ctx: &CheckContext) -> Result<Vec<(Value, String)>, NotPassed> {
    // The first revisions have no word for it: whoever answers completes.
    if ctx.revision >= Revision::V2025_03_26 {
        ctx.capability("/completions").await?;
    }
    let arguments = arguments(ctx).await?;
    if ctx.capability("/completions").await.is_err() {
        let (reference, name) = &arguments[0];
        let session = ctx.session().await?;
        let response = complete(session, reference, name, "")
            .await
            .map_err(NotPassed::as_not_tested)?;
        if response.value["error"]["code"] == -32601 {
            return Err(NotPassed::not_applicable("the server completes nothing"));
        }
    }
    Ok(arguments)
}

/// Returns what could be completed: arguments of prompts, variables of templates; at least one.
async fn arguments(ctx: &CheckContext) -> Result<Vec<(Value, String)>, NotPassed> {
    let inventory = ctx.inventory().await?;
    let mut all = Vec::new();
    for prompt in &inventory.prompts {
        let arguments = prompt["arguments"].as_array().into_iter().flatten();
        for name in arguments.filter_map(|argument| argument["name"].as_str()) {
            all.push((
                json!({ "type": "ref/prompt", "name": prompt["name"] }),
                name.to_owned(),
            ));
        }
    }
    for template in &inventory.templates {
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
    if all.is_empty() {
        Err(NotPassed::not_applicable("there is nothing to complete"))
    } else {
        Ok(all)
    }
}

fn offers_something(response: &ProbeResponse) -> bool {
    let values = response.value["result"]["completion"]["values"].as_array();
    values.is_some_and(|values| !values.is_empty())
}

async fn complete(
    session: &Session,
    reference: &Value,
    name: &str,
    typed: &str,
) -> Result<ProbeResponse, NotPassed> {
    let params = json!({ "ref": reference, "argument": { "name": name, "value": typed } });
    session.request("completion/complete", params).await
}
