//! The user of the good client, who logs in over the same connections as the client.

use std::{io, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client};
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use turnbuckle_auth::{
    AuthorizationError, AuthorizationStep,
    client::{UserAgent, device::DeviceCode},
    fetch::{self, Fetch, FetchError},
};
use turnbuckle_client::auth::BoxFuture;

/// Opens connections.
pub(crate) type Connect = Arc<dyn Fn() -> Connecting + Send + Sync>;
type Connecting = Pin<Box<dyn Future<Output = io::Result<DuplexStream>> + Send>>;

/// A user who consents to everything.
#[derive(Clone)]
pub(crate) struct TestUser(pub(crate) Connect);

impl TestUser {
    async fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TokioIo::new((self.0)().await?);
        let (mut sender, connection) = client::conn::http1::handshake(stream).await?;
        tokio::spawn(connection);
        let request = request.map(|body| Full::new(Bytes::from(body)));
        Ok(sender.send_request(request).await?)
    }

    async fn fetched(
        &self,
        request: fetch::FetchRequest,
    ) -> Result<fetch::FetchResponse, Box<dyn std::error::Error + Send + Sync>> {
        let method = match request.method {
            fetch::FetchMethod::Get => "GET",
            fetch::FetchMethod::Post => "POST",
        };
        let mut draft = Request::builder().method(method).uri(path(&request.url));
        for (name, value) in &request.headers {
            draft = draft.header(*name, value.expose());
        }
        let response = self.send(draft.body(request.body)?).await?;
        let status = response.status().as_u16();
        let headers = response.headers().iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.to_string(), value.into_owned())
        });
        let headers = headers.collect();
        let body = response.collect().await?.to_bytes().to_vec();
        Ok(fetch::FetchResponse::new(status, headers, body))
    }
}

fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}

impl Fetch for TestUser {
    fn fetch(
        &self,
        request: fetch::FetchRequest,
    ) -> BoxFuture<'_, Result<fetch::FetchResponse, FetchError>> {
        Box::pin(async move {
            let fetched = self.fetched(request).await;
            fetched.map_err(|error| FetchError::Unreachable(error.to_string()))
        })
    }
}

impl UserAgent for TestUser {
    fn redirect_uri<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        Box::pin(async { Ok("http://127.0.0.1:8976/callback".to_owned()) })
    }

    fn open_url<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        Box::pin(async move {
            let page = Request::get(path(url)).body(Vec::new()).unwrap();
            let response = self.send(page).await.unwrap();
            let location = response.headers().get("location");
            let location = location.and_then(|location| location.to_str().ok());
            location.map(str::to_owned).ok_or_else(|| {
                AuthorizationError::new(AuthorizationStep::Authorization, "no redirect")
            })
        })
    }

    fn show_device_code<'a>(
        &'a self,
        _: &'a DeviceCode,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        Box::pin(async { Ok(()) })
    }
}
