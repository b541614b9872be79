//! Lifecycle mutants.

use serde_json::{Value, json};

use super::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "client.lifecycle.initialize-first",
            "a request before the handshake",
        )
        .for_requirement("lifecycle.init.first")
        .on_ndjson()
        .map_sent(|outgoing| {
            if outgoing.method() == "initialize" {
                outgoing
                    .before
                    .push(json!({ "jsonrpc": "2.0", "id": "early", "method": "tools/list" }));
            }
        }),
        Mutant::new("client.lifecycle.introduces-itself", "no client info").requests_input(
            "initialize",
            |message| {
                message["params"]["clientInfo"] = Value::Null;
            },
        ),
        Mutant::new(
            "client.lifecycle.initialized",
            "no `notifications/initialized`",
        )
        .requests_input("notifications/initialized", |message| {
            *message = Value::Null;
        }),
        Mutant::new("client.lifecycle.waits", "a request before the response")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.method() == "initialize" {
                    outgoing
                        .after
                        .push(json!({ "jsonrpc": "2.0", "id": "early", "method": "tools/list" }));
                }
            }),
        Mutant::new(
            "client.lifecycle.initialize-not-cancelled",
            "cancels `initialize`",
        )
        .map_sent(|outgoing| match outgoing.method() {
            "initialize" => outgoing.state.message = Some(outgoing.message["id"].clone()),
            "notifications/initialized" => {
                let params = json!({ "requestId": outgoing.state.message });
                outgoing.after.push(json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params,
                }));
            }
            _ => {}
        }),
        Mutant::new(
            "client.lifecycle.leaves-unknown-version",
            "continues with any version",
        )
        .for_requirement("lifecycle.version.client-disconnect")
        .map_received(|message| {
            if message["result"]["protocolVersion"] == "1999-12-31" {
                message["result"]["protocolVersion"] = "2025-11-25".into();
            }
        }),
        Mutant::new(
            "client.lifecycle.capabilities",
            "lists without the capability",
        )
        .for_requirement("lifecycle.operation.capabilities-must")
        .in_revision(turnbuckle_protocol::revision::Revision::V2025_11_25)
        .map_received(|message| {
            if let Some(capabilities) = message.pointer_mut("/result/capabilities") {
                capabilities["resources"] = json!({});
            }
        }),
        Mutant::new(
            "client.lifecycle.offers-a-revision",
            "a version that is not a revision",
        )
        .requests_input("initialize", |message| {
            message["params"]["protocolVersion"] = "1.0".into();
        }),
        Mutant::new(
            "client.lifecycle.newest-offered",
            "an old revision although it supports newer ones",
        )
        .requests_input("initialize", |message| {
            message["params"]["protocolVersion"] = "2024-11-05".into();
        }),
        Mutant::new(
            "client.lifecycle.version-kept",
            "a notification of a later revision",
        )
        .in_revision(turnbuckle_protocol::revision::Revision::V2025_06_18)
        .map_sent(|outgoing| {
            if outgoing.method() == "tools/list" {
                let method = "notifications/elicitation/complete";
                let params = json!({ "elicitationId": "1" });
                outgoing
                    .before
                    .push(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
            }
        }),
        Mutant::new("client.lifecycle.no-shutdown-message", "a shutdown request").map_sent(
            |outgoing| {
                if outgoing.method() == "tools/list" {
                    outgoing.state.count += 1;
                    let id = format!("bye-{}", outgoing.state.count);
                    outgoing
                        .before
                        .push(json!({ "jsonrpc": "2.0", "id": id, "method": "shutdown" }));
                }
            },
        ),
        Mutant::new(
            "client.eras.stays-modern-on-lines",
            "a handshake after -32022",
        )
        .map_received(forget_code),
        Mutant::new(
            "client.eras.stays-modern-on-http",
            "a handshake after -32022",
        )
        .for_requirement("versioning.http.modern-error-stay")
        .map_received(forget_code),
        Mutant::new(
            "client.eras.any-code-on-lines",
            "falls back after one code only",
        )
        .map_received(one_code_alone),
        Mutant::new(
            "client.eras.falls-back-on-http",
            "falls back after one code only",
        )
        .map_received(one_code_alone),
    ]
}

/// Treats every error as an error of a legacy server.
fn forget_code(message: &mut Value) {
    if message["error"]["code"] == -32022 {
        message["error"]["code"] = (-32601).into();
    }
}

/// Treats other codes as errors of a modern server.
fn one_code_alone(message: &mut Value) {
    if message["error"]["code"] == -32000 {
        message["error"]["code"] = (-32021).into();
    }
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
