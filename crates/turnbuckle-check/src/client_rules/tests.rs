//! Clients that are unusual and right, message by message.

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

/// What was said in a scene, as it is put together.
#[derive(Default)]
struct TranscriptScript(Vec<TranscriptEntry>);

impl TranscriptScript {
    /// The client makes a request of HTTP.
    fn sends_request(mut self, line: &str, headers: &[(&str, &str)], body: &str) -> Self {
        self.0.push(TranscriptEntry {
            head: Some(head(line, headers)),
            ..TranscriptEntry::received(self.0.len(), body)
        });
        self
    }

    /// The client posts a message.
    fn posts(self, headers: &[(&str, &str)], message: &Value) -> Self {
        self.sends_request("POST /mcp", headers, &message.to_string())
    }

    /// We answer what was said last, or before that.
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
        match catalog::find(rule).expect("the rule is there").check {
            Check::Scenarios(_, look) => look(&runs),
            _ => unreachable!("clients are watched"),
        }
    }
}

fn head(line: &str, headers: &[(&str, &str)]) -> HttpHead {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    HttpHead {
        start_line: line.to_owned(),
        headers: headers.iter().map(own).collect(),
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

fn is_broken(outcome: &Outcome) -> bool {
    matches!(outcome, Err(NotPassed::Violation { .. }))
}

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

#[test]
fn two_sessions_may_begin_side_by_side() {
    let (one, two) = ([("mcp-session-id", "1")], [("mcp-session-id", "2")]);
    let story = || {
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

    let right = story().outcome_of(rule, Scenario::Default, LEGACY);
    let wrong = story()
        .posts(&[], &call(1, "initialize"))
        .server_responds(1, &[("mcp-session-id", "3")], &result(1, &json!({})))
        .posts(&[("mcp-session-id", "3")], &call(2, "tools/list"))
        .outcome_of(rule, Scenario::Default, LEGACY);

    assert!(right.is_ok(), "{right:?}");
    assert!(is_broken(&wrong), "{wrong:?}");
}

#[test]
fn another_connection_may_look_for_a_newer_server() {
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
fn headers_of_notifications_are_nobodys_business_since_2026() {
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
fn a_body_that_is_no_json_is_no_message() {
    let outcome = TranscriptScript::default()
        .posts(&[], &call(1, "tools/list"))
        .sends_request("POST /mcp", &[], "{")
        .outcome_of("client.base.json-rpc", Scenario::Default, MODERN);

    assert!(is_broken(&outcome), "{outcome:?}");
}

#[test]
fn whoever_does_not_ask_what_a_server_can_do_finds_out_by_trying() {
    let rule = "client.lifecycle.capabilities";
    let tried = TranscriptScript::default().posts(&[], &call(2, "resources/list"));
    let asked = TranscriptScript::default().posts(&[], &call(1, "server/discover"));

    let tried = tried.outcome_of(rule, Scenario::ToolsOnly, MODERN);
    let asked =
        asked
            .posts(&[], &call(2, "resources/list"))
            .outcome_of(rule, Scenario::ToolsOnly, MODERN);
    let completed = TranscriptScript::default().posts(&[], &call(1, "completion/complete"));

    assert!(
        matches!(tried, Err(NotPassed::NotApplicable(_))),
        "{tried:?}"
    );
    assert!(is_broken(&asked), "{asked:?}");
    assert!(is_broken(&completed.outcome_of(
        rule,
        Scenario::ToolsOnly,
        LEGACY
    )));
}

#[test]
fn nobody_knows_the_marks_of_a_tool_that_was_not_listed() {
    let mut weather = call(2, "tools/call");
    weather["params"] = json!({ "name": "weather", "arguments": { "days": 3.0 } });
    let listed = |tool: &str| {
        TranscriptScript::default()
            .posts(&[], &call(1, "tools/list"))
            .server_responds(1, &[], &result(1, &json!({ "tools": [{ "name": tool }] })))
    };
    let outcome_of = |story: TranscriptScript| {
        story.outcome_of("client.http.param-headers", Scenario::Default, MODERN)
    };

    let unknown = outcome_of(listed("hello").posts(&[], &weather));
    let silent = outcome_of(listed("weather").posts(&[], &weather));
    let right = outcome_of(listed("weather").posts(&[("mcp-param-days", "3")], &weather));

    assert!(
        matches!(unknown, Err(NotPassed::NotTested(_))),
        "{unknown:?}"
    );
    assert!(is_broken(&silent), "{silent:?}");
    assert!(right.is_ok(), "{right:?}");
}

#[test]
fn a_few_tools_called_often_are_not_all_tools() {
    let called = |story: TranscriptScript, tool: &str| {
        let mut message = call(1, "tools/call");
        message["params"]["name"] = tool.into();
        story.posts(&[], &message)
    };
    let story = ["hello", "weather", "hello", "weather"]
        .into_iter()
        .fold(TranscriptScript::default(), called);

    let outcome = story.outcome_of("client.http.bad-marks-rejected", Scenario::Default, MODERN);

    assert!(
        matches!(outcome, Err(NotPassed::NotTested(_))),
        "{outcome:?}"
    );
}

#[test]
fn a_token_is_for_the_server_and_comes_after_it_was_given() {
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
        |story: TranscriptScript, rule| story.outcome_of(rule, Scenario::RequiresToken, MODERN);

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

    assert!(is_broken(&wrong), "{wrong:?}");
    let outcome = outcome_of(crossing, "client.auth.token-always");
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn only_later_revisions_say_where_to_look_first() {
    let story = || {
        TranscriptScript::default()
            .posts(&[], &call(1, "initialize"))
            .sends_request("GET /.well-known/oauth-protected-resource/mcp", &[], "")
            .sends_request("GET /about/this-resource", &[], "")
    };
    let rule = "client.auth.resource-metadata";

    let early = story().outcome_of(rule, Scenario::RequiresToken, Revision::V2025_06_18);
    let late = story().outcome_of(rule, Scenario::RequiresToken, LEGACY);

    assert!(early.is_ok(), "{early:?}");
    assert!(is_broken(&late), "{late:?}");
}

#[test]
fn nobody_has_to_know_the_transport_of_2024() {
    let rule = "client.streams.http-sse-fallback";
    let outcome_of = |story: TranscriptScript| {
        let entries = story.0.into_iter().enumerate().collect();
        let mut runs = ScenarioRuns::new(MODERN);
        let speaks = Revision::V2024_11_05;
        let run = ScenarioRun::new(
            Scenario::HttpSseOnly,
            speaks,
            entries,
            ScenarioEnd::Finished,
            Vec::new(),
        );
        runs.push(run);
        match catalog::find(rule).expect("the rule is there").check {
            Check::Scenarios(_, look) => look(&runs),
            _ => unreachable!("clients are watched"),
        }
    };
    let story = || TranscriptScript::default().posts(&[], &call(1, "server/discover"));

    let leaves = outcome_of(story());
    let stops = outcome_of(story().sends_request("GET /mcp", &[], ""));
    let goes = outcome_of(story().sends_request("GET /mcp", &[], "").sends_request(
        "POST /messages?session=1",
        &[],
        "{}",
    ));

    assert!(
        matches!(leaves, Err(NotPassed::NotApplicable(_))),
        "{leaves:?}"
    );
    assert!(is_broken(&stops), "{stops:?}");
    assert!(goes.is_ok(), "{goes:?}");
}

/// A handshake in which the client offers a version, and goes on with the one that the server chooses.
fn handshake(offers: &str) -> TranscriptScript {
    let mut initialize = call(1, "initialize");
    initialize["params"]["protocolVersion"] = offers.into();
    let chosen = json!({ "protocolVersion": "2025-11-25" });
    TranscriptScript::default()
        .posts(&[], &initialize)
        .server_responds(1, &[], &result(1, &chosen))
        .posts(&[], &notify("notifications/initialized"))
}

#[test]
fn a_revision_that_is_not_known_yet_may_be_offered() {
    let rule = "client.lifecycle.offers-a-revision";
    for right in ["2024-10-07", "2025-11-25", "2027-01-01"] {
        let outcome = handshake(right).outcome_of(rule, Scenario::Default, LEGACY);
        assert!(outcome.is_ok(), "{right}: {outcome:?}");
    }
    for wrong in ["1.0", "2025-01-01", "latest", ""] {
        let outcome = handshake(wrong).outcome_of(rule, Scenario::Default, LEGACY);
        assert!(is_broken(&outcome), "{wrong}: {outcome:?}");
    }
}

#[test]
fn the_newest_revision_is_offered_and_an_older_one_may_be_chosen() {
    let rule = "client.lifecycle.newest-offered";
    let outcome_of = |offers: &str| handshake(offers).outcome_of(rule, Scenario::Default, LEGACY);

    assert!(outcome_of("2025-11-25").is_ok());
    assert!(outcome_of("2026-07-28").is_ok());
    assert!(is_broken(&outcome_of("2025-03-26")));
}

#[test]
fn a_client_that_leaves_a_newer_revision_offered_its_newest() {
    let mut initialize = call(1, "initialize");
    initialize["params"]["protocolVersion"] = "2025-03-26".into();
    let story = TranscriptScript::default()
        .posts(&[], &initialize)
        .server_responds(
            1,
            &[],
            &result(1, &json!({ "protocolVersion": "2025-11-25" })),
        );

    let outcome = story.outcome_of("client.lifecycle.newest-offered", Scenario::Default, LEGACY);

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn a_client_registers_or_has_a_metadata_document() {
    let rule = "client.auth.registers";
    let refused = || {
        TranscriptScript::default()
            .posts(&[], &call(1, "initialize"))
            .sends_request("GET /about/this-resource", &[], "")
    };
    let outcome_of = |story: TranscriptScript| {
        story.outcome_of(rule, Scenario::RequiresToken, Revision::V2025_06_18)
    };
    let log_in =
        |id: &str| refused().sends_request(&format!("GET /as/log-in?client_id={id}"), &[], "");

    let registered = outcome_of(refused().sends_request("POST /as/clients", &[], "{}"));
    let documented = outcome_of(log_in("https%3A%2F%2Fexample.com%2Fclient.json"));
    let unknown = outcome_of(log_in("my-client"));
    let stopped = outcome_of(refused());

    assert!(registered.is_ok(), "{registered:?}");
    assert!(documented.is_ok(), "{documented:?}");
    assert!(is_broken(&unknown), "{unknown:?}");
    assert!(
        matches!(stopped, Err(NotPassed::NotTested(_))),
        "{stopped:?}"
    );
}
