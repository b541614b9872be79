//! Clients of both eras at one server.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    rule::{Area, Rule, Transports},
    session::{ProbeResponse, Session, request_builder::RequestBuilder},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "eras.modern-beside-session", // quoted
        Area::Eras,
        &["versioning.dual.server-select-modern"],
    )
    .requirement("The server responds to a request with the version in `_meta` while another client has a session.")
    .hint("Read the `_meta` of a request before looking up a session.")
    .warn_only()
    .transports(Transports::Http)
    .active(|ctx| Box::pin(modern_with_session(ctx))),
    Rule::server(
        "eras.handshake-after-modern",
        Area::Eras,
        &["versioning.dual.server-select-legacy"],
    )
    .requirement("The server accepts `initialize` after `server/discover`.")
    .hint("Accept `initialize` after `server/discover`, and serve the following requests as the older revision defines.")
    .warn_only()
    .active(|ctx| Box::pin(handshake_after_modern(ctx))),
    Rule::server(
        "eras.initialize-names-versions",
        Area::Eras,
        &["versioning.modern-only.initialize-error"],
    )
    .requirement("A server without the handshake returns an error for `initialize` that names the supported versions.")
    .hint("Name the supported versions in the message of the error.")
    .active(|ctx| Box::pin(initialize_names_versions(ctx))),
    Rule::server("eras.probe", Area::Eras, &[])
        .requirement("The server responds to `server/discover` before the handshake, and the handshake works afterwards.")
        .hint("Return an error for unknown methods, also before `initialize`, and keep the connection open.")
        .active(|ctx| Box::pin(probe(ctx))),
];

async fn modern_with_session(ctx: &CheckContext) -> Outcome {
    let modern = ctx.session().await?;
    let legacy_session = legacy(ctx).await?;
    let started = legacy_session.opening.as_ref().map(ProbeResponse::entries);
    let response = modern
        .request(modern.request_builder.noop_method(), Value::Null)
        .await?;
    response.result()?;
    Evidence::from_entries(started.into_iter().flatten().chain(response.entries()))
}

async fn handshake_after_modern(ctx: &CheckContext) -> Outcome {
    // A server that rejects the handshake does not support a legacy revision.
    legacy(ctx).await?;
    let mut session = ctx.session_in(ctx.revision).await?;
    let probe = session
        .request(session.request_builder.noop_method(), Value::Null)
        .await;
    let probe = probe.map_err(NotPassed::into_not_tested)?;
    session.request_builder = RequestBuilder::new(Revision::LATEST_LEGACY);
    let response = session
        .request("initialize", session.request_builder.initialize())
        .await?;
    match session.ndjson() {
        // A server MAY support both eras in one process.
        Ok(_) if response.value.get("error").is_some() => Err(NotPassed::not_applicable(
            "the process stays in the modern era after `server/discover`",
        )),
        _ => {
            response.result()?;
            Evidence::from_entries(probe.entries().chain(response.entries()))
        }
    }
}

async fn initialize_names_versions(ctx: &CheckContext) -> Outcome {
    let session = ctx.session_in(Revision::LATEST_LEGACY).await?;
    let response = session
        .request("initialize", session.request_builder.initialize())
        .await?;
    if response.value.get("result").is_some() {
        return Err(NotPassed::not_applicable(
            "the server supports the handshake",
        ));
    }
    if response.value["error"]
        .to_string()
        .contains(ctx.revision.as_str())
    {
        response.evidence()
    } else {
        Err(response.violation(format!(
            "{} does not name {}",
            response.describe(),
            ctx.revision
        )))
    }
}

async fn probe(ctx: &CheckContext) -> Outcome {
    let mut session = ctx.session_in(ctx.revision).await?;
    if !session.request_builder.has_handshake() {
        return Err(NotPassed::not_applicable(
            "the revision lacks the handshake",
        ));
    }
    let request_builder = std::mem::replace(
        &mut session.request_builder,
        RequestBuilder::new(Revision::MODERN),
    );
    let pending = session.send_request("server/discover", json!({})).await?;
    session.request_builder = request_builder;
    let (probe, response) = match session.ndjson() {
        // When the server responds to the handshake, it has processed the request before it.
        Ok(_) => {
            let opening = session.send_request("initialize", session.request_builder.initialize());
            let response = session.wait_response(opening.await?).await?;
            let probe = session
                .wait_response_within(pending, ctx.pace.quiet_period())
                .await;
            (probe, response)
        }
        Err(_) => {
            let probe = session.wait_response(pending).await;
            let opening = session.request("initialize", session.request_builder.initialize());
            (probe, opening.await?)
        }
    };
    let probe = probe.map_err(|failure| failure.in_context("`server/discover`"))?;
    if probe.status.is_some_and(|status| status >= 500) {
        return Err(probe.violation(format!("`server/discover` returns {}", probe.describe())));
    }
    response.result()?;
    Evidence::from_entries(probe.entries().chain(response.entries()))
}

/// Starts a session in the latest legacy revision.
pub(in crate::server_rules) async fn legacy(ctx: &CheckContext) -> Result<Session, NotPassed> {
    let mut session = ctx.session_in(Revision::LATEST_LEGACY).await?;
    match session.initialize_session().await {
        Ok(()) => Ok(session),
        Err(_) => Err(NotPassed::not_applicable(
            "the server does not support the handshake",
        )),
    }
}
