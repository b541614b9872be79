//! Every failure of an upstream server, in both eras of a scripted server and of the client.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{RunningGateway, Sharing, UpstreamState};
use turnbuckle_server::testing::{Peer, http};

use crate::{
    failing_server::{Scripted, Step, is_call, result},
    upstreams::{ERAS, desk, start, upstream},
};

/// Runs a test with clients of both eras.
async fn every_client(gateway: &RunningGateway, test: impl AsyncFn(Peer)) {
    test(Peer::connect(gateway.server()).legacy("2025-11-25").await).await;
    test(Peer::connect(gateway.server()).modern().await).await;
}

async fn call(peer: &mut Peer, tool: &str) -> Value {
    let params = json!({ "name": tool, "arguments": {} });
    let id = peer.start("tools/call", params).await;
    let response = peer.finish(id).await;
    response.expect_error(-32603).clone()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_dies_is_not_sent_again_and_the_next_one_starts_the_server() {
    for mode in ERAS {
        let server = Scripted::new(mode, |message, _| {
            if is_call(message, "die") {
                Step::Close
            } else {
                Step::Default
            }
        });
        let gateway = start([server.upstream("desk").sharing(Sharing::All)]).await;
        let expected = json!({ "server": "desk", "kind": "disconnected", "effect": "unknown" });

        every_client(&gateway, async |mut peer| {
            let before = server.calls("die");
            let error = call(&mut peer, "die").await;
            assert_eq!(error["data"], expected, "{mode:?}");
            assert_eq!(server.calls("die"), before + 1, "{mode:?}");

            let next = peer.call_tool("greet", json!({})).await;
            assert_eq!(next.text(), "done", "{mode:?}");
        })
        .await;
        assert_eq!(server.connections(), 3, "{mode:?}");
        assert_eq!(gateway.status()[0].state, UpstreamState::Up);
    }
}

#[tokio::test(start_paused = true)]
async fn five_deaths_in_a_minute_make_a_server_down_until_an_attempt_succeeds() {
    for mode in ERAS {
        let dies = Arc::new(AtomicBool::new(true));
        let is_dying = Arc::clone(&dies);
        let server = Scripted::new(mode, move |message, _| {
            if message["method"] == "tools/call" && is_dying.load(Ordering::SeqCst) {
                Step::Close
            } else {
                Step::Default
            }
        });
        let gateway = start([server.upstream("desk").sharing(Sharing::All)]).await;
        let mut peer = Peer::connect(gateway.server()).modern().await;
        for _ in 0..5 {
            assert_eq!(call(&mut peer, "x").await["data"]["kind"], "disconnected");
        }
        let status = &gateway.status()[0];
        assert_eq!(status.state, UpstreamState::Down, "{mode:?}");
        assert_eq!(status.reason.as_deref(), Some("closed"));
        let started = server.connections();
        let rejected = call(&mut peer, "x").await;
        assert_eq!(rejected["data"]["kind"], "down", "{rejected}");
        assert_eq!(rejected["data"]["effect"], "none");
        assert!(rejected["data"]["since"].is_string(), "{rejected}");
        assert_eq!(server.connections(), started, "{mode:?}");

        dies.store(false, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(40)).await;
        let next = peer.call_tool("x", json!({})).await;
        assert_eq!(next.text(), "done", "{mode:?}");
        assert_eq!(gateway.status()[0].state, UpstreamState::Up);
    }
}

#[tokio::test(start_paused = true)]
async fn many_callers_share_one_start_and_one_failure() {
    for mode in ERAS {
        let is_down = Arc::new(AtomicBool::new(false));
        let closes = Arc::clone(&is_down);
        let server = Scripted::new(mode, move |message, number| {
            let is_handshake = ["initialize", "server/discover"]
                .iter()
                .any(|method| message["method"] == *method);
            match () {
                () if is_call(message, "die") => Step::Close,
                () if is_handshake && number > 0 && closes.load(Ordering::SeqCst) => Step::Close,
                () => Step::Default,
            }
        });
        let gateway = start([server.upstream("desk").sharing(Sharing::All)]).await;
        let mut peers = Vec::new();
        for _ in 0..20 {
            peers.push(Peer::connect(gateway.server()).modern().await);
        }
        call(&mut peers[0], "die").await;
        let before = server.connections();
        let mut ids = Vec::new();
        for peer in &mut peers {
            ids.push(peer.start_tool("greet", json!({})).await);
        }
        for (peer, id) in peers.iter_mut().zip(&ids) {
            assert_eq!(peer.finish(*id).await.text(), "done", "{mode:?}");
        }
        assert_eq!(server.connections(), before + 1, "{mode:?}");

        is_down.store(true, Ordering::SeqCst);
        call(&mut peers[0], "die").await;
        let before = server.connections();
        let mut ids = Vec::new();
        for peer in &mut peers {
            ids.push(peer.start_tool("greet", json!({})).await);
        }
        for (peer, id) in peers.iter_mut().zip(&ids) {
            let error = peer.finish(*id).await.expect_error(-32603).clone();
            assert_eq!(error["data"]["kind"], "down", "{error}");
        }
        assert_eq!(server.connections(), before + 1, "{mode:?}");
    }
}

/// A server with handshakes that are not answered on some connections.
fn hanging(hangs: impl Fn(usize) -> bool + Send + Sync + 'static) -> Scripted {
    Scripted::new(LifecycleMode::Legacy, move |message, number| {
        if message["method"] == "initialize" && hangs(number) {
            Step::Silence
        } else {
            Step::Default
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_being_opened_does_not_block_others() {
    // The first connection learns the capabilities.
    let server = hanging(|number| number == 1);
    let gateway = start([server.upstream("desk")]).await;
    let mut first = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    let mut second = Peer::connect(gateway.server()).legacy("2025-11-25").await;

    let waiting = first.start_tool("greet", json!({})).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let started = tokio::time::Instant::now();
    let response = second.call_tool("greet", json!({})).await;

    assert_eq!(response.text(), "done");
    assert!(started.elapsed() < Duration::from_secs(1));
    let failed = first.finish(waiting).await;
    assert_eq!(failed.expect_error(-32603)["data"]["reason"], "timeout");
    assert_eq!(gateway.status()[0].state, UpstreamState::Up);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_does_not_end_the_start_for_others() {
    let server = Scripted::new(LifecycleMode::Legacy, |_, _| Step::Default);
    let delayed = {
        let server = server.upstream("desk");
        server.sharing(Sharing::Principal)
    };
    let gateway = start([delayed]).await;
    let mut first = Peer::connect(gateway.server()).modern().await;
    let mut second = Peer::connect(gateway.server()).modern().await;
    let before = server.connections();

    let left = first.start_tool("greet", json!({})).await;
    let waits = second.start_tool("greet", json!({})).await;
    first.cancel(left).await;
    drop(first);

    assert_eq!(second.finish(waits).await.text(), "done");
    assert_eq!(server.connections(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn silence_and_endless_progress_end_with_a_cancelled_call() {
    for mode in ERAS {
        let server = Scripted::new(mode, |message, _| {
            let is_call = message["method"] == "tools/call";
            if is_call {
                Step::Silence
            } else {
                Step::Default
            }
        });
        let gateway = start([server.upstream("desk").sharing(Sharing::All)]).await;
        every_client(&gateway, async |mut peer| {
            let cancelled = server.received("notifications/cancelled").len();
            let started = tokio::time::Instant::now();
            let error = call(&mut peer, "sleep").await;
            assert_eq!(
                error["data"],
                json!({ "server": "desk", "kind": "timeout", "effect": "unknown" })
            );
            let waited = started.elapsed();
            assert!(waited >= Duration::from_secs(60) && waited < Duration::from_secs(90));
            tokio::time::sleep(Duration::from_millis(10)).await;
            let cancellations = server.received("notifications/cancelled");
            assert_eq!(cancellations.len(), cancelled + 1, "{mode:?}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_and_too_large_responses_have_an_incident_id_and_no_excerpt() {
    for mode in ERAS {
        for (text, is_end) in [
            ("[1]", false),
            ("\"SECRET\"", false),
            ("7", false),
            ("", true),
        ] {
            let server = Scripted::new(mode, move |message, _| {
                if message["method"] != "tools/call" {
                    return Step::Default;
                }
                if is_end {
                    // More than the maximum size of a message.
                    return Step::Text("SECRET".repeat(12 * 1024 * 1024));
                }
                let id = &message["id"];
                Step::Text(format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{text}}}\n"
                ))
            });
            let gateway = start([server.upstream("desk").sharing(Sharing::All)]).await;
            let mut peer = Peer::connect(gateway.server()).modern().await;
            let error = call(&mut peer, "x").await;
            assert_eq!(error["data"]["kind"], "invalid", "{mode:?} {text}: {error}");
            assert_eq!(error["data"]["incident"].as_str().unwrap().len(), 12);
            assert!(!error.to_string().contains("SECRET"), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_on_http_delays_the_client() {
    for mode in ERAS {
        for (header, delay) in [("Retry-After: 7\r\n", 7_000), ("", 5_000)] {
            for status in [429, 503] {
                let server = Scripted::new(mode, move |message, _| {
                    let is_call = message["method"] == "tools/call";
                    if is_call {
                        Step::Status(status, header)
                    } else {
                        Step::Default
                    }
                });
                let gateway = start([server.http_upstream("desk")]).await;
                every_client(&gateway, async |mut peer| {
                    let error = call(&mut peer, "x").await;
                    assert_eq!(error["data"]["retryAfterMs"], delay, "{mode:?}: {error}");
                    assert!(!error.to_string().contains("secret.example"), "{error}");
                })
                .await;
                let meta = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                let params = json!({ "name": "x", "arguments": {}, "_meta": meta });
                let call =
                    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
                let response = http(gateway.server()).post(&call).await;
                assert_eq!(response.status(), 503);
                let seconds = (delay / 1_000).to_string();
                assert_eq!(response.header("retry-after"), Some(&*seconds));
                let client = http(gateway.server()).in_session("2025-11-25").await;
                let params = json!({ "name": "x", "arguments": {} });
                let call =
                    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
                assert_eq!(client.post(&call).await.status(), 200);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_is_renewed_and_the_call_sent_again_once() {
    let gone = Arc::new(AtomicUsize::new(0));
    let left = Arc::clone(&gone);
    let server = Scripted::new(LifecycleMode::Legacy, move |message, _| {
        let is_call = message["method"] == "tools/call";
        let ends = |left: usize| left.checked_sub(1);
        let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
        if is_call && left.fetch_update(set, get, ends).is_ok() {
            Step::Status(404, "")
        } else {
            Step::Default
        }
    });
    let other = Scripted::new(LifecycleMode::Legacy, |_, _| Step::Default);
    let gateway = start([
        server.http_upstream("desk").sharing(Sharing::All),
        other.upstream("other").sharing(Sharing::All),
    ])
    .await;
    let mut peer = Peer::connect(gateway.server()).modern().await;
    peer.call_tool("other_x", json!({})).await.expect_result();
    let (connections, handshakes) = (other.connections(), server.received("initialize").len());

    gone.store(1, Ordering::SeqCst);
    let response = peer.call_tool("desk_x", json!({})).await;

    assert_eq!(response.text(), "done");
    assert_eq!(server.calls("x"), 2);
    assert_eq!(server.received("initialize").len(), handshakes + 1);
    assert_eq!(other.connections(), connections);

    gone.store(2, Ordering::SeqCst);
    let error = call(&mut peer, "desk_x").await;
    assert_eq!(error["data"]["kind"], "disconnected", "{error}");
    assert_eq!(server.calls("x"), 4);
}

#[tokio::test(start_paused = true)]
async fn notifications_before_the_result_come_before_it_and_none_after() {
    for mode in ERAS {
        let server = Scripted::new(mode, |message, _| {
            if message["method"] != "tools/call" {
                return Step::Default;
            }
            let token = &message["params"]["_meta"]["progressToken"];
            let progress = |token: &Value, progress: u32| {
                let params = json!({ "progressToken": token, "progress": progress });
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
            };
            Step::Messages(vec![
                progress(token, 1),
                progress(&json!("foreign"), 50),
                progress(token, 2),
                progress(&json!(999_999), 51),
                progress(token, 3),
                result(message, &json!({ "content": [] })),
                progress(token, 99),
            ])
        });
        let gateway = start([server.upstream("desk").sharing(Sharing::All)]).await;
        every_client(&gateway, async |mut peer| {
            for _ in 0..3 {
                let id = peer.start_tool("x", json!({})).await;
                let mut seen = Vec::new();
                loop {
                    let message = peer.next().await;
                    if message["id"] == id {
                        break;
                    }
                    assert_eq!(message["params"]["progressToken"], id, "{message}");
                    seen.push(message["params"]["progress"].as_f64().unwrap());
                }
                // The server sent the last one after its result, which is the last message here.
                assert!(
                    seen == [1.0, 2.0, 3.0] || seen == [1.0, 2.0, 3.0, 99.0],
                    "{seen:?}"
                );
            }
            peer.expect_no_message().await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn subscriptions_and_the_log_level_are_restored_after_a_death() {
    for mode in ERAS {
        let server = Scripted::new(mode, |message, _| {
            if is_call(message, "die") {
                Step::Close
            } else {
                Step::Default
            }
        });
        let gateway = start([server.upstream("desk").sharing(Sharing::Session)]).await;
        let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
        let params = json!({ "uri": "desk://note" });
        peer.request("resources/subscribe", params)
            .await
            .expect_result();
        let params = json!({ "level": "debug" });
        peer.request("logging/setLevel", params)
            .await
            .expect_result();
        call(&mut peer, "die").await;

        peer.call_tool("greet", json!({})).await.expect_result();

        let subscribed = match mode {
            LifecycleMode::Legacy => server.received("resources/subscribe").len(),
            _ => server.received("subscriptions/listen").len(),
        };
        assert_eq!(subscribed, 2, "{mode:?}");
        if mode == LifecycleMode::Legacy {
            assert_eq!(server.received("logging/setLevel").len(), 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_shared_legacy_server_learns_no_client_and_an_unshared_one_its_own() {
    for (sharing, name, has_capabilities) in [
        (Sharing::All, "gateway", false),
        (Sharing::Session, "peer (via gateway 1.0.0)", true),
    ] {
        let server = Scripted::new(LifecycleMode::Legacy, |_, _| Step::Default);
        let gateway = start([server.upstream("desk").sharing(sharing)]).await;
        let all = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
        let peer = Peer::connect(gateway.server()).legacy("2025-11-25");
        let mut peer = peer.capabilities(all).await;
        peer.call_tool("greet", json!({})).await.expect_result();

        let handshakes = server.received("initialize");
        let params = &handshakes.last().unwrap()["params"];
        let via = params["clientInfo"]["name"].as_str().unwrap();
        assert!(
            via == name || (has_capabilities && via.ends_with("(via gateway 1.0.0)")),
            "{via}"
        );
        assert_eq!(
            params["capabilities"] != json!({}),
            has_capabilities,
            "{params}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_has_a_reason_and_the_others_work() {
    let hidden = Scripted::new(LifecycleMode::Modern, |_, _| Step::Status(502, ""));
    let gateway = start([
        upstream("up", LifecycleMode::Modern, desk()),
        hidden.http_upstream("hidden"),
    ])
    .await;
    every_client(&gateway, async |mut peer| {
        let listed = peer.request("tools/list", json!({})).await;
        let listed = listed.expect_result();
        let states = &listed["_meta"]["dev.turnbuckle/servers"];
        assert_eq!(states[1]["reason"], "HTTP status 502", "{states}");
        assert!(states[1]["since"].is_string(), "{states}");
        assert!(!listed.to_string().contains("secret.example"));
    })
    .await;
}

/// A server that closes connections during the handshake while it is down.
fn closing(mode: LifecycleMode, is_down: &Arc<AtomicBool>) -> Scripted {
    let is_down = Arc::clone(is_down);
    Scripted::new(mode, move |message, _| {
        let is_handshake = ["initialize", "server/discover"]
            .iter()
            .any(|method| message["method"] == *method);
        let dies = &message["params"]["arguments"]["die"];
        if *dies == true || is_handshake && is_down.load(Ordering::SeqCst) {
            Step::Close
        } else {
            Step::Default
        }
    })
}

#[tokio::test(start_paused = true)]
async fn the_only_server_that_cannot_be_reached_is_an_error_with_a_reason_in_every_era() {
    for mode in ERAS {
        for sharing in [Sharing::All, Sharing::Session] {
            let is_down = Arc::new(AtomicBool::new(false));
            let server = closing(mode, &is_down);
            let gateway = start([server.upstream("desk").sharing(sharing)]).await;
            let mut peer = Peer::connect(gateway.server()).modern().await;
            is_down.store(true, Ordering::SeqCst);
            let died = peer
                .request(
                    "tools/call",
                    json!({ "name": "x", "arguments": { "die": true } }),
                )
                .await;
            died.expect_error(-32603);

            every_client(&gateway, async |mut peer| {
                let error = call(&mut peer, "greet").await;
                let data = &error["data"];
                assert_eq!(data["kind"], "down", "{mode:?} {sharing:?}: {error}");
                assert_eq!(data["reason"], "closed", "{error}");
                assert_eq!(data["effect"], "none", "{error}");
            })
            .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_several_servers_that_cannot_be_reached_is_a_tool_error_in_every_era() {
    for mode in ERAS {
        for sharing in [Sharing::All, Sharing::Session] {
            let is_down = Arc::new(AtomicBool::new(false));
            let server = closing(mode, &is_down);
            let gateway = start([
                server.upstream("a").sharing(sharing),
                upstream("desk", mode, desk()),
            ])
            .await;
            let mut peer = Peer::connect(gateway.server()).modern().await;
            peer.request("tools/list", json!({})).await.expect_result();
            is_down.store(true, Ordering::SeqCst);
            let died = peer
                .request(
                    "tools/call",
                    json!({ "name": "a_x", "arguments": { "die": true } }),
                )
                .await;
            died.expect_error(-32603);

            every_client(&gateway, async |mut peer| {
                let response = peer.request("tools/call", json!({ "name": "a_x" })).await;
                let text = response.expect_tool_error();
                assert!(text.contains("server `a` is down"), "{mode:?}: {text}");
                let greeting = peer.call_tool("desk_greet", json!({ "name": "Ada" })).await;
                assert_eq!(greeting.text(), "Hello, Ada!");
            })
            .await;
        }
    }
}
