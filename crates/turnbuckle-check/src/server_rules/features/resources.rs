//! Resources.

use std::collections::HashSet;

use serde_json::{Value, json};
use turnbuckle_protocol::{revision::Revision, uri_template::UriTemplate};

use super::lists::{self, RESOURCES, TEMPLATES};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::is_complete,
    rule::{Area::Resources, Rule},
    session::ProbeResponse,
};

/// The address of a resource that nobody has.
const NOWHERE: &str = "turnbuckle-check://no-such-resource/0b5a";

/// The error for a resource that is not there, before 2026-07-28.
const OLDER: i64 = -32002;

pub(crate) const RULES: &[Rule] = &[
    Rule::server("resources.capability", Resources, &["resources.capability"])
        .requirement("A server that has resources declares the capability `resources`.")
        .fix("Declare the capability `resources`, for clients ask for no resources without it.")
        .active(|ctx| Box::pin(lists::is_declared(ctx, RESOURCES))),
    Rule::server("resources.list", Resources, &["resources.list.respond", "resources.list.shape"])
        .requirement("A server that declares `resources` answers `resources/list` with a result.")
        .fix("Answer `resources/list` with the resources there are, which may be none.")
        .active(|ctx| Box::pin(lists::is_answered(ctx, RESOURCES))),
    Rule::server("resources.list-same-for-all", Resources, &["resources.list.not-per-connection"])
        .requirement("The list of resources depends neither on the connection nor on earlier requests.")
        .fix("Give every connection the same resources; what is offered may depend on who is authorized.")
        .active(|ctx| Box::pin(lists::is_same_for_all(ctx, RESOURCES))),
    Rule::server(
        "resources.not-found",
        Resources,
        &["resources.error.not-found", "resources.error.not-found-legacy"],
    )
    .requirement("A resource that is not there is reported with the error of the revision: -32602, and -32002 before 2026-07-28.")
    .fix("Answer with the error -32602, or with -32002 where the client speaks an older revision.")
    .active(|ctx| Box::pin(not_found(ctx))),
    Rule::server("resources.not-found-never-empty", Resources, &["resources.error.not-found-empty"])
        .requirement("A resource that is not there is not answered with empty contents.")
        .fix("Answer with the error -32602 instead of a result without contents.")
        .active(|ctx| Box::pin(not_found_never_empty(ctx))),
    Rule::server("resources.addresses-validated", Resources, &["resources.security.validate-uri"])
        .requirement("What is no URI is refused when it is to be read.")
        .fix("Check that the address is one that the server knows before anything is read.")
        .active(|ctx| Box::pin(addresses_validated(ctx))),
    Rule::server("resources.listed-can-be-read", Resources, &[])
        .requirement("What is listed can be read.")
        .fix("List only what can be read, and say in the error what is missing.")
        .active(|ctx| Box::pin(listed_can_be_read(ctx))),
    Rule::server("resources.listed-once", Resources, &[])
        .requirement("No resource is listed twice.")
        .fix("Give each resource an address of its own, and list it once.")
        .active(|ctx| Box::pin(listed_once(ctx))),
    Rule::server("resources.type-as-listed", Resources, &[])
        .requirement("A resource has the MIME type that the list says.")
        .fix("Say the same MIME type in the list and in the contents.")
        .active(|ctx| Box::pin(type_as_listed(ctx))),
];

async fn not_found(ctx: &CheckContext) -> Outcome {
    let response = read(ctx, NOWHERE).await?;
    if is_empty(&response) {
        return Err(NotPassed::not_tested(
            "the server answers with empty contents",
        ));
    }
    if let Some(result) = response.value.get("result") {
        if !is_complete(result) {
            return Err(NotPassed::not_tested("the server asks something first"));
        }
        if is_covered(ctx, NOWHERE).await? {
            return Err(NotPassed::not_tested(
                "a template of the server covers whatever address there is",
            ));
        }
    }
    if ctx.revision < Revision::MODERN {
        return response.expect_error(&[OLDER]);
    }
    // That nobody may use the older code any more is a rule of its own.
    match response.value["error"]["code"].as_i64() {
        Some(OLDER) => Err(NotPassed::not_tested("the error is one of older revisions")),
        _ => response.expect_error(&[-32602]),
    }
}

/// Says whether a template stands for this address, so that it may well be there.
async fn is_covered(ctx: &CheckContext, uri: &str) -> Result<bool, NotPassed> {
    let templates = &ctx.inventory().await?.templates;
    let mut templates = TEMPLATES
        .keys(templates)
        .filter_map(|template| UriTemplate::parse(template).ok());
    Ok(templates.any(|template| template.matches(uri).is_some()))
}

async fn not_found_never_empty(ctx: &CheckContext) -> Outcome {
    let response = read(ctx, NOWHERE).await.map_err(NotPassed::as_not_tested)?;
    if is_empty(&response) {
        Err(response.violation("empty contents for a resource that is not there"))
    } else {
        response.evidence()
    }
}

async fn addresses_validated(ctx: &CheckContext) -> Outcome {
    ctx.capability("/resources").await?;
    let session = ctx.session().await?;
    let params = json!({ "uri": "this is no address" });
    let message = session
        .request_builder
        .request("no-address", "resources/read", params);
    let pending = session.send_message(message, true).await?;
    let response = session
        .wait_response(pending)
        .await
        .map_err(NotPassed::as_not_tested)?;
    if contents(&response).is_some_and(|contents| !contents.is_empty()) {
        Err(response.violation("contents for `this is no address`"))
    } else {
        response.evidence()
    }
}

async fn listed_can_be_read(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for read in listed(ctx).await? {
        let response = read.response.as_ref().map_err(Clone::clone)?;
        if response.value.get("error").is_some() {
            // A list may change at any time.
            if is_gone(ctx, &read.listed["uri"]).await? {
                continue;
            }
            let observed = format!("{} gives {}", read.listed["uri"], response.describe());
            return Err(response.violation(observed));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence)
}

/// Says whether a resource is no longer listed.
async fn is_gone(ctx: &CheckContext, uri: &Value) -> Result<bool, NotPassed> {
    let list = RESOURCES.read(ctx.session().await?).await?;
    Ok(list.iter().all(|listed| listed["uri"] != *uri))
}

async fn listed_once(ctx: &CheckContext) -> Outcome {
    listed(ctx).await?;
    let list = &ctx.inventory().await?.resources;
    if !list.is_complete {
        return Err(NotPassed::not_tested("the list did not come to an end"));
    }
    let mut addresses = HashSet::new();
    match RESOURCES.keys(list).find(|uri| !addresses.insert(*uri)) {
        None => Evidence::from_entries(list.entries()),
        Some(uri) => Err(NotPassed::violation(
            format!("`{uri}` is listed twice"),
            list.entries(),
        )),
    }
}

async fn type_as_listed(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for read in listed(ctx).await? {
        let (Some((response, _)), Some(said)) = (read.result(), read.listed["mimeType"].as_str())
        else {
            continue;
        };
        // Other contents that come along may be of another type.
        let own = contents(response)
            .into_iter()
            .flatten()
            .find(|part| part["uri"] == read.listed["uri"]);
        match own.and_then(|part| part["mimeType"].as_str()) {
            Some(is) if essence(is) != essence(said) => {
                let observed = format!(
                    "{} is listed as `{said}` and read as `{is}`",
                    read.listed["uri"]
                );
                return Err(response.violation(observed));
            }
            Some(_) => evidence.extend(response.entries()),
            None => {}
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable(
            "no resource says its MIME type in the list and in its contents",
        ))
    } else {
        Evidence::from_entries(evidence)
    }
}

async fn listed(ctx: &CheckContext) -> Result<&[crate::probe::ReadSample], NotPassed> {
    match ctx.resource_samples().await? {
        [] => Err(NotPassed::not_applicable("the server lists no resources")),
        read => Ok(read),
    }
}

async fn read(ctx: &CheckContext, uri: &str) -> Result<ProbeResponse, NotPassed> {
    ctx.capability("/resources").await?;
    let session = ctx.session().await?;
    session
        .request("resources/read", json!({ "uri": uri }))
        .await
}

fn contents(response: &ProbeResponse) -> Option<&Vec<Value>> {
    response.value["result"]["contents"].as_array()
}

fn is_empty(response: &ProbeResponse) -> bool {
    contents(response).is_some_and(Vec::is_empty)
}

/// A MIME type without its parameters.
fn essence(kind: &str) -> String {
    let essence = kind.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}
