//! Both eras on one connection.

use serde_json::{Value, json};
use turnbuckle_server::{Context, Prompt, Resource, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::ndjson::test_client::{LEGACY, Peer, initialize, modern, modern_with};

fn server() -> Server {
    let hello = Tool::new("hello", async || Ok("hello".to_owned()));
    let client = Tool::new("client", async |cx: Context| {
        let known = cx.client().map(|client| client.name.clone());
        let roots = cx.client_capabilities().roots.is_some();
        Ok(format!("{known:?} {roots}"))
    });
    Server::new("eras", "1.0.0")
        .tool(hello)
        .tool(client)
        .resource(Resource::text("note://a", "a", "A"))
}

#[tokio::test(start_paused = true)]
async fn every_legacy_revision_is_supported() {
    req!(
        "lifecycle.version.server-same",
        "lifecycle.init.server-response",
        "transport.custom.preserve-legacy"
    );
    for revision in LEGACY {
        let mut peer = Peer::new(server());
        let response = peer
            .call("initialize", initialize(revision, json!({})))
            .await;
        peer.notify("notifications/initialized", json!({})).await;

        let tools = peer.call("tools/list", json!({})).await;
        let called = peer.call_tool("hello", json!({})).await;

        assert_eq!(response["result"]["protocolVersion"], revision);
        assert_eq!(response["result"]["serverInfo"]["name"], "eras");
        assert!(response["result"]["capabilities"]["tools"].is_object());
        assert_eq!(tools["result"]["tools"][0]["name"], "hello");
        assert_eq!(called["result"]["content"][0]["text"], "hello");
        assert_eq!(called["result"].get("resultType"), None);
        assert_eq!(peer.finish().await, [] as [Value; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_version_in_initialize_negotiates_the_newest_legacy_revision() {
    req!(
        "lifecycle.version.server-other",
        "lifecycle.version.server-latest",
        // The revision is not negotiated yet, so the behavior is the same in all of them.
        in: ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
    );
    for offered in ["2026-07-28", "1999-01-01", "latest"] {
        let mut peer = Peer::new(server());

        let response = peer
            .call("initialize", initialize(offered, json!({})))
            .await;

        assert_eq!(response["result"]["protocolVersion"], "2025-11-25");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_with_a_version_in_meta_needs_no_initialize() {
    req!(
        "versioning.dual.server-select-modern",
        "versioning.discover.implement",
        "versioning.discover.result",
        "base.result-type.present",
        "meta.result.server-info",
        "transport.custom.preserve-modern",
        "transport.custom.reuse-stdio"
    );
    let mut peer = Peer::new(server());

    let found = peer.call_modern("server/discover", json!({})).await;
    let called = peer
        .call_modern("tools/call", json!({ "name": "hello", "arguments": {} }))
        .await;

    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")));
    assert!(found["result"]["capabilities"]["tools"].is_object());
    for response in [found, called] {
        assert_eq!(response["result"]["resultType"], "complete");
        let server = &response["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(server["name"], "eras");
    }
}

#[tokio::test(start_paused = true)]
async fn both_eras_share_a_connection_and_keep_their_state_apart() {
    req!(
        "versioning.dual.server-select-legacy",
        "versioning.dual.server"
    );
    let mut peer = Peer::initialized(server(), "2025-06-18", json!({ "roots": {} })).await;
    let call = json!({ "name": "client", "arguments": {} });

    let legacy = peer.call("tools/call", call.clone()).await;
    let own = peer.call("tools/call", modern(call.clone())).await;
    let again = peer.call("tools/call", call).await;

    assert_eq!(
        legacy["result"]["content"][0]["text"],
        "Some(\"peer\") true"
    );
    assert_eq!(own["result"]["content"][0]["text"], "Some(\"peer\") false");
    assert_eq!(own["result"]["resultType"], "complete");
    assert_eq!(again["result"], legacy["result"]);
}

#[tokio::test(start_paused = true)]
async fn a_stateless_request_does_not_create_a_session() {
    let mut peer = Peer::new(server());
    peer.call_modern("tools/list", json!({})).await;

    let response = peer.call("tools/list", json!({})).await;

    assert_eq!(response["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn before_initialize_only_ping_is_answered() {
    req!("ping.respond", "lifecycle.init.first");
    for revision in LEGACY {
        let mut peer = Peer::new(server());

        let pong = peer.call("ping", json!({})).await;
        let refused = peer.call_tool("hello", json!({})).await;

        assert_eq!(pong["result"], json!({}));
        assert_eq!(refused["error"]["code"], -32602);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("initialize") && message.contains("2026-07-28"),
            "{message}"
        );

        peer.initialize_session(revision, json!({})).await;
        assert_eq!(peer.call("ping", json!({})).await["result"], json!({}));
        let http_response = peer.call_tool("hello", json!({})).await;
        assert!(
            http_response["result"].is_object(),
            "{revision} {http_response}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ping_and_initialize_do_not_exist_in_the_modern_era() {
    req!(
        "ping.removed",
        "logging.set-level.removed",
        "resources.subscribe.removed"
    );
    let mut peer = Peer::initialized(server(), "2025-11-25", json!({})).await;
    for method in [
        "ping",
        "initialize",
        "logging/setLevel",
        "resources/subscribe",
        "no/such/method",
    ] {
        let response = peer.call_modern(method, json!({})).await;

        assert_eq!(response["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unsupported_version_is_rejected_with_the_supported_ones() {
    req!(
        "versioning.unsupported.error",
        "versioning.unsupported.data",
        in: ["2026-07-28"]
    );
    let mut peer = Peer::new(server());
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");

    let response = peer.call("tools/list", params).await;

    assert_eq!(response["error"]["code"], -32022);
    assert_eq!(response["error"]["data"]["requested"], "2031-01-01");
    assert_eq!(
        response["error"]["data"]["supported"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
}

#[tokio::test(start_paused = true)]
async fn meta_without_capabilities_or_with_a_wrong_type_is_refused() {
    req!("meta.request.missing-field-error");
    let mut peer = Peer::new(server());
    let mut without = modern(json!({}));
    let meta = without["_meta"].as_object_mut().unwrap();
    meta.remove("io.modelcontextprotocol/clientCapabilities");

    let without = peer.call("tools/list", without).await;
    let wrong = peer
        .call("tools/list", modern_with(json!({}), json!("everything")))
        .await;
    let number = peer.call("tools/list", json!({ "_meta": 7 })).await;

    for response in [without, wrong, number] {
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_initialize_replaces_the_session() {
    let mut peer = Peer::initialized(server(), "2024-11-05", json!({ "roots": {} })).await;
    peer.call("resources/subscribe", json!({ "uri": "note://a" }))
        .await;

    peer.initialize_session("2025-11-25", json!({})).await;

    let client = peer.call_tool("client", json!({})).await;
    assert_eq!(
        client["result"]["content"][0]["text"],
        "Some(\"peer\") false"
    );
    peer.send_line("nonsense").await;
    assert_eq!(
        peer.next().await.get("id"),
        None,
        "as the second revision has it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_malformed_initialize_creates_no_session() {
    let mut peer = Peer::new(server());

    let broken = peer
        .call("initialize", json!({ "protocolVersion": 1 }))
        .await;
    let after = peer.call("tools/list", json!({})).await;

    assert_eq!(broken["error"]["code"], -32602);
    assert_eq!(after["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn initialized_may_lack_its_prefix_and_needs_a_session() {
    let mut peer = Peer::new(server());
    peer.notify("notifications/initialized", json!({})).await;
    peer.call("initialize", initialize("2025-03-26", json!({})))
        .await;
    peer.notify("initialized", json!({})).await;

    let tools = peer.call("tools/list", json!({})).await;

    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn draft_names_are_accepted_only_by_a_lenient_server() {
    let mut strict = Peer::initialized(server(), "2025-06-18", json!({})).await;
    let mut lenient = Peer::initialized(server().lenient(true), "2025-06-18", json!({})).await;

    assert_eq!(
        strict.call("shutdown", json!({})).await["error"]["code"],
        -32601
    );
    assert_eq!(
        lenient.call("shutdown", json!({})).await["result"],
        json!({})
    );
}

#[tokio::test(start_paused = true)]
async fn initialize_without_client_info_is_accepted_only_by_a_lenient_server() {
    for revision in LEGACY {
        let mut params = initialize(revision, json!({}));
        params.as_object_mut().unwrap().remove("clientInfo");
        let mut strict = Peer::new(server());
        let mut lenient = Peer::new(server().lenient(true));

        let refused = strict.call("initialize", params.clone()).await;
        let accepted = lenient.call("initialize", params.clone()).await;
        lenient.notify("notifications/initialized", json!({})).await;
        let tools = lenient.call("tools/list", json!({})).await;

        assert_eq!(refused["error"]["code"], -32602, "{revision}");
        assert_eq!(refused["error"]["message"], "missing field `clientInfo`");
        assert_eq!(accepted["result"]["protocolVersion"], revision);
        assert!(tools["result"]["tools"].is_array(), "{revision}: {tools}");

        // Only a missing member is tolerated.
        params["clientInfo"] = json!({});
        let mut lenient = Peer::new(server().lenient(true));
        let refused = lenient.call("initialize", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_draft_name_of_completion_is_accepted_only_by_a_lenient_server() {
    let server = || {
        let prompt = Prompt::new("p", async || Ok("hi"));
        server().prompt(prompt.complete("a", ["one", "two"]))
    };
    let complete = json!({
        "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "t" },
    });
    for revision in LEGACY {
        let mut strict = Peer::initialized(server(), revision, json!({})).await;
        let mut lenient = Peer::initialized(server().lenient(true), revision, json!({})).await;

        let refused = strict.call("completions/complete", complete.clone()).await;
        let completed = lenient.call("completions/complete", complete.clone()).await;
        let own = lenient
            .call_modern("completions/complete", complete.clone())
            .await;

        assert_eq!(refused["error"]["code"], -32601, "{revision}");
        assert_eq!(
            completed["result"]["completion"]["values"],
            json!(["two"]),
            "{revision}"
        );
        assert_eq!(
            own["error"]["code"], -32601,
            "the other era never had that name"
        );
    }
}
