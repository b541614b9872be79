//! Client capabilities: declared and undeclared.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::capability_for;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript_query::ObservedClientRequest,
    },
    probe::tool_runs::{ToolRun, ToolRuns},
    session::{Session, request_builder::RequestBuilder},
};

pub(super) async fn only_declared(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let runs_with_requests = runs_with_requests(ctx, tool_runs)?;
    for run in &runs_with_requests {
        check_within_capabilities(ctx, run, &tool_runs.session.request_builder.capabilities)?;
    }
    // A client without capabilities, and one with form elicitation only.
    let mut evidence = Vec::new();
    for capabilities in [json!({}), json!({ "elicitation": {} })] {
        let only_forms = capabilities.get("elicitation").is_some();
        let session = session_with(ctx, capabilities.clone()).await?;
        let repeated = runs_with_requests
            .iter()
            .filter(|run| !only_forms || requests_url(ctx, run));
        for run in repeated {
            let again = ToolRun::run(ctx, &session, &run.call, json!({})).await;
            check_within_capabilities(ctx, &again, &capabilities)?;
            evidence.extend(again.entries());
        }
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn missing_capability(ctx: &CheckContext) -> Outcome {
    let (run, rejected) = find_rejected(ctx).await?;
    let response = rejected.response()?;
    let code = response.error()?;
    if code != -32021 {
        return Err(response.violation(format!("{} instead of -32021", response.describe())));
    }
    let required = &response.value["error"]["data"]["requiredCapabilities"];
    // A server that needs several capabilities may report them one after the other.
    let client_requests = run.client_requests(ctx);
    let mut expected = client_requests
        .iter()
        .filter_map(|client_request| capability_for(&client_request.method));
    if expected
        .clone()
        .any(|expected| required.get(expected).is_some())
    {
        response.evidence()
    } else {
        Err(response.violation(format!(
            "`requiredCapabilities` is {required}, without `{}`",
            expected.next().unwrap_or_default()
        )))
    }
}

pub(super) async fn missing_capability_status(ctx: &CheckContext) -> Outcome {
    let (_, rejected) = find_rejected(ctx).await?;
    let response = rejected.response()?;
    match (response.error(), response.status) {
        (Ok(-32021), Some(400)) => response.evidence(),
        (Ok(-32021), Some(status)) => Err(response.violation(format!("HTTP status {status}"))),
        _ => Err(NotPassed::not_tested(
            "the server did not return error -32021",
        )),
    }
}

/// Returns a run with client requests, and a run of the same call without client capabilities that got an error.
async fn find_rejected(ctx: &CheckContext) -> Result<(&ToolRun, ToolRun), NotPassed> {
    let tool_runs = ctx.tool_runs().await?;
    let session = session_with(ctx, json!({})).await?;
    for run in runs_with_requests(ctx, tool_runs)? {
        let again = ToolRun::run(ctx, &session, &run.call, json!({})).await;
        if again.response()?.error().is_ok() {
            return Ok((run, again));
        }
    }
    Err(NotPassed::not_tested(
        "the tools with client requests also succeed without them",
    ))
}

/// Returns the runs with client requests.
fn runs_with_requests<'a>(
    ctx: &CheckContext,
    tool_runs: &'a ToolRuns,
) -> Result<Vec<&'a ToolRun>, NotPassed> {
    match tool_runs.that_sent_client_requests(ctx) {
        runs_with_requests if runs_with_requests.is_empty() => {
            Err(tool_runs.none("sends client requests"))
        }
        runs_with_requests => Ok(runs_with_requests),
    }
}

/// Checks that the client requests of a run need only declared capabilities.
fn check_within_capabilities(
    ctx: &CheckContext,
    run: &ToolRun,
    capabilities: &Value,
) -> Result<(), NotPassed> {
    let has_handshake = RequestBuilder::new(ctx.revision).has_handshake();
    // Another rule checks that a server sends no requests in the modern era.
    let client_requests = run.client_requests(ctx).into_iter();
    for client_request in
        client_requests.filter(|client_request| has_handshake || !client_request.by_request)
    {
        if let Some(missing) = undeclared(ctx.revision, &client_request, capabilities) {
            let observed = format!(
                "`{}` although the client does not declare `{missing}`",
                client_request.method
            );
            let violation =
                NotPassed::violation(observed, run.entries().chain([client_request.at]));
            return Err(match missing {
                "sampling.tools" => violation.for_requirement("sampling.tools.server"),
                "elicitation.url" if capabilities["elicitation"] == json!({}) => {
                    violation.for_requirement("elicitation.capability.empty-form")
                }
                "elicitation.url" | "elicitation.form" => {
                    violation.for_requirement("elicitation.mode.declared")
                }
                _ => violation,
            });
        }
    }
    Ok(())
}

/// Returns the capability that a client request needs and the client does not declare.
fn undeclared(
    revision: Revision,
    client_request: &ObservedClientRequest,
    capabilities: &Value,
) -> Option<&'static str> {
    let name = capability_for(&client_request.method)?;
    let Some(declared) = capabilities.get(name) else {
        return Some(name);
    };
    let uses_tools = client_request.params.get("tools").is_some()
        || client_request.params.get("toolChoice").is_some();
    let has_modes = revision >= Revision::V2025_11_25;
    let only_forms = has_modes && declared.get("url").is_none();
    let only_urls = has_modes && declared.get("url").is_some() && declared.get("form").is_none();
    match name {
        "sampling" if uses_tools && declared.get("tools").is_none() => Some("sampling.tools"),
        "elicitation" if client_request.params["mode"] == "url" && only_forms => {
            Some("elicitation.url")
        }
        "elicitation" if client_request.params["mode"] != "url" && only_urls => {
            Some("elicitation.form")
        }
        _ => None,
    }
}

fn requests_url(ctx: &CheckContext, run: &ToolRun) -> bool {
    let mut client_requests = run.client_requests(ctx).into_iter();
    client_requests.any(|client_request| client_request.params["mode"] == "url")
}

/// Starts a session as a client with these capabilities.
async fn session_with(ctx: &CheckContext, capabilities: Value) -> Result<Session, NotPassed> {
    let mut session = ctx.uninitialized_session().await?;
    session.request_builder.capabilities = capabilities;
    session
        .initialize_session()
        .await
        .map_err(NotPassed::into_not_tested)?;
    Ok(session)
}
