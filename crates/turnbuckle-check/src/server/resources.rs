//! Resources.

use std::collections::HashSet;

use serde_json::{Value, json};
use turnbuckle_protocol::{revision::Revision, uri_template::UriTemplate};

use super::lists::{self, RESOURCES, TEMPLATES};
use crate::discovery::is_complete;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area::Resources, Rule};
use crate::session::Answer;
use crate::visit::Visit;

/// The address of a resource that nobody has.
const NOWHERE: &str = "turnbuckle-check://no-such-resource/0b5a";

/// The error for a resource that is not there, before 2026-07-28.
const OLDER: i64 = -32002;

pub(crate) const RULES: &[Rule] = &[
    Rule::server("resources.capability", Resources, &["resources.capability"])
        .says("A server that has resources declares the capability `resources`.")
        .cure("Declare the capability `resources`, for clients ask for no resources without it.")
        .ask(|visit| Box::pin(lists::is_declared(visit, RESOURCES))),
    Rule::server("resources.list", Resources, &["resources.list.respond", "resources.list.shape"])
        .says("A server that declares `resources` answers `resources/list` with a result.")
        .cure("Answer `resources/list` with the resources there are, which may be none.")
        .ask(|visit| Box::pin(lists::is_answered(visit, RESOURCES))),
    Rule::server("resources.list-same-for-all", Resources, &["resources.list.not-per-connection"])
        .says("The list of resources depends neither on the connection nor on earlier requests.")
        .cure("Give every connection the same resources; what is offered may depend on who is authorized.")
        .ask(|visit| Box::pin(lists::is_same_for_all(visit, RESOURCES))),
    Rule::server(
        "resources.not-found",
        Resources,
        &["resources.error.not-found", "resources.error.not-found-legacy"],
    )
    .says("A resource that is not there is reported with the error of the revision: -32602, and -32002 before 2026-07-28.")
    .cure("Answer with the error -32602, or with -32002 where the client speaks an older revision.")
    .ask(|visit| Box::pin(not_found(visit))),
    Rule::server("resources.not-found-never-empty", Resources, &["resources.error.not-found-empty"])
        .says("A resource that is not there is not answered with empty contents.")
        .cure("Answer with the error -32602 instead of a result without contents.")
        .ask(|visit| Box::pin(not_found_never_empty(visit))),
    Rule::server("resources.addresses-validated", Resources, &["resources.security.validate-uri"])
        .says("What is no URI is refused when it is to be read.")
        .cure("Check that the address is one that the server knows before anything is read.")
        .ask(|visit| Box::pin(addresses_validated(visit))),
    Rule::server("resources.listed-can-be-read", Resources, &[])
        .says("What is listed can be read.")
        .cure("List only what can be read, and say in the error what is missing.")
        .ask(|visit| Box::pin(listed_can_be_read(visit))),
    Rule::server("resources.listed-once", Resources, &[])
        .says("No resource is listed twice.")
        .cure("Give each resource an address of its own, and list it once.")
        .ask(|visit| Box::pin(listed_once(visit))),
    Rule::server("resources.type-as-listed", Resources, &[])
        .says("A resource has the MIME type that the list says.")
        .cure("Say the same MIME type in the list and in the contents.")
        .ask(|visit| Box::pin(type_as_listed(visit))),
];

async fn not_found(visit: &Visit) -> Outcome {
    let answer = read(visit, NOWHERE).await?;
    if is_empty(&answer) {
        return Err(Unmet::not_tested("the server answers with empty contents"));
    }
    if let Some(result) = answer.value.get("result") {
        if !is_complete(result) {
            return Err(Unmet::not_tested("the server asks something first"));
        }
        if is_covered(visit, NOWHERE).await? {
            return Err(Unmet::not_tested(
                "a template of the server covers whatever address there is",
            ));
        }
    }
    if visit.revision < Revision::MODERN {
        return answer.expect_error(&[OLDER]);
    }
    // That nobody may use the older code any more is a rule of its own.
    match answer.value["error"]["code"].as_i64() {
        Some(OLDER) => Err(Unmet::not_tested("the error is one of older revisions")),
        _ => answer.expect_error(&[-32602]),
    }
}

/// Says whether a template stands for this address, so that it may well be there.
async fn is_covered(visit: &Visit, uri: &str) -> Result<bool, Unmet> {
    let templates = &visit.discovered().await?.templates;
    let mut templates = TEMPLATES
        .keys(templates)
        .filter_map(|template| UriTemplate::parse(template).ok());
    Ok(templates.any(|template| template.matches(uri).is_some()))
}

async fn not_found_never_empty(visit: &Visit) -> Outcome {
    let answer = read(visit, NOWHERE).await.map_err(Unmet::aside)?;
    match is_empty(&answer) {
        true => Err(answer.broken("empty contents for a resource that is not there")),
        false => answer.seen(),
    }
}

async fn addresses_validated(visit: &Visit) -> Outcome {
    visit.capability("/resources").await?;
    let session = visit.session().await?;
    let params = json!({ "uri": "this is no address" });
    let message = session
        .speech
        .request("no-address", "resources/read", params);
    let pending = session.send(message, true).await?;
    let answer = session.answer(pending).await.map_err(Unmet::aside)?;
    match contents(&answer).is_some_and(|contents| !contents.is_empty()) {
        true => Err(answer.broken("contents for `this is no address`")),
        false => answer.seen(),
    }
}

async fn listed_can_be_read(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for read in listed(visit).await? {
        let answer = read.answer.as_ref().map_err(Clone::clone)?;
        if answer.value.get("error").is_some() {
            // A list may change at any time.
            if is_gone(visit, &read.listed["uri"]).await? {
                continue;
            }
            let what = format!("{} gives {}", read.listed["uri"], answer.describe());
            return Err(answer.broken(what));
        }
        seen.extend(answer.entries());
    }
    Seen::at(seen)
}

/// Says whether a resource is no longer listed.
async fn is_gone(visit: &Visit, uri: &Value) -> Result<bool, Unmet> {
    let list = RESOURCES.read(visit.session().await?).await?;
    Ok(list.iter().all(|listed| listed["uri"] != *uri))
}

async fn listed_once(visit: &Visit) -> Outcome {
    listed(visit).await?;
    let list = &visit.discovered().await?.resources;
    if !list.whole {
        return Err(Unmet::not_tested("the list did not come to an end"));
    }
    let mut addresses = HashSet::new();
    match RESOURCES.keys(list).find(|uri| !addresses.insert(*uri)) {
        None => Seen::at(list.entries()),
        Some(uri) => Err(Unmet::broken(
            format!("`{uri}` is listed twice"),
            list.entries(),
        )),
    }
}

async fn type_as_listed(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for read in listed(visit).await? {
        let (Some((answer, _)), Some(said)) = (read.result(), read.listed["mimeType"].as_str())
        else {
            continue;
        };
        // Other contents that come along may be of another type.
        let own = contents(answer)
            .into_iter()
            .flatten()
            .find(|part| part["uri"] == read.listed["uri"]);
        match own.and_then(|part| part["mimeType"].as_str()) {
            Some(is) if essence(is) != essence(said) => {
                let what = format!(
                    "{} is listed as `{said}` and read as `{is}`",
                    read.listed["uri"]
                );
                return Err(answer.broken(what));
            }
            Some(_) => seen.extend(answer.entries()),
            None => {}
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable(
            "no resource says its MIME type in the list and in its contents",
        )),
        false => Seen::at(seen),
    }
}

async fn listed(visit: &Visit) -> Result<&[crate::discovery::Read], Unmet> {
    match visit.read().await? {
        [] => Err(Unmet::not_applicable("the server lists no resources")),
        read => Ok(read),
    }
}

async fn read(visit: &Visit, uri: &str) -> Result<Answer, Unmet> {
    visit.capability("/resources").await?;
    let session = visit.session().await?;
    session.ask("resources/read", json!({ "uri": uri })).await
}

fn contents(answer: &Answer) -> Option<&Vec<Value>> {
    answer.value["result"]["contents"].as_array()
}

fn is_empty(answer: &Answer) -> bool {
    contents(answer).is_some_and(Vec::is_empty)
}

/// A MIME type without its parameters.
fn essence(kind: &str) -> String {
    let essence = kind.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}
