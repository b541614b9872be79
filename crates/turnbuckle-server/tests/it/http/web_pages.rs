//! Web pages on other paths than the endpoint.

use bytes::Bytes;
use http::{Method, Request, Response, request::Builder};
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_server::{
    http::{Http, WebPages},
    testing::{self, TestHttpClient},
};

use crate::http::test_client::server;

/// Responds with the path, the query and the cookie.
struct Echo;

impl WebPages for Echo {
    fn has_path(&self, path: &str) -> bool {
        path.starts_with("/pages/") || path == "/mcp"
    }

    fn respond(&self, request: Request<()>) -> BoxFuture<'_, Response<Bytes>> {
        let cookie = request.headers().get("cookie").cloned();
        let text = format!("{} {cookie:?}", request.uri());
        Box::pin(async move { Response::new(text.into()) })
    }
}

fn client() -> TestHttpClient {
    testing::http(Http::new(server()).web_pages(Echo))
}

fn get(path: &str) -> Builder {
    Builder::new().method(Method::GET).uri(path)
}

#[tokio::test]
async fn a_page_gets_the_head_of_the_request() {
    let head = get("/pages/a?b=c")
        .header("host", "localhost")
        .header("cookie", "d=e");
    let response = client().send(head, String::new()).await;

    assert_eq!(response.status(), 200);
    let text = response.bytes().await;
    assert_eq!(&*text, b"/pages/a?b=c Some(\"d=e\")");
}

#[tokio::test]
async fn pages_take_only_get_and_neither_foreign_hosts_nor_the_endpoint() {
    let client = client();
    for method in [Method::HEAD, Method::POST, Method::OPTIONS, Method::DELETE] {
        let head = get("/pages/a")
            .method(method.clone())
            .header("host", "localhost");
        let response = client.send(head, String::new()).await;
        assert_eq!(response.status(), 405, "{method}");
    }
    let foreign = get("/pages/a").header("host", "evil.example");
    assert_eq!(client.send(foreign, String::new()).await.status(), 403);
    let origin = get("/pages/a")
        .header("host", "localhost")
        .header("origin", "https://evil.example");
    assert_eq!(client.send(origin, String::new()).await.status(), 403);
    for path in ["/pages", "/mcp", "/other"] {
        let response = client
            .send(get(path).header("host", "localhost"), String::new())
            .await;
        assert_ne!(response.status(), 200, "{path}");
    }
}
