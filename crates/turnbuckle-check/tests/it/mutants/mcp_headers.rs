//! Mutants that do not check MCP headers.

use http::Request;
use serde_json::Value;
use turnbuckle_protocol::codec::headers;

use super::http::{method, set};
use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "http.version-header-repeats-body",
            "ignores `MCP-Protocol-Version`",
        )
        .request(|request| {
            if body(request)["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
                == "2026-07-28"
            {
                set(request, "mcp-protocol-version", "2026-07-28");
            }
        }),
        Mutant::new("http.method-header-repeats-body", "ignores `Mcp-Method`")
            .for_requirement("http.header.body-mismatch")
            .request(|request| {
                if header(request, "mcp-method").as_deref() == Some("tools/list") {
                    fix_method(request);
                }
            }),
        Mutant::new(
            "http.method-header-case",
            "ignores the case of `Mcp-Method`",
        )
        .request(|request| {
            let sent = header(request, "mcp-method");
            if sent.is_some_and(|sent| sent.eq_ignore_ascii_case(&method(request))) {
                fix_method(request);
            }
        }),
        Mutant::new("http.name-header-repeats-body", "accepts any name")
            .for_requirement("http.header.body-mismatch")
            .request(|request| {
                if header(request, "mcp-name").is_some_and(|name| name.ends_with("-not")) {
                    fix_name(request);
                }
            }),
        Mutant::new("http.headers-required", "accepts a missing `Mcp-Method`").request(|request| {
            if header(request, "mcp-method").is_none() {
                fix_method(request);
            }
        }),
        Mutant::new("http.headers-required", "accepts a missing `Mcp-Name`").request(|request| {
            if header(request, "mcp-name").is_none() {
                fix_name(request);
            }
        }),
        Mutant::new("http.name-header-decoded", "compares encoded names").request(|request| {
            if header(request, "mcp-name").is_some_and(|name| name.starts_with("=?base64?")) {
                set(request, "mcp-name", "another");
            }
        }),
        Mutant::new("http.name-header-bad-base64", "accepts invalid Base64").request(|request| {
            let sent = header(request, "mcp-name");
            if sent.is_some_and(|name| headers::decode(&name).is_err()) {
                fix_name(request);
            }
        }),
        Mutant::new(
            "http.name-header-taken-literally",
            "ignores the case of `=?base64?`",
        )
        .request(|request| {
            if header(request, "mcp-name").is_some_and(|name| name.starts_with("=?BASE64?")) {
                fix_name(request);
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

fn fix_method(request: &mut Request<Vec<u8>>) {
    let method = method(request);
    if !method.is_empty() {
        set(request, "mcp-method", &method);
    }
}

fn fix_name(request: &mut Request<Vec<u8>>) {
    let params = &body(request)["params"];
    let name = params["uri"].as_str().or(params["name"].as_str());
    if let Some(name) = name {
        set(request, "mcp-name", &headers::encode(name));
    }
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
