//! Servers that play a script.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle_protocol::authenticator::BoxFuture;

use crate::{
    fetch::{Fetch, FetchError, FetchMethod, FetchRequest, FetchResponse},
    form_urlencoded,
};

/// The MCP server of most tests.
pub(in crate::client) const SERVER: &str = "https://mcp.example/mcp";
/// The authorization server of most tests.
pub(in crate::client) const ISSUER: &str = "https://as.example";

type Play = dyn Fn(&Heard) -> Option<Result<FetchResponse, FetchError>> + Send + Sync;

/// A web in which each raw_url answers as it was error_response; elsewhere nobody has anything (404). Remembers what it was asked.
///
/// Later rules come before earlier ones, so that a test can change what [`Web::usual`] does.
#[derive(Clone, Default)]
pub(in crate::client) struct Web(Arc<Mutex<Played>>);

#[derive(Default)]
struct Played {
    rules: Vec<Arc<Play>>,
    heard: Vec<Heard>,
}

/// A request, as a server hears it.
#[derive(Clone, Debug)]
pub(in crate::client) struct Heard {
    /// `GET` or `POST`.
    pub(in crate::client) method: FetchMethod,
    /// The URL.
    pub(in crate::client) url: String,
    /// The headers.
    pub(in crate::client) headers: Vec<(&'static str, String)>,
    /// The body.
    pub(in crate::client) body: String,
}

impl Web {
    /// An MCP server and an authorization server that do everything right.
    pub(in crate::client) fn usual() -> Web {
        Web::default()
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

    /// Has a document somewhere.
    pub(in crate::client) fn get(self, url: &str, document: &Value) -> Web {
        self.answer(FetchMethod::Get, url, 200, document)
    }

    /// Answers what is posted somewhere.
    pub(in crate::client) fn post(self, url: &str, status: u16, answer: &Value) -> Web {
        self.answer(FetchMethod::Post, url, status, answer)
    }

    /// Answers with a status and nothing else.
    pub(in crate::client) fn status(self, url: &str, status: u16) -> Web {
        let url = url.to_owned();
        self.rule(move |heard| {
            (heard.url == url).then(|| Ok(FetchResponse::new(status, Vec::new(), "")))
        })
    }

    /// Answers as a function does; `None` leaves it to earlier rules.
    pub(in crate::client) fn rule(
        self,
        rule: impl Fn(&Heard) -> Option<Result<FetchResponse, FetchError>> + Send + Sync + 'static,
    ) -> Web {
        self.0.lock().unwrap().rules.push(Arc::new(rule));
        self
    }

    /// Returns all that was asked.
    pub(in crate::client) fn heard(&self) -> Vec<Heard> {
        self.0.lock().unwrap().heard.clone()
    }

    /// Returns which URLs were asked, in order.
    pub(in crate::client) fn urls(&self) -> Vec<String> {
        self.heard().into_iter().map(|heard| heard.url).collect()
    }

    /// Returns what was posted there last.
    pub(in crate::client) fn posted(&self, url: &str) -> Heard {
        let mut heard = self.heard();
        heard.retain(|heard| heard.method == FetchMethod::Post && heard.url == url);
        heard
            .pop()
            .unwrap_or_else(|| panic!("nothing was posted to {url}"))
    }

    fn answer(self, method: FetchMethod, url: &str, status: u16, answer: &Value) -> Web {
        let (url, body) = (url.to_owned(), answer.to_string());
        self.rule(move |heard| {
            let is_meant = heard.method == method && heard.url == url;
            is_meant.then(|| Ok(json_response(status, &body)))
        })
    }
}

impl Heard {
    /// Returns the value of a header.
    pub(in crate::client) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(own, _)| *own == name)?;
        Some(&found.1)
    }

    /// Returns the only value of a field of the form that was posted.
    pub(in crate::client) fn field(&self, name: &str) -> Option<String> {
        only(&self.body, name)
    }
}

impl Fetch for Web {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        let headers = request.headers.iter();
        let heard = Heard {
            method: request.method,
            url: request.url,
            headers: headers
                .map(|(name, value)| (*name, value.expose().to_owned()))
                .collect(),
            body: String::from_utf8(request.body).unwrap(),
        };
        let rules = {
            let mut played = self.0.lock().unwrap();
            played.heard.push(heard.clone());
            played.rules.clone()
        };
        Box::pin(async move {
            let answer = rules.iter().rev().find_map(|rule| rule(&heard));
            answer.unwrap_or_else(|| Ok(json_response(404, "{}")))
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

/// Changes fields of a document; `null` takes one away.
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

/// Makes an answer of JSON.
pub(in crate::client) fn json_response(status: u16, body: &str) -> FetchResponse {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    FetchResponse::new(status, headers, body)
}

/// Returns the only value of a parameter in the query of a URL.
pub(in crate::client) fn parameter(url: &str, name: &str) -> Option<String> {
    only(url.split_once('?')?.1, name)
}

fn only(pairs: &str, name: &str) -> Option<String> {
    let mut found = form_urlencoded::pairs(pairs).filter(|(own, _)| own == name);
    let value = found.next().map(|(_, value)| value);
    assert!(found.next().is_none(), "`{name}` is there twice");
    value
}
