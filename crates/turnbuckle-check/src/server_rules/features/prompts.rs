//! Prompts.

use serde_json::{Value, json};

use super::lists::{self, PROMPTS};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, ObservedViolation, Outcome},
    },
    probe::{ReadSample, is_complete, required},
    rule::{Area::Prompts, Rule},
    session::ProbeResponse,
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "prompts.capability",
        Prompts,
        &["prompts.capability", "prompts.capability-modern"],
    )
    .requirement("A server that has prompts declares the capability `prompts`.")
    .hint("Declare the capability `prompts`: without it, clients do not list prompts.")
    .active(|ctx| Box::pin(lists::check_declared(ctx, PROMPTS))),
    Rule::server("prompts.list", Prompts, &["prompts.list.respond"])
        .requirement("A server that declares `prompts` returns a result for `prompts/list`.")
        .hint("Return the prompts for `prompts/list`, or an empty list.")
        .active(|ctx| Box::pin(lists::check_returned(ctx, PROMPTS))),
    Rule::server(
        "prompts.list-same-for-all",
        Prompts,
        &["prompts.list.not-per-connection"],
    )
    .requirement("The list of prompts depends neither on the connection nor on earlier requests.")
    .hint("Return the same prompts on every connection; only authorization may change the list.")
    .active(|ctx| Box::pin(lists::check_same_for_all(ctx, PROMPTS))),
    Rule::server("prompts.unknown", Prompts, &["prompts.error.unknown"])
        .requirement("The server returns error -32602 for an unknown prompt.")
        .hint("Return error -32602 when the prompt is unknown.")
        .active(|ctx| Box::pin(unknown(ctx))),
    Rule::server(
        "prompts.missing-arguments",
        Prompts,
        &[
            "prompts.error.missing-arguments",
            "prompts.server.validate-args",
        ],
    )
    .requirement("The server returns error -32602 for a prompt without its required arguments.")
    .hint("Check that all required arguments are present, and return error -32602 if not.")
    .active(|ctx| Box::pin(missing_arguments(ctx))),
    Rule::server(
        "prompts.media-types",
        Prompts,
        &["prompts.content.image", "prompts.content.audio"],
    )
    .requirement("Images and audio in prompts have a valid MIME type.")
    .hint("Set the MIME type to a type and a subtype, for example `image/png`.")
    .active(|ctx| Box::pin(media_types(ctx))),
    Rule::server(
        "prompts.embedded-type",
        Prompts,
        &["prompts.content.embedded"],
    )
    .requirement("An embedded resource in a prompt has a MIME type.")
    .hint("Add `mimeType` to the resource in the message.")
    .active(|ctx| Box::pin(embedded_type(ctx))),
    Rule::server("prompts.listed-can-be-used", Prompts, &[])
        .requirement("A listed prompt can be used.")
        .hint("List only prompts that can be used, and return error -32602 for invalid arguments.")
        .active(|ctx| Box::pin(listed_can_be_used(ctx))),
];

async fn unknown(ctx: &CheckContext) -> Outcome {
    ctx.capability("/prompts").await?;
    let params = json!({ "name": "turnbuckle-no-such-prompt" });
    let response = ctx.session().await?.request("prompts/get", params).await?;
    response.expect_error(&[-32602])
}

async fn missing_arguments(ctx: &CheckContext) -> Outcome {
    let prompts = ctx.inventory().await?.prompts.items()?;
    let with_required = prompts
        .iter()
        .find(|prompt| required(prompt).next().is_some());
    let prompt =
        with_required.ok_or_else(|| NotPassed::not_applicable("no prompt requires an argument"))?;
    let params = json!({ "name": prompt["name"], "arguments": {} });
    let response = ctx.session().await?.request("prompts/get", params).await?;
    if response
        .value
        .get("result")
        .is_some_and(|it| !is_complete(it))
    {
        return Err(NotPassed::not_tested(
            "the server requests the missing arguments",
        ));
    }
    response.expect_error(&[-32602])
}

async fn media_types(ctx: &CheckContext) -> Outcome {
    each_block(ctx, &["image", "audio"], |block| {
        let kind = block["mimeType"].as_str()?;
        let requirement = if block["type"] == "audio" {
            "prompts.content.audio"
        } else {
            "prompts.content.image"
        };
        (!is_media_type(kind)).then(|| (requirement, format!("the MIME type `{kind}`")))
    })
    .await
}

async fn embedded_type(ctx: &CheckContext) -> Outcome {
    each_block(
        ctx,
        &["resource"],
        |block| match &block["resource"]["mimeType"] {
            Value::String(kind) if is_media_type(kind) => None,
            Value::String(kind) => Some(format!("the MIME type `{kind}`")),
            _ => Some(format!("{} without a MIME type", block["resource"]["uri"])),
        },
    )
    .await
}

async fn listed_can_be_used(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for read in listed(ctx).await? {
        let response = read.response.as_ref().map_err(Clone::clone)?;
        match response.value["error"]["code"].as_i64() {
            // Generated arguments may be invalid for the prompt, and the specification defines no code for that.
            Some(_) if required(&read.listed).next().is_some() => {}
            Some(_) => {
                let observed = format!("{} returns {}", read.listed["name"], response.describe());
                return Err(response.violation(observed));
            }
            None => evidence.extend(response.entries()),
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(
            "no prompt accepts the generated arguments",
        ))
    } else {
        Evidence::from_entries(evidence)
    }
}

/// Checks the content blocks of these kinds in all messages.
async fn each_block<V: Into<ObservedViolation>>(
    ctx: &CheckContext,
    kinds: &[&str],
    find_violation: impl Fn(&Value) -> Option<V> + Send,
) -> Outcome {
    let mut evidence = Vec::new();
    for (read, response, block) in listed(ctx).await?.iter().flat_map(blocks) {
        if !kinds.iter().any(|kind| block["type"] == *kind) {
            continue;
        }
        if let Some(violation) = find_violation(block) {
            let violation = violation.into().into_not_passed(response.entries());
            return Err(violation.in_context(&format!("the prompt {}", read.listed["name"])));
        }
        evidence.extend(response.entries());
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable("no prompt has such content"))
    } else {
        Evidence::from_entries(evidence)
    }
}

fn blocks(read: &ReadSample) -> impl Iterator<Item = (&ReadSample, &ProbeResponse, &Value)> {
    read.result()
        .into_iter()
        .flat_map(move |(response, result)| {
            let messages = result["messages"].as_array().into_iter().flatten();
            messages.map(move |message| (read, response, &message["content"]))
        })
}

async fn listed(ctx: &CheckContext) -> Result<&[ReadSample], NotPassed> {
    match ctx.prompt_samples().await? {
        [] => Err(NotPassed::not_applicable("the server lists no prompts")),
        read => Ok(read),
    }
}

/// Returns whether a text is a type and a subtype, with or without parameters.
fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c);
        !part.is_empty() && part.chars().all(allowed)
    };
    let essence = text.split(';').next().unwrap_or_default().trim();
    essence
        .split_once('/')
        .is_some_and(|(kind, sub)| token(kind) && token(sub))
}
