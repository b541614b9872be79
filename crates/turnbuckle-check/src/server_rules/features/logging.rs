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
        .fix("Declare `logging` among the capabilities, or send no log messages.")
        .active(|ctx| Box::pin(declared(ctx))),
    Rule::server("logging.set-level", Area::Logging, &["logging.set-level.answer"])
        .requirement("A server that declares `logging` lets its client choose a level by `logging/setLevel`.")
        .fix("Answer `logging/setLevel` with an empty result for each of the eight levels.")
        .active(|ctx| Box::pin(level_set(ctx))),
    Rule::server("logging.respects-level", Area::Logging, &["logging.set-level.respect"])
        .requirement("No log message comes that is less severe than the level chosen.")
        .fix("Compare the level of each message with the one that the client has set, and send those at or above it.")
        .warn_only()
        .active(|ctx| Box::pin(respects_level(ctx))),
    Rule::server(
        "logging.unknown-level",
        Area::Logging,
        &["logging.error.invalid-level", "logging.request.invalid-level"],
    )
    .requirement("A level that is none of the eight is refused with the error -32602.")
    .fix("Answer with the error -32602 when the level is unknown.")
    .active(|ctx| Box::pin(unknown_level(ctx))),
    Rule::server("logging.only-when-asked", Area::Logging, &["logging.request.opt-in"])
        .requirement("A request that asks for no log messages gets none.")
        .fix("Send log messages only for requests that have `io.modelcontextprotocol/logLevel` in `_meta`.")
        .active(|ctx| Box::pin(only_when_asked(ctx))),
    Rule::server("logging.set-level-is-gone", Area::Logging, &["logging.set-level.removed"])
        .requirement("There is no `logging/setLevel` any more: requests say what they want themselves.")
        .fix("Treat `logging/setLevel` as an unknown method in this revision.")
        .warn_only()
        .active(|ctx| Box::pin(set_level_is_gone(ctx))),
];

/// The name of the notification.
const MESSAGE: &str = "notifications/message";

async fn declared(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let logged = tool_runs.that_sent(ctx, MESSAGE);
    let declares = ctx.capability("/logging").await;
    let Some(run) = logged.first() else {
        declares?;
        return Err(tool_runs.none("logs anything"));
    };
    let (at, _) = run.notifications(ctx, MESSAGE)[0];
    match declares {
        Ok(_) => Evidence::from_entries([at]),
        Err(_) => Err(NotPassed::violation(
            "a log message of a server that does not declare `logging`",
            [at],
        )),
    }
}

async fn level_set(ctx: &CheckContext) -> Outcome {
    ctx.capability("/logging").await?;
    let response = set_level(ctx.session().await?, "error")
        .await
        .map_err(NotPassed::as_not_tested)?;
    response.result()?;
    response.evidence()
}

async fn respects_level(ctx: &CheckContext) -> Outcome {
    ctx.capability("/logging").await?;
    let tool_runs = ctx.tool_runs().await?;
    let logged = tool_runs.that_sent(ctx, MESSAGE);
    if logged.is_empty() {
        return Err(tool_runs.none("logs anything"));
    }
    // Of a tool that logs at several levels, one more can be heard than is missed.
    let held_back = |run: &ToolRun| LEVELS.get(lowest_level(ctx, run)? + 1);
    let told = logged
        .into_iter()
        .filter_map(|run| Some((run, held_back(run)?)));
    let lowest = told.min_by_key(|(run, expected)| (rank(&(**expected).into()), run.duration));
    let Some((run, &expected)) = lowest else {
        return Err(tool_runs.none("logs anything that a level could hold back"));
    };
    let session = ctx.new_session().await?;
    let set = set_level(&session, expected)
        .await
        .map_err(NotPassed::as_not_tested)?;
    set.result().map_err(NotPassed::as_not_tested)?;
    let from = ctx.transcript.len();
    let again = ToolRun::run(ctx, &session, &run.call, json!({})).await;
    session.listen(ctx.options.quiet_period).await;
    let again = ToolRun {
        span: from..ctx.transcript.len(),
        ..again
    };
    for (at, message) in again.notifications(ctx, MESSAGE) {
        let level = &message["params"]["level"];
        if rank(level) < rank(&expected.into()) && rank(level).is_some() {
            let observed = format!("a message of the level {level} after {expected:?} was set");
            return Err(NotPassed::violation(observed, set.entries().chain([at])));
        }
    }
    // Of a call that came to nothing, silence tells nothing.
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
        .map_err(NotPassed::as_not_tested)?
        .expect_error(&[-32602])
}

async fn only_when_asked(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let logged = tool_runs.that_sent(ctx, MESSAGE);
    let Some(run) = logged.into_iter().min_by_key(|run| run.duration) else {
        ctx.capability("/logging").await?;
        return Err(tool_runs.none("logs anything"));
    };
    let session = ctx.session().await?;
    let again = ToolRun::run(ctx, session, &run.call, json!({})).await;
    match again.notifications(ctx, MESSAGE).first() {
        Some((at, _)) => Err(NotPassed::violation(
            "a log message for a request that asks for none",
            again.entries().chain([*at]),
        )),
        None => Evidence::from_entries(again.entries()),
    }
}

async fn set_level_is_gone(ctx: &CheckContext) -> Outcome {
    crate::server_rules::is_gone(ctx, "logging/setLevel", json!({ "level": "error" })).await
}

/// Returns the place of the least severe level of which a call has logged something.
fn lowest_level(ctx: &CheckContext, run: &ToolRun) -> Option<usize> {
    let heard = run.notifications(ctx, MESSAGE);
    let levels = heard.iter().map(|(_, message)| &message["params"]["level"]);
    levels.filter_map(rank).min()
}

fn rank(level: &Value) -> Option<usize> {
    let level = level.as_str()?;
    LEVELS.iter().position(|&other| other == level)
}
