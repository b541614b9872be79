//! Old and new clients at one server.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    rule::{Area, Rule, Transports},
    session::{
        ProbeResponse, Session,
        request_builder::{LAST_WITH_HANDSHAKE, RequestBuilder},
    },
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "eras.modern-beside-session",
        Area::Eras,
        &["versioning.dual.server-select-modern"],
    )
    .requirement("A request that says its version by itself is answered, whoever has begun a session before.")
    .fix("Look at the `_meta` of a request before you look for a session.")
    .warn_only()
    .transports(Transports::Http)
    .active(|ctx| Box::pin(modern_beside_session(ctx))),
    Rule::server(
        "eras.handshake-after-modern",
        Area::Eras,
        &["versioning.dual.server-select-legacy"],
    )
    .requirement("Whoever has asked who is there can still begin a session with `initialize`.")
    .fix("Let `initialize` through after `server/discover`, and serve what follows as the older revision says.")
    .warn_only()
    .active(|ctx| Box::pin(handshake_after_modern(ctx))),
    Rule::server(
        "eras.initialize-names-versions",
        Area::Eras,
        &["versioning.modern-only.initialize-error"],
    )
    .requirement("A server without the handshake answers `initialize` with an error that names its versions.")
    .fix("Name the versions that you support in the message of the error.")
    .active(|ctx| Box::pin(initialize_names_versions(ctx))),
    Rule::server("eras.probe", Area::Eras, &[])
        .requirement("`server/discover` before the handshake is answered, and the handshake works afterwards.")
        .fix("Answer methods that you do not know with an error, also before `initialize`, and go on.")
        .active(|ctx| Box::pin(probe(ctx))),
];

async fn modern_beside_session(ctx: &CheckContext) -> Outcome {
    let modern = ctx.session().await?;
    let old = legacy(ctx).await?;
    let started = old.opening.as_ref().map(ProbeResponse::entries);
    let response = modern
        .request(modern.request_builder.noop_method(), Value::Null)
        .await?;
    response.result()?;
    Evidence::from_entries(started.into_iter().flatten().chain(response.entries()))
}

async fn handshake_after_modern(ctx: &CheckContext) -> Outcome {
    // Whoever refuses the handshake at once does not speak an older revision.
    legacy(ctx).await?;
    let mut session = ctx.session_in(ctx.revision).await?;
    let probe = session
        .request(session.request_builder.noop_method(), Value::Null)
        .await;
    let probe = probe.map_err(NotPassed::as_not_tested)?;
    session.request_builder = RequestBuilder::new(LAST_WITH_HANDSHAKE);
    let response = session
        .request("initialize", session.request_builder.initialize())
        .await?;
    match session.ndjson() {
        // To serve both in one process is something that a server MAY do.
        Ok(_) if response.value.get("error").is_some() => Err(NotPassed::not_applicable(
            "a process that was asked who is there stays with the later revision",
        )),
        _ => {
            response.result()?;
            Evidence::from_entries(probe.entries().chain(response.entries()))
        }
    }
}

async fn initialize_names_versions(ctx: &CheckContext) -> Outcome {
    let session = ctx.session_in(LAST_WITH_HANDSHAKE).await?;
    let response = session
        .request("initialize", session.request_builder.initialize())
        .await?;
    if response.value.get("result").is_some() {
        return Err(NotPassed::not_applicable("the server has the handshake"));
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
        return Err(NotPassed::not_applicable("there is no handshake"));
    }
    let own = std::mem::replace(
        &mut session.request_builder,
        RequestBuilder::new(Revision::MODERN),
    );
    let pending = session.send_request("server/discover", json!({})).await?;
    session.request_builder = own;
    let (probe, response) = match session.ndjson() {
        // When the handshake is answered, what came before it has been, or never will be.
        Ok(_) => {
            let opening = session.send_request("initialize", session.request_builder.initialize());
            let response = session.wait_response(opening.await?).await?;
            let probe = session
                .wait_response_within(pending, ctx.options.quiet_period)
                .await;
            (probe, response)
        }
        Err(_) => {
            let probe = session.wait_response(pending).await;
            let opening = session.request("initialize", session.request_builder.initialize());
            (probe, opening.await?)
        }
    };
    let probe = probe.map_err(|failure| failure.at("`server/discover`"))?;
    if probe.status.is_some_and(|status| status >= 500) {
        return Err(probe.violation(format!("`server/discover` gets {}", probe.describe())));
    }
    response.result()?;
    Evidence::from_entries(probe.entries().chain(response.entries()))
}

/// Begins a session in an older revision beside the visit.
pub(in crate::server_rules) async fn legacy(ctx: &CheckContext) -> Result<Session, NotPassed> {
    let mut session = ctx.session_in(LAST_WITH_HANDSHAKE).await?;
    match session.initialize_session().await {
        Ok(()) => Ok(session),
        Err(_) => Err(NotPassed::not_applicable("the server has no handshake")),
    }
}
