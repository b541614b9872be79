//! What the client has declared, and what it has not.

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
        within(ctx, run, &tool_runs.session.request_builder.capabilities)?;
    }
    // One that can do nothing, and one that has only forms.
    let mut evidence = Vec::new();
    for capabilities in [json!({}), json!({ "elicitation": {} })] {
        let forms = capabilities.get("elicitation").is_some();
        let session = fresh_with(ctx, capabilities.clone()).await?;
        let tried = runs_with_requests
            .iter()
            .filter(|run| !forms || asks_for_page(ctx, run));
        for run in tried {
            let again = ToolRun::run(ctx, &session, &run.call, json!({})).await;
            within(ctx, &again, &capabilities)?;
            evidence.extend(again.entries());
        }
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn missing_capability(ctx: &CheckContext) -> Outcome {
    let (run, refused) = refused(ctx).await?;
    let response = refused.response()?;
    let code = response.error()?;
    if code != -32021 {
        return Err(response.violation(format!("{} instead of -32021", response.describe())));
    }
    let required = &response.value["error"]["data"]["requiredCapabilities"];
    // Whoever wants several things may find out about one after the other.
    let asked = run.client_requests(ctx);
    let mut expected = asked
        .iter()
        .filter_map(|client_request| capability_for(&client_request.method));
    if expected
        .clone()
        .any(|expected| required.get(expected).is_some())
    {
        response.evidence()
    } else {
        Err(response.violation(format!(
            "`requiredCapabilities` is {required} and does not name `{}`",
            expected.next().unwrap_or_default()
        )))
    }
}

pub(super) async fn missing_capability_status(ctx: &CheckContext) -> Outcome {
    let (_, refused) = refused(ctx).await?;
    let response = refused.response()?;
    match (response.error(), response.status) {
        (Ok(-32021), Some(400)) => response.evidence(),
        (Ok(-32021), Some(status)) => Err(response.violation(format!("the status {status}"))),
        _ => Err(NotPassed::not_tested("the error -32021 was not seen")),
    }
}

/// Returns a trial that asks something, and what came of it where the client can do nothing.
async fn refused(ctx: &CheckContext) -> Result<(&ToolRun, ToolRun), NotPassed> {
    let tool_runs = ctx.tool_runs().await?;
    let session = fresh_with(ctx, json!({})).await?;
    for run in runs_with_requests(ctx, tool_runs)? {
        let again = ToolRun::run(ctx, &session, &run.call, json!({})).await;
        if again.response()?.error().is_ok() {
            return Ok((run, again));
        }
    }
    Err(NotPassed::not_tested(
        "the tools that ask something do without if they have to",
    ))
}

/// Returns the trials in which the server asked something.
fn runs_with_requests<'a>(
    ctx: &CheckContext,
    tool_runs: &'a ToolRuns,
) -> Result<Vec<&'a ToolRun>, NotPassed> {
    match tool_runs.that_sent_client_requests(ctx) {
        runs_with_requests if runs_with_requests.is_empty() => {
            Err(tool_runs.none("asks the client anything"))
        }
        runs_with_requests => Ok(runs_with_requests),
    }
}

/// Makes sure that nothing is asked for that is not declared.
fn within(ctx: &CheckContext, run: &ToolRun, capabilities: &Value) -> Result<(), NotPassed> {
    let handshake = RequestBuilder::new(ctx.revision).has_handshake();
    // Where no server asks by a request, that it does so is for another rule to say.
    let client_requests = run.client_requests(ctx).into_iter();
    for client_request in
        client_requests.filter(|client_request| handshake || !client_request.by_request)
    {
        if let Some(missing) = undeclared(ctx.revision, &client_request, capabilities) {
            let observed = format!(
                "`{}` of a client that does not declare `{missing}`",
                client_request.method
            );
            return Err(NotPassed::violation(
                observed,
                run.entries().chain([client_request.at]),
            ));
        }
    }
    Ok(())
}

/// Returns the capability that a question takes and the client has not declared.
fn undeclared(
    revision: Revision,
    client_request: &ObservedClientRequest,
    capabilities: &Value,
) -> Option<&'static str> {
    let name = capability_for(&client_request.method)?;
    let Some(declared) = capabilities.get(name) else {
        return Some(name);
    };
    let tools = client_request.params.get("tools").is_some()
        || client_request.params.get("toolChoice").is_some();
    let modes = revision >= Revision::V2025_11_25;
    let only_forms = modes && declared.get("url").is_none();
    let only_pages = modes && declared.get("url").is_some() && declared.get("form").is_none();
    match name {
        "sampling" if tools && declared.get("tools").is_none() => Some("sampling.tools"),
        "elicitation" if client_request.params["mode"] == "url" && only_forms => {
            Some("elicitation.url")
        }
        "elicitation" if client_request.params["mode"] != "url" && only_pages => {
            Some("elicitation.form")
        }
        _ => None,
    }
}

fn asks_for_page(ctx: &CheckContext, run: &ToolRun) -> bool {
    let mut client_requests = run.client_requests(ctx).into_iter();
    client_requests.any(|client_request| client_request.params["mode"] == "url")
}

/// Begins a conversation as a client with these capabilities.
async fn fresh_with(ctx: &CheckContext, capabilities: Value) -> Result<Session, NotPassed> {
    let mut session = ctx.uninitialized_session().await?;
    session.request_builder.capabilities = capabilities;
    session
        .initialize_session()
        .await
        .map_err(NotPassed::as_not_tested)?;
    Ok(session)
}
