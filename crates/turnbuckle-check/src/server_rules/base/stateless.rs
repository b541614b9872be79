//! Stateless requests of 2026-07-28.

use serde_json::Value;

use super::meta::violated_key_format;
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
    .requirement("The server responds to `server/discover`.")
    .hint("Return the supported versions and the capabilities for `server/discover`.")
    .active(|ctx| Box::pin(discover(ctx))),
    Rule::server(
        "lifecycle.discover-names-version",
        Area::Lifecycle,
        &["versioning.discover.result"],
    )
    .requirement("The result of `server/discover` lists the version of the request.")
    .hint("List every supported version in `supportedVersions`.")
    .active(|ctx| Box::pin(discover_names_version(ctx))),
    Rule::server(
        "lifecycle.unsupported-version",
        Area::Lifecycle,
        &["versioning.unsupported.error"],
    )
    .requirement("The server returns error -32022 for a request in an unsupported version.")
    .hint("Return error -32022 if the version in `_meta` is not supported.")
    .active(|ctx| Box::pin(unsupported_version(ctx))),
    Rule::server(
        "lifecycle.unsupported-version-data",
        Area::Lifecycle,
        &["versioning.unsupported.data"],
    )
    .requirement("Error -32022 has the supported versions and the requested version.")
    .hint("Set `data.supported` to the supported versions and `data.requested` to the version of the request.")
    .active(|ctx| Box::pin(unsupported_version_data(ctx))),
    Rule::server(
        "lifecycle.unsupported-version-status",
        Area::Lifecycle,
        &["versioning.unsupported.http-400"],
    )
    .requirement("Error -32022 has HTTP status 400.")
    .hint("Send error -32022 with HTTP status 400.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(unsupported_version_status(ctx))),
    Rule::server(
        "lifecycle.required-meta",
        Area::Lifecycle,
        &["meta.request.missing-field-error"],
    )
    .requirement("The server returns error -32602 for a request without the client capabilities.")
    .hint("Return error -32602 if a required key of `_meta` is missing.")
    .active(|ctx| Box::pin(required_meta(ctx))),
    Rule::server(
        "lifecycle.required-meta-status",
        Area::Lifecycle,
        &["meta.request.missing-field-status"],
    )
    .requirement("The error for a missing required key of `_meta` has HTTP status 400.")
    .hint("Send the error for a missing key of `_meta` with HTTP status 400.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(required_meta_status(ctx))),
    Rule::server(
        "lifecycle.nothing-remembered",
        Area::Lifecycle,
        &["stateless.no-prior-context"],
    )
    .requirement("The server does not take missing `_meta` keys from an earlier request.")
    .hint("Read version, capabilities and client info from the `_meta` of each request only.")
    .transports(Transports::Ndjson)
    .active(|ctx| Box::pin(no_stored_context(ctx))),
    Rule::server(
        "lifecycle.extension-names",
        Area::Lifecycle,
        &["versioning.extension.id-format"],
    )
    .requirement("The names of declared extensions have a prefix.")
    .hint("Use extension names like `com.example/extension`.")
    .active(|ctx| Box::pin(extension_names(ctx))),
    Rule::server(
        "lifecycle.no-opening",
        Area::Lifecycle,
        &["stateless.no-prior-context"],
    )
    .requirement("The server responds to a request that no other request precedes.")
    .hint("Do not require `server/discover` or `initialize`: any request may be the first.")
    .active(|ctx| Box::pin(first_request(ctx))),
    Rule::server(
        "lifecycle.undeclared-refused",
        Area::Lifecycle,
        &["base.error.method-not-found"],
    )
    .requirement("The server returns error -32601 for the list of a capability that it does not declare.")
    .hint("Return error -32601 for methods of undeclared capabilities, not an empty list.")
    .warn_only()
    .active(|ctx| Box::pin(undeclared_rejected(ctx))),
];

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// The list methods, with their capabilities.
const LISTS: [(&str, &str); 3] = [
    ("tools", "tools/list"),
    ("resources", "resources/list"),
    ("prompts", "prompts/list"),
];

/// A version that does not exist.
const UNKNOWN_VERSION: &str = "1999-01-01";

async fn discover(ctx: &CheckContext) -> Outcome {
    let response = opening(ctx).await?;
    response.result()?;
    response.evidence()
}

async fn discover_names_version(ctx: &CheckContext) -> Outcome {
    let response = opening(ctx).await?;
    let result = response.result().map_err(NotPassed::into_not_tested)?;
    let Some(versions) = result["supportedVersions"].as_array() else {
        return Err(NotPassed::not_tested("`supportedVersions` is not an array"));
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
    let not_sent = || NotPassed::not_tested("`server/discover` was not sent");
    session.opening.as_ref().ok_or_else(not_sent)
}

async fn unsupported_version(ctx: &CheckContext) -> Outcome {
    request_in_unknown_version(ctx)
        .await?
        .expect_error(&[-32022])
}

async fn unsupported_version_data(ctx: &CheckContext) -> Outcome {
    let response = request_in_unknown_version(ctx).await?;
    response
        .expect_error(&[-32022])
        .map_err(NotPassed::into_not_tested)?;
    let data = &response.value["error"]["data"];
    let supported = data["supported"].as_array();
    if !supported.is_some_and(|all| all.iter().any(|version| version == ctx.revision.as_str())) {
        let observed = format!("`data.supported` is {}", data["supported"]);
        return Err(response.violation(observed));
    }
    match &data["requested"] {
        Value::String(requested) if requested == UNKNOWN_VERSION => response.evidence(),
        other => Err(response.violation(format!("`data.requested` is {other}"))),
    }
}

async fn unsupported_version_status(ctx: &CheckContext) -> Outcome {
    let response = request_in_unknown_version(ctx).await?;
    response
        .expect_error(&[-32022])
        .map_err(NotPassed::into_not_tested)?;
    has_status_400(&response)
}

/// Sends a request in a version that does not exist.
async fn request_in_unknown_version(ctx: &CheckContext) -> Result<ProbeResponse, NotPassed> {
    let session = ctx.session().await?;
    let mut request = session.request_builder.request(
        "unknown-version",
        session.request_builder.noop_method(),
        Value::Null,
    );
    request["params"]["_meta"][VERSION_KEY] = UNKNOWN_VERSION.into();
    let headers = session.request_builder.headers(&request, None);
    let headers = headers.into_iter().map(|(name, value)| match &*name {
        "mcp-protocol-version" => (name, UNKNOWN_VERSION.to_owned()),
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
    let response = request_without_capabilities(&session, "first").await?;
    response.expect_error(&[-32602])
}

async fn required_meta_status(ctx: &CheckContext) -> Outcome {
    let session = ctx.uninitialized_session().await?;
    let response = request_without_capabilities(&session, "first").await?;
    response.error().map_err(NotPassed::into_not_tested)?;
    has_status_400(&response)
}

async fn no_stored_context(ctx: &CheckContext) -> Outcome {
    let session = ctx.uninitialized_session().await?;
    let first = request_without_capabilities(&session, "before").await?;
    first.error().map_err(NotPassed::into_not_tested)?;
    let complete = session
        .request(session.request_builder.noop_method(), Value::Null)
        .await;
    complete
        .and_then(|response| response.result().map(drop))
        .map_err(NotPassed::into_not_tested)?;
    let second = request_without_capabilities(&session, "after").await?;
    match second.error() {
        Ok(_) => Evidence::from_entries(first.entries().chain(second.entries())),
        Err(_) => Err(second.violation(
            "a request without client capabilities is accepted after a request with them",
        )),
    }
}

/// Sends a request without client capabilities.
async fn request_without_capabilities(
    session: &Session,
    id: &str,
) -> Result<ProbeResponse, NotPassed> {
    let method = session.request_builder.noop_method();
    let mut request = session.request_builder.request(id, method, Value::Null);
    let meta = request["params"]["_meta"].as_object_mut();
    meta.expect("requests of the modern era have `_meta`")
        .remove(CAPABILITIES_KEY);
    let pending = session.send_message(request, true).await?;
    session.wait_response(pending).await
}

fn has_status_400(response: &ProbeResponse) -> Outcome {
    match response.status {
        Some(400) => response.evidence(),
        Some(status) => Err(response.violation(format!("HTTP status {status} instead of 400"))),
        None => Err(NotPassed::not_tested("the response lacks an HTTP status")),
    }
}

async fn extension_names(ctx: &CheckContext) -> Outcome {
    let extensions = ctx.capability("/extensions").await?;
    let response = opening(ctx).await?;
    let Some(extensions) = extensions.as_object().filter(|all| !all.is_empty()) else {
        return Err(NotPassed::not_applicable(
            "the server declares no extensions",
        ));
    };
    let mut names = extensions.keys();
    match names.find(|name| !name.contains('/') || violated_key_format(name).is_some()) {
        Some(name) => Err(response.violation(format!("the extension name `{name}`"))),
        None => response.evidence(),
    }
}

async fn first_request(ctx: &CheckContext) -> Outcome {
    let capabilities = ctx.session().await?.capabilities();
    let is_declared = |(capability, _): &&(&str, &str)| capabilities.get(capability).is_some();
    let Some((_, method)) = LISTS.iter().find(is_declared) else {
        return Err(NotPassed::not_applicable("the server declares no lists"));
    };
    let session = ctx.uninitialized_session().await?;
    let first = session.request(method, Value::Null).await?;
    if first.value.get("result").is_some() {
        return first.evidence();
    }
    // Another rule checks that the list is available at all.
    let later = ctx.session().await?.request(method, Value::Null).await?;
    later.result().map_err(NotPassed::into_not_tested)?;
    Err(first.violation(format!("`{method}`: {}", first.describe())))
}

async fn undeclared_rejected(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let capabilities = session.capabilities();
    if session.request_builder.has_handshake() || !capabilities.is_object() {
        return Err(NotPassed::not_applicable(
            "this revision has no such requirement",
        ));
    }
    let mut entries = Vec::new();
    for (capability, method) in LISTS {
        if capabilities.get(capability).is_some() {
            continue;
        }
        let response = session.request(method, Value::Null).await?;
        let result = response.value.get("result").and_then(Value::as_object);
        let has_entries = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
        // Another rule checks lists with items.
        if !result.is_some_and(|result| result.values().any(has_entries)) {
            response
                .expect_error(&[-32601])
                .map_err(|failure| failure.in_context(method))?;
        }
        entries.extend(response.entries());
    }
    if entries.is_empty() {
        Err(NotPassed::not_applicable("the server declares all lists"))
    } else {
        Evidence::from_entries(entries)
    }
}
