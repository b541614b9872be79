//! Headers that repeat what the body says.

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use serde_json::json;
use turnbuckle_protocol::codec::headers;

use super::http::status;
use crate::discovery::required as required_arguments;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::session::{Answer, Session};
use crate::visit::Visit;
use crate::wire::http::Draft;

/// The error of headers that do not repeat the body.
const MISMATCH: i64 = -32020;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "http.version-header-repeats-body",
        Area::Http,
        &["http.version-header.mismatch"],
    )
    .says("`MCP-Protocol-Version` that differs from the body is answered with 400 and -32020.")
    .cure("Compare `MCP-Protocol-Version` with the version in `_meta` before anything else is done.")
    .on(On::Http)
    .ask(|visit| Box::pin(version(visit))),
    Rule::server(
        "http.method-header-repeats-body",
        Area::Http,
        &[
            "http.header.body-mismatch",
            "http.header.mismatch-status",
            "http.header.mismatch-error",
        ],
    )
    .says("`Mcp-Method` that differs from the body is answered with 400 and -32020.")
    .cure("Compare `Mcp-Method` with the method of the body.")
    .on(On::Http)
    .ask(|visit| Box::pin(method(visit, "tools/list"))),
    Rule::server(
        "http.method-header-case",
        Area::Http,
        &["http.header.case-sensitive-values"],
    )
    .says("`Mcp-Method` is compared with regard to case.")
    .cure("Compare the values of headers letter by letter.")
    .on(On::Http)
    .ask(|visit| Box::pin(method(visit, "SERVER/DISCOVER"))),
    Rule::server(
        "http.name-header-repeats-body",
        Area::Http,
        &[
            "http.header.body-mismatch",
            "http.header.mismatch-status",
            "http.header.mismatch-error",
        ],
    )
    .says("`Mcp-Name` that differs from the body is answered with 400 and -32020.")
    .cure("Compare `Mcp-Name` with the name or URI of the body.")
    .on(On::Http)
    .ask(|visit| Box::pin(name(visit))),
    Rule::server(
        "http.headers-required",
        Area::Http,
        &["http.header.missing-standard"],
    )
    .says("A request without `Mcp-Method`, or without `Mcp-Name` where one is due, is answered with 400 and -32020.")
    .cure("Refuse a request whose headers do not repeat its method and name.")
    .on(On::Http)
    .ask(|visit| Box::pin(required(visit))),
    Rule::server(
        "http.name-header-decoded",
        Area::Http,
        &["http.header.decode-before-compare"],
    )
    .says("A name in the header that is encoded as `=?base64?…?=` is decoded before it is compared.")
    .cure("Decode `Mcp-Name` and `Mcp-Param-…` before comparing them with the body.")
    .on(On::Http)
    .ask(|visit| Box::pin(decoded(visit))),
    Rule::server("http.name-header-bad-base64", Area::Http, &["http.header.bad-base64"])
        .says("A name in the header that cannot be decoded is answered with 400 and -32020.")
        .cure("Refuse `=?base64?…?=` around what is no Base64.")
        .on(On::Http)
        .ask(|visit| Box::pin(bad_base64(visit))),
    Rule::server(
        "http.name-header-taken-literally",
        Area::Http,
        &["http.header.not-sentinel-literal"],
    )
    .says("A name in the header is decoded only if its marks are exactly `=?base64?` and `?=`.")
    .cure("Take a value with other marks, such as `=?BASE64?`, as it is.")
    .on(On::Http)
    .ask(|visit| Box::pin(literal(visit))),
];

async fn version(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let draft = session.harmless()?.deliberate();
    let answer = session
        .exchange(draft.header("mcp-protocol-version", "2025-11-25"))
        .await?;
    refused(&answer)
}

async fn method(visit: &Visit, other: &str) -> Outcome {
    let session = visit.session().await?;
    let draft = session.harmless()?.deliberate();
    let answer = session.exchange(draft.header("mcp-method", other)).await?;
    refused(&answer)
}

async fn name(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let (draft, name) = named(visit, session).await?;
    let other = headers::encode(&format!("{name}-not")).into_owned();
    let answer = session
        .exchange(draft.deliberate().header("mcp-name", other))
        .await?;
    refused(&answer)
}

async fn required(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let draft = session.harmless()?.deliberate();
    let without_method = session.exchange(draft.without("mcp-method")).await?;
    let mut seen = refused(&without_method)?.entries;
    if let Ok((draft, _)) = named(visit, session).await {
        let draft = draft.deliberate().without("mcp-name");
        seen.extend(refused(&session.exchange(draft).await?)?.entries);
    }
    Seen::at(seen)
}

async fn decoded(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let (draft, name) = named(visit, session).await?;
    let draft = draft.header("mcp-name", encoded(&name));
    let answer = session.exchange(draft).await?;
    match answer.value["error"]["code"].as_i64() {
        Some(MISMATCH) => {
            Err(answer.broken(format!("{} for `{name}`, encoded", answer.describe())))
        }
        _ => answer.seen(),
    }
}

async fn bad_base64(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let (draft, _) = named(visit, session).await?;
    let draft = draft.deliberate().header("mcp-name", "=?base64?*?=");
    refused(&session.exchange(draft).await?)
}

async fn literal(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let (draft, name) = named(visit, session).await?;
    let other = encoded(&name).replacen("base64", "BASE64", 1);
    let draft = draft.deliberate().header("mcp-name", other);
    refused(&session.exchange(draft).await?)
}

/// Makes sure that a request was refused for its headers.
pub(super) fn refused(answer: &Answer) -> Outcome {
    match (answer.status, answer.value["error"]["code"].as_i64()) {
        (Some(400), Some(MISMATCH)) => answer.seen(),
        _ => Err(answer.broken(format!("{}, and {}", status(answer), answer.describe()))),
    }
}

/// Makes up a request that names something, and only reads: a resource, a prompt or a call that may be made.
async fn named(visit: &Visit, session: &Session) -> Result<(Draft, String), Unmet> {
    let found = visit.discovered().await?;
    let uri = found.resources.iter().find_map(|one| one["uri"].as_str());
    if let Some(uri) = uri.map(str::to_owned) {
        let draft = session.draft("resources/read", json!({ "uri": uri }))?;
        return Ok((draft, uri));
    }
    // One that lacks an argument may be refused for that as well.
    let mut prompts = found
        .prompts
        .iter()
        .filter(|one| required_arguments(one).next().is_none());
    let prompt = prompts.find_map(|one| one["name"].as_str());
    if let Some(name) = prompt.map(str::to_owned) {
        let draft = session.draft("prompts/get", json!({ "name": name }))?;
        return Ok((draft, name));
    }
    match found.calls.first() {
        Some(call) => {
            let draft = session.draft("tools/call", call.params())?;
            Ok((draft.headers(call.headers()), call.name.clone()))
        }
        None => Err(Unmet::not_applicable(
            "there is nothing with a name that could be asked for",
        )),
    }
}

/// Encodes a name, even if it could go as it is.
fn encoded(name: &str) -> String {
    format!("=?base64?{}?=", STANDARD.encode(name))
}
