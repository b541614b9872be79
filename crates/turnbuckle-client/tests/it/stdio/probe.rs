//! The probe, and the classification of its response.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::{Anomaly, Client, ConnectError, Era, LifecycleMode};
use turnbuckle_spec_coverage::req;

use crate::servers::raw_ndjson::{RawServer, discover_result, initialize_result, text_result};

fn builder() -> turnbuckle_client::ClientBuilder {
    Client::builder("test", "1")
}

#[tokio::test(start_paused = true)]
async fn the_probe_has_the_newest_revision() {
    req!(
        "versioning.stdio.modern-client-probe",
        "versioning.stdio.dual-probe",
        in: ["2026-07-28"]
    );
    for mode in [LifecycleMode::Auto, LifecycleMode::Modern] {
        let (mut script, _connecting) = RawServer::connect(builder().lifecycle_mode(mode));

        let probe = script.next().await;

        assert_eq!(probe["method"], "server/discover");
        let version = &probe["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28");
    }
}

#[tokio::test(start_paused = true)]
async fn the_revisions_of_the_probe_response_are_used() {
    req!("versioning.stdio.probe-result");
    let (mut script, client) = RawServer::modern(builder()).await;

    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
    let request = script.next().await;
    script.respond(&request, text_result("done")).await;

    assert_eq!(client.server().era, Era::Modern);
    assert_eq!(request["method"], "tools/call");
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_modern_error_is_returned_without_a_handshake() {
    req!("versioning.stdio.probe-modern-error");
    let version = json!({
        "code": -32022,
        "message": "not that one",
        "data": { "supported": ["2026-07-28"], "requested": "2026-07-28" },
    });
    let capability = json!({
        "code": -32021,
        "message": "more is needed",
        "data": { "requiredCapabilities": {} },
    });

    let (mut script, start_connect) = RawServer::connect(builder());
    let probe = script.next().await;
    script.reject(&probe, version).await;
    let again = script.next().await;
    assert_eq!(again["method"], "server/discover");
    script.respond(&again, discover_result()).await;
    assert_eq!(
        start_connect.await.unwrap().unwrap().server().era,
        Era::Modern
    );

    let (mut script, start_connect) = RawServer::connect(builder());
    let probe = script.next().await;
    script.reject(&probe, capability).await;
    let rejected = start_connect.await.unwrap().unwrap_err();
    assert!(
        matches!(rejected, ConnectError::Rejected { .. }),
        "{rejected}"
    );
    assert_eq!(script.next_line().await, "", "no other request is sent");
}

#[tokio::test(start_paused = true)]
async fn every_other_response_leads_to_a_handshake() {
    // A requirement of 2026-07-28, although the negotiated revision is older.
    req!(
        "versioning.stdio.probe-other",
        "versioning.stdio.no-single-code",
        in: ["2026-07-28"]
    );
    for code in [
        -32601, -32602, -32600, -32603, -32700, -32000, -32002, -1, 0, 404,
    ] {
        let (mut script, start_connect) = RawServer::connect(builder());
        let probe = script.next().await;
        let error = json!({ "code": code, "message": "what?" });
        script.reject(&probe, error).await;

        assert_eq!(
            complete_handshake(&mut script).await["id"],
            2,
            "after {code}"
        );
        assert_eq!(
            start_connect.await.unwrap().unwrap().server().era,
            Era::Legacy
        );
    }
    for result in [json!({}), json!(null), json!({ "tools": [] })] {
        let (mut script, start_connect) = RawServer::connect(builder());
        let probe = script.next().await;
        script.respond(&probe, result).await;

        complete_handshake(&mut script).await;
        assert_eq!(
            start_connect.await.unwrap().unwrap().server().era,
            Era::Legacy
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_gets_a_handshake_and_its_late_response_is_ignored() {
    req!("versioning.stdio.probe-other");
    let (sender, mut anomaly) = tokio::sync::mpsc::unbounded_channel();
    let builder = builder().on_anomaly(move |anomaly| sender.send(anomaly).unwrap());
    let started_at = tokio::time::Instant::now();
    let (mut script, start_connect) = RawServer::connect(builder);
    let probe = script.next().await;

    let handshake = complete_handshake(&mut script).await;
    let client = start_connect.await.unwrap().unwrap();
    script.respond(&probe, discover_result()).await;

    assert!(started_at.elapsed() >= Duration::from_secs(1));
    assert!(started_at.elapsed() <= Duration::from_secs(15));
    assert_ne!(handshake["id"], probe["id"]);
    assert!(matches!(
        anomaly.recv().await,
        Some(Anomaly::UnexpectedResponse(_))
    ));
    assert_eq!(client.server().era, Era::Legacy);
}

#[tokio::test(start_paused = true)]
async fn modern_mode_sends_no_handshake() {
    let (mut script, start_connect) =
        RawServer::connect(builder().lifecycle_mode(LifecycleMode::Modern));
    let probe = script.next().await;

    let error = json!({ "code": -32601, "message": "what?" });
    script.reject(&probe, error).await;

    let error = start_connect.await.unwrap().unwrap_err();
    assert!(matches!(error, ConnectError::NoCommonRevision { .. }));
    assert_eq!(script.next_line().await, "", "no other request is sent");
}

/// Responds to `initialize`, and waits for the notification; returns the request.
async fn complete_handshake(script: &mut RawServer) -> Value {
    let handshake = script.next().await;
    assert_eq!(handshake["method"], "initialize");
    script.respond(&handshake, initialize_result()).await;
    let done = script.next().await;
    assert_eq!(done["method"], "notifications/initialized");
    handshake
}
