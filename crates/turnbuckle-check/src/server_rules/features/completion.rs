//! Argument completion.

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

/// The maximum number of arguments that are tried to find one with completions.
const MAX_ARGUMENTS_TRIED: usize = 10;

pub(crate) const RULES: &[Rule] = &[
    Rule::server("completion.capability", Completion, &["completion.capability"])
        .requirement("A server that completes arguments declares the capability `completions`.")
        .hint("Declare the capability `completions`: without it, clients do not request completions.")
        .active(|ctx| Box::pin(capability(ctx))),
    Rule::server("completion.unsupported", Completion, &["completion.error.unsupported"])
        .requirement("A server without completion returns error -32601 for `completion/complete`.")
        .hint("Return error -32601, as for every unknown method.")
        .active(|ctx| Box::pin(unsupported(ctx))),
    Rule::server("completion.unknown-prompt", Completion, &["completion.error.bad-ref"])
        .requirement("The server returns error -32602 for a completion for an unknown prompt.")
        .hint("Return error -32602 when the prompt is unknown.")
        .active(|ctx| Box::pin(unknown_prompt(ctx))),
    Rule::server("completion.missing-argument", Completion, &["completion.error.missing-args"])
        .requirement("The server returns error -32602 for a completion without `argument`.")
        .hint("Return error -32602 when `argument` is missing.")
        .active(|ctx| Box::pin(missing_argument(ctx))),
    Rule::server("completion.has-more", Completion, &["completion.has-more"])
        .requirement("`total` and `hasMore` agree with the returned values.")
        .hint("Set `total` to the number of all matches, and `hasMore` to true if there are more than the returned values.")
        .active(|ctx| Box::pin(has_more(ctx))),
    Rule::server("completion.typed-matters", Completion, &[])
        .requirement("The returned values depend on the text that the user typed.")
        .hint("Return only values that match the typed text.")
        .active(|ctx| Box::pin(typed_matters(ctx))),
];

async fn capability(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    if session.capabilities().get("completions").is_some() {
        let opening = session.opening.as_ref();
        return opening.map_or_else(
            || Err(NotPassed::not_tested("the server declared no capabilities")),
            ProbeResponse::evidence,
        );
    }
    for (reference, name) in arguments(ctx).await?.into_iter().take(MAX_ARGUMENTS_TRIED) {
        let response = complete(session, &reference, &name, "")
            .await
            .map_err(NotPassed::into_not_tested)?;
        if has_values(&response) {
            return Err(response.violation("completion works, but `completions` is not declared"));
        }
        // A server that supports the method may still complete another argument.
        if response.value.get("result").is_none() {
            break;
        }
    }
    Err(NotPassed::not_applicable(
        "the server does not support completion",
    ))
}

async fn unsupported(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    if session.capabilities().get("completions").is_some() {
        return Err(NotPassed::not_applicable("the server supports completion"));
    }
    let reference = json!({ "type": "ref/prompt", "name": "turnbuckle-no-such-prompt" });
    let response = complete(session, &reference, "argument", "").await?;
    if has_values(&response) {
        Err(NotPassed::not_tested(
            "the server returns completions without the capability",
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
            format!("{count} of {total} values, but `hasMore` is false")
        }
        (Some(total), Some(true)) if total == count => {
            format!("all {total} values, but `hasMore` is true")
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
        .map_err(NotPassed::into_not_tested)?;
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
            "the same {} values for `{name}` with and without typed text",
            after.len()
        )))
    } else {
        response.evidence()
    }
}

/// Finds an argument with completions, and returns the response.
async fn completed(ctx: &CheckContext) -> Result<(ProbeResponse, (Value, String)), NotPassed> {
    let session = ctx.session().await?;
    for (reference, name) in completions(ctx)
        .await?
        .into_iter()
        .take(MAX_ARGUMENTS_TRIED)
    {
        let response = complete(session, &reference, &name, "")
            .await
            .map_err(NotPassed::into_not_tested)?;
        if has_values(&response) {
            return Ok((response, (reference, name)));
        }
    }
    Err(NotPassed::not_tested(
        "the server returned no completions for the arguments that were tried",
    ))
}

/// Returns the arguments that can be completed, if the server supports completion.
async fn completions(ctx: &CheckContext) -> Result<Vec<(Value, String)>, NotPassed> {
    // The first revisions lack the capability: a server supports completion if it responds.
    if ctx.revision >= Revision::V2025_03_26 {
        ctx.capability("/completions").await?;
    }
    let arguments = arguments(ctx).await?;
    if ctx.capability("/completions").await.is_err() {
        let (reference, name) = &arguments[0];
        let session = ctx.session().await?;
        let response = complete(session, reference, name, "")
            .await
            .map_err(NotPassed::into_not_tested)?;
        if response.value["error"]["code"] == -32601 {
            return Err(NotPassed::not_applicable(
                "the server does not support completion",
            ));
        }
    }
    Ok(arguments)
}

/// Returns the prompt arguments and template variables of the server; at least one.
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
        Err(NotPassed::not_applicable(
            "the server lists no prompt arguments and no template variables",
        ))
    } else {
        Ok(all)
    }
}

fn has_values(response: &ProbeResponse) -> bool {
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
