//! Log messages.

use serde_json::{Value, json};

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::tool_runs::{LOG_LEVEL, ToolRun, set_level},
    rule::{Area, Rule},
};

/// The levels, from the least to the most severe.
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

pub(crate) const RULES: &[Rule] = &[
    Rule::server("logging.declared", Area::Logging, &["logging.capability"])
        .requirement("A server that sends log messages declares the capability `logging`.")
        .hint("Declare the capability `logging`, or send no log messages.")
        .active(|ctx| Box::pin(declared(ctx))),
    Rule::server("logging.set-level", Area::Logging, &["logging.set-level.answer"])
        .requirement("A server that declares `logging` supports `logging/setLevel`.")
        .hint("Return an empty result for `logging/setLevel` with each of the eight levels.")
        .active(|ctx| Box::pin(level_set(ctx))),
    Rule::server("logging.respects-level", Area::Logging, &["logging.set-level.respect"])
        .requirement("The server sends no log messages below the level that the client set.")
        .hint("Compare the level of each message with the level that the client set, and send only messages at or above it.")
        .warn_only()
        .active(|ctx| Box::pin(respects_level(ctx))),
    Rule::server(
        "logging.unknown-level",
        Area::Logging,
        &["logging.error.invalid-level", "logging.request.invalid-level"],
    )
    .requirement("The server returns error -32602 for an unknown log level.")
    .hint("Return error -32602 when the level is unknown.")
    .active(|ctx| Box::pin(unknown_level(ctx))),
    Rule::server("logging.only-when-asked", Area::Logging, &["logging.request.opt-in"])
        .requirement("The server sends no log messages for a request without a log level.")
        .hint("Send log messages only for requests with `io.modelcontextprotocol/logLevel` in `_meta`.")
        .active(|ctx| Box::pin(only_when_requested(ctx))),
    Rule::server("logging.set-level-is-gone", Area::Logging, &["logging.set-level.removed"])
        .requirement("The server returns error -32601 for `logging/setLevel`, which this revision removed.")
        .hint("Treat `logging/setLevel` as an unknown method in this revision.")
        .warn_only()
        .active(|ctx| Box::pin(set_level_removed(ctx))),
];

/// The name of the notification.
const MESSAGE: &str = "notifications/message";

async fn declared(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let logged = tool_runs.that_sent(ctx, MESSAGE);
    let declares = ctx.capability("/logging").await;
    let Some(run) = logged.first() else {
        declares?;
        return Err(tool_runs.none("logs"));
    };
    let (at, _) = run.notifications(ctx, MESSAGE)[0];
    match declares {
        Ok(_) => Evidence::from_entries([at]),
        Err(_) => Err(NotPassed::violation(
            "a log message, but `logging` is not declared",
            [at],
        )),
    }
}

async fn level_set(ctx: &CheckContext) -> Outcome {
    ctx.capability("/logging").await?;
    let response = set_level(ctx.session().await?, "error")
        .await
        .map_err(NotPassed::into_not_tested)?;
    response.result()?;
    response.evidence()
}

async fn respects_level(ctx: &CheckContext) -> Outcome {
    ctx.capability("/logging").await?;
    let tool_runs = ctx.tool_runs().await?;
    let logged = tool_runs.that_sent(ctx, MESSAGE);
    if logged.is_empty() {
        return Err(tool_runs.none("logs"));
    }
    // Set the level just above the lowest level of the tool: its lowest messages must then be missing.
    let next_level = |run: &ToolRun| LEVELS.get(lowest_level(ctx, run)? + 1);
    let candidates = logged
        .into_iter()
        .filter_map(|run| Some((run, next_level(run)?)));
    let lowest =
        candidates.min_by_key(|(run, expected)| (rank(&(**expected).into()), run.duration));
    let Some((run, &expected)) = lowest else {
        return Err(tool_runs.none("logs below the highest level"));
    };
    let session = ctx.new_session().await?;
    let set = set_level(&session, expected)
        .await
        .map_err(NotPassed::into_not_tested)?;
    set.result().map_err(NotPassed::into_not_tested)?;
    let from = ctx.transcript.len();
    let again = ToolRun::run(ctx, &session, &run.call, json!({})).await;
    session.listen(ctx.pace.quiet_period()).await;
    let again = ToolRun {
        span: from..ctx.transcript.len(),
        ..again
    };
    for (at, message) in again.notifications(ctx, MESSAGE) {
        let level = &message["params"]["level"];
        if rank(level) < rank(&expected.into()) && rank(level).is_some() {
            let observed = format!("a message with level {level} after {expected:?} was set");
            return Err(NotPassed::violation(observed, set.entries().chain([at])));
        }
    }
    // The absence of messages proves nothing if the call failed.
    again.response()?;
    Evidence::from_entries(set.entries().chain(again.entries()))
}

async fn unknown_level(ctx: &CheckContext) -> Outcome {
    ctx.capability("/logging").await?;
    let session = ctx.session().await?;
    let message = if session.request_builder.has_handshake() {
        session.request_builder.request(
            "check-level",
            "logging/setLevel",
            json!({ "level": "loud" }),
        )
    } else {
        let params = json!({ "_meta": { LOG_LEVEL: "loud" } });
        session
            .request_builder
            .request("check-level", "server/discover", params)
    };
    let pending = session.send_message(message, true).await?;
    session
        .wait_response(pending)
        .await
        .map_err(NotPassed::into_not_tested)?
        .expect_error(&[-32602])
}

async fn only_when_requested(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let logged = tool_runs.that_sent(ctx, MESSAGE);
    let Some(run) = logged.into_iter().min_by_key(|run| run.duration) else {
        ctx.capability("/logging").await?;
        return Err(tool_runs.none("logs"));
    };
    let session = ctx.session().await?;
    let again = ToolRun::run(ctx, session, &run.call, json!({})).await;
    match again.notifications(ctx, MESSAGE).first() {
        Some((at, _)) => Err(NotPassed::violation(
            "a log message for a request without a log level",
            again.entries().chain([*at]),
        )),
        None => Evidence::from_entries(again.entries()),
    }
}

async fn set_level_removed(ctx: &CheckContext) -> Outcome {
    crate::server_rules::check_removed(ctx, "logging/setLevel", json!({ "level": "error" })).await
}

/// Returns the rank of the least severe level that a call logged.
fn lowest_level(ctx: &CheckContext, run: &ToolRun) -> Option<usize> {
    let messages = run.notifications(ctx, MESSAGE);
    let levels = messages
        .iter()
        .map(|(_, message)| &message["params"]["level"]);
    levels.filter_map(rank).min()
}

fn rank(level: &Value) -> Option<usize> {
    let level = level.as_str()?;
    LEVELS.iter().position(|&other| other == level)
}
