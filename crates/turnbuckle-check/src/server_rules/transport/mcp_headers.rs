//! Headers that repeat what the body says.

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

/// The error of headers that do not repeat the body.
const MISMATCH: i64 = -32020;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "http.version-header-repeats-body",
        Area::Http,
        &["http.version-header.mismatch"],
    )
    .requirement("`MCP-Protocol-Version` that differs from the body is answered with 400 and -32020.")
    .fix("Compare `MCP-Protocol-Version` with the version in `_meta` before anything else is done.")
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
    .requirement("`Mcp-Method` that differs from the body is answered with 400 and -32020.")
    .fix("Compare `Mcp-Method` with the method of the body.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(method(ctx, "tools/list"))),
    Rule::server(
        "http.method-header-case",
        Area::Http,
        &["http.header.case-sensitive-values"],
    )
    .requirement("`Mcp-Method` is compared with regard to case.")
    .fix("Compare the values of headers letter by letter.")
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
    .requirement("`Mcp-Name` that differs from the body is answered with 400 and -32020.")
    .fix("Compare `Mcp-Name` with the name or URI of the body.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(name(ctx))),
    Rule::server(
        "http.headers-required",
        Area::Http,
        &["http.header.missing-standard"],
    )
    .requirement("A request without `Mcp-Method`, or without `Mcp-Name` where one is due, is answered with 400 and -32020.")
    .fix("Refuse a request whose headers do not repeat its method and name.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(required(ctx))),
    Rule::server(
        "http.name-header-decoded",
        Area::Http,
        &["http.header.decode-before-compare"],
    )
    .requirement("A name in the header that is encoded as `=?base64?…?=` is decoded before it is compared.")
    .fix("Decode `Mcp-Name` and `Mcp-Param-…` before comparing them with the body.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(decoded(ctx))),
    Rule::server("http.name-header-bad-base64", Area::Http, &["http.header.bad-base64"])
        .requirement("A name in the header that cannot be decoded is answered with 400 and -32020.")
        .fix("Refuse `=?base64?…?=` around what is no Base64.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(bad_base64(ctx))),
    Rule::server(
        "http.name-header-taken-literally",
        Area::Http,
        &["http.header.not-sentinel-literal"],
    )
    .requirement("A name in the header is decoded only if its marks are exactly `=?base64?` and `?=`.")
    .fix("Take a value with other marks, such as `=?BASE64?`, as it is.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(literal(ctx))),
];

async fn version(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.deliberately_invalid();
    let response = session
        .send_raw(raw_request.header("mcp-protocol-version", "2025-11-25"))
        .await?;
    refused(&response)
}

async fn method(ctx: &CheckContext, other: &str) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.deliberately_invalid();
    let response = session
        .send_raw(raw_request.header("mcp-method", other))
        .await?;
    refused(&response)
}

async fn name(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let (raw_request, name) = named(ctx, session).await?;
    let other = headers::encode(&format!("{name}-not")).into_owned();
    let response = session
        .send_raw(raw_request.deliberately_invalid().header("mcp-name", other))
        .await?;
    refused(&response)
}

async fn required(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.deliberately_invalid();
    let without_method = session.send_raw(raw_request.without("mcp-method")).await?;
    let mut evidence = refused(&without_method)?.entries;
    if let Ok((raw_request, _)) = named(ctx, session).await {
        let raw_request = raw_request.deliberately_invalid().without("mcp-name");
        evidence.extend(refused(&session.send_raw(raw_request).await?)?.entries);
    }
    Evidence::from_entries(evidence)
}

async fn decoded(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let (raw_request, name) = named(ctx, session).await?;
    let raw_request = raw_request.header("mcp-name", encoded(&name));
    let response = session.send_raw(raw_request).await?;
    match response.value["error"]["code"].as_i64() {
        Some(MISMATCH) => {
            Err(response.violation(format!("{} for `{name}`, encoded", response.describe())))
        }
        _ => response.evidence(),
    }
}

async fn bad_base64(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let (raw_request, _) = named(ctx, session).await?;
    let raw_request = raw_request
        .deliberately_invalid()
        .header("mcp-name", "=?base64?*?=");
    refused(&session.send_raw(raw_request).await?)
}

async fn literal(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let (raw_request, name) = named(ctx, session).await?;
    let other = encoded(&name).replacen("base64", "BASE64", 1);
    let raw_request = raw_request.deliberately_invalid().header("mcp-name", other);
    refused(&session.send_raw(raw_request).await?)
}

/// Makes sure that a request was refused for its headers.
pub(super) fn refused(response: &ProbeResponse) -> Outcome {
    match (response.status, response.value["error"]["code"].as_i64()) {
        (Some(400), Some(MISMATCH)) => response.evidence(),
        _ => Err(response.violation(format!("{}, and {}", status(response), response.describe()))),
    }
}

/// Makes up a request that names something, and only reads: a resource, a prompt or a call that may be made.
async fn named(
    ctx: &CheckContext,
    session: &Session,
) -> Result<(RawHttpRequest, String), NotPassed> {
    let found = ctx.inventory().await?;
    let uri = found.resources.iter().find_map(|one| one["uri"].as_str());
    if let Some(uri) = uri.map(str::to_owned) {
        let raw_request = session.raw_request("resources/read", json!({ "uri": uri }))?;
        return Ok((raw_request, uri));
    }
    // One that lacks an argument may be refused for that as well.
    let mut prompts = found
        .prompts
        .iter()
        .filter(|one| required_arguments(one).next().is_none());
    let prompt = prompts.find_map(|one| one["name"].as_str());
    if let Some(name) = prompt.map(str::to_owned) {
        let raw_request = session.raw_request("prompts/get", json!({ "name": name }))?;
        return Ok((raw_request, name));
    }
    match found.calls.first() {
        Some(call) => {
            let raw_request = session.raw_request("tools/call", call.params())?;
            Ok((raw_request.headers(call.headers()), call.name.clone()))
        }
        None => Err(NotPassed::not_applicable(
            "there is nothing with a name that could be asked for",
        )),
    }
}

/// Encodes a name, even if it could go as it is.
fn encoded(name: &str) -> String {
    format!("=?base64?{}?=", STANDARD.encode(name))
}
