//! Clients that are unusual and right, message by message.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::catalogue;
use crate::client::Scene;
use crate::client::take::{Ending, Take, Takes};
use crate::outcome::{Outcome, Unmet};
use crate::rule::Check;
use crate::tape::{Entry, Head};

/// What was said in a scene, as it is put together.
#[derive(Default)]
struct Story(Vec<Entry>);

impl Story {
    /// The client makes a request of HTTP.
    fn asks(mut self, line: &str, headers: &[(&str, &str)], body: &str) -> Self {
        self.0.push(Entry {
            head: Some(head(line, headers)),
            ..Entry::received(self.0.len(), body)
        });
        self
    }

    /// The client posts a message.
    fn posts(self, headers: &[(&str, &str)], message: &Value) -> Self {
        self.asks("POST /mcp", headers, &message.to_string())
    }

    /// We answer what was said last, or before that.
    fn answers(mut self, back: usize, headers: &[(&str, &str)], message: &Value) -> Self {
        let answered = self.0.len() - back;
        self.0.push(Entry {
            head: Some(head("200", headers)),
            answers: Some(answered),
            ..Entry::sent(answered, message.to_string())
        });
        self
    }

    fn judged(self, rule: &str, scene: Scene, revision: Revision) -> Outcome {
        let entries = self.0.into_iter().enumerate().collect();
        let mut takes = Takes::new(revision);
        takes.push(Take::new(
            scene,
            revision,
            entries,
            Ending::Finished,
            Vec::new(),
        ));
        match catalogue::find(rule).expect("the rule is there").check {
            Check::Watch(_, look) => look(&takes),
            _ => unreachable!("clients are watched"),
        }
    }
}

fn head(line: &str, headers: &[(&str, &str)]) -> Head {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Head {
        line: line.to_owned(),
        headers: headers.iter().map(own).collect(),
    }
}

fn call(id: i64, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} })
}

fn tell(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method })
}

fn result(id: i64, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn is_broken(outcome: &Outcome) -> bool {
    matches!(outcome, Err(Unmet::Broken { .. }))
}

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

#[test]
fn two_sessions_may_begin_side_by_side() {
    let (one, two) = ([("mcp-session-id", "1")], [("mcp-session-id", "2")]);
    let story = || {
        Story::default()
            .posts(&[], &call(1, "initialize"))
            .answers(1, &one, &result(1, &json!({})))
            .posts(&[], &call(1, "initialize"))
            .answers(1, &two, &result(1, &json!({})))
            .posts(&two, &tell("notifications/initialized"))
            .posts(&two, &call(2, "tools/list"))
            .posts(&one, &tell("notifications/initialized"))
    };
    let rule = "client.lifecycle.initialized";

    let right = story().judged(rule, Scene::Plain, LEGACY);
    let wrong = story()
        .posts(&[], &call(1, "initialize"))
        .answers(1, &[("mcp-session-id", "3")], &result(1, &json!({})))
        .posts(&[("mcp-session-id", "3")], &call(2, "tools/list"))
        .judged(rule, Scene::Plain, LEGACY);

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
        let outcome = Story::default()
            .posts(&[], &call(1, "initialize"))
            .answers(1, &[], &result(1, &json!({})))
            .posts(&session, &tell("notifications/initialized"))
            .posts(&newer, &call(1, "server/discover"))
            .judged(rule, Scene::Plain, LEGACY);

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
        let outcome = Story::default()
            .posts(&all, &call(1, "tools/list"))
            .posts(&[], &tell("notifications/com.example/hello"))
            .judged(rule, Scene::Plain, MODERN);

        assert!(outcome.is_ok(), "{rule}: {outcome:?}");
    }
}

#[test]
fn a_body_that_is_no_json_is_no_message() {
    let outcome = Story::default()
        .posts(&[], &call(1, "tools/list"))
        .asks("POST /mcp", &[], "{")
        .judged("client.base.json-rpc", Scene::Plain, MODERN);

    assert!(is_broken(&outcome), "{outcome:?}");
}

#[test]
fn whoever_does_not_ask_what_a_server_can_do_finds_out_by_trying() {
    let rule = "client.lifecycle.capabilities";
    let tried = Story::default().posts(&[], &call(2, "resources/list"));
    let asked = Story::default().posts(&[], &call(1, "server/discover"));

    let tried = tried.judged(rule, Scene::Bare, MODERN);
    let asked = asked
        .posts(&[], &call(2, "resources/list"))
        .judged(rule, Scene::Bare, MODERN);
    let completed = Story::default().posts(&[], &call(1, "completion/complete"));

    assert!(matches!(tried, Err(Unmet::NotApplicable(_))), "{tried:?}");
    assert!(is_broken(&asked), "{asked:?}");
    assert!(is_broken(&completed.judged(rule, Scene::Bare, LEGACY)));
}

#[test]
fn nobody_knows_the_marks_of_a_tool_that_was_not_listed() {
    let mut weather = call(2, "tools/call");
    weather["params"] = json!({ "name": "weather", "arguments": { "days": 3.0 } });
    let listed = |tool: &str| {
        Story::default().posts(&[], &call(1, "tools/list")).answers(
            1,
            &[],
            &result(1, &json!({ "tools": [{ "name": tool }] })),
        )
    };
    let judged = |story: Story| story.judged("client.http.param-headers", Scene::Plain, MODERN);

    let unknown = judged(listed("hello").posts(&[], &weather));
    let silent = judged(listed("weather").posts(&[], &weather));
    let right = judged(listed("weather").posts(&[("mcp-param-days", "3")], &weather));

    assert!(matches!(unknown, Err(Unmet::NotTested(_))), "{unknown:?}");
    assert!(is_broken(&silent), "{silent:?}");
    assert!(right.is_ok(), "{right:?}");
}

#[test]
fn a_few_tools_called_often_are_not_all_tools() {
    let called = |story: Story, tool: &str| {
        let mut message = call(1, "tools/call");
        message["params"]["name"] = tool.into();
        story.posts(&[], &message)
    };
    let story = ["hello", "weather", "hello", "weather"]
        .into_iter()
        .fold(Story::default(), called);

    let outcome = story.judged("client.http.bad-marks-rejected", Scene::Plain, MODERN);

    assert!(matches!(outcome, Err(Unmet::NotTested(_))), "{outcome:?}");
}

#[test]
fn a_token_is_for_the_server_and_comes_after_it_was_given() {
    let host = [("host", "127.0.0.1:1")];
    let log_in = |resource: &str| {
        let form = format!("grant_type=authorization_code&resource={resource}");
        Story::default()
            .posts(&host, &call(1, "initialize"))
            .asks(&format!("GET /as/log-in?resource={resource}"), &host, "")
            .asks("POST /as/tokens", &host, &form)
    };
    let token = ("authorization", "Bearer turnbuckle-token-1");
    let judged = |story: Story, rule| story.judged(rule, Scene::Guarded, MODERN);

    for right in [
        "http://127.0.0.1:1/mcp",
        "http://127.0.0.1:1",
        "http://127.0.0.1:1/mcp/",
    ] {
        let outcome = judged(log_in(right), "client.auth.resource");
        assert!(outcome.is_ok(), "{right}: {outcome:?}");
    }
    let wrong = judged(log_in("http://example.com/mcp"), "client.auth.resource");
    let crossing = log_in("http://127.0.0.1:1/mcp")
        .posts(&host, &call(2, "tools/list"))
        .answers(2, &[], &json!({}))
        .posts(&[token], &call(3, "tools/list"));

    assert!(is_broken(&wrong), "{wrong:?}");
    let outcome = judged(crossing, "client.auth.token-always");
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn only_later_revisions_say_where_to_look_first() {
    let story = || {
        Story::default()
            .posts(&[], &call(1, "initialize"))
            .asks("GET /.well-known/oauth-protected-resource/mcp", &[], "")
            .asks("GET /about/this-resource", &[], "")
    };
    let rule = "client.auth.resource-metadata";

    let early = story().judged(rule, Scene::Guarded, Revision::V2025_06_18);
    let late = story().judged(rule, Scene::Guarded, LEGACY);

    assert!(early.is_ok(), "{early:?}");
    assert!(is_broken(&late), "{late:?}");
}

#[test]
fn nobody_has_to_know_the_transport_of_2024() {
    let rule = "client.streams.http-sse-fallback";
    let judged = |story: Story| {
        let entries = story.0.into_iter().enumerate().collect();
        let mut takes = Takes::new(MODERN);
        let speaks = Revision::V2024_11_05;
        let take = Take::new(
            Scene::OldHttp,
            speaks,
            entries,
            Ending::Finished,
            Vec::new(),
        );
        takes.push(take);
        match catalogue::find(rule).expect("the rule is there").check {
            Check::Watch(_, look) => look(&takes),
            _ => unreachable!("clients are watched"),
        }
    };
    let story = || Story::default().posts(&[], &call(1, "server/discover"));

    let leaves = judged(story());
    let stops = judged(story().asks("GET /mcp", &[], ""));
    let goes = judged(story().asks("GET /mcp", &[], "").asks(
        "POST /messages?session=1",
        &[],
        "{}",
    ));

    assert!(matches!(leaves, Err(Unmet::NotApplicable(_))), "{leaves:?}");
    assert!(is_broken(&stops), "{stops:?}");
    assert!(goes.is_ok(), "{goes:?}");
}

/// A handshake in which the client offers a version, and goes on with the one that the server chooses.
fn handshake(offers: &str) -> Story {
    let mut hello = call(1, "initialize");
    hello["params"]["protocolVersion"] = offers.into();
    let chosen = json!({ "protocolVersion": "2025-11-25" });
    Story::default()
        .posts(&[], &hello)
        .answers(1, &[], &result(1, &chosen))
        .posts(&[], &tell("notifications/initialized"))
}

#[test]
fn a_revision_that_is_not_known_yet_may_be_offered() {
    let rule = "client.lifecycle.offers-a-revision";
    for right in ["2024-10-07", "2025-11-25", "2027-01-01"] {
        let outcome = handshake(right).judged(rule, Scene::Plain, LEGACY);
        assert!(outcome.is_ok(), "{right}: {outcome:?}");
    }
    for wrong in ["1.0", "2025-01-01", "latest", ""] {
        let outcome = handshake(wrong).judged(rule, Scene::Plain, LEGACY);
        assert!(is_broken(&outcome), "{wrong}: {outcome:?}");
    }
}

#[test]
fn the_newest_revision_is_offered_and_an_older_one_may_be_chosen() {
    let rule = "client.lifecycle.newest-offered";
    let judged = |offers: &str| handshake(offers).judged(rule, Scene::Plain, LEGACY);

    assert!(judged("2025-11-25").is_ok());
    assert!(judged("2026-07-28").is_ok());
    assert!(is_broken(&judged("2025-03-26")));
}

#[test]
fn a_client_that_leaves_a_newer_revision_offered_its_newest() {
    let mut hello = call(1, "initialize");
    hello["params"]["protocolVersion"] = "2025-03-26".into();
    let story = Story::default().posts(&[], &hello).answers(
        1,
        &[],
        &result(1, &json!({ "protocolVersion": "2025-11-25" })),
    );

    let outcome = story.judged("client.lifecycle.newest-offered", Scene::Plain, LEGACY);

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn a_client_registers_or_has_a_metadata_document() {
    let rule = "client.auth.registers";
    let refused = || {
        Story::default().posts(&[], &call(1, "initialize")).asks(
            "GET /about/this-resource",
            &[],
            "",
        )
    };
    let judged = |story: Story| story.judged(rule, Scene::Guarded, Revision::V2025_06_18);
    let log_in = |id: &str| refused().asks(&format!("GET /as/log-in?client_id={id}"), &[], "");

    let registered = judged(refused().asks("POST /as/clients", &[], "{}"));
    let documented = judged(log_in("https%3A%2F%2Fexample.com%2Fclient.json"));
    let unknown = judged(log_in("my-client"));
    let stopped = judged(refused());

    assert!(registered.is_ok(), "{registered:?}");
    assert!(documented.is_ok(), "{documented:?}");
    assert!(is_broken(&unknown), "{unknown:?}");
    assert!(matches!(stopped, Err(Unmet::NotTested(_))), "{stopped:?}");
}
