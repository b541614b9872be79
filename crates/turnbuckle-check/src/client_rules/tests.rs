//! Unusual but correct clients, message by message.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::{
    catalog,
    engine::{
        outcome::{NotPassed, Outcome},
        transcript::{HttpHead, TranscriptEntry},
    },
    mock_server::{
        Scenario,
        scenario_run::{ScenarioEnd, ScenarioRun, ScenarioRuns},
    },
    rule::Check,
};

/// Builds the transcript of a scenario.
#[derive(Default)]
struct TranscriptScript(Vec<TranscriptEntry>);

impl TranscriptScript {
    /// Adds an HTTP request of the client.
    fn sends_request(mut self, line: &str, headers: &[(&str, &str)], body: &str) -> Self {
        self.0.push(TranscriptEntry {
            head: Some(head(line, headers)),
            ..TranscriptEntry::received(self.0.len(), body)
        });
        self
    }

    /// Adds a POST of the client.
    fn posts(self, headers: &[(&str, &str)], message: &Value) -> Self {
        self.sends_request("POST /mcp", headers, &message.to_string())
    }

    /// Adds the response to the last entry, or to an earlier one.
    fn server_responds(mut self, back: usize, headers: &[(&str, &str)], message: &Value) -> Self {
        let responded = self.0.len() - back;
        self.0.push(TranscriptEntry {
            head: Some(head("200", headers)),
            response_to: Some(responded),
            ..TranscriptEntry::sent(responded, message.to_string())
        });
        self
    }

    fn outcome_of(self, rule: &str, scenario: Scenario, revision: Revision) -> Outcome {
        let entries = self.0.into_iter().enumerate().collect();
        let mut runs = ScenarioRuns::new(revision);
        runs.push(ScenarioRun::new(
            scenario,
            revision,
            entries,
            ScenarioEnd::Finished,
            Vec::new(),
        ));
        match catalog::find(rule).expect("the rule exists").check {
            Check::Scenarios(_, check) => check(&runs),
            _ => unreachable!("client rules use scenarios"),
        }
    }
}

fn head(line: &str, headers: &[(&str, &str)]) -> HttpHead {
    let to_owned_pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    HttpHead {
        start_line: line.to_owned(),
        headers: headers.iter().map(to_owned_pair).collect(),
    }
}

fn call(id: i64, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} })
}

fn notify(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method })
}

fn result(id: i64, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn is_violation(outcome: &Outcome) -> bool {
    matches!(outcome, Err(NotPassed::Violation { .. }))
}

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

#[test]
fn concurrent_sessions_are_separate() {
    let (one, two) = ([("mcp-session-id", "1")], [("mcp-session-id", "2")]);
    let script = || {
        TranscriptScript::default()
            .posts(&[], &call(1, "initialize"))
            .server_responds(1, &one, &result(1, &json!({})))
            .posts(&[], &call(1, "initialize"))
            .server_responds(1, &two, &result(1, &json!({})))
            .posts(&two, &notify("notifications/initialized"))
            .posts(&two, &call(2, "tools/list"))
            .posts(&one, &notify("notifications/initialized"))
    };
    let rule = "client.lifecycle.initialized";

    let right = script().outcome_of(rule, Scenario::Default, LEGACY);
    let wrong = script()
        .posts(&[], &call(1, "initialize"))
        .server_responds(1, &[("mcp-session-id", "3")], &result(1, &json!({})))
        .posts(&[("mcp-session-id", "3")], &call(2, "tools/list"))
        .outcome_of(rule, Scenario::Default, LEGACY);

    assert!(right.is_ok(), "{right:?}");
    assert!(is_violation(&wrong), "{wrong:?}");
}

#[test]
fn modern_probe_on_another_connection_is_allowed() {
    let session = [
        ("mcp-session-id", "turnbuckle-session-1"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let newer = [("mcp-protocol-version", "2026-07-28")];
    for rule in [
        "client.sessions.id-sent",
        "client.http.version-header",
        "client.http.version-header-negotiated",
    ] {
        let outcome = TranscriptScript::default()
            .posts(&[], &call(1, "initialize"))
            .server_responds(1, &[], &result(1, &json!({})))
            .posts(&session, &notify("notifications/initialized"))
            .posts(&newer, &call(1, "server/discover"))
            .outcome_of(rule, Scenario::Default, LEGACY);

        assert!(outcome.is_ok(), "{rule}: {outcome:?}");
    }
}

#[test]
fn headers_of_notifications_are_not_checked_since_2026_07_28() {
    let accept = ("accept", "application/json, text/event-stream");
    let all = [accept, ("mcp-protocol-version", "2026-07-28")];
    for rule in [
        "client.http.version-header-always",
        "client.http.accept-both",
    ] {
        let outcome = TranscriptScript::default()
            .posts(&all, &call(1, "tools/list"))
            .posts(&[], &notify("notifications/com.example/hello"))
            .outcome_of(rule, Scenario::Default, MODERN);

        assert!(outcome.is_ok(), "{rule}: {outcome:?}");
    }
}

#[test]
fn body_that_is_not_json_is_a_violation() {
    let outcome = TranscriptScript::default()
        .posts(&[], &call(1, "tools/list"))
        .sends_request("POST /mcp", &[], "{")
        .outcome_of("client.base.json-rpc", Scenario::Default, MODERN);

    assert!(is_violation(&outcome), "{outcome:?}");
}

#[test]
fn requests_without_discovery_need_no_capability() {
    let rule = "client.lifecycle.capabilities";
    let undiscovered = TranscriptScript::default().posts(&[], &call(2, "resources/list"));
    let discovered = TranscriptScript::default().posts(&[], &call(1, "server/discover"));

    let undiscovered = undiscovered.outcome_of(rule, Scenario::ToolsOnly, MODERN);
    let discovered = discovered
        .posts(&[], &call(2, "resources/list"))
        .outcome_of(rule, Scenario::ToolsOnly, MODERN);
    let completed = TranscriptScript::default().posts(&[], &call(1, "completion/complete"));

    assert!(
        matches!(undiscovered, Err(NotPassed::NotApplicable(_))),
        "{undiscovered:?}"
    );
    assert!(is_violation(&discovered), "{discovered:?}");
    assert!(is_violation(&completed.outcome_of(
        rule,
        Scenario::ToolsOnly,
        LEGACY
    )));
}

#[test]
fn param_headers_are_checked_for_listed_tools_only() {
    let mut weather = call(2, "tools/call");
    weather["params"] = json!({ "name": "weather", "arguments": { "days": 3.0 } });
    let listed = |tool: &str| {
        TranscriptScript::default()
            .posts(&[], &call(1, "tools/list"))
            .server_responds(1, &[], &result(1, &json!({ "tools": [{ "name": tool }] })))
    };
    let outcome_of = |script: TranscriptScript| {
        script.outcome_of("client.http.param-headers", Scenario::Default, MODERN)
    };

    let unknown = outcome_of(listed("hello").posts(&[], &weather));
    let without_header = outcome_of(listed("weather").posts(&[], &weather));
    let right = outcome_of(listed("weather").posts(&[("mcp-param-days", "3")], &weather));

    assert!(
        matches!(unknown, Err(NotPassed::NotTested(_))),
        "{unknown:?}"
    );
    assert!(is_violation(&without_header), "{without_header:?}");
    assert!(right.is_ok(), "{right:?}");
}

#[test]
fn few_tools_called_often_are_not_all_tools() {
    let called = |script: TranscriptScript, tool: &str| {
        let mut message = call(1, "tools/call");
        message["params"]["name"] = tool.into();
        script.posts(&[], &message)
    };
    let script = ["hello", "weather", "hello", "weather"]
        .into_iter()
        .fold(TranscriptScript::default(), called);

    let outcome = script.outcome_of("client.http.bad-marks-rejected", Scenario::Default, MODERN);

    assert!(
        matches!(outcome, Err(NotPassed::NotTested(_))),
        "{outcome:?}"
    );
}

#[test]
fn token_requests_need_the_resource_and_later_requests_the_token() {
    let host = [("host", "127.0.0.1:1")];
    let log_in = |resource: &str| {
        let form = format!("grant_type=authorization_code&resource={resource}");
        TranscriptScript::default()
            .posts(&host, &call(1, "initialize"))
            .sends_request(&format!("GET /as/log-in?resource={resource}"), &host, "")
            .sends_request("POST /as/tokens", &host, &form)
    };
    let token = ("authorization", "Bearer turnbuckle-token-1");
    let outcome_of =
        |script: TranscriptScript, rule| script.outcome_of(rule, Scenario::RequiresToken, MODERN);

    for right in [
        "http://127.0.0.1:1/mcp",
        "http://127.0.0.1:1",
        "http://127.0.0.1:1/mcp/",
    ] {
        let outcome = outcome_of(log_in(right), "client.auth.resource");
        assert!(outcome.is_ok(), "{right}: {outcome:?}");
    }
    let wrong = outcome_of(log_in("http://example.com/mcp"), "client.auth.resource");
    let crossing = log_in("http://127.0.0.1:1/mcp")
        .posts(&host, &call(2, "tools/list"))
        .server_responds(2, &[], &json!({}))
        .posts(&[token], &call(3, "tools/list"));

    assert!(is_violation(&wrong), "{wrong:?}");
    let outcome = outcome_of(crossing, "client.auth.token-always");
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn order_of_metadata_urls_is_checked_since_2025_11_25() {
    let script = || {
        TranscriptScript::default()
            .posts(&[], &call(1, "initialize"))
            .sends_request("GET /.well-known/oauth-protected-resource/mcp", &[], "")
            .sends_request("GET /about/this-resource", &[], "")
    };
    let rule = "client.auth.resource-metadata";

    let early = script().outcome_of(rule, Scenario::RequiresToken, Revision::V2025_06_18);
    let late = script().outcome_of(rule, Scenario::RequiresToken, LEGACY);

    assert!(early.is_ok(), "{early:?}");
    assert!(is_violation(&late), "{late:?}");
}

#[test]
fn http_sse_fallback_is_optional() {
    let rule = "client.streams.http-sse-fallback";
    let outcome_of = |script: TranscriptScript| {
        let entries = script.0.into_iter().enumerate().collect();
        let mut runs = ScenarioRuns::new(MODERN);
        let server_revision = Revision::V2024_11_05;
        let run = ScenarioRun::new(
            Scenario::HttpSseOnly,
            server_revision,
            entries,
            ScenarioEnd::Finished,
            Vec::new(),
        );
        runs.push(run);
        match catalog::find(rule).expect("the rule exists").check {
            Check::Scenarios(_, check) => check(&runs),
            _ => unreachable!("client rules use scenarios"),
        }
    };
    let script = || TranscriptScript::default().posts(&[], &call(1, "server/discover"));

    let disconnects = outcome_of(script());
    let stops = outcome_of(script().sends_request("GET /mcp", &[], ""));
    let falls_back = outcome_of(script().sends_request("GET /mcp", &[], "").sends_request(
        "POST /messages?session=1",
        &[],
        "{}",
    ));

    assert!(
        matches!(disconnects, Err(NotPassed::NotApplicable(_))),
        "{disconnects:?}"
    );
    assert!(is_violation(&stops), "{stops:?}");
    assert!(falls_back.is_ok(), "{falls_back:?}");
}

/// Builds a handshake in which the client proposes a version and accepts the server's.
fn handshake(proposed: &str) -> TranscriptScript {
    let mut initialize = call(1, "initialize");
    initialize["params"]["protocolVersion"] = proposed.into();
    let chosen = json!({ "protocolVersion": "2025-11-25" });
    TranscriptScript::default()
        .posts(&[], &initialize)
        .server_responds(1, &[], &result(1, &chosen))
        .posts(&[], &notify("notifications/initialized"))
}

#[test]
fn future_revisions_may_be_proposed() {
    let rule = "client.lifecycle.offers-a-revision";
    for right in ["2024-10-07", "2025-11-25", "2027-01-01"] {
        let outcome = handshake(right).outcome_of(rule, Scenario::Default, LEGACY);
        assert!(outcome.is_ok(), "{right}: {outcome:?}");
    }
    for wrong in ["1.0", "2025-01-01", "latest", ""] {
        let outcome = handshake(wrong).outcome_of(rule, Scenario::Default, LEGACY);
        assert!(is_violation(&outcome), "{wrong}: {outcome:?}");
    }
}

#[test]
fn latest_revision_must_be_proposed() {
    let rule = "client.lifecycle.newest-offered";
    let outcome_of =
        |proposed: &str| handshake(proposed).outcome_of(rule, Scenario::Default, LEGACY);

    assert!(outcome_of("2025-11-25").is_ok());
    assert!(outcome_of("2026-07-28").is_ok());
    assert!(is_violation(&outcome_of("2025-03-26")));
}

#[test]
fn client_that_disconnects_from_a_newer_revision_proposed_its_latest() {
    let mut initialize = call(1, "initialize");
    initialize["params"]["protocolVersion"] = "2025-03-26".into();
    let script = TranscriptScript::default()
        .posts(&[], &initialize)
        .server_responds(
            1,
            &[],
            &result(1, &json!({ "protocolVersion": "2025-11-25" })),
        );

    let outcome = script.outcome_of("client.lifecycle.newest-offered", Scenario::Default, LEGACY);

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn client_registers_or_has_a_metadata_document() {
    let rule = "client.auth.registers";
    let rejected = || {
        TranscriptScript::default()
            .posts(&[], &call(1, "initialize"))
            .sends_request("GET /about/this-resource", &[], "")
    };
    let outcome_of = |script: TranscriptScript| {
        script.outcome_of(rule, Scenario::RequiresToken, Revision::V2025_06_18)
    };
    let log_in =
        |id: &str| rejected().sends_request(&format!("GET /as/log-in?client_id={id}"), &[], "");

    let registered = outcome_of(rejected().sends_request("POST /as/clients", &[], "{}"));
    let documented = outcome_of(log_in("https%3A%2F%2Fexample.com%2Fclient.json"));
    let unknown = outcome_of(log_in("my-client"));
    let stopped = outcome_of(rejected());

    assert!(registered.is_ok(), "{registered:?}");
    assert!(documented.is_ok(), "{documented:?}");
    assert!(is_violation(&unknown), "{unknown:?}");
    assert!(
        matches!(stopped, Err(NotPassed::NotTested(_))),
        "{stopped:?}"
    );
}

#[test]
fn a_violation_names_the_requirement_that_the_message_violates() {
    let cancel = |id: &Value| {
        let params = json!({ "requestId": id });
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
    };
    let (id, jsonrpc) = ("client.base.id-type", "client.base.json-rpc");
    let (error, cancelled) = (
        "client.base.error-object",
        "client.cancellation.own-request",
    );
    let keys = "client.meta.keys";
    for (rule, revision, message, expected) in [
        (
            id,
            MODERN,
            json!({ "jsonrpc": "2.0", "id": null, "method": "tools/list" }),
            "base.request.id-not-null",
        ),
        (
            id,
            MODERN,
            json!({ "jsonrpc": "2.0", "id": 1.5, "method": "tools/list" }),
            "base.request.id-type",
        ),
        (
            jsonrpc,
            MODERN,
            json!({ "jsonrpc": "1.0", "id": 1, "method": "tools/list" }),
            "base.jsonrpc.version-field",
        ),
        (
            jsonrpc,
            MODERN,
            json!({ "jsonrpc": "2.0" }),
            "base.jsonrpc.conform",
        ),
        (
            error,
            LEGACY,
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": "1", "message": "no" } }),
            "base.error.code-integer",
        ),
        (
            error,
            LEGACY,
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": 1 } }),
            "base.error.code-message",
        ),
        (
            cancelled,
            LEGACY,
            cancel(&json!(7)),
            "cancellation.reference.direction",
        ),
        (
            cancelled,
            MODERN,
            cancel(&json!(7)),
            "cancellation.reference.client-issued",
        ),
        (
            cancelled,
            MODERN,
            cancel(&Value::Null),
            "cancellation.request-id",
        ),
        (
            keys,
            MODERN,
            json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "_meta": { "1a/b": 1 } } }),
            "meta.key.label-format",
        ),
    ] {
        let outcome = TranscriptScript::default().posts(&[], &message).outcome_of(
            rule,
            Scenario::ServerRequests,
            revision,
        );

        let Err(NotPassed::Violation { requirement, .. }) = outcome else {
            panic!("{message}: {outcome:?}");
        };
        let violated = catalog::find(rule)
            .unwrap()
            .violated_requirement(requirement, revision);
        assert_eq!(violated.unwrap().id, expected, "{message}");
    }
}
