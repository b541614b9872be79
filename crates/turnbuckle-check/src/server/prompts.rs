//! Prompts.

use serde_json::{Value, json};

use super::lists::{self, PROMPTS};
use crate::discovery::{Read, is_complete, required};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area::Prompts, Rule};
use crate::session::Answer;
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "prompts.capability",
        Prompts,
        &["prompts.capability", "prompts.capability-modern"],
    )
    .says("A server that has prompts declares the capability `prompts`.")
    .cure("Declare the capability `prompts`, for clients ask for no prompts without it.")
    .ask(|visit| Box::pin(lists::is_declared(visit, PROMPTS))),
    Rule::server("prompts.list", Prompts, &["prompts.list.respond"])
        .says("A server that declares `prompts` answers `prompts/list` with a result.")
        .cure("Answer `prompts/list` with the prompts there are, which may be none.")
        .ask(|visit| Box::pin(lists::is_answered(visit, PROMPTS))),
    Rule::server(
        "prompts.list-same-for-all",
        Prompts,
        &["prompts.list.not-per-connection"],
    )
    .says("The list of prompts depends neither on the connection nor on earlier requests.")
    .cure(
        "Give every connection the same prompts; what is offered may depend on who is authorized.",
    )
    .ask(|visit| Box::pin(lists::is_same_for_all(visit, PROMPTS))),
    Rule::server("prompts.unknown", Prompts, &["prompts.error.unknown"])
        .says("A prompt that is not there is reported with the error -32602.")
        .cure("Answer with the error -32602 when no prompt has the name.")
        .ask(|visit| Box::pin(unknown(visit))),
    Rule::server(
        "prompts.missing-arguments",
        Prompts,
        &[
            "prompts.error.missing-arguments",
            "prompts.server.validate-args",
        ],
    )
    .says("A prompt without the arguments that it requires is refused with the error -32602.")
    .cure("Check that all required arguments are there, and answer with the error -32602 if not.")
    .ask(|visit| Box::pin(missing_arguments(visit))),
    Rule::server(
        "prompts.media-types",
        Prompts,
        &["prompts.content.image", "prompts.content.audio"],
    )
    .says("Images and recordings in prompts have a valid MIME type.")
    .cure("Give the MIME type as type and subtype, for example `image/png`.")
    .ask(|visit| Box::pin(media_types(visit))),
    Rule::server(
        "prompts.embedded-type",
        Prompts,
        &["prompts.content.embedded"],
    )
    .says("A resource that is embedded in a prompt has a MIME type.")
    .cure("Add `mimeType` to the resource in the message.")
    .ask(|visit| Box::pin(embedded_type(visit))),
    Rule::server("prompts.listed-can-be-used", Prompts, &[])
        .says("A prompt that is listed can be used.")
        .cure("List only what can be used, and report wrong arguments with the error -32602.")
        .ask(|visit| Box::pin(listed_can_be_used(visit))),
];

async fn unknown(visit: &Visit) -> Outcome {
    visit.capability("/prompts").await?;
    let params = json!({ "name": "turnbuckle-no-such-prompt" });
    let answer = visit.session().await?.ask("prompts/get", params).await?;
    answer.expect_error(&[-32602])
}

async fn missing_arguments(visit: &Visit) -> Outcome {
    let prompts = visit.discovered().await?.prompts.items()?;
    let asking = prompts
        .iter()
        .find(|prompt| required(prompt).next().is_some());
    let prompt = asking.ok_or_else(|| Unmet::not_applicable("no prompt requires an argument"))?;
    let params = json!({ "name": prompt["name"], "arguments": {} });
    let answer = visit.session().await?.ask("prompts/get", params).await?;
    if answer
        .value
        .get("result")
        .is_some_and(|it| !is_complete(it))
    {
        return Err(Unmet::not_tested("the server asks for what is missing"));
    }
    answer.expect_error(&[-32602])
}

async fn media_types(visit: &Visit) -> Outcome {
    each_block(visit, &["image", "audio"], |block| {
        let kind = block["mimeType"].as_str()?;
        (!is_media_type(kind)).then(|| format!("the MIME type `{kind}`"))
    })
    .await
}

async fn embedded_type(visit: &Visit) -> Outcome {
    each_block(
        visit,
        &["resource"],
        |block| match &block["resource"]["mimeType"] {
            Value::String(kind) if is_media_type(kind) => None,
            Value::String(kind) => Some(format!("the MIME type `{kind}`")),
            _ => Some(format!("{} without a MIME type", block["resource"]["uri"])),
        },
    )
    .await
}

async fn listed_can_be_used(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for read in listed(visit).await? {
        let answer = read.answer.as_ref().map_err(Clone::clone)?;
        match answer.value["error"]["code"].as_i64() {
            // What we make up need not be what the prompt wants, and no code is said for that.
            Some(_) if required(&read.listed).next().is_some() => {}
            Some(_) => {
                let what = format!("{} gives {}", read.listed["name"], answer.describe());
                return Err(answer.broken(what));
            }
            None => seen.extend(answer.entries()),
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested(
            "no prompt accepts the arguments that were made up",
        )),
        false => Seen::at(seen),
    }
}

/// Looks at the content of all messages that is of such a kind.
async fn each_block(
    visit: &Visit,
    kinds: &[&str],
    wrong: impl Fn(&Value) -> Option<String> + Send,
) -> Outcome {
    let mut seen = Vec::new();
    for (read, answer, block) in listed(visit).await?.iter().flat_map(blocks) {
        if !kinds.iter().any(|kind| block["type"] == *kind) {
            continue;
        }
        if let Some(what) = wrong(block) {
            return Err(answer.broken(format!("{what} in the prompt {}", read.listed["name"])));
        }
        seen.extend(answer.entries());
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable("no prompt has such content")),
        false => Seen::at(seen),
    }
}

fn blocks(read: &Read) -> impl Iterator<Item = (&Read, &Answer, &Value)> {
    read.result().into_iter().flat_map(move |(answer, result)| {
        let messages = result["messages"].as_array().into_iter().flatten();
        messages.map(move |message| (read, answer, &message["content"]))
    })
}

async fn listed(visit: &Visit) -> Result<&[Read], Unmet> {
    match visit.prompted().await? {
        [] => Err(Unmet::not_applicable("the server lists no prompts")),
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
