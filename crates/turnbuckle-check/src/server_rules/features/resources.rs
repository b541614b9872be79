//! Resources.

use std::collections::HashSet;

use serde_json::{Value, json};
use turnbuckle_protocol::uri_template::UriTemplate;

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

/// The URI of a resource that does not exist.
const UNKNOWN_URI: &str = "turnbuckle-check://no-such-resource/0b5a";

/// The error code for an unknown resource before 2026-07-28.
const LEGACY_NOT_FOUND: i64 = -32002;

pub(crate) const RULES: &[Rule] = &[
    Rule::server("resources.capability", Resources, &["resources.capability"])
        .requirement("A server that has resources declares the capability `resources`.")
        .hint("Declare the capability `resources`: without it, clients do not list resources.")
        .active(|ctx| Box::pin(lists::check_declared(ctx, RESOURCES))),
    Rule::server(
        "resources.list",
        Resources,
        &["resources.list.respond", "resources.list.shape"],
    )
    .requirement("A server that declares `resources` returns a result for `resources/list`.")
    .hint("Return the resources for `resources/list`, or an empty list.")
    .active(|ctx| Box::pin(lists::check_returned(ctx, RESOURCES))),
    Rule::server(
        "resources.list-same-for-all",
        Resources,
        &["resources.list.not-per-connection"],
    )
    .requirement("The list of resources depends neither on the connection nor on earlier requests.")
    .hint("Return the same resources on every connection; only authorization may change the list.")
    .active(|ctx| Box::pin(lists::check_same_for_all(ctx, RESOURCES))),
    Rule::server(
        "resources.not-found",
        Resources,
        &[
            "resources.error.not-found",
            "resources.error.not-found-legacy",
        ],
    )
    .requirement(
        "The server returns error -32602 for an unknown resource, or -32002 before 2026-07-28.",
    )
    .hint("Return error -32602, or -32002 if the negotiated revision is older.")
    .active(|ctx| Box::pin(not_found(ctx))),
    Rule::server(
        "resources.not-found-never-empty",
        Resources,
        &["resources.error.not-found-empty"],
    )
    .requirement("The server does not return empty contents for an unknown resource.")
    .hint("Return error -32602 instead of a result without contents.")
    .active(|ctx| Box::pin(not_found_never_empty(ctx))),
    Rule::server(
        "resources.addresses-validated",
        Resources,
        &["resources.security.validate-uri"],
    )
    .requirement("The server returns an error for `resources/read` with an invalid URI.")
    .hint("Validate the URI before reading anything.")
    .active(|ctx| Box::pin(addresses_validated(ctx))),
    Rule::server("resources.listed-can-be-read", Resources, &[])
        .requirement("A listed resource can be read.")
        .hint("List only resources that can be read, and name the missing part in the error.")
        .active(|ctx| Box::pin(listed_can_be_read(ctx))),
    Rule::server("resources.listed-once", Resources, &[])
        .requirement("No resource is listed twice.")
        .hint("Give each resource a unique URI, and list it once.")
        .active(|ctx| Box::pin(listed_once(ctx))),
    Rule::server("resources.type-as-listed", Resources, &[])
        .requirement("The MIME type of a resource equals the listed one.")
        .hint("Return the same MIME type in the list and in the contents.")
        .active(|ctx| Box::pin(type_as_listed(ctx))),
];

async fn not_found(ctx: &CheckContext) -> Outcome {
    let response = read(ctx, UNKNOWN_URI).await?;
    if is_empty(&response) {
        return Err(NotPassed::not_tested("the server returns empty contents"));
    }
    if let Some(result) = response.value.get("result") {
        if !is_complete(result) {
            return Err(NotPassed::not_tested("the server requests input first"));
        }
        if matches_template(ctx, UNKNOWN_URI).await? {
            return Err(NotPassed::not_tested(
                "a template of the server matches the unknown URI",
            ));
        }
    }
    if !ctx.revision.is_stateless() {
        return response.expect_error(&[LEGACY_NOT_FOUND]);
    }
    // Another rule checks that the legacy code is not used.
    match response.value["error"]["code"].as_i64() {
        Some(LEGACY_NOT_FOUND) => Err(NotPassed::not_tested(
            "the error belongs to older revisions",
        )),
        _ => response.expect_error(&[-32602]),
    }
}

/// Returns whether a template matches this URI, so that the resource may exist.
async fn matches_template(ctx: &CheckContext, uri: &str) -> Result<bool, NotPassed> {
    let templates = &ctx.inventory().await?.templates;
    let mut templates = TEMPLATES
        .keys(templates)
        .filter_map(|template| UriTemplate::parse(template).ok());
    Ok(templates.any(|template| template.matches(uri).is_some()))
}

async fn not_found_never_empty(ctx: &CheckContext) -> Outcome {
    let response = read(ctx, UNKNOWN_URI)
        .await
        .map_err(NotPassed::into_not_tested)?;
    if is_empty(&response) {
        Err(response.violation("empty contents for an unknown resource"))
    } else {
        response.evidence()
    }
}

async fn addresses_validated(ctx: &CheckContext) -> Outcome {
    ctx.capability("/resources").await?;
    let session = ctx.session().await?;
    let params = json!({ "uri": "not a uri" });
    let message = session
        .request_builder
        .request("invalid-uri", "resources/read", params);
    let pending = session.send_message(message, true).await?;
    let response = session
        .wait_response(pending)
        .await
        .map_err(NotPassed::into_not_tested)?;
    if contents(&response).is_some_and(|contents| !contents.is_empty()) {
        Err(response.violation("contents for `not a uri`"))
    } else {
        response.evidence()
    }
}

async fn listed_can_be_read(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for read in listed(ctx).await? {
        let response = read.response.as_ref().map_err(Clone::clone)?;
        if response.value.get("error").is_some() {
            // The list may have changed.
            if is_no_longer_listed(ctx, &read.listed["uri"]).await? {
                continue;
            }
            let observed = format!("{} returns {}", read.listed["uri"], response.describe());
            return Err(response.violation(observed));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence)
}

/// Returns whether a resource is no longer listed.
async fn is_no_longer_listed(ctx: &CheckContext, uri: &Value) -> Result<bool, NotPassed> {
    let list = RESOURCES.read(ctx.session().await?).await?;
    Ok(list.iter().all(|listed| listed["uri"] != *uri))
}

async fn listed_once(ctx: &CheckContext) -> Outcome {
    listed(ctx).await?;
    let list = &ctx.inventory().await?.resources;
    if !list.is_complete {
        return Err(NotPassed::not_tested("the list was not read to its end"));
    }
    let mut uris = HashSet::new();
    match RESOURCES.keys(list).find(|uri| !uris.insert(*uri)) {
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
        let (Some((response, _)), Some(listed_type)) =
            (read.result(), read.listed["mimeType"].as_str())
        else {
            continue;
        };
        // Further contents may have another type.
        let own = contents(response)
            .into_iter()
            .flatten()
            .find(|part| part["uri"] == read.listed["uri"]);
        match own.and_then(|part| part["mimeType"].as_str()) {
            Some(read_type) if essence(read_type) != essence(listed_type) => {
                let observed = format!(
                    "{} is listed as `{listed_type}` and read as `{read_type}`",
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
            "no resource has a MIME type in the list and in its contents",
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

/// Returns a MIME type without its parameters.
fn essence(kind: &str) -> String {
    let essence = kind.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}
