//! Beginnings that are not quite right.

use serde_json::json;
use turnbuckle_protocol::revision::Revision;

use super::base::{asked, error, remove};
use crate::mutant::{Mutant, Saying};

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
        .on_lines()
        .in_revision(Revision::V2025_06_18)
        .says(|saying| {
            if asked(saying, "tools/list") {
                let method = "notifications/elicitation/complete";
                let params = json!({ "elicitationId": "1" });
                saying
                    .before
                    .push(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
            }
        }),
        Mutant::new(
            "lifecycle.unknown-version",
            "an error for an unknown version",
        )
        .says(|saying| {
            if offered(saying, "1999-01-01") {
                saying.message = error(&saying.message["id"], -32602);
            }
        }),
        Mutant::new("lifecycle.unknown-version", "agrees to everything").says(|saying| {
            if offered(saying, "1999-01-01") {
                saying.message["result"]["protocolVersion"] = "1999-01-01".into();
            }
        }),
        Mutant::new("lifecycle.offer-kept", "offers what it does not keep")
            .in_revision(Revision::V2025_06_18)
            .says(|saying| {
                if offered(saying, "2025-11-25") {
                    saying.message["result"]["protocolVersion"] = "2025-06-18".into();
                }
            }),
        Mutant::new("lifecycle.newest-offered", "offers an old version").says(|saying| {
            if offered(saying, "1999-01-01") {
                saying.message["result"]["protocolVersion"] = "2025-06-18".into();
            }
        }),
        Mutant::new("lifecycle.newest-offered", "offers less than it has")
            .in_revision(Revision::V2025_06_18)
            .says(|saying| {
                if offered(saying, "1999-01-01") || offered(saying, "2025-11-25") {
                    saying.message["result"]["protocolVersion"] = "2024-11-05".into();
                }
            }),
        Mutant::new("lifecycle.waits-for-initialized", "asks for roots at once")
            .on_lines()
            .says(|saying| {
                if asked(saying, "initialize") {
                    let id = format!("mine-{}", saying.message["id"]);
                    let request = json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" });
                    saying.before.push(request);
                }
            }),
        Mutant::new("lifecycle.ping-before-initialize", "no `ping` at first")
            .on_lines()
            .in_revision(Revision::V2025_11_25)
            .hears(|hearing| {
                if hearing.earlier.is_empty() && hearing.message["method"] == "ping" {
                    hearing.answer = Some(error(&hearing.message["id"], -32600));
                    hearing.message = json!(null);
                }
            }),
        Mutant::new("lifecycle.initialize-first", "lists tools for everyone")
            .on_lines()
            .in_revision(Revision::V2025_11_25)
            .hears(|hearing| {
                if hearing.earlier.is_empty() && hearing.message["method"] == "tools/list" {
                    let id = &hearing.message["id"];
                    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } });
                    hearing.answer = Some(answer);
                    hearing.message = json!(null);
                }
            }),
        Mutant::new("lifecycle.second-initialize", "silence for the second one")
            .on_lines()
            .in_revision(Revision::V2025_11_25)
            .hears(|hearing| {
                let first = hearing.earlier.first();
                let again = first.is_some_and(|first| first["method"] == "initialize");
                if again && hearing.message["method"] == "initialize" {
                    hearing.message = json!(null);
                }
            }),
    ]
}

fn capabilities() -> Vec<Mutant> {
    vec![
        Mutant::new("lifecycle.extension-names", "an extension without a prefix").answers(
            "server/discover",
            |message| {
                message["result"]["capabilities"]["extensions"] = json!({ "turnbuckle": {} });
            },
        ),
        Mutant::new(
            "lifecycle.undeclared-refused",
            "an empty list of what is not declared",
        )
        .says(|saying| {
            if asked(saying, "server/discover") {
                remove(&mut saying.message["result"]["capabilities"], "prompts");
            }
            if asked(saying, "prompts/list") {
                saying.message["result"]["prompts"] = json!([]);
            }
        }),
        Mutant::new("lifecycle.no-opening", "wants to be asked who it is first")
            .on_lines()
            .hears(|hearing| {
                if hearing.earlier.is_empty() && hearing.message["method"] == "tools/list" {
                    hearing.answer = Some(error(&hearing.message["id"], -32602));
                    hearing.message = json!(null);
                }
            }),
    ]
}

fn versions() -> Vec<Mutant> {
    let refusal = |message: &serde_json::Value| message["error"]["code"] == -32022;
    vec![
        Mutant::new("lifecycle.discover", "nobody says who is there").says(|saying| {
            if asked(saying, "server/discover") && saying.message.get("result").is_some() {
                saying.message = error(&saying.message["id"], -32601);
            }
        }),
        Mutant::new(
            "lifecycle.discover-names-version",
            "names older versions only",
        )
        .answers("server/discover", |message| {
            if message.get("result").is_some() {
                message["result"]["supportedVersions"] = json!(["2025-11-25"]);
            }
        }),
        Mutant::new(
            "lifecycle.unsupported-version",
            "an unknown version is a wrong parameter",
        )
        .says(move |saying| {
            if refusal(&saying.message) {
                saying.message["error"]["code"] = (-32602).into();
            }
        }),
        Mutant::new(
            "lifecycle.unsupported-version-data",
            "does not name the versions",
        )
        .says(move |saying| {
            if refusal(&saying.message) {
                saying.message["error"]["data"]["supported"] = json!([]);
            }
        }),
        Mutant::new(
            "lifecycle.unsupported-version-status",
            "refuses with the status 200",
        )
        .response(|_, responding| as_ok(responding, "-32022")),
    ]
}

fn metas() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "lifecycle.required-meta",
            "a missing field is an internal error",
        )
        .says(|saying| {
            if lacks_capabilities(saying) {
                saying.message["error"]["code"] = (-32603).into();
            }
        }),
        Mutant::new(
            "lifecycle.required-meta-status",
            "refuses with the status 200",
        )
        .response(|_, responding| as_ok(responding, "clientCapabilities")),
        Mutant::new(
            "lifecycle.nothing-remembered",
            "remembers what the client can do",
        )
        .on_lines()
        .hears(|hearing| {
            let said = |message: &serde_json::Value| {
                message["params"]["_meta"].get(CAPABILITIES).is_some()
            };
            let asks = hearing.message["params"]["_meta"].is_object();
            if asks && !said(&hearing.message) && hearing.earlier.iter().any(said) {
                hearing.message["params"]["_meta"][CAPABILITIES] = json!({});
            }
        }),
    ]
}

/// Says whether a message answers `initialize` with this version.
fn offered(saying: &Saying, version: &str) -> bool {
    let request = saying.asked.as_ref();
    let offers = request.map(|asked| &asked["params"]["protocolVersion"]);
    asked(saying, "initialize") && offers.is_some_and(|offers| offers == version)
}

fn lacks_capabilities(saying: &Saying) -> bool {
    let request = saying.asked.as_ref();
    request.is_some_and(|request| {
        let meta = &request["params"]["_meta"];
        meta.is_object() && meta.get(CAPABILITIES).is_none()
    })
}

fn as_ok(responding: &mut crate::mutant::Responding, mark: &str) {
    let body = responding.body.as_deref().unwrap_or_default();
    if responding.head.status == 400 && String::from_utf8_lossy(body).contains(mark) {
        responding.head.status = http::StatusCode::OK;
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
