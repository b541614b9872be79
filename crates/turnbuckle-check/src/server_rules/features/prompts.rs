//! Prompts.

use serde_json::{Value, json};

use super::lists::{self, PROMPTS};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
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
    .fix("Declare the capability `prompts`, for clients ask for no prompts without it.")
    .active(|ctx| Box::pin(lists::is_declared(ctx, PROMPTS))),
    Rule::server("prompts.list", Prompts, &["prompts.list.respond"])
        .requirement("A server that declares `prompts` answers `prompts/list` with a result.")
        .fix("Answer `prompts/list` with the prompts there are, which may be none.")
        .active(|ctx| Box::pin(lists::is_answered(ctx, PROMPTS))),
    Rule::server(
        "prompts.list-same-for-all",
        Prompts,
        &["prompts.list.not-per-connection"],
    )
    .requirement("The list of prompts depends neither on the connection nor on earlier requests.")
    .fix("Give every connection the same prompts; what is offered may depend on who is authorized.")
    .active(|ctx| Box::pin(lists::is_same_for_all(ctx, PROMPTS))),
    Rule::server("prompts.unknown", Prompts, &["prompts.error.unknown"])
        .requirement("A prompt that is not there is reported with the error -32602.")
        .fix("Answer with the error -32602 when no prompt has the name.")
        .active(|ctx| Box::pin(unknown(ctx))),
    Rule::server(
        "prompts.missing-arguments",
        Prompts,
        &[
            "prompts.error.missing-arguments",
            "prompts.server.validate-args",
        ],
    )
    .requirement(
        "A prompt without the arguments that it requires is refused with the error -32602.",
    )
    .fix("Check that all required arguments are there, and answer with the error -32602 if not.")
    .active(|ctx| Box::pin(missing_arguments(ctx))),
    Rule::server(
        "prompts.media-types",
        Prompts,
        &["prompts.content.image", "prompts.content.audio"],
    )
    .requirement("Images and recordings in prompts have a valid MIME type.")
    .fix("Give the MIME type as type and subtype, for example `image/png`.")
    .active(|ctx| Box::pin(media_types(ctx))),
    Rule::server(
        "prompts.embedded-type",
        Prompts,
        &["prompts.content.embedded"],
    )
    .requirement("A resource that is embedded in a prompt has a MIME type.")
    .fix("Add `mimeType` to the resource in the message.")
    .active(|ctx| Box::pin(embedded_type(ctx))),
    Rule::server("prompts.listed-can-be-used", Prompts, &[])
        .requirement("A prompt that is listed can be used.")
        .fix("List only what can be used, and report wrong arguments with the error -32602.")
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
    let asking = prompts
        .iter()
        .find(|prompt| required(prompt).next().is_some());
    let prompt =
        asking.ok_or_else(|| NotPassed::not_applicable("no prompt requires an argument"))?;
    let params = json!({ "name": prompt["name"], "arguments": {} });
    let response = ctx.session().await?.request("prompts/get", params).await?;
    if response
        .value
        .get("result")
        .is_some_and(|it| !is_complete(it))
    {
        return Err(NotPassed::not_tested("the server asks for what is missing"));
    }
    response.expect_error(&[-32602])
}

async fn media_types(ctx: &CheckContext) -> Outcome {
    each_block(ctx, &["image", "audio"], |block| {
        let kind = block["mimeType"].as_str()?;
        (!is_media_type(kind)).then(|| format!("the MIME type `{kind}`"))
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
            // What we make up need not be what the prompt wants, and no code is said for that.
            Some(_) if required(&read.listed).next().is_some() => {}
            Some(_) => {
                let observed = format!("{} gives {}", read.listed["name"], response.describe());
                return Err(response.violation(observed));
            }
            None => evidence.extend(response.entries()),
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(
            "no prompt accepts the arguments that were made up",
        ))
    } else {
        Evidence::from_entries(evidence)
    }
}

/// Looks at the content of all messages that is of such a kind.
async fn each_block(
    ctx: &CheckContext,
    kinds: &[&str],
    wrong: impl Fn(&Value) -> Option<String> + Send,
) -> Outcome {
    let mut evidence = Vec::new();
    for (read, response, block) in listed(ctx).await?.iter().flat_map(blocks) {
        if !kinds.iter().any(|kind| block["type"] == *kind) {
            continue;
        }
        if let Some(observed) = wrong(block) {
            return Err(
                response.violation(format!("{observed} in the prompt {}", read.listed["name"]))
            );
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

/// Says whether a text is a type and a subtype, with or without parameters.
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
