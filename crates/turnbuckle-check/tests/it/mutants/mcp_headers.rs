//! Headers that repeat what the body says: not looked at, in one way or another.

use http::Request;
use serde_json::Value;
use turnbuckle_protocol::codec::headers;

use super::http::{method, set};
use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "http.version-header-repeats-body",
            "a version of another date will do",
        )
        .request(|request| {
            if body(request)["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
                == "2026-07-28"
            {
                set(request, "mcp-protocol-version", "2026-07-28");
            }
        }),
        Mutant::new(
            "http.method-header-repeats-body",
            "any known method will do",
        )
        .request(|request| {
            if header(request, "mcp-method").as_deref() == Some("tools/list") {
                mend_method(request);
            }
        }),
        Mutant::new("http.method-header-case", "methods without regard to case").request(
            |request| {
                let sent = header(request, "mcp-method");
                if sent.is_some_and(|sent| sent.eq_ignore_ascii_case(&method(request))) {
                    mend_method(request);
                }
            },
        ),
        Mutant::new("http.name-header-repeats-body", "any name will do").request(|request| {
            if header(request, "mcp-name").is_some_and(|name| name.ends_with("-not")) {
                mend_name(request);
            }
        }),
        Mutant::new("http.headers-required", "no method will do").request(|request| {
            if header(request, "mcp-method").is_none() {
                mend_method(request);
            }
        }),
        Mutant::new("http.headers-required", "no name will do").request(|request| {
            if header(request, "mcp-name").is_none() {
                mend_name(request);
            }
        }),
        Mutant::new(
            "http.name-header-decoded",
            "names are compared as they come",
        )
        .request(|request| {
            if header(request, "mcp-name").is_some_and(|name| name.starts_with("=?base64?")) {
                set(request, "mcp-name", "another");
            }
        }),
        Mutant::new(
            "http.name-header-bad-base64",
            "what is no Base64 is not looked at",
        )
        .request(|request| {
            let sent = header(request, "mcp-name");
            if sent.is_some_and(|name| headers::decode(&name).is_err()) {
                mend_name(request);
            }
        }),
        Mutant::new("http.name-header-taken-literally", "marks in any case").request(|request| {
            if header(request, "mcp-name").is_some_and(|name| name.starts_with("=?BASE64?")) {
                mend_name(request);
            }
        }),
    ]
}

fn body(request: &Request<Vec<u8>>) -> Value {
    serde_json::from_slice(request.body()).unwrap_or_default()
}

fn header(request: &Request<Vec<u8>>, name: &str) -> Option<String> {
    let value = request.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

fn mend_method(request: &mut Request<Vec<u8>>) {
    let method = method(request);
    if !method.is_empty() {
        set(request, "mcp-method", &method);
    }
}

fn mend_name(request: &mut Request<Vec<u8>>) {
    let params = &body(request)["params"];
    let name = params["uri"].as_str().or(params["name"].as_str());
    if let Some(name) = name {
        set(request, "mcp-name", &headers::encode(name));
    }
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
