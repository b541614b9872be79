//! Beginnings that are not quite right.

use serde_json::json;
use turnbuckle_protocol::revision::Revision;

use super::base::{error, is_response_to, remove};
use crate::mutant::{Mutant, OutgoingMessage};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

pub(super) fn mutants() -> Vec<Mutant> {
    let mut all = handshakes();
    all.extend(capabilities());
    all.extend(versions());
    all.extend(metas());
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
        Mutant::new("lifecycle.unknown-version", "agrees to everything").map_sent(|outgoing| {
            if extension_mutants(outgoing, "1999-01-01") {
                outgoing.message["result"]["protocolVersion"] = "1999-01-01".into();
            }
        }),
        Mutant::new("lifecycle.offer-kept", "offers what it does not keep")
            .in_revision(Revision::V2025_06_18)
            .map_sent(|outgoing| {
                if extension_mutants(outgoing, "2025-11-25") {
                    outgoing.message["result"]["protocolVersion"] = "2025-06-18".into();
                }
            }),
        Mutant::new("lifecycle.newest-offered", "offers an old version").map_sent(|outgoing| {
            if extension_mutants(outgoing, "1999-01-01") {
                outgoing.message["result"]["protocolVersion"] = "2025-06-18".into();
            }
        }),
        Mutant::new("lifecycle.newest-offered", "offers less than it has")
            .in_revision(Revision::V2025_06_18)
            .map_sent(|outgoing| {
                if extension_mutants(outgoing, "1999-01-01")
                    || extension_mutants(outgoing, "2025-11-25")
                {
                    outgoing.message["result"]["protocolVersion"] = "2024-11-05".into();
                }
            }),
        Mutant::new("lifecycle.waits-for-initialized", "asks for roots at once")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_response_to(outgoing, "initialize") {
                    let id = format!("mine-{}", outgoing.message["id"]);
                    let request = json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" });
                    outgoing.before.push(request);
                }
            }),
        Mutant::new("lifecycle.ping-before-initialize", "no `ping` at first")
            .on_ndjson()
            .in_revision(Revision::V2025_11_25)
            .map_received(|incoming| {
                if incoming.earlier.is_empty() && incoming.message["method"] == "ping" {
                    incoming.response = Some(error(&incoming.message["id"], -32600));
                    incoming.message = json!(null);
                }
            }),
        Mutant::new("lifecycle.initialize-first", "lists tools for everyone")
            .on_ndjson()
            .in_revision(Revision::V2025_11_25)
            .map_received(|incoming| {
                if incoming.earlier.is_empty() && incoming.message["method"] == "tools/list" {
                    let id = &incoming.message["id"];
                    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } });
                    incoming.response = Some(answer);
                    incoming.message = json!(null);
                }
            }),
        Mutant::new("lifecycle.second-initialize", "silence for the second one")
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
            "an empty list of what is not declared",
        )
        .map_sent(|outgoing| {
            if is_response_to(outgoing, "server/discover") {
                remove(&mut outgoing.message["result"]["capabilities"], "prompts");
            }
            if is_response_to(outgoing, "prompts/list") {
                outgoing.message["result"]["prompts"] = json!([]);
            }
        }),
        Mutant::new("lifecycle.no-opening", "wants to be asked who it is first")
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
        Mutant::new("lifecycle.discover", "nobody says who is there").map_sent(|outgoing| {
            if is_response_to(outgoing, "server/discover")
                && outgoing.message.get("result").is_some()
            {
                outgoing.message = error(&outgoing.message["id"], -32601);
            }
        }),
        Mutant::new(
            "lifecycle.discover-names-version",
            "names older versions only",
        )
        .map_response_to("server/discover", |message| {
            if message.get("result").is_some() {
                message["result"]["supportedVersions"] = json!(["2025-11-25"]);
            }
        }),
        Mutant::new(
            "lifecycle.unsupported-version",
            "an unknown version is a wrong parameter",
        )
        .map_sent(move |outgoing| {
            if refusal(&outgoing.message) {
                outgoing.message["error"]["code"] = (-32602).into();
            }
        }),
        Mutant::new(
            "lifecycle.unsupported-version-data",
            "does not name the versions",
        )
        .map_sent(move |outgoing| {
            if refusal(&outgoing.message) {
                outgoing.message["error"]["data"]["supported"] = json!([]);
            }
        }),
        Mutant::new(
            "lifecycle.unsupported-version-status",
            "refuses with the status 200",
        )
        .response(|_, outgoing_response| as_ok(outgoing_response, "-32022")),
    ]
}

fn metas() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "lifecycle.required-meta",
            "a missing field is an internal error",
        )
        .map_sent(|outgoing| {
            if lacks_capabilities(outgoing) {
                outgoing.message["error"]["code"] = (-32603).into();
            }
        }),
        Mutant::new(
            "lifecycle.required-meta-status",
            "refuses with the status 200",
        )
        .response(|_, outgoing_response| as_ok(outgoing_response, "clientCapabilities")),
        Mutant::new(
            "lifecycle.nothing-remembered",
            "remembers what the client can do",
        )
        .on_ndjson()
        .map_received(|incoming| {
            let said = |message: &serde_json::Value| {
                message["params"]["_meta"].get(CAPABILITIES).is_some()
            };
            let asks = incoming.message["params"]["_meta"].is_object();
            if asks && !said(&incoming.message) && incoming.earlier.iter().any(said) {
                incoming.message["params"]["_meta"][CAPABILITIES] = json!({});
            }
        }),
    ]
}

/// Says whether a message answers `initialize` with this version.
fn extension_mutants(outgoing: &OutgoingMessage, version: &str) -> bool {
    let request = outgoing.request.as_ref();
    let offers = request.map(|asked| &asked["params"]["protocolVersion"]);
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
async fn each_with_a_handshake_trips_its_rule() {
    super::assert_each_trips_its_rule(handshakes()).await;
}

#[tokio::test(start_paused = true)]
async fn each_with_capabilities_trips_its_rule() {
    super::assert_each_trips_its_rule(capabilities()).await;
}

#[tokio::test(start_paused = true)]
async fn each_with_versions_trips_its_rule() {
    super::assert_each_trips_its_rule(versions()).await;
}

#[tokio::test(start_paused = true)]
async fn each_with_metas_trips_its_rule() {
    super::assert_each_trips_its_rule(metas()).await;
}
