//! Scripted HTTP responses.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_text::percent::form_pairs;

use crate::fetch::{Fetch, FetchError, FetchMethod, FetchRequest, FetchResponse};

/// The MCP server of most tests.
pub(in crate::client) const SERVER: &str = "https://mcp.example/mcp";
/// The authorization server of most tests.
pub(in crate::client) const ISSUER: &str = "https://as.example";

type ResponseRule =
    dyn Fn(&RecordedRequest) -> Option<Result<FetchResponse, FetchError>> + Send + Sync;

/// HTTP without a network: responds by rules, else with 404, and records requests.
///
/// Later rules precede earlier ones, so that a test can change the rules of [`FakeHttp::usual`].
#[derive(Clone, Default)]
pub(in crate::client) struct FakeHttp(Arc<Mutex<FakeHttpState>>);

#[derive(Default)]
struct FakeHttpState {
    rules: Vec<Arc<ResponseRule>>,
    request: Vec<RecordedRequest>,
}

/// A received request.
#[derive(Clone, Debug)]
pub(in crate::client) struct RecordedRequest {
    /// `GET` or `POST`.
    pub(in crate::client) method: FetchMethod,
    /// The URL.
    pub(in crate::client) url: String,
    /// The headers.
    pub(in crate::client) headers: Vec<(&'static str, String)>,
    /// The body.
    pub(in crate::client) body: String,
}

impl FakeHttp {
    /// Returns an MCP server and an authorization server without errors.
    pub(in crate::client) fn usual() -> FakeHttp {
        FakeHttp::default()
            .get(
                "https://mcp.example/.well-known/oauth-protected-resource/mcp",
                &json!({ "resource": SERVER, "authorization_servers": [ISSUER] }),
            )
            .get(
                "https://as.example/.well-known/oauth-authorization-server",
                &metadata(),
            )
            .post(
                "https://as.example/register",
                201,
                &json!({ "client_id": "registered", "token_endpoint_auth_method": "none" }),
            )
            .post(
                "https://as.example/token",
                200,
                &json!({ "access_token": "access", "token_type": "Bearer", "expires_in": 300, "refresh_token": "refresh" }),
            )
    }

    /// Responds to GET with a document.
    pub(in crate::client) fn get(self, url: &str, document: &Value) -> FakeHttp {
        self.respond(FetchMethod::Get, url, 200, document)
    }

    /// Responds to POST.
    pub(in crate::client) fn post(self, url: &str, status: u16, response: &Value) -> FakeHttp {
        self.respond(FetchMethod::Post, url, status, response)
    }

    /// Responds with a status and no body.
    pub(in crate::client) fn status(self, url: &str, status: u16) -> FakeHttp {
        let url = url.to_owned();
        self.rule(move |request| {
            (request.url == url).then(|| Ok(FetchResponse::new(status, Vec::new(), "")))
        })
    }

    /// Responds as a function says; `None` continues with earlier rules.
    pub(in crate::client) fn rule(
        self,
        rule: impl Fn(&RecordedRequest) -> Option<Result<FetchResponse, FetchError>>
        + Send
        + Sync
        + 'static,
    ) -> FakeHttp {
        self.0.lock().unwrap().rules.push(Arc::new(rule));
        self
    }

    /// Returns all requests.
    pub(in crate::client) fn requests(&self) -> Vec<RecordedRequest> {
        self.0.lock().unwrap().request.clone()
    }

    /// Returns the URLs of all requests, in order.
    pub(in crate::client) fn urls(&self) -> Vec<String> {
        self.requests()
            .into_iter()
            .map(|request| request.url)
            .collect()
    }

    /// Returns the last POST to a URL.
    pub(in crate::client) fn last_post(&self, url: &str) -> RecordedRequest {
        let mut request = self.requests();
        request.retain(|request| request.method == FetchMethod::Post && request.url == url);
        request
            .pop()
            .unwrap_or_else(|| panic!("nothing was posted to {url}"))
    }

    fn respond(self, method: FetchMethod, url: &str, status: u16, response: &Value) -> FakeHttp {
        let (url, body) = (url.to_owned(), response.to_string());
        self.rule(move |request| {
            let is_meant = request.method == method && request.url == url;
            is_meant.then(|| Ok(json_response(status, &body)))
        })
    }
}

impl RecordedRequest {
    /// Returns the value of a header.
    pub(in crate::client) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(own, _)| *own == name)?;
        Some(&found.1)
    }

    /// Returns the only value of a form field.
    pub(in crate::client) fn field(&self, name: &str) -> Option<String> {
        only(&self.body, name)
    }
}

impl Fetch for FakeHttp {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        let headers = request.headers.iter();
        let request = RecordedRequest {
            method: request.method,
            url: request.url,
            headers: headers
                .map(|(name, value)| (*name, value.expose().to_owned()))
                .collect(),
            body: String::from_utf8(request.body).unwrap(),
        };
        let rules = {
            let mut played = self.0.lock().unwrap();
            played.request.push(request.clone());
            played.rules.clone()
        };
        Box::pin(async move {
            let response = rules.iter().rev().find_map(|rule| rule(&request));
            response.unwrap_or_else(|| Ok(json_response(404, "{}")))
        })
    }
}

/// The metadata of the authorization server of most tests.
pub(in crate::client) fn metadata() -> Value {
    json!({
        "issuer": ISSUER,
        "authorization_endpoint": "https://as.example/authorize",
        "token_endpoint": "https://as.example/token",
        "registration_endpoint": "https://as.example/register",
        "device_authorization_endpoint": "https://as.example/device",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"],
        "authorization_response_iss_parameter_supported": true,
    })
}

/// Changes members of a document; `null` removes one.
pub(in crate::client) fn with(mut document: Value, changes: &Value) -> Value {
    let fields = document.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        fields.insert(name.clone(), value.clone());
        if value.is_null() {
            fields.remove(name);
        }
    }
    document
}

/// Returns a JSON response.
pub(in crate::client) fn json_response(status: u16, body: &str) -> FetchResponse {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    FetchResponse::new(status, headers, body)
}

/// Returns the only value of a parameter in the query of a URL.
pub(in crate::client) fn parameter(url: &str, name: &str) -> Option<String> {
    only(url.split_once('?')?.1, name)
}

fn only(pairs: &str, name: &str) -> Option<String> {
    let mut found = form_pairs(pairs).filter(|(own, _)| own == name);
    let value = found.next().map(|(_, value)| value);
    assert!(found.next().is_none(), "`{name}` occurs twice");
    value
}
