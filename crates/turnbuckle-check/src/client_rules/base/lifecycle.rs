//! The handshake and negotiation of clients.

use serde_json::Value;
use turnbuckle_protocol::{method::Method, revision::Revision};

use crate::{
    engine::outcome::{Evidence, NotPassed, Outcome},
    mock_server::{
        Scenario,
        scenario_run::{ClientMessage, ScenarioRun, ScenarioRuns, check_each},
    },
    rule::{Area, Rule},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.lifecycle.initialize-first", Area::Lifecycle, &[
        "lifecycle.init.first",
        "lifecycle.init.request",
    ])
    .requirement("A session starts with `initialize`.")
    .hint("Send `initialize` before any other request.")
    .scenarios(&[], initialize_first),
    Rule::client("client.lifecycle.introduces-itself", Area::Lifecycle, &["lifecycle.init.client-fields"])
    .requirement("`initialize` has `protocolVersion`, `capabilities` and `clientInfo`.")
    .hint("Send `protocolVersion`, `capabilities` and `clientInfo` with a name and a version.")
    .scenarios(&[], introduces_itself),
    Rule::client("client.lifecycle.initialized", Area::Lifecycle, &["lifecycle.init.initialized"])
        .requirement("The client sends `notifications/initialized` after the response to `initialize` and before other messages.")
        .hint("Send `notifications/initialized` as the first message after the response to `initialize`.")
        .scenarios(&[], initialized),
    Rule::client("client.lifecycle.waits", Area::Lifecycle, &["lifecycle.init.client-wait"])
        .requirement("The client sends only `ping` before the response to `initialize`.")
        .hint("Wait for the response to `initialize` before sending other messages.")
        .scenarios(&[], waits),
    Rule::client("client.lifecycle.initialize-not-cancelled", Area::Lifecycle, &["lifecycle.init.no-cancel"])
        .requirement("`initialize` is not cancelled.")
        .hint("Close the connection instead of cancelling `initialize` when it takes too long.")
        .scenarios(&[], not_cancelled),
    Rule::client("client.lifecycle.leaves-unknown-version", Area::Lifecycle, &[
        "lifecycle.version.client-disconnect",
        "lifecycle.version.client-disconnect-schema",
    ])
    .requirement("The client disconnects if it does not support the revision that the server returns.")
    .hint("Compare the server's `protocolVersion` with the supported revisions, and disconnect if it is not among them.")
    .scenarios(&[Scenario::UnknownRevision], disconnects),
    Rule::client("client.lifecycle.capabilities", Area::Lifecycle, &[
        "lifecycle.operation.capabilities-should",
        "lifecycle.operation.capabilities-must",
        "base.capabilities.respect",
    ])
    .requirement("The client uses only capabilities that the server declares.")
    .hint("Check the server's capabilities before using resources, prompts, completion or logging.")
    .scenarios(&[Scenario::ToolsOnly], capabilities),
    Rule::client("client.lifecycle.offers-a-revision", Area::Lifecycle, &["lifecycle.version.client-offers"])
        .requirement("`protocolVersion` of `initialize` is a revision of the specification.")
        .hint("Send the date of a supported revision as `protocolVersion`.")
        .scenarios(&[], offers_a_revision),
    Rule::client("client.lifecycle.newest-offered", Area::Lifecycle, &["lifecycle.version.client-latest"])
        .requirement("`protocolVersion` of `initialize` is the latest revision that the client supports.")
        .hint("Send the latest supported revision; the server may return an older one.")
        .scenarios(&[], newest_offered),
    Rule::client("client.lifecycle.version-kept", Area::Lifecycle, &["lifecycle.operation.version-must"])
        .requirement("The client sends only requests and notifications that the negotiated revision defines.")
        .hint("Check the negotiated revision before sending a method that another revision introduced or removed.")
        .scenarios(&[], methods_of_revision),
    Rule::client("client.lifecycle.no-shutdown-message", Area::Lifecycle, &["lifecycle.shutdown.no-message"])
        .requirement("The client ends a connection by closing it, without a shutdown message.")
        .hint("Close the input of the server or the HTTP connections; do not send `shutdown`, `exit` or `close`.")
        .scenarios(&[], no_shutdown_message),
];

/// Returns the `initialize` requests with their runs.
fn handshakes(runs: &ScenarioRuns) -> impl Iterator<Item = (&ScenarioRun, &ClientMessage)> {
    runs.all().flat_map(|run| {
        run.requests_for("initialize")
            .map(move |message| (run, message))
    })
}

fn initialize_first(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    for run in runs.all() {
        // A client may probe for the modern era first, and `ping` is always allowed.
        let first = run.messages().iter().find(|message| {
            !matches!(
                message.method(),
                Some("server/discover" | "ping" | "notifications/cancelled") | None
            ) && message.meta("protocolVersion").is_none()
        });
        let Some(first) = first else { continue };
        if first.method() != Some("initialize") {
            let observed = format!("`{}` comes first", first.method().unwrap_or_default());
            return Err(NotPassed::violation(observed, [first.number]));
        }
        evidence.push(first.number);
    }
    Evidence::from_entries(evidence.into_iter().take(3))
}

fn introduces_itself(runs: &ScenarioRuns) -> Outcome {
    let initializes = handshakes(runs).map(|(_, message)| message);
    check_each(initializes, "the client sent no `initialize`", |message| {
        let params = message.params();
        let info = &params["clientInfo"];
        let missing = [
            ("protocolVersion", params["protocolVersion"].is_string()),
            ("capabilities", params["capabilities"].is_object()),
            ("clientInfo", info.is_object()),
            ("clientInfo.name", info["name"].is_string()),
            ("clientInfo.version", info["version"].is_string()),
        ];
        let missing = missing.into_iter().find(|(_, there)| !there);
        missing.map(|(name, _)| format!("`{name}` is missing or invalid"))
    })
}

fn initialized(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    for (run, initialize) in handshakes(runs) {
        if run.scenario == Scenario::UnknownRevision {
            continue;
        }
        let Some((responded_at, _)) = run.response_to(initialize) else {
            continue;
        };
        // A client may open several sessions concurrently.
        let session = run.response_header(initialize, "mcp-session-id");
        let same = |message: &&ClientMessage| {
            let other = matches!(
                message.method(),
                Some("initialize" | "server/discover" | "notifications/cancelled")
            );
            let named = message.header("mcp-session-id");
            message.is_same_server(initialize)
                && !other
                && named.is_none_or(|id| Some(id) == session)
        };
        let message = run.messages().iter().filter(same);
        let mut after = message.filter(|message| message.number > responded_at);
        let next = after.find(|message| {
            message.is_notification() || (message.is_request() && message.method() != Some("ping"))
        });
        match next {
            Some(next) if next.method() == Some("notifications/initialized") => {
                evidence.push(next.number);
            }
            Some(next) => {
                let observed = format!("`{}` comes first", next.method().unwrap_or_default());
                return Err(NotPassed::violation(
                    observed,
                    [initialize.number, responded_at, next.number],
                ));
            }
            None => {}
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(
            "the client sent nothing after the handshake",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

fn waits(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    for (run, initialize) in handshakes(runs) {
        let Some((responded_at, _)) = run.response_to(initialize) else {
            continue;
        };
        let early = run.messages().iter().find(|message| {
            message.number > initialize.number
                && message.number < responded_at
                && message.is_same_server(initialize)
                && !matches!(message.method(), Some("ping") | None)
        });
        if let Some(early) = early {
            let observed = format!(
                "`{}` came before the response",
                early.method().unwrap_or_default()
            );
            return Err(NotPassed::violation(
                observed,
                [initialize.number, early.number, responded_at],
            ));
        }
        evidence.extend([initialize.number, responded_at]);
    }
    Evidence::from_entries(evidence.into_iter().take(4))
}

fn not_cancelled(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    for (run, initialize) in handshakes(runs) {
        let cancels = |message: &&ClientMessage| {
            message.method() == Some("notifications/cancelled")
                && message.params().get("requestId") == initialize.id()
                && message.number > initialize.number
                && message.is_same_server(initialize)
        };
        if let Some(cancel) = run.messages().iter().find(cancels) {
            let observed = "the client cancelled `initialize`";
            return Err(NotPassed::violation(
                observed,
                [initialize.number, cancel.number],
            ));
        }
        evidence.push(initialize.number);
    }
    Evidence::from_entries(evidence.into_iter().take(3))
}

fn disconnects(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::UnknownRevision)?;
    let mut initializes = run.requests_for("initialize");
    let responded_at =
        initializes.find_map(|initialize| Some((initialize, run.response_to(initialize)?.0)));
    let Some((initialize, responded_at)) = responded_at else {
        return Err(NotPassed::not_tested(
            "the client did not wait for the response to `initialize`",
        ));
    };
    let later_message = run.messages().iter().find(|message| {
        let method = message.method();
        let is_shutdown = matches!(
            method,
            Some("initialize" | "server/discover" | "notifications/cancelled")
        );
        message.number > responded_at && method.is_some() && !is_shutdown
    });
    match later_message {
        None => Evidence::from_entries([initialize.number, responded_at]),
        Some(later_message) => {
            let observed = format!(
                "`{}` after an unknown revision",
                later_message.method().unwrap_or_default()
            );
            Err(NotPassed::violation(
                observed,
                [initialize.number, responded_at, later_message.number],
            ))
        }
    }
}

/// Returns the capability that a method needs and a server with tools only lacks.
fn needs(method: &str, revision: Revision) -> Option<&'static str> {
    let (area, _) = method.split_once('/')?;
    match area {
        // Earlier revisions do not define the capability.
        "completion" if revision >= Revision::V2025_03_26 => Some("completions"),
        "resources" => Some("resources"),
        "prompts" => Some("prompts"),
        "logging" => Some("logging"),
        "tasks" => Some("tasks"),
        _ => None,
    }
}

fn capabilities(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::ToolsOnly)?;
    let modern = runs.revision.is_stateless();
    if modern && run.requests_for("server/discover").next().is_none() {
        let why = "the client did not request the capabilities, which is optional";
        return Err(NotPassed::not_applicable(why));
    }
    let beyond = run
        .requests()
        .find_map(|message| Some((message, needs(message.method()?, runs.revision)?)));
    if let Some((message, capability)) = beyond {
        let method = message.method().unwrap_or_default();
        let observed = format!("`{method}`, but the server does not declare `{capability}`");
        return Err(NotPassed::violation(observed, [message.number]));
    }
    let opened = |message: &&ClientMessage| !matches!(message.value["method"], Value::Null);
    let evidence = run
        .requests()
        .filter(opened)
        .map(|message| message.number)
        .take(3);
    Evidence::from_entries(evidence.collect::<Vec<_>>())
}

fn offers_a_revision(runs: &ScenarioRuns) -> Outcome {
    let initializes = handshakes(runs).map(|(_, message)| message);
    let initializes = initializes.filter(|message| message.params()["protocolVersion"].is_string());
    check_each(initializes, "the client sent no version", |message| {
        let proposed = message.params()["protocolVersion"].as_str()?;
        let known = proposed.parse::<Revision>().is_ok() || is_later_date(proposed);
        (!known)
            .then(|| format!("`initialize` has the version {proposed:?}, which is not a revision"))
    })
}

/// Returns whether a version is a date after all known revisions.
fn is_later_date(version: &str) -> bool {
    let date = version.len() == 10
        && version.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    date && version > Revision::MODERN.as_str()
}

fn newest_offered(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    for (run, initialize) in handshakes(runs) {
        let proposed = initialize.params()["protocolVersion"].as_str();
        let (Some(proposed), Some((responded_at, response))) =
            (proposed, run.response_to(initialize))
        else {
            continue;
        };
        let negotiated = response["result"]["protocolVersion"].as_str();
        let (Ok(proposed), Some(Ok(negotiated))) = (
            proposed.parse::<Revision>(),
            negotiated.map(str::parse::<Revision>),
        ) else {
            continue;
        };
        let continues = run.messages().iter().find(|message| {
            message.number > responded_at
                && message.is_same_server(initialize)
                && message.method() == Some("notifications/initialized")
        });
        match continues {
            Some(next) if proposed < negotiated => {
                let observed =
                    format!("the client sends {proposed} and continues with {negotiated}");
                return Err(NotPassed::violation(
                    observed,
                    [initialize.number, responded_at, next.number],
                ));
            }
            _ => evidence.push(initialize.number),
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested("the client sent no known revision"))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

fn methods_of_revision(runs: &ScenarioRuns) -> Outcome {
    // Probes for the modern era have the revision in `_meta`.
    let message = runs
        .messages()
        .filter(|message| message.meta("protocolVersion").is_none());
    let known = message.filter(|message| message.method().and_then(Method::from_name).is_some());
    check_each(
        known,
        "the client sent no method of the protocol",
        |message| {
            let method = message.method().and_then(Method::from_name)?;
            let is_violation = !method.is_in(runs.revision);
            is_violation.then(|| format!("`{}` is not a method of {}", method.name, runs.revision))
        },
    )
}

/// Shutdown messages of other protocols.
const SHUTDOWN: [&str; 4] = ["shutdown", "exit", "close", "disconnect"];

fn no_shutdown_message(runs: &ScenarioRuns) -> Outcome {
    check_each(runs.messages(), "the client sent no message", |message| {
        let method = message.method()?;
        let name = method.strip_prefix("notifications/").unwrap_or(method);
        let is_violation = SHUTDOWN.contains(&name);
        is_violation.then(|| format!("`{method}`"))
    })
}
