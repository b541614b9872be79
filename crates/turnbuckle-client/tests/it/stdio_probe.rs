//! The first question, and what every answer to it means.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::{Anomaly, Client, ConnectError, Era, LifecycleMode};
use turnbuckle_spec_coverage::req;

use crate::scripted::{Script, discovered, initialized, said};

fn builder() -> turnbuckle_client::ClientBuilder {
    Client::builder("test", "1")
}

#[tokio::test(start_paused = true)]
async fn the_first_question_is_of_the_newest_revision() {
    req!(
        "versioning.stdio.modern-client-probe",
        "versioning.stdio.dual-probe",
        in: ["2026-07-28"]
    );
    for choice in [LifecycleMode::Auto, LifecycleMode::Modern] {
        let (mut script, _connecting) = Script::connect(builder().lifecycle_mode(choice));

        let probe = script.next().await;

        assert_eq!(probe["method"], "server/discover");
        let version = &probe["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_what_it_speaks_is_taken_at_its_word() {
    req!("versioning.stdio.probe-result");
    let (mut script, client) = Script::modern(builder()).await;

    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
    let request = script.next().await;
    script.answer(&request, said("done")).await;

    assert_eq!(client.server().era, Era::Modern);
    assert_eq!(request["method"], "tools/call");
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_modern_refusal_is_no_reason_for_a_handshake() {
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

    let (mut script, connecting) = Script::connect(builder());
    let probe = script.next().await;
    script.refuse(&probe, version).await;
    let again = script.next().await;
    assert_eq!(again["method"], "server/discover");
    script.answer(&again, discovered()).await;
    assert_eq!(connecting.await.unwrap().unwrap().server().era, Era::Modern);

    let (mut script, connecting) = Script::connect(builder());
    let probe = script.next().await;
    script.refuse(&probe, capability).await;
    let refused = connecting.await.unwrap().unwrap_err();
    assert!(
        matches!(refused, ConnectError::Rejected { .. }),
        "{refused}"
    );
    assert_eq!(script.line().await, "", "nothing else is asked");
}

#[tokio::test(start_paused = true)]
async fn every_other_answer_leads_to_a_handshake() {
    // What a client of 2026-07-28 does on its way to an older revision.
    req!(
        "versioning.stdio.probe-other",
        "versioning.stdio.no-single-code",
        in: ["2026-07-28"]
    );
    for code in [
        -32601, -32602, -32600, -32603, -32700, -32000, -32002, -1, 0, 404,
    ] {
        let (mut script, connecting) = Script::connect(builder());
        let probe = script.next().await;
        let error = json!({ "code": code, "message": "what?" });
        script.refuse(&probe, error).await;

        assert_eq!(shake_hands(&mut script).await["id"], 2, "after {code}");
        assert_eq!(connecting.await.unwrap().unwrap().server().era, Era::Legacy);
    }
    for result in [json!({}), json!(null), json!({ "tools": [] })] {
        let (mut script, connecting) = Script::connect(builder());
        let probe = script.next().await;
        script.answer(&probe, result).await;

        shake_hands(&mut script).await;
        assert_eq!(connecting.await.unwrap().unwrap().server().era, Era::Legacy);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_leads_to_a_handshake_and_a_late_answer_to_nothing() {
    req!("versioning.stdio.probe-other");
    let (sender, mut odd) = tokio::sync::mpsc::unbounded_channel();
    let builder = builder().on_anomaly(move |odd| sender.send(odd).unwrap());
    let begun = tokio::time::Instant::now();
    let (mut script, connecting) = Script::connect(builder);
    let probe = script.next().await;

    let handshake = shake_hands(&mut script).await;
    let client = connecting.await.unwrap().unwrap();
    script.answer(&probe, discovered()).await;

    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert!(begun.elapsed() <= Duration::from_secs(15));
    assert_ne!(handshake["id"], probe["id"]);
    assert!(matches!(
        odd.recv().await,
        Some(Anomaly::UnexpectedResponse(_))
    ));
    assert_eq!(client.server().era, Era::Legacy);
}

#[tokio::test(start_paused = true)]
async fn who_wants_only_the_newest_revision_shakes_no_hands() {
    let (mut script, connecting) = Script::connect(builder().lifecycle_mode(LifecycleMode::Modern));
    let probe = script.next().await;

    let error = json!({ "code": -32601, "message": "what?" });
    script.refuse(&probe, error).await;

    let error = connecting.await.unwrap().unwrap_err();
    assert!(matches!(error, ConnectError::NoCommonRevision { .. }));
    assert_eq!(script.line().await, "", "nothing else is asked");
}

/// Answers `initialize` and waits for what follows; returns the request.
async fn shake_hands(script: &mut Script) -> Value {
    let handshake = script.next().await;
    assert_eq!(handshake["method"], "initialize");
    script.answer(&handshake, initialized()).await;
    let done = script.next().await;
    assert_eq!(done["method"], "notifications/initialized");
    handshake
}
