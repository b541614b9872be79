//! Tests with a local endpoint that misbehaves on request.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

/// The behavior of the endpoint for one connection.
enum Act {
    Say(String),
    /// Sends a response without end.
    Flood,
    /// Reads the request and never responds.
    Sleep,
    /// Closes the connection.
    Hang,
}

struct Endpoint {
    base: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    fn seen(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn embedder(&self) -> HttpEmbedder {
        HttpEmbedder::new(&self.base, "small").unwrap()
    }
}

async fn endpoint(acts: Vec<Act>) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        for act in acts {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !is_whole(&request) {
                let read = stream.read_buf(&mut request).await.unwrap();
                assert!(read > 0, "a request is whole");
            }
            seen.lock()
                .unwrap()
                .push(String::from_utf8(request).unwrap());
            match act {
                Act::Say(text) => stream.write_all(text.as_bytes()).await.unwrap(),
                Act::Flood => {
                    let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
                    stream.write_all(head).await.unwrap();
                    while stream.write_all(&[b' '; 65_536]).await.is_ok() {}
                }
                Act::Sleep => std::future::pending().await,
                Act::Hang => {}
            }
        }
    });
    Endpoint { base, requests }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.split("content-length: ").nth(1).unwrap();
    body.len() >= length.lines().next().unwrap().parse().unwrap()
}

fn say(status: &str, body: &str) -> Act {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    Act::Say(head + body)
}

fn ok(body: &serde_json::Value) -> Act {
    say("200 OK", &body.to_string())
}

fn one_vector() -> serde_json::Value {
    json!({ "data": [{ "embedding": [0.0, 2.0], "index": 0 }], "model": "small" })
}

async fn request_one(acts: Vec<Act>) -> Result<Vec<Vec<f32>>, EmbeddingError> {
    endpoint(acts)
        .await
        .embedder()
        .request_vectors(&["tea".to_owned()])
        .await
}

#[tokio::test]
async fn embeddings_are_in_the_order_of_the_texts_and_normalized() {
    let answer = json!({ "data": [
        { "embedding": [0.0, 5.0], "index": 1 },
        { "embedding": [3.0, 4.0], "index": 0 },
    ] });
    let endpoint = endpoint(vec![ok(&answer)]).await;
    let embedder = endpoint.embedder().api_key("open-sesame").unwrap();
    let texts = vec!["tea".to_owned(), "rain".to_owned()];
    let vectors = embedder.embed(texts).await.unwrap();
    assert_eq!(vectors, [[0.6, 0.8], [0.0, 1.0]]);
    let request = &endpoint.seen()[0];
    assert!(request.starts_with("POST /v1/embeddings HTTP/1.1\r\n"));
    assert!(request.contains("authorization: Bearer open-sesame\r\n"));
    assert!(request.ends_with(r#"{"model":"small","input":["tea","rain"]}"#));
}

#[tokio::test]
async fn many_texts_are_sent_in_batches() {
    let endpoint = endpoint(vec![ok(&one_vector()), ok(&one_vector())]).await;
    let texts = vec!["tea".to_owned(), "rain".to_owned()];
    let vectors = endpoint.embedder().batch(1).embed(texts).await.unwrap();
    assert_eq!(vectors.len(), 2);
    assert_eq!(endpoint.seen().len(), 2);
}

#[tokio::test]
async fn a_busy_server_is_retried() {
    let busy = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let vectors = request_one(vec![Act::Say(busy.to_owned()), ok(&one_vector())]).await;
    assert_eq!(vectors.unwrap(), [[0.0, 1.0]]);
}

#[tokio::test]
async fn a_broken_connection_is_retried() {
    let vectors = request_one(vec![Act::Hang, ok(&one_vector())]).await;
    assert_eq!(vectors.unwrap().len(), 1);
}

#[tokio::test]
async fn a_long_retry_after_is_not_honored() {
    let busy =
        "HTTP/1.1 503 Busy\r\nretry-after: 86400\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let rejected = request_one(vec![Act::Say(busy.to_owned())]).await;
    assert!(matches!(rejected, Err(EmbeddingError::ErrorResponse { status, .. }) if status == 503));
}

#[tokio::test]
async fn retries_end_after_the_maximum_number_of_attempts() {
    let fails = || say("500 Oops", "no luck");
    let endpoint = endpoint(vec![fails(), fails(), fails()]).await;
    let rejected = endpoint
        .embedder()
        .request_vectors(&["tea".to_owned()])
        .await;
    let message = rejected.unwrap_err().to_string();
    assert!(
        message.ends_with("500 Internal Server Error: no luck"),
        "{message}"
    );
    assert_eq!(endpoint.seen().len(), 3);
}

#[tokio::test]
async fn an_error_message_does_not_contain_the_api_key() {
    let endpoint = endpoint(vec![say("401 No", "bad key open-sesame\u{7}")]).await;
    let embedder = endpoint.embedder().api_key("open-sesame").unwrap();
    let message = embedder
        .request_vectors(&["tea".to_owned()])
        .await
        .unwrap_err()
        .to_string();
    assert!(
        message.ends_with("401 Unauthorized: bad key ***"),
        "{message}"
    );
    assert_eq!(endpoint.seen().len(), 1);
    assert!(!format!("{embedder:?}").contains("sesame"));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let there = "HTTP/1.1 307 There\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let redirected = request_one(vec![Act::Say(there.to_owned())]).await;
    assert!(matches!(redirected, Err(EmbeddingError::Redirect(_))));
}

#[tokio::test]
async fn a_response_over_the_size_limit_is_rejected() {
    assert!(matches!(
        request_one(vec![Act::Flood]).await,
        Err(EmbeddingError::ResponseTooLarge(_))
    ));
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let endpoint = endpoint(vec![Act::Sleep]).await;
    let embedder = endpoint.embedder().timeout(Duration::from_millis(50));
    let silent = embedder.request_vectors(&["tea".to_owned()]).await;
    assert!(matches!(silent, Err(EmbeddingError::TimedOut(_))));
}

#[tokio::test]
async fn invalid_responses_are_rejected() {
    let entry = |numbers: &str| format!(r#"{{"data":[{{"embedding":[{numbers}]}}]}}"#);
    let problems = [
        (
            "hello".to_owned(),
            "the response is not a list of embeddings",
        ),
        ("{}".to_owned(), "the response is not a list of embeddings"),
        (entry("NaN, 1"), "the response is not a list of embeddings"),
        (entry("null, 1"), "the response is not a list of embeddings"),
        (entry("1e39, 1"), "the response is not a list of embeddings"),
        (
            entry("0, 0"),
            "an embedding is empty, too long, zero or not finite",
        ),
        (
            entry(""),
            "an embedding is empty, too long, zero or not finite",
        ),
        (
            r#"{"data":[]}"#.to_owned(),
            "1 texts were sent, but 0 embeddings were returned",
        ),
        (
            r#"{"data":[{"embedding":[1],"index":7}]}"#.to_owned(),
            "the response is not a list of embeddings",
        ),
    ];
    for (body, expected) in problems {
        let problem = request_one(vec![say("200 OK", &body)]).await.unwrap_err();
        assert_eq!(problem.to_string(), expected, "{body}");
    }
}

#[tokio::test]
async fn embeddings_with_changed_dimensions_are_rejected() {
    let larger = json!({ "data": [{ "embedding": [1, 2, 3] }] });
    let endpoint = endpoint(vec![ok(&one_vector()), ok(&larger)]).await;
    let embedder = endpoint.embedder();
    embedder.request_vectors(&["tea".to_owned()]).await.unwrap();
    let changed = embedder.request_vectors(&["tea".to_owned()]).await;
    assert!(matches!(
        changed,
        Err(EmbeddingError::DimensionMismatch {
            expected: 2,
            size: 3
        })
    ));
}

#[test]
fn the_api_key_is_validated_and_not_displayed() {
    let embedder = || HttpEmbedder::new("http://localhost:1/v1", "model").unwrap();
    let with_key = embedder().api_key("open-sesame").unwrap();
    let debug = format!("{with_key:?}");
    assert!(
        debug.contains("***") && !debug.contains("sesame"),
        "{debug}"
    );
    for bad in ["", "  ", "a\nb"] {
        assert!(matches!(
            embedder().api_key(bad),
            Err(EmbeddingError::InvalidApiKey)
        ));
    }
}
