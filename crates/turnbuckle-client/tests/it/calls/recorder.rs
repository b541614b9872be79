//! Recorded traffic.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use turnbuckle_client::{Client, Recorder, TrafficEntry};
use turnbuckle_protocol::recording::{EntryKind, MessageSide, RedactionRules};

use crate::servers::{
    mock_mcp_http::{builder_for, server, target_of},
    mock_ndjson::MockServer,
};

/// Recorded entries.
#[derive(Clone, Default)]
struct Entries(Arc<Mutex<Vec<TrafficEntry>>>);

impl Entries {
    fn recorder(&self) -> Recorder {
        let entries = Arc::clone(&self.0);
        let rules = RedactionRules::new().key("password");
        Recorder::new(rules, move |entry| entries.lock().unwrap().push(entry))
    }

    fn all(&self) -> Vec<TrafficEntry> {
        self.0.lock().unwrap().clone()
    }

    /// Returns one word or text for each entry.
    fn summary(&self) -> Vec<String> {
        let entries = self.all();
        let summary = entries.iter().map(|entry| match &entry.kind {
            EntryKind::Message(message) => {
                let json: serde_json::Value =
                    serde_json::from_str(message.message.as_str()).unwrap();
                let method = json["method"].as_str().unwrap_or("response");
                format!("{:?} {method}", message.from)
            }
            EntryKind::Noise(output) | EntryKind::Stderr(output) => {
                let text = output.text.as_ref().and_then(|text| text.as_str());
                format!("{} {}", entry.kind.name(), text.unwrap_or_default())
            }
            kind => kind.name().to_owned(),
        });
        summary.collect()
    }
}

#[tokio::test(start_paused = true)]
async fn lines_are_recorded_in_order_with_their_time() {
    let entries = Entries::default();
    let server = MockServer::modern();
    server.withhold("tools/call");
    let recorder = entries.recorder();
    tokio::time::sleep(Duration::from_millis(250)).await;
    let builder = Client::builder("test", "1").recorder(recorder);
    let client = server.connect_with(builder).await;

    let call = client.call_tool("work", json!({ "password": "s3cret" }));
    let call = tokio::spawn(std::future::IntoFuture::into_future(call));
    let requested = server.next("tools/call").await;
    server.send_line("debugging").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.reply(&requested, json!({ "content": [] })).await;
    call.await.unwrap().unwrap();
    client.close().await;
    drop(client);
    // The task that reads ends.
    tokio::time::sleep(Duration::from_secs(1)).await;

    let expected = [
        "open",
        "Client server/discover",
        "Server response",
        "Client tools/call",
        "noise debugging",
        "anomaly",
        "Server response",
        "close",
    ];
    assert_eq!(entries.summary(), expected);
    let all = entries.all();
    assert!(!format!("{all:?}").contains("s3cret"), "{all:?}");
    assert_eq!(all[0].time, Duration::from_millis(250));
    assert_eq!(all[6].time, Duration::from_millis(1250));
    let connections = all.iter().map(|entry| entry.connection);
    assert_eq!(connections.collect::<Vec<_>>(), [1, 1, 1, 1, 1, 0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn http_exchanges_are_recorded_without_credentials() {
    let entries = Entries::default();
    let mock = server("2026-07-28", |_| None);
    let client = builder_for("2026-07-28")
        .recorder(entries.recorder())
        .connect(target_of(&mock).bearer("sesame"))
        .await
        .unwrap();

    client.call_tool("a", json!({})).await.unwrap();

    let exchange = |method: &str| {
        let sent = format!("Client {method}");
        ["request", &sent, "response", "Server response", "end"].map(str::to_owned)
    };
    let expected = [
        vec!["open".to_owned()],
        exchange("server/discover").to_vec(),
        exchange("tools/call").to_vec(),
    ];
    assert_eq!(entries.summary(), expected.concat());
    let all = entries.all();
    assert!(!format!("{all:?}").contains("sesame"), "{all:?}");
    let EntryKind::Response(response) = &all[3].kind else {
        panic!("{all:?}");
    };
    assert_eq!((response.exchange, response.status), (1, 200));
    assert!(response.phases.connect.is_some() && response.phases.first_byte.is_some());
    let EntryKind::Message(message) = &all[9].kind else {
        panic!("{all:?}");
    };
    assert_eq!(
        (message.from, message.exchange),
        (MessageSide::Server, Some(2))
    );
}

#[cfg(unix)]
#[tokio::test]
async fn stderr_and_the_exit_of_a_program_are_recorded() {
    use turnbuckle_client::stdio::ServerCommand;

    let entries = Entries::default();
    let command = ServerCommand::new("sh")
        .args(["-c", "echo no configuration >&2; exit 3"])
        .env("MODE", "s3cret");
    let builder = Client::builder("test", "1").recorder(entries.recorder());

    let connected = builder.connect(command).await;

    assert!(connected.is_err());
    let all = entries.all();
    assert!(
        entries
            .summary()
            .contains(&"stderr no configuration".to_owned()),
        "{all:?}"
    );
    let open = all.iter().find_map(|entry| match &entry.kind {
        EntryKind::Open(open) => Some(open.clone()),
        _ => None,
    });
    assert_eq!(open.unwrap().env, ["MODE"]);
    assert!(!format!("{all:?}").contains("s3cret"), "{all:?}");
    let code = all.iter().find_map(|entry| match &entry.kind {
        EntryKind::Close(close) => close.code,
        _ => None,
    });
    assert_eq!(code, Some(3));
}
