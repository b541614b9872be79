//! Handshakes, headers, codes, sessions and streams.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{HeaderValue, StatusCode, request::Parts};
use serde_json::{Value, json};
use turnbuckle_check::report::RuleStatus;
use turnbuckle_protocol::revision::Revision;

use crate::{
    mutant::{Mutant, OutgoingResponse},
    mutants::base::{error, is_response_to},
};

/// Checks that nothing fails, and that the rule of the variant reports nothing.
pub(super) async fn assert_allowed(variant: Mutant) {
    let report = variant.check().await;
    let bad: Vec<_> = report
        .results()
        .filter(|(_, result)| match result.status() {
            RuleStatus::Fail => true,
            RuleStatus::Warn | RuleStatus::Advice => result.rule.id == variant.violates,
            _ => false,
        })
        .map(|(_, result)| format!("{} {:#?}", result.rule.id, result.outcome))
        .collect();
    assert!(bad.is_empty(), "{}: {}", variant.name, bad.join("\n"));
}

/// Counts events.
fn counter() -> impl Fn() -> usize + Send + Sync + 'static {
    let count = Arc::new(AtomicUsize::new(0));
    move || count.fetch_add(1, Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn headers_may_be_checked_before_the_body() {
    let lacks_method = |request: &Parts, outgoing_response: &mut OutgoingResponse| {
        if request.method == "POST" && !request.headers.contains_key("mcp-method") {
            outgoing_response.head.status = StatusCode::BAD_REQUEST;
            outgoing_response.body = Some(error(&Value::Null, -32020).to_string().into_bytes());
        }
    };
    assert_allowed(Mutant::new("base.parse-error", "headers first").response(lacks_method)).await;
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_version_may_be_processed_as_legacy() {
    let variant = Mutant::new("base.legacy-codes", "requires a session").map_sent(|outgoing| {
        let request = outgoing.request.as_ref();
        let modern = request.is_none_or(|request| request["params"]["_meta"].is_object());
        if !modern && outgoing.message.get("error").is_some() {
            outgoing.message["error"]["code"] = (-32000).into();
        }
    });
    let report = variant.check().await;
    let warned = report.results().any(|(_, result)| {
        result.rule.id == variant.violates && result.status() == RuleStatus::Warn
    });
    assert!(!warned);
}

#[tokio::test(start_paused = true)]
async fn limit_of_one_session_is_not_a_rejected_version() {
    let session_count = counter();
    let variant =
        Mutant::new("lifecycle.unknown-version", "one session").map_received(move |incoming| {
            if incoming.message["method"] == "initialize" && session_count() > 0 {
                incoming.response = Some(error(&incoming.message["id"], -32600));
            }
        });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn process_may_stay_in_one_era() {
    let variant = Mutant::new("eras.handshake-after-modern", "one era per process")
        .on_ndjson()
        .map_received(|incoming| {
            if !incoming.earlier.is_empty() && incoming.message["method"] == "initialize" {
                incoming.response = Some(error(&incoming.message["id"], -32601));
                incoming.message = Value::Null;
            }
        });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn long_messages_are_allowed() {
    let variant = Mutant::new("stdio.only-messages", "a list of five megabytes")
        .on_ndjson()
        .map_response_to("tools/list", |message| {
            let long = "x".repeat(5 * 1024 * 1024);
            message["result"]["_meta"]["com.example/long"] = long.into();
        });

    let report = variant.check_only(&["stdio", "tools.list"]).await;

    let results = report.results().map(|(_, result)| result);
    let fine: Vec<_> = results
        .map(|result| (result.rule.id, result.status()))
        .collect();
    assert!(
        fine.contains(&(variant.violates, RuleStatus::Pass))
            && !fine.iter().any(|(_, status)| *status == RuleStatus::Fail),
        "{fine:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn stream_head_may_be_sent_with_the_first_event() {
    let late = Duration::from_secs(60);
    assert_allowed(
        Mutant::new("http.get", "sends the head with the first event").late("GET", late),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn slow_first_http_response_is_allowed() {
    let late = Duration::from_secs(8);
    let variant = Mutant::new("base.ping", "slow first response").late("initialize", late);

    let report = variant.check().await;

    assert_eq!(report.runs[0].unsupported, None);
}

#[tokio::test(start_paused = true)]
async fn missing_version_header_may_be_rejected_without_2025_03_26() {
    let variant = Mutant::new("http.version-header-default", "2025-11-25 only")
        .map_sent(|outgoing| {
            if is_response_to(outgoing, "initialize") {
                outgoing.message["result"]["protocolVersion"] = "2025-11-25".into();
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
async fn legacy_revisions_need_not_be_listed() {
    let variant = Mutant::new("http.modern-only-get", "lists the latest revision only")
        .map_response_to("server/discover", |message| {
            if message.get("result").is_some() {
                message["result"]["supportedVersions"] = json!(["2026-07-28"]);
            }
        })
        .response(|request, outgoing_response| {
            if request.method != "POST" && outgoing_response.head.status == 405 {
                outgoing_response.head.status = StatusCode::BAD_REQUEST;
            }
        });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn prompt_with_missing_arguments_may_be_rejected() {
    let variant = Mutant::new("http.name-header-repeats-body", "arguments first")
        .map_sent(|outgoing| {
            if is_response_to(outgoing, "resources/list") {
                outgoing.message["result"]["resources"] = json!([]);
            }
            if is_response_to(outgoing, "prompts/list") {
                let prompts = outgoing.message["result"]["prompts"].as_array_mut();
                let reviews = |prompt: &Value| prompt["name"] != "review";
                prompts.unwrap().sort_by_key(reviews);
            }
        })
        .map_received(|incoming| {
            let params = &incoming.message["params"];
            if params["name"] == "review" && params["arguments"].is_null() {
                incoming.response = Some(error(&incoming.message["id"], -32602));
            }
        });
    let report = variant.check().await;
    let failed = report.results().any(|(_, result)| {
        result.rule.id == variant.violates && result.status() != RuleStatus::Pass
    });
    assert!(!failed);
}

#[tokio::test(start_paused = true)]
async fn resumed_stream_may_be_interrupted_again() {
    let resumed = counter();
    let variant = Mutant::new("streams.survive-disconnection", "polls").response(
        move |request, outgoing_response| {
            let resumes = request.headers.contains_key("last-event-id");
            if resumes && outgoing_response.head.status == 200 && resumed().is_multiple_of(2) {
                outgoing_response.body = Some(Vec::new());
            }
        },
    );
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn other_authentication_schemes_are_not_checked() {
    let variant = Mutant::new("authorization.challenge", "requires a password")
        .protected()
        .response(|_, outgoing_response| {
            if outgoing_response.head.status == 401 {
                let basic = HeaderValue::from_static("Basic realm=\"here\"");
                outgoing_response
                    .head
                    .headers
                    .insert("www-authenticate", basic);
            }
        });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn server_with_one_legacy_revision_is_checked() {
    let only = Mutant::new("lifecycle.newest-offered", "one version only")
        .in_revision(Revision::V2024_11_05)
        .map_sent(|outgoing| {
            if is_response_to(outgoing, "initialize") {
                outgoing.message["result"]["protocolVersion"] = "2024-11-05".into();
            }
        });
    assert_allowed(only).await;
}

#[tokio::test(start_paused = true)]
async fn custom_notifications_are_allowed() {
    let variant = Mutant::new("lifecycle.version-kept", "a notification of no revision")
        .on_ndjson()
        .map_sent(|outgoing| {
            if is_response_to(outgoing, "tools/list") {
                let method = "notifications/example.com/news";
                outgoing
                    .before
                    .push(json!({ "jsonrpc": "2.0", "method": method }));
            }
        });
    assert_allowed(variant).await;
}

#[tokio::test(start_paused = true)]
async fn cors_headers_are_allowed() {
    let variant = Mutant::new("origins.preflight", "allows one origin").response(
        |head, outgoing_response| {
            if head.method == http::Method::OPTIONS {
                let headers = &mut outgoing_response.head.headers;
                let page = HeaderValue::from_static("https://example.com");
                headers.insert("access-control-allow-origin", page);
                outgoing_response.head.status = StatusCode::NO_CONTENT;
            }
        },
    );
    assert_allowed(variant).await;
}
