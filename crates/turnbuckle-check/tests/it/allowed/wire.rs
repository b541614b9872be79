//! The wire: handshakes, headers, codes, sessions and streams.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{HeaderValue, StatusCode, request::Parts};
use serde_json::{Value, json};
use turnbuckle_check::report::Grade;
use turnbuckle_protocol::revision::Revision;

use crate::{
    mutant::{Mutant, Responding},
    mutants::base::{asked, error},
};

/// Makes sure that nothing fails, and that the rule of the variant finds nothing at all.
pub(super) async fn assert_allowed(variant: Mutant) {
    let report = variant.check().await;
    let bad: Vec<_> = report
        .rulings()
        .filter(|(_, ruling)| match ruling.grade() {
            Grade::Fail => true,
            Grade::Warn | Grade::Advice => ruling.rule.id == variant.trips,
            _ => false,
        })
        .map(|(_, ruling)| format!("{} {:#?}", ruling.rule.id, ruling.verdict))
        .collect();
    assert!(bad.is_empty(), "{}: {}", variant.name, bad.join("\n"));
}

/// Counts how often something happened.
fn counter() -> impl Fn() -> usize + Send + Sync + 'static {
    let count = Arc::new(AtomicUsize::new(0));
    move || count.fetch_add(1, Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn headers_may_be_looked_at_before_the_body() {
    let lacks_method = |asked: &Parts, responding: &mut Responding| {
        if asked.method == "POST" && !asked.headers.contains_key("mcp-method") {
            responding.head.status = StatusCode::BAD_REQUEST;
            responding.body = Some(error(&Value::Null, -32020).to_string().into_bytes());
        }
    };
    assert_allowed(Mutant::new("base.parse-error", "headers first").response(lacks_method)).await;
}

#[tokio::test(start_paused = true)]
async fn what_says_no_version_may_be_served_as_before() {
    let variant = Mutant::new("base.legacy-codes", "wants a session").says(|saying| {
        let asked = saying.asked.as_ref();
        let modern = asked.is_none_or(|asked| asked["params"]["_meta"].is_object());
        if !modern && saying.message.get("error").is_some() {
            saying.message["error"]["code"] = (-32000).into();
        }
    });
    let report = variant.check().await;
    let warned = report
        .rulings()
        .any(|(_, ruling)| ruling.rule.id == variant.trips && ruling.grade() == Grade::Warn);
    assert!(!warned);
}

#[tokio::test(start_paused = true)]
async fn whoever_has_room_for_one_session_refuses_no_version() {
    let begun = counter();
    let variant = Mutant::new("lifecycle.unknown-version", "one session").hears(move |hearing| {
        if hearing.message["method"] == "initialize" && begun() > 0 {
            hearing.answer = Some(error(&hearing.message["id"], -32600));
        }
    });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_may_stay_with_the_era_in_which_it_was_opened() {
    let variant = Mutant::new("eras.handshake-after-modern", "one era for each process")
        .on_lines()
        .hears(|hearing| {
            if !hearing.earlier.is_empty() && hearing.message["method"] == "initialize" {
                hearing.answer = Some(error(&hearing.message["id"], -32601));
                hearing.message = Value::Null;
            }
        });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_may_be_long() {
    let variant = Mutant::new("stdio.only-messages", "a list of five megabytes")
        .on_lines()
        .answers("tools/list", |message| {
            let long = "x".repeat(5 * 1024 * 1024);
            message["result"]["_meta"]["com.example/long"] = long.into();
        });

    let report = variant.check_only(&["stdio", "tools.list"]).await;

    let rulings = report.rulings().map(|(_, ruling)| ruling);
    let fine: Vec<_> = rulings
        .map(|ruling| (ruling.rule.id, ruling.grade()))
        .collect();
    assert!(
        fine.contains(&(variant.trips, Grade::Pass))
            && !fine.iter().any(|(_, grade)| *grade == Grade::Fail),
        "{fine:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_begin_with_its_first_event() {
    let late = Duration::from_secs(60);
    assert_allowed(Mutant::new("http.get", "no head before an event").late("GET", late)).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_on_http_may_have_to_wake_up_first() {
    let late = Duration::from_secs(8);
    let variant = Mutant::new("base.ping", "slow to wake up").late("initialize", late);

    let report = variant.check().await;

    assert_eq!(report.runs[0].not_spoken, None);
}

#[tokio::test(start_paused = true)]
async fn without_the_header_a_version_is_meant_that_may_not_be_served() {
    let variant = Mutant::new("http.version-header-default", "2025-11-25 only")
        .says(|saying| {
            if asked(saying, "initialize") {
                saying.message["result"]["protocolVersion"] = "2025-11-25".into();
            }
        })
        .request(|request| {
            let named = request.headers().contains_key("mcp-protocol-version");
            let message: Value = serde_json::from_slice(request.body()).unwrap_or_default();
            if !named && message["method"] == "ping" {
                let none = HeaderValue::from_static("none");
                request.headers_mut().insert("mcp-protocol-version", none);
            }
        });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_has_sessions_need_not_list_their_revisions() {
    let variant = Mutant::new("http.modern-only-get", "lists the newest only")
        .answers("server/discover", |message| {
            if message.get("result").is_some() {
                message["result"]["supportedVersions"] = json!(["2026-07-28"]);
            }
        })
        .response(|asked, responding| {
            if asked.method != "POST" && responding.head.status == 405 {
                responding.head.status = StatusCode::BAD_REQUEST;
            }
        });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn what_lacks_an_argument_may_be_refused_for_that() {
    let variant = Mutant::new("http.name-header-repeats-body", "arguments first")
        .says(|saying| {
            if asked(saying, "resources/list") {
                saying.message["result"]["resources"] = json!([]);
            }
            if asked(saying, "prompts/list") {
                let prompts = saying.message["result"]["prompts"].as_array_mut();
                let reviews = |prompt: &Value| prompt["name"] != "review";
                prompts.unwrap().sort_by_key(reviews);
            }
        })
        .hears(|hearing| {
            let params = &hearing.message["params"];
            if params["name"] == "review" && params["arguments"].is_null() {
                hearing.answer = Some(error(&hearing.message["id"], -32602));
            }
        });
    let report = variant.check().await;
    let failed = report
        .rulings()
        .any(|(_, ruling)| ruling.rule.id == variant.trips && ruling.grade() != Grade::Pass);
    assert!(!failed);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_stream_may_be_closed_once_more() {
    let resumed = counter();
    let variant =
        Mutant::new("streams.survive-disconnection", "polls").response(move |asked, responding| {
            let resumes = asked.headers.contains_key("last-event-id");
            if resumes && responding.head.status == 200 && resumed().is_multiple_of(2) {
                responding.body = Some(Vec::new());
            }
        });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn who_asks_may_be_known_in_another_way() {
    let variant = Mutant::new("authorization.challenge", "asks for a password")
        .guarded()
        .response(|_, responding| {
            if responding.head.status == 401 {
                let basic = HeaderValue::from_static("Basic realm=\"here\"");
                responding.head.headers.insert("www-authenticate", basic);
            }
        });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn a_version_is_looked_for_in_every_revision_with_a_handshake() {
    let only = Mutant::new("lifecycle.newest-offered", "one version only")
        .in_revision(Revision::V2024_11_05)
        .says(|saying| {
            if asked(saying, "initialize") {
                saying.message["result"]["protocolVersion"] = "2024-11-05".into();
            }
        });
    assert_allowed(only).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_may_have_notifications_of_its_own() {
    let variant = Mutant::new("lifecycle.version-kept", "a notification of no revision")
        .on_lines()
        .says(|saying| {
            if asked(saying, "tools/list") {
                let method = "notifications/example.com/news";
                saying
                    .before
                    .push(json!({ "jsonrpc": "2.0", "method": method }));
            }
        });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_may_say_which_methods_web_pages_use() {
    let variant =
        Mutant::new("origins.preflight", "one web page is welcome").response(|head, responding| {
            if head.method == http::Method::OPTIONS {
                let headers = &mut responding.head.headers;
                let page = HeaderValue::from_static("https://example.com");
                headers.insert("access-control-allow-origin", page);
                responding.head.status = StatusCode::NO_CONTENT;
            }
        });
    assert_allowed(variant).await;
}
