//! Standard output that is not what it should be.

use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use turnbuckle_client::{Anomaly, Client, ClientBuilder, ConnectError, TransportError};

use crate::scripted::{Script, answer, discovered, said};

#[tokio::test(start_paused = true)]
async fn what_is_no_message_is_shown_and_the_call_goes_on() {
    let twice = r#"{"jsonrpc":"2.0","id":2,"result":{}}{"jsonrpc":"2.0","id":2,"result":{}}"#;
    let deep = "[".repeat(100_000);
    let long = "x".repeat(100_000);
    for noise in [
        "INFO listening",
        "\0",
        "{\0}",
        "null",
        "\"text\"",
        "{}",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"id\":2",
        twice,
        &deep,
        &long,
        "\u{1b}[31mred\u{1b}[0m",
    ] {
        let (mut script, client, mut odd) = modern().await;
        let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
        let request = script.next().await;

        script.say(format!("{noise}\n")).await;
        script.answer(&request, said("done")).await;

        let noise: String = noise.chars().take(200).collect();
        let shown = odd.recv().await.unwrap();
        assert!(
            matches!(&shown, Anomaly::NotJson(text) if *text == noise),
            "{shown:?}"
        );
        assert!(call.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_text_are_shown_replaced() {
    let (mut script, _client, mut odd) = modern().await;

    script.say(b"\xff\xfe{\0\n").await;

    let Some(Anomaly::NotJson(text)) = odd.recv().await else {
        panic!("no noise");
    };
    assert_eq!(text, "\u{fffd}\u{fffd}{\0");
}

#[tokio::test(start_paused = true)]
async fn other_line_ends_blank_lines_and_a_byte_order_mark_are_borne() {
    let (builder, mut odd) = odd_builder();
    let (mut script, connecting) = Script::connect(builder);
    let probe = script.next().await;

    let answer = answer(&probe, discovered());
    script.say(format!("\u{feff}{answer}\r\n\r\n\n")).await;

    assert!(connecting.await.unwrap().is_ok());
    assert_eq!(odd.recv().await, Some(Anomaly::ByteOrderMark));
    assert!(odd.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_last_answer_needs_no_line_end() {
    let (mut script, client, _) = modern().await;
    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
    let request = script.next().await;

    script.say(answer(&request, said("done")).to_string()).await;
    drop(script);

    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_frames_as_language_servers_do_is_told_apart_at_once() {
    let (mut script, connecting) = Script::connect(Client::builder("test", "1"));
    let probe = script.next().await;

    let body = answer(&probe, discovered()).to_string();
    let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    script.say(framed).await;

    let error = connecting.await.unwrap().unwrap_err();
    assert!(
        matches!(error, ConnectError::Unreachable(TransportError::LspFraming)),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stray_header_later_on_is_only_odd() {
    let (mut script, client, mut odd) = modern().await;
    let call = tokio::spawn(client.call_tool("any", json!({})).into_future());
    let request = script.next().await;

    script.say("Content-Length: 12\n").await;
    script.answer(&request, said("done")).await;

    assert_eq!(odd.recv().await, Some(Anomaly::LspFraming));
    assert!(call.await.unwrap().is_ok());
}

fn odd_builder() -> (ClientBuilder, UnboundedReceiver<Anomaly>) {
    let (sender, odd) = unbounded_channel();
    let builder = Client::builder("test", "1").on_anomaly(move |odd| {
        let _ = sender.send(odd);
    });
    (builder, odd)
}

async fn modern() -> (Script, Client, UnboundedReceiver<Anomaly>) {
    let (builder, odd) = odd_builder();
    let (script, client) = Script::modern(builder).await;
    (script, client, odd)
}
