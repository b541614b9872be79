//! Lifecycle mutants.

use serde_json::json;
use turnbuckle_protocol::revision::Revision;

use super::base::{error, is_response_to, remove};
use crate::mutant::{Mutant, OutgoingMessage};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

pub(super) fn mutants() -> Vec<Mutant> {
    let mut all = handshakes();
    all.extend(capabilities());
    all.extend(versions());
    all.extend(required_meta());
    all
}

fn handshakes() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "lifecycle.version-kept",
            "a notification of a later revision",
        )
        .on_ndjson()
        .in_revision(Revision::V2025_06_18)
        .map_sent(|outgoing| {
            if is_response_to(outgoing, "tools/list") {
                let method = "notifications/elicitation/complete";
                let params = json!({ "elicitationId": "1" });
                outgoing
                    .before
                    .push(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
            }
        }),
        Mutant::new(
            "lifecycle.unknown-version",
            "an error for an unknown version",
        )
        .map_sent(|outgoing| {
            if extension_mutants(outgoing, "1999-01-01") {
                outgoing.message = error(&outgoing.message["id"], -32602);
            }
        }),
        Mutant::new("lifecycle.unknown-version", "accepts any version").map_sent(|outgoing| {
            if extension_mutants(outgoing, "1999-01-01") {
                outgoing.message["result"]["protocolVersion"] = "1999-01-01".into();
            }
        }),
        Mutant::new("lifecycle.offer-kept", "proposes a version that it rejects")
            .in_revision(Revision::V2025_06_18)
            .map_sent(|outgoing| {
                if extension_mutants(outgoing, "2025-11-25") {
                    outgoing.message["result"]["protocolVersion"] = "2025-06-18".into();
                }
            }),
        Mutant::new("lifecycle.newest-offered", "proposes an old version").map_sent(|outgoing| {
            if extension_mutants(outgoing, "1999-01-01") {
                outgoing.message["result"]["protocolVersion"] = "2025-06-18".into();
            }
        }),
        Mutant::new(
            "lifecycle.newest-offered",
            "proposes an older version than it supports",
        )
        .in_revision(Revision::V2025_06_18)
        .map_sent(|outgoing| {
            if extension_mutants(outgoing, "1999-01-01")
                || extension_mutants(outgoing, "2025-11-25")
            {
                outgoing.message["result"]["protocolVersion"] = "2024-11-05".into();
            }
        }),
        Mutant::new(
            "lifecycle.waits-for-initialized",
            "requests roots before `notifications/initialized`",
        )
        .on_ndjson()
        .map_sent(|outgoing| {
            if is_response_to(outgoing, "initialize") {
                let id = format!("mine-{}", outgoing.message["id"]);
                let request = json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" });
                outgoing.before.push(request);
            }
        }),
        Mutant::new(
            "lifecycle.ping-before-initialize",
            "rejects `ping` before the handshake",
        )
        .on_ndjson()
        .in_revision(Revision::V2025_11_25)
        .map_received(|incoming| {
            if incoming.earlier.is_empty() && incoming.message["method"] == "ping" {
                incoming.response = Some(error(&incoming.message["id"], -32600));
                incoming.message = json!(null);
            }
        }),
        Mutant::new(
            "lifecycle.initialize-first",
            "lists tools before the handshake",
        )
        .on_ndjson()
        .in_revision(Revision::V2025_11_25)
        .map_received(|incoming| {
            if incoming.earlier.is_empty() && incoming.message["method"] == "tools/list" {
                let id = &incoming.message["id"];
                let response = json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } });
                incoming.response = Some(response);
                incoming.message = json!(null);
            }
        }),
        Mutant::new(
            "lifecycle.second-initialize",
            "no response to a second `initialize`",
        )
        .on_ndjson()
        .in_revision(Revision::V2025_11_25)
        .map_received(|incoming| {
            let first = incoming.earlier.first();
            let again = first.is_some_and(|first| first["method"] == "initialize");
            if again && incoming.message["method"] == "initialize" {
                incoming.message = json!(null);
            }
        }),
    ]
}

fn capabilities() -> Vec<Mutant> {
    vec![
        Mutant::new("lifecycle.extension-names", "an extension without a prefix").map_response_to(
            "server/discover",
            |message| {
                message["result"]["capabilities"]["extensions"] = json!({ "turnbuckle": {} });
            },
        ),
        Mutant::new(
            "lifecycle.undeclared-refused",
            "an empty list without the capability",
        )
        .map_sent(|outgoing| {
            if is_response_to(outgoing, "server/discover") {
                remove(&mut outgoing.message["result"]["capabilities"], "prompts");
            }
            if is_response_to(outgoing, "prompts/list") {
                outgoing.message["result"]["prompts"] = json!([]);
            }
        }),
        Mutant::new("lifecycle.no-opening", "requires `server/discover` first")
            .on_ndjson()
            .map_received(|incoming| {
                if incoming.earlier.is_empty() && incoming.message["method"] == "tools/list" {
                    incoming.response = Some(error(&incoming.message["id"], -32602));
                    incoming.message = json!(null);
                }
            }),
    ]
}

fn versions() -> Vec<Mutant> {
    let refusal = |message: &serde_json::Value| message["error"]["code"] == -32022;
    vec![
        Mutant::new("lifecycle.discover", "no `server/discover`").map_sent(|outgoing| {
            if is_response_to(outgoing, "server/discover")
                && outgoing.message.get("result").is_some()
            {
                outgoing.message = error(&outgoing.message["id"], -32601);
            }
        }),
        Mutant::new(
            "lifecycle.discover-names-version",
            "lists older versions only",
        )
        .map_response_to("server/discover", |message| {
            if message.get("result").is_some() {
                message["result"]["supportedVersions"] = json!(["2025-11-25"]);
            }
        }),
        Mutant::new(
            "lifecycle.unsupported-version",
            "error -32602 for an unknown version",
        )
        .map_sent(move |outgoing| {
            if refusal(&outgoing.message) {
                outgoing.message["error"]["code"] = (-32602).into();
            }
        }),
        Mutant::new(
            "lifecycle.unsupported-version-data",
            "no supported versions in the error",
        )
        .map_sent(move |outgoing| {
            if refusal(&outgoing.message) {
                outgoing.message["error"]["data"]["supported"] = json!([]);
            }
        }),
        Mutant::new(
            "lifecycle.unsupported-version-status",
            "HTTP status 200 for an error",
        )
        .response(|_, outgoing_response| as_ok(outgoing_response, "-32022")),
    ]
}

fn required_meta() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "lifecycle.required-meta",
            "an internal error for missing `_meta`",
        )
        .map_sent(|outgoing| {
            if lacks_capabilities(outgoing) {
                outgoing.message["error"]["code"] = (-32603).into();
            }
        }),
        Mutant::new(
            "lifecycle.required-meta-status",
            "HTTP status 200 for an error",
        )
        .response(|_, outgoing_response| as_ok(outgoing_response, "clientCapabilities")),
        Mutant::new(
            "lifecycle.nothing-remembered",
            "stores the client capabilities",
        )
        .on_ndjson()
        .map_received(|incoming| {
            let said = |message: &serde_json::Value| {
                message["params"]["_meta"].get(CAPABILITIES).is_some()
            };
            let requests_input = incoming.message["params"]["_meta"].is_object();
            if requests_input && !said(&incoming.message) && incoming.earlier.iter().any(said) {
                incoming.message["params"]["_meta"][CAPABILITIES] = json!({});
            }
        }),
    ]
}

/// Returns whether a message responds to `initialize` with this version.
fn extension_mutants(outgoing: &OutgoingMessage, version: &str) -> bool {
    let request = outgoing.request.as_ref();
    let offers = request.map(|request| &request["params"]["protocolVersion"]);
    is_response_to(outgoing, "initialize") && offers.is_some_and(|offers| offers == version)
}

fn lacks_capabilities(outgoing: &OutgoingMessage) -> bool {
    let request = outgoing.request.as_ref();
    request.is_some_and(|request| {
        let meta = &request["params"]["_meta"];
        meta.is_object() && meta.get(CAPABILITIES).is_none()
    })
}

fn as_ok(outgoing_response: &mut crate::mutant::OutgoingResponse, mark: &str) {
    let body = outgoing_response.body.as_deref().unwrap_or_default();
    if outgoing_response.head.status == 400 && String::from_utf8_lossy(body).contains(mark) {
        outgoing_response.head.status = http::StatusCode::OK;
    }
}

#[tokio::test(start_paused = true)]
async fn each_handshake_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(handshakes()).await;
}

#[tokio::test(start_paused = true)]
async fn each_capability_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(capabilities()).await;
}

#[tokio::test(start_paused = true)]
async fn each_version_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(versions()).await;
}

#[tokio::test(start_paused = true)]
async fn each_required_meta_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(required_meta()).await;
}
