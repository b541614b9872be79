//! Servers mounted in axum, each called by a client on a real port.

use axum::{Router, routing::get};
use serde_json::json;
use tokio::net::TcpListener;
use turnbuckle::{Server, Tool, client, http::Http};

fn clock() -> Http {
    let now = Tool::new("now", async || Ok("half past nine".to_owned()));
    Http::new(Server::new("clock", "1.0.0").tool(now))
}

/// Serves the application and returns its address.
async fn serve(application: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, application).await });
    format!("http://{address}")
}

async fn assert_answers_at(url: &str) {
    let client = client::http::connect(url).await.unwrap();
    let output = client.call_tool("now", json!({})).await.unwrap();
    assert_eq!(output.text(), "half past nine", "{url}");
}

#[tokio::test]
async fn a_service_answers_at_the_path_of_its_route() {
    let application = Router::new()
        .route("/", get(async || "a clock"))
        .route_service("/mcp", clock().into_service())
        .route_service("/tools/clock", clock().into_service());
    let base = serve(application).await;

    assert_answers_at(&format!("{base}/mcp")).await;
    assert_answers_at(&format!("{base}/tools/clock")).await;
}

#[tokio::test]
async fn a_nested_service_needs_no_path() {
    let application = Router::new()
        .nest_service("/x", clock().into_service())
        .nest(
            "/y",
            Router::new().nest_service("/z", clock().into_service()),
        );
    let base = serve(application).await;

    assert_answers_at(&format!("{base}/x")).await;
    assert_answers_at(&format!("{base}/x/")).await;
    assert_answers_at(&format!("{base}/y/z")).await;
}

#[tokio::test]
async fn a_mounted_service_ignores_the_paths_for_serve() {
    let service = clock().path("/elsewhere").health_path("/").into_service();
    let base = serve(Router::new().nest_service("/x", service)).await;

    assert_answers_at(&format!("{base}/x")).await;
}

#[tokio::test]
async fn a_served_server_answers_only_at_its_path() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(clock().path("/tools").serve(listener));

    assert_answers_at(&format!("http://{address}/tools")).await;
    assert!(
        client::http::connect(&format!("http://{address}/mcp"))
            .await
            .is_err()
    );
}
