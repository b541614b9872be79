//! Standard output that is not a sequence of messages.

use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use turnbuckle_client::{Anomaly, Client, ClientBuilder, ConnectError, TransportError};

use crate::servers::raw_ndjson::{RawServer, discover_result, response, text_result};

#[tokio::test(start_paused = true)]
async fn a_line_that_is_not_a_message_is_an_anomaly() {
    let repeated = r#"{"jsonrpc":"2.0","id":2,"result":{}}{"jsonrpc":"2.0","id":2,"result":{}}"#;
    let deep = "[".repeat(100_000);
    let long = "x".repeat(100_000);
    for has_noise in [
        "INFO listening",
        "\0",
        "{\0}",
        "null",
        "\"text\"",
        "{}",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"id\":2",
        repeated,
        &deep,
        &long,
        "\u{1b}[31mred\u{1b}[0m",
    ] {
        let (mut script, client, mut anomaly) = modern().await;
        let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
        let request = script.next().await;

        script.write(format!("{has_noise}\n")).await;
        script.respond(&request, text_result("done")).await;

        let has_noise: String = has_noise.chars().take(200).collect();
        let reported = anomaly.recv().await.unwrap();
        assert!(
            matches!(&reported, Anomaly::NotJson(text) if *text == has_noise),
            "{reported:?}"
        );
        assert!(call.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_utf_8_is_reported_with_replacement_characters() {
    let (mut script, _client, mut anomaly) = modern().await;

    script.write(b"\xff\xfe{\0\n").await;

    let Some(Anomaly::NotJson(text)) = anomaly.recv().await else {
        panic!("no noise");
    };
    assert_eq!(text, "\u{fffd}\u{fffd}{\0");
}

#[tokio::test(start_paused = true)]
async fn crlf_blank_lines_and_a_byte_order_mark_are_accepted() {
    let (builder, mut anomaly) = odd_builder();
    let (mut script, start_connect) = RawServer::connect(builder);
    let probe = script.next().await;

    let response = response(&probe, discover_result());
    script.write(format!("\u{feff}{response}\r\n\r\n\n")).await;

    assert!(start_connect.await.unwrap().is_ok());
    assert_eq!(anomaly.recv().await, Some(Anomaly::ByteOrderMark));
    assert!(anomaly.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_last_response_needs_no_line_break() {
    let (mut script, client, _) = modern().await;
    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
    let request = script.next().await;

    script
        .write(response(&request, text_result("done")).to_string())
        .await;
    drop(script);

    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn content_length_framing_is_detected() {
    let (mut script, start_connect) = RawServer::connect(Client::builder("test", "1"));
    let probe = script.next().await;

    let body = response(&probe, discover_result()).to_string();
    let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    script.write(framed).await;

    let error = start_connect.await.unwrap().unwrap_err();
    assert!(
        matches!(error, ConnectError::Unreachable(TransportError::LspFraming)),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_later_content_length_line_is_only_an_anomaly() {
    let (mut script, client, mut anomaly) = modern().await;
    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
    let request = script.next().await;

    script.write("Content-Length: 12\n").await;
    script.respond(&request, text_result("done")).await;

    assert_eq!(anomaly.recv().await, Some(Anomaly::LspFraming));
    assert!(call.await.unwrap().is_ok());
}

fn odd_builder() -> (ClientBuilder, UnboundedReceiver<Anomaly>) {
    let (sender, anomaly) = unbounded_channel();
    let builder = Client::builder("test", "1").on_anomaly(move |anomaly| {
        let _ = sender.send(anomaly);
    });
    (builder, anomaly)
}

async fn modern() -> (RawServer, Client, UnboundedReceiver<Anomaly>) {
    let (builder, anomaly) = odd_builder();
    let (script, client) = RawServer::modern(builder).await;
    (script, client, anomaly)
}
