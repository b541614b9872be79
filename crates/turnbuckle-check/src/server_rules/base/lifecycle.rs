//! The handshake and the negotiated revision.

use serde_json::Value;
use turnbuckle_protocol::{method::Method, revision::Revision};

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::{Direction, Transcript},
        transcript_query::messages,
    },
    rule::{Area, Rule, Transports},
    session::{PendingResponse, ProbeResponse, Session},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "lifecycle.unknown-version",
        Area::Lifecycle,
        &["lifecycle.version.server-other"],
    )
    .requirement("The server returns a version that it supports for an `initialize` with an unknown version.")
    .hint("Return a supported version for `initialize`, not an error and not the unknown version.")
    .active(|ctx| Box::pin(unknown_version(ctx))),
    Rule::server(
        "lifecycle.offer-kept",
        Area::Lifecycle,
        &["lifecycle.version.server-same"],
    )
    .requirement("The server confirms the version that it proposed when the client requests it.")
    .hint("Return the version of the `initialize` request whenever it is supported.")
    .active(|ctx| Box::pin(proposal_confirmed(ctx))),
    Rule::server(
        "lifecycle.newest-offered",
        Area::Lifecycle,
        &["lifecycle.version.server-latest"],
    )
    .requirement("The server proposes the latest version that it supports.")
    .hint("Return the latest supported version when the client's version is unknown.")
    .active(|ctx| Box::pin(latest_proposed(ctx))),
    Rule::server(
        "lifecycle.waits-for-initialized",
        Area::Lifecycle,
        &["lifecycle.init.server-wait"],
    )
    .requirement("The server sends no requests other than `ping` before `notifications/initialized`.")
    .hint("Wait for `notifications/initialized` before sending requests.")
    .transports(Transports::Ndjson)
    .active(|ctx| Box::pin(waits_for_initialized(ctx))),
    Rule::server("lifecycle.ping-before-initialize", Area::Lifecycle, &[])
        .requirement("The server responds to `ping` before the handshake.")
        .hint("Respond to `ping` in every state of the session.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(ping_before_initialize(ctx))),
    Rule::server("lifecycle.initialize-first", Area::Lifecycle, &[])
        .requirement("The server rejects other requests before the handshake.")
        .hint("Return an error for every request other than `ping` before `initialize`.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(initialize_first(ctx))),
    Rule::server("lifecycle.second-initialize", Area::Lifecycle, &[])
        .requirement("The server responds to a second `initialize`, and the session continues.")
        .hint("Return an error or start a new session, and keep the connection open.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(second_initialize(ctx))),
    Rule::server(
        "lifecycle.version-kept",
        Area::Lifecycle,
        &["lifecycle.operation.version-must"],
    )
    .requirement("The server sends only requests and notifications that the negotiated revision defines.")
    .hint("Check the negotiated revision before sending a method that another revision introduced or removed.")
    .passive(methods_of_revision),
];

/// Checks the methods of the server's requests and notifications; methods of no revision are custom.
fn methods_of_revision(ctx: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for message in
        messages(transcript, Direction::Received).filter(|message| !message.entry.other_revision)
    {
        let Some(method) = message.value["method"].as_str().and_then(Method::from_name) else {
            continue;
        };
        if !method.is_in(ctx.revision) {
            let observed = format!("`{}` is not a method of {}", method.name, ctx.revision);
            return Err(NotPassed::violation(observed, [message.at]));
        }
        evidence.push(message.at);
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(
            "the server sent no requests and no notifications",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

/// A version that does not exist.
const UNKNOWN_VERSION: &str = "1999-01-01";

async fn unknown_version(ctx: &CheckContext) -> Outcome {
    let response = propose(ctx, UNKNOWN_VERSION).await?;
    if response.value.get("result").is_none() {
        // A server that rejects every second session does not reject the version.
        let control = propose(ctx, ctx.revision.as_str()).await;
        let control = control.map_err(NotPassed::into_not_tested)?;
        control.result().map_err(NotPassed::into_not_tested)?;
    }
    match response.result()?["protocolVersion"].as_str() {
        Some(UNKNOWN_VERSION) => {
            Err(response.violation(format!("the server accepts {UNKNOWN_VERSION}")))
        }
        Some(_) => response.evidence(),
        None => Err(NotPassed::not_tested(
            "the response lacks `protocolVersion`",
        )),
    }
}

async fn proposal_confirmed(ctx: &CheckContext) -> Outcome {
    let (response, proposed) = server_proposal(ctx).await?;
    let again = propose(ctx, &proposed).await?;
    match again.result()?["protocolVersion"].as_str() {
        Some(confirmed) if confirmed == proposed => {
            Evidence::from_entries(response.entries().chain(again.entries()))
        }
        other => {
            let other = other.unwrap_or("nothing");
            let observed = format!("the server proposes {proposed}, but returns {other} for it");
            let entries = response.entries().chain(again.entries());
            Err(NotPassed::violation(observed, entries))
        }
    }
}

async fn latest_proposed(ctx: &CheckContext) -> Outcome {
    let (response, proposed) = server_proposal(ctx).await?;
    let mut entries: Vec<_> = response.entries().collect();
    let newer = Revision::ALL.into_iter().rev();
    for newer in
        newer.filter(|one| *one <= Revision::LATEST_LEGACY && one.as_str() > proposed.as_str())
    {
        let again = propose(ctx, newer.as_str()).await?;
        entries.extend(again.entries());
        if again.value["result"]["protocolVersion"] == newer.as_str() {
            let observed = format!("the server proposes {proposed}, but supports {newer}");
            return Err(NotPassed::violation(observed, entries));
        }
    }
    Evidence::from_entries(entries)
}

/// Returns the version that the server proposes for an unknown one.
async fn server_proposal(ctx: &CheckContext) -> Result<(ProbeResponse, String), NotPassed> {
    let response = propose(ctx, UNKNOWN_VERSION).await?;
    let result = response.result().map_err(NotPassed::into_not_tested)?;
    match result["protocolVersion"].as_str() {
        Some(version) if version != UNKNOWN_VERSION => {
            let version = version.to_owned();
            Ok((response, version))
        }
        _ => Err(NotPassed::not_tested(
            "the server proposes no other version",
        )),
    }
}

/// Sends `initialize` with a version in a new session, unless that was done before.
async fn propose(ctx: &CheckContext, version: &str) -> Result<ProbeResponse, NotPassed> {
    let mut responses = ctx.initialize_responses.lock().await;
    if let Some(response) = responses.get(version) {
        return Ok(response.clone());
    }
    let session = ctx.session_in(ctx.revision).await?;
    let mut params = session.request_builder.initialize();
    params["protocolVersion"] = version.into();
    let response = session.request("initialize", params).await?;
    responses.insert(version.to_owned(), response.clone());
    Ok(response)
}

async fn waits_for_initialized(ctx: &CheckContext) -> Outcome {
    let session = ctx.uninitialized_session().await?;
    let response = session
        .request("initialize", session.request_builder.initialize())
        .await;
    let response = response.map_err(NotPassed::into_not_tested)?;
    let mut received = response.before.clone();
    received.extend(session.listen(ctx.pace.quiet_period()).await);
    for number in received {
        let message = ctx.transcript.entry(number).json().unwrap_or_default();
        let method = message["method"].as_str().unwrap_or("ping");
        if message.get("id").is_some() && method != "ping" {
            return Err(NotPassed::violation(
                format!("the server requests `{method}`"),
                response.entries().chain([number]),
            ));
        }
    }
    response.evidence()
}

async fn ping_before_initialize(ctx: &CheckContext) -> Outcome {
    let session = ctx.uninitialized_session().await?;
    require_handshake(session.request_builder.has_handshake())?;
    let pending = session.send_request("ping", Value::Null).await?;
    let (response, _) = before_handshake(ctx, &session, pending).await?;
    response.result()?;
    response.evidence()
}

async fn initialize_first(ctx: &CheckContext) -> Outcome {
    let shared = ctx.session().await?;
    require_handshake(shared.request_builder.has_handshake())?;
    let capabilities = shared.capabilities();
    let mut lists = ["tools", "resources", "prompts"].into_iter();
    let Some(list) = lists.find(|list| capabilities.get(list).is_some()) else {
        return Err(NotPassed::not_applicable("the server declares no lists"));
    };
    let method = format!("{list}/list");
    let session = ctx.uninitialized_session().await?;
    let pending = session.send_request(&method, Value::Null).await?;
    let (response, handshake) = before_handshake(ctx, &session, pending).await?;
    // A server may delay the response until after the handshake.
    let is_early = response.received < handshake.received;
    match response.value.get("result") {
        Some(_) if is_early => {
            Err(response.violation(format!("a result of `{method}` before `initialize`")))
        }
        _ => response.evidence(),
    }
}

/// Returns the response to a request before the handshake, and the response to the handshake.
///
/// Sends `initialize` immediately: when the server responds to it, it has processed the request before it.
async fn before_handshake(
    ctx: &CheckContext,
    session: &Session,
    pending: PendingResponse,
) -> Result<(ProbeResponse, ProbeResponse), NotPassed> {
    let sent = pending.sent;
    let opening = session.send_request("initialize", session.request_builder.initialize());
    let handshake = session.wait_response(opening.await?).await?;
    match session
        .wait_response_within(pending, ctx.pace.quiet_period())
        .await
    {
        Ok(response) => Ok((response, handshake)),
        Err(_) => {
            let observed = "no response, although the server responded to the later `initialize`";
            Err(NotPassed::violation(
                observed,
                sent.into_iter().chain(handshake.entries()),
            ))
        }
    }
}

async fn second_initialize(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    require_handshake(session.request_builder.has_handshake())?;
    let response = session
        .request("initialize", session.request_builder.initialize())
        .await?;
    let after = session.request("ping", Value::Null).await?;
    Evidence::from_entries(response.entries().chain(after.entries()))
}

fn require_handshake(has_handshake: bool) -> Result<(), NotPassed> {
    if has_handshake {
        Ok(())
    } else {
        Err(NotPassed::not_applicable(
            "the revision lacks the handshake",
        ))
    }
}
