//! Standard output that is not a sequence of messages.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::Instant,
};
use turnbuckle_client::{
    Anomaly, Client, ClientBuilder, ConnectError, LifecycleMode, TransportError,
};

use crate::servers::raw_ndjson::{
    RawServer, discover_result, initialize_result, response, text_result,
};

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

/// Returns the response with its id as a string.
fn under_text_id(to: &Value, result: Value) -> String {
    let mut message = response(to, result);
    message["id"] = to["id"].to_string().into();
    format!("{message}\n")
}

#[tokio::test(start_paused = true)]
async fn a_response_under_an_id_of_another_type_is_reported_at_once() {
    let started_at = Instant::now();
    let (mut script, client, _) = modern().await;
    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
    let request = script.next().await;

    script
        .write(under_text_id(&request, text_result("done")))
        .await;

    let error = call.await.unwrap().unwrap_err();
    let id = &request["id"];
    assert_eq!(
        error.to_string(),
        format!(
            r#"the response to `tools/call` is invalid: answered request "{id}" (string); {id} (number) was asked"#
        )
    );
    assert_eq!(started_at.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_under_an_id_of_another_type_is_reported_at_once() {
    for (mode, method, result) in [
        (LifecycleMode::Auto, "server/discover", discover_result()),
        (LifecycleMode::Legacy, "initialize", initialize_result()),
    ] {
        let started_at = Instant::now();
        let builder = Client::builder("test", "1").lifecycle_mode(mode);
        let (mut script, start_connect) = RawServer::connect(builder);
        let request = script.next().await;

        script.write(under_text_id(&request, result)).await;

        let error = start_connect.await.unwrap().unwrap_err();
        let id = &request["id"];
        assert_eq!(
            error.to_string(),
            format!(
                r#"the server's response to `{method}` is invalid: answered request "{id}" (string); {id} (number) was asked"#
            )
        );
        assert_eq!(started_at.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_over_several_lines_is_reported_at_once() {
    for (ending, rest) in [("\n", ""), ("\r\n", "INFO ready\n"), ("", "")] {
        let started_at = Instant::now();
        let (mut script, start_connect) = RawServer::connect(Client::builder("test", "1"));
        let probe = script.next().await;

        let pretty = serde_json::to_string_pretty(&response(&probe, discover_result())).unwrap();
        let pretty = pretty.replace('\n', if ending == "\r\n" { ending } else { "\n" });
        script
            .write(format!("INFO starting {{\n{pretty}{ending}{rest}"))
            .await;
        if ending.is_empty() {
            drop(script);
        }

        let error = start_connect.await.unwrap().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server cannot be reached: the server wrote a JSON message over several lines; on stdio every message must be one line"
        );
        assert_eq!(started_at.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn printed_text_over_several_lines_is_only_an_anomaly() {
    for text in [
        "{\n  \"level\": \"info\"\n}\n",
        "[\n1\n]\n",
        "{\n\"jsonrpc\": \"2.0\n}\n",
        "{\n}}\n",
        &format!("{{\n\"a\": \"{}\"\n}}\n", "x".repeat(300_000)),
    ] {
        let (mut script, client, _anomaly) = modern().await;
        let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
        let request = script.next().await;

        script.write(text).await;
        script.respond(&request, text_result("done")).await;

        assert!(call.await.unwrap().is_ok(), "{text:.40}");
    }
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
