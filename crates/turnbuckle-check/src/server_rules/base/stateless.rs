//! Requests that say by themselves all that there is to know.

use serde_json::Value;

use super::meta::is_well_formed;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    rule::{Area, Rule, Transports},
    session::{ProbeResponse, Session},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "lifecycle.discover",
        Area::Lifecycle,
        &["versioning.discover.implement"],
    )
    .requirement("`server/discover` is answered.")
    .fix("Answer `server/discover` with your versions and capabilities.")
    .active(|ctx| Box::pin(discover(ctx))),
    Rule::server(
        "lifecycle.discover-names-version",
        Area::Lifecycle,
        &["versioning.discover.result"],
    )
    .requirement("`server/discover` names the version in which it is answered.")
    .fix("List every version that you serve in `supportedVersions`.")
    .active(|ctx| Box::pin(discover_names_version(ctx))),
    Rule::server(
        "lifecycle.unsupported-version",
        Area::Lifecycle,
        &["versioning.unsupported.error"],
    )
    .requirement("A request in a version that the server does not support gets the error -32022.")
    .fix("Answer with the error -32022 when you do not serve the version that `_meta` names.")
    .active(|ctx| Box::pin(unsupported_version(ctx))),
    Rule::server(
        "lifecycle.unsupported-version-data",
        Area::Lifecycle,
        &["versioning.unsupported.data"],
    )
    .requirement("The error -32022 says which versions are supported, and which was requested.")
    .fix("Fill `data.supported` with your versions and `data.requested` with the one of the request.")
    .active(|ctx| Box::pin(unsupported_version_data(ctx))),
    Rule::server(
        "lifecycle.unsupported-version-status",
        Area::Lifecycle,
        &["versioning.unsupported.http-400"],
    )
    .requirement("The error -32022 comes with the status 400.")
    .fix("Send the error -32022 with the status 400.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(unsupported_version_status(ctx))),
    Rule::server(
        "lifecycle.required-meta",
        Area::Lifecycle,
        &["meta.request.missing-field-error"],
    )
    .requirement("A request that does not say what the client can do gets the error -32602.")
    .fix("Answer with the error -32602 when a required field of `_meta` is missing.")
    .active(|ctx| Box::pin(required_meta(ctx))),
    Rule::server(
        "lifecycle.required-meta-status",
        Area::Lifecycle,
        &["meta.request.missing-field-status"],
    )
    .requirement("The refusal of a request that lacks a required field of `_meta` has the status 400.")
    .fix("Send the error for a missing field of `_meta` with the status 400.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(required_meta_status(ctx))),
    Rule::server(
        "lifecycle.nothing-remembered",
        Area::Lifecycle,
        &["stateless.no-prior-context"],
    )
    .requirement("What a request does not say is not taken from an earlier one.")
    .fix("Take version, capabilities and identity from the `_meta` of the request alone.")
    .transports(Transports::Ndjson)
    .active(|ctx| Box::pin(nothing_remembered(ctx))),
    Rule::server(
        "lifecycle.extension-names",
        Area::Lifecycle,
        &["versioning.extension.id-format"],
    )
    .requirement("Extensions are declared by names with a prefix.")
    .fix("Name extensions like `com.example/extension`.")
    .active(|ctx| Box::pin(extension_names(ctx))),
    Rule::server(
        "lifecycle.no-opening",
        Area::Lifecycle,
        &["stateless.no-prior-context"],
    )
    .requirement("A request is answered though nothing was asked before it.")
    .fix("Do not wait for `server/discover` or `initialize`: any request may be the first.")
    .active(|ctx| Box::pin(no_opening(ctx))),
    Rule::server(
        "lifecycle.undeclared-refused",
        Area::Lifecycle,
        &["base.error.method-not-found"],
    )
    .requirement("A list that belongs to a capability which is not declared gets the error -32601.")
    .fix("Answer methods of capabilities that you do not declare with the error -32601, not with an empty list.")
    .warn_only()
    .active(|ctx| Box::pin(undeclared_refused(ctx))),
];

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What is listed, by the capability that it belongs to.
const LISTS: [(&str, &str); 3] = [
    ("tools", "tools/list"),
    ("resources", "resources/list"),
    ("prompts", "prompts/list"),
];

/// A version that nobody will ever speak.
const UNKNOWN: &str = "1999-01-01";

async fn discover(ctx: &CheckContext) -> Outcome {
    let response = opening(ctx).await?;
    response.result()?;
    response.evidence()
}

async fn discover_names_version(ctx: &CheckContext) -> Outcome {
    let response = opening(ctx).await?;
    let result = response.result().map_err(NotPassed::as_not_tested)?;
    let Some(versions) = result["supportedVersions"].as_array() else {
        return Err(NotPassed::not_tested("`supportedVersions` is no list"));
    };
    if versions
        .iter()
        .any(|version| version == ctx.revision.as_str())
    {
        response.evidence()
    } else {
        let versions = Value::from(versions.clone());
        Err(response.violation(format!("`supportedVersions` is {versions}")))
    }
}

async fn opening(ctx: &CheckContext) -> Result<&ProbeResponse, NotPassed> {
    let session = ctx.session().await?;
    let nothing = || NotPassed::not_tested("`server/discover` was not asked");
    session.opening.as_ref().ok_or_else(nothing)
}

async fn unsupported_version(ctx: &CheckContext) -> Outcome {
    in_unknown_version(ctx).await?.expect_error(&[-32022])
}

async fn unsupported_version_data(ctx: &CheckContext) -> Outcome {
    let response = in_unknown_version(ctx).await?;
    response
        .expect_error(&[-32022])
        .map_err(NotPassed::as_not_tested)?;
    let data = &response.value["error"]["data"];
    let supported = data["supported"].as_array();
    if !supported.is_some_and(|all| all.iter().any(|version| version == ctx.revision.as_str())) {
        let observed = format!("`data.supported` is {}", data["supported"]);
        return Err(response.violation(observed));
    }
    match &data["requested"] {
        Value::String(requested) if requested == UNKNOWN => response.evidence(),
        other => Err(response.violation(format!("`data.requested` is {other}"))),
    }
}

async fn unsupported_version_status(ctx: &CheckContext) -> Outcome {
    let response = in_unknown_version(ctx).await?;
    response
        .expect_error(&[-32022])
        .map_err(NotPassed::as_not_tested)?;
    has_status_400(&response)
}

/// Asks something harmless in a version that nobody speaks.
async fn in_unknown_version(ctx: &CheckContext) -> Result<ProbeResponse, NotPassed> {
    let session = ctx.session().await?;
    let mut request = session.request_builder.request(
        "unknown-version",
        session.request_builder.noop_method(),
        Value::Null,
    );
    request["params"]["_meta"][VERSION] = UNKNOWN.into();
    let headers = session.request_builder.headers(&request, None);
    let headers = headers.into_iter().map(|(name, value)| match &*name {
        "mcp-protocol-version" => (name, UNKNOWN.to_owned()),
        _ => (name, value),
    });
    let id = request.get("id").cloned();
    let text = request.to_string();
    let pending = session
        .send_text(id, &text, headers.collect(), true)
        .await?;
    session.wait_response(pending).await
}

async fn required_meta(ctx: &CheckContext) -> Outcome {
    let session = ctx.uninitialized_session().await?;
    let response = without_capabilities(&session, "first").await?;
    response.expect_error(&[-32602])
}

async fn required_meta_status(ctx: &CheckContext) -> Outcome {
    let session = ctx.uninitialized_session().await?;
    let response = without_capabilities(&session, "first").await?;
    response.error().map_err(NotPassed::as_not_tested)?;
    has_status_400(&response)
}

async fn nothing_remembered(ctx: &CheckContext) -> Outcome {
    let session = ctx.uninitialized_session().await?;
    let first = without_capabilities(&session, "before").await?;
    first.error().map_err(NotPassed::as_not_tested)?;
    let whole = session
        .request(session.request_builder.noop_method(), Value::Null)
        .await;
    whole
        .and_then(|response| response.result().map(drop))
        .map_err(NotPassed::as_not_tested)?;
    let second = without_capabilities(&session, "after").await?;
    match second.error() {
        Ok(_) => Evidence::from_entries(first.entries().chain(second.entries())),
        Err(_) => Err(second.violation(
            "what was refused before is answered after a request that says what the client can do",
        )),
    }
}

/// Asks something harmless, and does not say what the client can do.
async fn without_capabilities(session: &Session, id: &str) -> Result<ProbeResponse, NotPassed> {
    let method = session.request_builder.noop_method();
    let mut request = session.request_builder.request(id, method, Value::Null);
    let meta = request["params"]["_meta"].as_object_mut();
    meta.expect("requests without handshake have it")
        .remove(CAPABILITIES);
    let pending = session.send_message(request, true).await?;
    session.wait_response(pending).await
}

fn has_status_400(response: &ProbeResponse) -> Outcome {
    match response.status {
        Some(400) => response.evidence(),
        Some(status) => Err(response.violation(format!("the status {status} instead of 400"))),
        None => Err(NotPassed::not_tested("there is no status")),
    }
}

async fn extension_names(ctx: &CheckContext) -> Outcome {
    let extensions = ctx.capability("/extensions").await?;
    let response = opening(ctx).await?;
    let Some(extensions) = extensions.as_object().filter(|all| !all.is_empty()) else {
        return Err(NotPassed::not_applicable(
            "the server declares no extension",
        ));
    };
    let mut names = extensions.keys();
    match names.find(|name| !name.contains('/') || !is_well_formed(name)) {
        Some(name) => Err(response.violation(format!("the extension `{name}`"))),
        None => response.evidence(),
    }
}

async fn no_opening(ctx: &CheckContext) -> Outcome {
    let capabilities = ctx.session().await?.capabilities();
    let declared = |(capability, _): &&(&str, &str)| capabilities.get(capability).is_some();
    let Some((_, method)) = LISTS.iter().find(declared) else {
        return Err(NotPassed::not_applicable("the server declares no lists"));
    };
    let session = ctx.uninitialized_session().await?;
    let first = session.request(method, Value::Null).await?;
    if first.value.get("result").is_some() {
        return first.evidence();
    }
    // Whether it is there at all is the business of others.
    let later = ctx.session().await?.request(method, Value::Null).await?;
    later.result().map_err(NotPassed::as_not_tested)?;
    Err(first.violation(format!("`{method}`: {}", first.describe())))
}

async fn undeclared_refused(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let capabilities = session.capabilities();
    if session.request_builder.has_handshake() || !capabilities.is_object() {
        return Err(NotPassed::not_applicable("only later revisions say so"));
    }
    let mut entries = Vec::new();
    for (capability, method) in LISTS {
        if capabilities.get(capability).is_some() {
            continue;
        }
        let response = session.request(method, Value::Null).await?;
        let result = response.value.get("result").and_then(Value::as_object);
        let has_entries = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
        // What is offered and not declared is the business of others.
        if !result.is_some_and(|result| result.values().any(has_entries)) {
            response
                .expect_error(&[-32601])
                .map_err(|failure| failure.at(method))?;
        }
        entries.extend(response.entries());
    }
    if entries.is_empty() {
        Err(NotPassed::not_applicable("the server declares all lists"))
    } else {
        Evidence::from_entries(entries)
    }
}
