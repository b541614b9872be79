//! The authentication layer in front of any service.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower_layer::Layer as _;
use tower_service::Service;
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Server, Tool,
    http::{AuthLayer, Http},
};

use crate::{
    auth::test_authenticator::{METADATA, NameAuthenticator, challenge},
    http::test_client::{modern, modern_headers},
};

/// Responds with the principal of the request.
#[derive(Clone)]
struct Mirror;

impl Service<Request<Full<Bytes>>> for Mirror {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let who = request.extensions().get::<Arc<Principal>>();
        let name = who.map_or("missing".to_owned(), |who| who.subject.clone());
        let text = format!("{name} {}", request.headers().contains_key("authorization"));
        std::future::ready(Ok(Response::new(Full::from(text))))
    }
}

async fn send<S, R>(service: &S, request: http::request::Builder, body: &str) -> Response<Bytes>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>, Error = Infallible> + Clone,
    R: http_body::Body<Data = Bytes, Error = Infallible>,
{
    let request = request.body(Full::from(body.to_owned())).unwrap();
    let response = service.clone().call(request).await.unwrap();
    let (parts, body) = response.into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn any_service_can_be_authenticated() {
    let service = AuthLayer::new(NameAuthenticator::default()).layer(Mirror);

    let without_credentials = send(&service, Request::get("/"), "").await;
    assert_eq!(without_credentials.status(), 401);
    assert_eq!(
        without_credentials.headers()["www-authenticate"],
        *challenge("")
    );
    let ada = Request::get("/").header("authorization", "Bearer ada");
    assert_eq!(send(&service, ada, "").await.body(), "ada false");
    let metadata = send(&service, Request::get(METADATA), "").await;
    assert_eq!(metadata.status(), 200);
    let preflight = send(&service, Request::options("/"), "").await;
    assert_eq!(preflight.body(), "missing false");
}

#[tokio::test]
async fn a_server_behind_the_auth_layer_uses_its_principal_and_scopes() {
    let tool = Tool::new("write", async || Ok("written".to_owned()));
    let server = Server::new("test", "1.0.0").tool(tool.scopes(["files:write"]));
    let server = Http::new(server).into_service();
    let service = AuthLayer::new(Arc::new(NameAuthenticator::default())).layer(server);
    let call = modern("tools/call", json!({ "name": "write", "arguments": {} }));
    let request = |name: &str| {
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("authorization", format!("Bearer {name}"));
        modern_headers(request, &call)
    };

    let lacking = send(&service, request("ada"), &call.to_string()).await;
    assert_eq!(lacking.status(), 403);
    let wanted = challenge(r#"error="insufficient_scope", scope="files:write", "#);
    assert_eq!(lacking.headers()["www-authenticate"], *wanted);
    let done = send(&service, request("ada:files:write"), &call.to_string()).await;
    let answer: Value = serde_json::from_slice(done.body()).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "written");
}
