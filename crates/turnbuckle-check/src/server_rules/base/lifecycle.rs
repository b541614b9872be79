//! The handshake, and whether the server has what it says.

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
    session::{PendingResponse, ProbeResponse, Session, request_builder::LAST_WITH_HANDSHAKE},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "lifecycle.unknown-version",
        Area::Lifecycle,
        &["lifecycle.version.server-other"],
    )
    .requirement("A version that the server does not know is answered with one that it does.")
    .fix("Answer `initialize` with a version that you support, not with an error, and never with the unknown one.")
    .active(|ctx| Box::pin(unknown_version(ctx))),
    Rule::server(
        "lifecycle.offer-kept",
        Area::Lifecycle,
        &["lifecycle.version.server-same"],
    )
    .requirement("A version that the server offers is confirmed when the client asks for it.")
    .fix("Answer `initialize` with the version of the request whenever you support it.")
    .active(|ctx| Box::pin(offer_kept(ctx))),
    Rule::server(
        "lifecycle.newest-offered",
        Area::Lifecycle,
        &["lifecycle.version.server-latest"],
    )
    .requirement("The version that the server offers is the newest that it supports.")
    .fix("Offer the newest version that you support when the client's is unknown.")
    .active(|ctx| Box::pin(newest_offered(ctx))),
    Rule::server(
        "lifecycle.waits-for-initialized",
        Area::Lifecycle,
        &["lifecycle.init.server-wait"],
    )
    .requirement("Before `notifications/initialized` the server asks nothing but `ping`.")
    .fix("Wait for `notifications/initialized` before you send requests.")
    .transports(Transports::Ndjson)
    .active(|ctx| Box::pin(waits_for_initialized(ctx))),
    Rule::server("lifecycle.ping-before-initialize", Area::Lifecycle, &[])
        .requirement("`ping` is answered before the handshake too.")
        .fix("Let `ping` through whatever the state of the session is.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(ping_before_initialize(ctx))),
    Rule::server("lifecycle.initialize-first", Area::Lifecycle, &[])
        .requirement("Other requests before the handshake are refused.")
        .fix("Answer with an error until `initialize` was answered: nothing is agreed before.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(initialize_first(ctx))),
    Rule::server("lifecycle.second-initialize", Area::Lifecycle, &[])
        .requirement("A second `initialize` is answered, and the session goes on.")
        .fix("Refuse it or begin anew, but stay there.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(second_initialize(ctx))),
    Rule::server(
        "lifecycle.version-kept",
        Area::Lifecycle,
        &["lifecycle.operation.version-must"],
    )
    .requirement("The server sends only requests and notifications that the negotiated revision defines.")
    .fix("Look at the negotiated revision before you send a method that another revision introduced or removed.")
    .passive(version_kept),
];

/// Judges the methods of the server's requests and notifications; methods of no revision are the server's own.
fn version_kept(ctx: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for message in
        messages(transcript, Direction::Received).filter(|message| !message.entry.other_revision)
    {
        let Some(method) = message.value["method"].as_str().and_then(Method::from_name) else {
            continue;
        };
        if !method.is_in(ctx.revision) {
            let observed = format!("`{}` is no method of {}", method.name, ctx.revision);
            return Err(NotPassed::violation(observed, [message.at]));
        }
        evidence.push(message.at);
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(
            "the server sent no request and no notification",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

/// A version that nobody will ever speak.
const UNKNOWN: &str = "1999-01-01";

async fn unknown_version(ctx: &CheckContext) -> Outcome {
    let response = offer(ctx, UNKNOWN).await?;
    if response.value.get("result").is_none() {
        // Whoever lets nobody else in at all refuses something else than the version.
        let control = offer(ctx, ctx.revision.as_str()).await;
        let control = control.map_err(NotPassed::as_not_tested)?;
        control.result().map_err(NotPassed::as_not_tested)?;
    }
    match response.result()?["protocolVersion"].as_str() {
        Some(UNKNOWN) => Err(response.violation(format!("the server agrees to {UNKNOWN}"))),
        Some(_) => response.evidence(),
        None => Err(NotPassed::not_tested("the answer names no version")),
    }
}

async fn offer_kept(ctx: &CheckContext) -> Outcome {
    let (response, offered) = counter_offer(ctx).await?;
    let again = offer(ctx, &offered).await?;
    match again.result()?["protocolVersion"].as_str() {
        Some(kept) if kept == offered => {
            Evidence::from_entries(response.entries().chain(again.entries()))
        }
        other => {
            let other = other.unwrap_or("nothing");
            let observed =
                format!("the server offers {offered}; asked for that it answers {other}");
            let entries = response.entries().chain(again.entries());
            Err(NotPassed::violation(observed, entries))
        }
    }
}

async fn newest_offered(ctx: &CheckContext) -> Outcome {
    let (response, offered) = counter_offer(ctx).await?;
    let mut entries: Vec<_> = response.entries().collect();
    let newer = Revision::ALL.into_iter().rev();
    for newer in newer.filter(|one| *one <= LAST_WITH_HANDSHAKE && one.as_str() > offered.as_str())
    {
        let again = offer(ctx, newer.as_str()).await?;
        entries.extend(again.entries());
        if again.value["result"]["protocolVersion"] == newer.as_str() {
            let observed = format!("the server offers {offered}, and supports {newer}");
            return Err(NotPassed::violation(observed, entries));
        }
    }
    Evidence::from_entries(entries)
}

/// Returns the version that the server offers for one that it does not know.
async fn counter_offer(ctx: &CheckContext) -> Result<(ProbeResponse, String), NotPassed> {
    let response = offer(ctx, UNKNOWN).await?;
    let result = response.result().map_err(NotPassed::as_not_tested)?;
    match result["protocolVersion"].as_str() {
        Some(version) if version != UNKNOWN => {
            let version = version.to_owned();
            Ok((response, version))
        }
        _ => Err(NotPassed::not_tested(
            "the server offers no version of its own",
        )),
    }
}

/// Begins a handshake with a version in a conversation of its own, unless that was done before.
async fn offer(ctx: &CheckContext, version: &str) -> Result<ProbeResponse, NotPassed> {
    let mut offers = ctx.initialize_responses.lock().await;
    if let Some(known) = offers.get(version) {
        return Ok(known.clone());
    }
    let session = ctx.session_in(ctx.revision).await?;
    let mut params = session.request_builder.initialize();
    params["protocolVersion"] = version.into();
    let response = session.request("initialize", params).await?;
    offers.insert(version.to_owned(), response.clone());
    Ok(response)
}

async fn waits_for_initialized(ctx: &CheckContext) -> Outcome {
    let session = ctx.uninitialized_session().await?;
    let response = session
        .request("initialize", session.request_builder.initialize())
        .await;
    let response = response.map_err(NotPassed::as_not_tested)?;
    let mut heard = response.before.clone();
    heard.extend(session.listen(ctx.options.quiet_period).await);
    for number in heard {
        let message = ctx.transcript.entry(number).json().unwrap_or_default();
        let method = message["method"].as_str().unwrap_or("ping");
        if message.get("id").is_some() && method != "ping" {
            return Err(NotPassed::violation(
                format!("the server asks for `{method}`"),
                response.entries().chain([number]),
            ));
        }
    }
    response.evidence()
}

async fn ping_before_initialize(ctx: &CheckContext) -> Outcome {
    let session = ctx.uninitialized_session().await?;
    handshake_only(session.request_builder.has_handshake())?;
    let pending = session.send_request("ping", Value::Null).await?;
    let (response, _) = before_handshake(ctx, &session, pending).await?;
    response.result()?;
    response.evidence()
}

async fn initialize_first(ctx: &CheckContext) -> Outcome {
    let shared = ctx.session().await?;
    handshake_only(shared.request_builder.has_handshake())?;
    let capabilities = shared.capabilities();
    let mut lists = ["tools", "resources", "prompts"].into_iter();
    let Some(list) = lists.find(|list| capabilities.get(list).is_some()) else {
        return Err(NotPassed::not_applicable("the server declares no lists"));
    };
    let method = format!("{list}/list");
    let session = ctx.uninitialized_session().await?;
    let pending = session.send_request(&method, Value::Null).await?;
    let (response, handshake) = before_handshake(ctx, &session, pending).await?;
    // Whoever keeps a request until the handshake is made has not answered it before.
    let early = response.received < handshake.received;
    match response.value.get("result") {
        Some(_) if early => {
            Err(response.violation(format!("`{method}` is answered before `initialize`")))
        }
        _ => response.evidence(),
    }
}

/// Returns the answer to what was asked before the handshake, and the one to the handshake.
///
/// The handshake is begun at once: when it is answered, what came before it has been, or never will be.
async fn before_handshake(
    ctx: &CheckContext,
    session: &Session,
    pending: PendingResponse,
) -> Result<(ProbeResponse, ProbeResponse), NotPassed> {
    let sent = pending.sent;
    let opening = session.send_request("initialize", session.request_builder.initialize());
    let handshake = session.wait_response(opening.await?).await?;
    match session
        .wait_response_within(pending, ctx.options.quiet_period)
        .await
    {
        Ok(response) => Ok((response, handshake)),
        Err(_) => {
            let observed = "no answer, though `initialize` after it has one";
            Err(NotPassed::violation(
                observed,
                sent.into_iter().chain(handshake.entries()),
            ))
        }
    }
}

async fn second_initialize(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    handshake_only(session.request_builder.has_handshake())?;
    let response = session
        .request("initialize", session.request_builder.initialize())
        .await?;
    let after = session.request("ping", Value::Null).await?;
    Evidence::from_entries(response.entries().chain(after.entries()))
}

fn handshake_only(has_handshake: bool) -> Result<(), NotPassed> {
    if has_handshake {
        Ok(())
    } else {
        Err(NotPassed::not_applicable("there is no handshake"))
    }
}
