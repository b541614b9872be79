//! Headers that repeat values of the body.

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use serde_json::json;
use turnbuckle_protocol::codec::headers;

use super::http::status;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::required as required_arguments,
    rule::{Area, Rule, Transports},
    session::{ProbeResponse, Session},
    wire::http::RawHttpRequest,
};

/// The error code for headers that differ from the body.
const HEADER_MISMATCH: i64 = -32020;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "http.version-header-repeats-body",
        Area::Http,
        &["http.version-header.mismatch"],
    )
    .requirement("The server responds with 400 and error -32020 if `MCP-Protocol-Version` differs from the body.")
    .hint("Compare `MCP-Protocol-Version` with the version in `_meta` before processing the request.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(version(ctx))),
    Rule::server(
        "http.method-header-repeats-body",
        Area::Http,
        &[
            "http.header.body-mismatch",
            "http.header.mismatch-status",
            "http.header.mismatch-error",
        ],
    )
    .requirement("The server responds with 400 and error -32020 if `Mcp-Method` differs from the body.")
    .hint("Compare `Mcp-Method` with the method of the body.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(method(ctx, "tools/list"))),
    Rule::server(
        "http.method-header-case",
        Area::Http,
        &["http.header.case-sensitive-values"],
    )
    .requirement("The server compares `Mcp-Method` case-sensitively.")
    .hint("Compare header values case-sensitively.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(method(ctx, "SERVER/DISCOVER"))),
    Rule::server(
        "http.name-header-repeats-body",
        Area::Http,
        &[
            "http.header.body-mismatch",
            "http.header.mismatch-status",
            "http.header.mismatch-error",
        ],
    )
    .requirement("The server responds with 400 and error -32020 if `Mcp-Name` differs from the body.")
    .hint("Compare `Mcp-Name` with the name or URI of the body.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(name(ctx))),
    Rule::server(
        "http.headers-required",
        Area::Http,
        &["http.header.missing-standard"],
    )
    .requirement("The server responds with 400 and error -32020 to a request without `Mcp-Method`, or without a required `Mcp-Name`.")
    .hint("Reject a request if its headers do not repeat its method and name.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(required(ctx))),
    Rule::server(
        "http.name-header-decoded",
        Area::Http,
        &["http.header.decode-before-compare"],
    )
    .requirement("The server decodes a `Mcp-Name` encoded as `=?base64?…?=` before it compares it.")
    .hint("Decode `Mcp-Name` and `Mcp-Param-…` before comparing them with the body.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(decoded(ctx))),
    Rule::server("http.name-header-bad-base64", Area::Http, &["http.header.bad-base64"])
        .requirement("The server responds with 400 and error -32020 to a `Mcp-Name` that cannot be decoded.")
        .hint("Reject `=?base64?…?=` with invalid Base64.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(bad_base64(ctx))),
    Rule::server(
        "http.name-header-taken-literally",
        Area::Http,
        &["http.header.not-sentinel-literal"],
    )
    .requirement("The server decodes `Mcp-Name` only between exactly `=?base64?` and `?=`.")
    .hint("Treat a value with other delimiters, such as `=?BASE64?`, as plain text.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(literal(ctx))),
];

async fn version(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.deliberately_invalid();
    let response = session
        .send_raw(raw_request.header("mcp-protocol-version", "2025-11-25"))
        .await?;
    check_rejected(&response)
}

async fn method(ctx: &CheckContext, other: &str) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.deliberately_invalid();
    let response = session
        .send_raw(raw_request.header("mcp-method", other))
        .await?;
    check_rejected(&response)
}

async fn name(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let (raw_request, name) = request_with_name(ctx, session).await?;
    let other = headers::encode(&format!("{name}-not")).into_owned();
    let response = session
        .send_raw(raw_request.deliberately_invalid().header("mcp-name", other))
        .await?;
    check_rejected(&response)
}

async fn required(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.deliberately_invalid();
    let without_method = session.send_raw(raw_request.without("mcp-method")).await?;
    let mut evidence = check_rejected(&without_method)?.entries;
    if let Ok((raw_request, _)) = request_with_name(ctx, session).await {
        let raw_request = raw_request.deliberately_invalid().without("mcp-name");
        evidence.extend(check_rejected(&session.send_raw(raw_request).await?)?.entries);
    }
    Evidence::from_entries(evidence)
}

async fn decoded(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let (raw_request, name) = request_with_name(ctx, session).await?;
    let raw_request = raw_request.header("mcp-name", encoded(&name));
    let response = session.send_raw(raw_request).await?;
    match response.value["error"]["code"].as_i64() {
        Some(HEADER_MISMATCH) => Err(response.violation(format!(
            "{} for the encoded name `{name}`",
            response.describe()
        ))),
        _ => response.evidence(),
    }
}

async fn bad_base64(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let (raw_request, _) = request_with_name(ctx, session).await?;
    let raw_request = raw_request
        .deliberately_invalid()
        .header("mcp-name", "=?base64?*?=");
    check_rejected(&session.send_raw(raw_request).await?)
}

async fn literal(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let (raw_request, name) = request_with_name(ctx, session).await?;
    let other = encoded(&name).replacen("base64", "BASE64", 1);
    let raw_request = raw_request.deliberately_invalid().header("mcp-name", other);
    check_rejected(&session.send_raw(raw_request).await?)
}

/// Checks that the server rejects a request because of its headers.
pub(super) fn check_rejected(response: &ProbeResponse) -> Outcome {
    match (response.status, response.value["error"]["code"].as_i64()) {
        (Some(400), Some(HEADER_MISMATCH)) => response.evidence(),
        (status_code, code) => {
            let observed = format!("{}: {}", status(response), response.describe());
            let violation = response.violation(observed);
            Err(match (status_code, code) {
                (_, Some(HEADER_MISMATCH)) => {
                    violation.for_requirement("http.header.mismatch-status")
                }
                (Some(400), _) => violation.for_requirement("http.header.mismatch-error"),
                _ => violation,
            })
        }
    }
}

/// Builds a read-only request with a name: for a resource, a prompt or a safe call.
async fn request_with_name(
    ctx: &CheckContext,
    session: &Session,
) -> Result<(RawHttpRequest, String), NotPassed> {
    let inventory = ctx.inventory().await?;
    let uri = inventory
        .resources
        .iter()
        .find_map(|one| one["uri"].as_str());
    if let Some(uri) = uri.map(str::to_owned) {
        let raw_request = session.raw_request("resources/read", json!({ "uri": uri }))?;
        return Ok((raw_request, uri));
    }
    // A prompt without a required argument may be rejected for that reason.
    let mut prompts = inventory
        .prompts
        .iter()
        .filter(|one| required_arguments(one).next().is_none());
    let prompt = prompts.find_map(|one| one["name"].as_str());
    if let Some(name) = prompt.map(str::to_owned) {
        let raw_request = session.raw_request("prompts/get", json!({ "name": name }))?;
        return Ok((raw_request, name));
    }
    match inventory.calls.first() {
        Some(call) => {
            let raw_request = session.raw_request("tools/call", call.params())?;
            Ok((raw_request.headers(call.headers()), call.name.clone()))
        }
        None => Err(NotPassed::not_applicable(
            "the server lists no resources, prompts or safe tools",
        )),
    }
}

/// Encodes a name, even if a header allows it unchanged.
fn encoded(name: &str) -> String {
    format!("=?base64?{}?=", STANDARD.encode(name))
}
