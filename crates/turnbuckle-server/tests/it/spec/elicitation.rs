//! Form and URL elicitation.

use serde_json::{Value, json};
use turnbuckle_spec_coverage::req;

use crate::spec::{
    client_requests::{call, everything, sent_client_requests, server, url_elicitation_call},
    revision_client::{MODERN, RevisionClient},
};

#[tokio::test(start_paused = true)]
async fn a_form_has_a_message_and_needs_no_mode() {
    req!(
        "elicitation.request.fields",
        "elicitation.request.mode-omit"
    );
    for revision in ["2025-11-25", MODERN] {
        let mut client = RevisionClient::with(revision, server(), everything()).await;

        let form = sent_client_requests(&mut client, call("name"))
            .await
            .remove(0);
        let url = sent_client_requests(&mut client, url_elicitation_call("https://a.example/"))
            .await
            .remove(0);

        assert_eq!(form["params"]["message"], "Who?", "{revision}");
        assert!(form["params"].get("mode").is_none_or(|mode| mode == "form"));
        assert_eq!(url["params"]["message"], "Sign in");
        assert_eq!(url["params"]["mode"], "url", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_form_schema_is_a_flat_object_of_primitive_values() {
    req!("elicitation.form.fields", "elicitation.form.schema-flat");
    for revision in ["2025-06-18", "2025-11-25", MODERN] {
        let mut client = RevisionClient::with(revision, server(), everything()).await;

        let form = sent_client_requests(&mut client, call("form"))
            .await
            .remove(0);

        assert!(form["params"].get("mode").is_none_or(|mode| mode == "form"));
        assert_eq!(form["params"]["message"], "All of it", "{revision} {form}");
        let schema = form["params"]["requestedSchema"].as_object().unwrap();
        assert_eq!(schema["type"], "object", "{revision}");
        let members = ["$schema", "type", "properties", "required"];
        assert!(
            schema.keys().all(|key| members.contains(&key.as_str())),
            "{schema:?}"
        );
        let properties = schema["properties"].as_object().unwrap();
        let kinds =
            ["name", "age", "height", "sure", "colour"].map(|name| &properties[name]["type"]);
        assert_eq!(
            kinds,
            ["string", "integer", "number", "boolean", "string"],
            "{revision}"
        );
        for property in properties.values() {
            for nested in ["properties", "$ref", "anyOf", "oneOf", "items"] {
                assert!(property.get(nested).is_none(), "{revision} {property}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_elicitation_mode_is_not_used() {
    req!("elicitation.mode.declared");
    let form = || call("name");
    let page = || url_elicitation_call("https://a.example/");
    for revision in ["2025-11-25", MODERN] {
        for (declared, undeclared, possible) in [
            (json!({ "url": {} }), form(), page()),
            (json!({ "form": {} }), page(), form()),
        ] {
            let capabilities = json!({ "elicitation": declared });
            let mut client = RevisionClient::with(revision, server(), capabilities).await;

            let refused = client.call("tools/call", undeclared).await;
            let client_request = sent_client_requests(&mut client, possible).await.remove(0);

            assert!(
                refused["error"]["code"] == -32021 || refused["result"]["isError"] == true,
                "{revision} {refused}"
            );
            assert_eq!(client_request["method"], "elicitation/create", "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn declined_cancelled_and_failed_client_requests_are_handled() {
    req!("elicitation.result.handle");
    let mut client = RevisionClient::with(MODERN, server(), everything()).await;
    for (response, outcome) in [
        (json!({ "action": "decline" }), Some("missing")),
        (json!({ "action": "cancel" }), Some("missing")),
        (
            json!({ "action": "accept", "content": { "name": "Ada" } }),
            Some("Ada"),
        ),
        (json!({ "action": "vanish" }), None),
        (
            json!({ "action": "accept", "content": { "name": 7 } }),
            None,
        ),
        (json!({}), None),
        (json!(null), None),
    ] {
        let round = client.result("tools/call", call("name")).await;
        let mut retry = call("name");
        retry["requestState"] = round["requestState"].clone();
        retry["inputResponses"] = json!({ "name": response });

        let done = client.call("tools/call", retry).await;

        match outcome {
            Some(text) => assert_eq!(done["result"]["content"][0]["text"], text, "{response}"),
            // The call fails or the request is repeated; an invalid response is never accepted.
            None => assert!(
                done["error"].is_object()
                    || done["result"]["isError"] == true
                    || done["result"]["resultType"] == "input_required",
                "{response} {done}"
            ),
        }
    }
    client.result("tools/list", json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_capability_means_forms_only() {
    req!("elicitation.capability.empty-form");
    for revision in ["2025-11-25", MODERN] {
        let mut client =
            RevisionClient::with(revision, server(), json!({ "elicitation": {} })).await;

        let refused = client
            .call("tools/call", url_elicitation_call("https://a.example/"))
            .await;
        let form = sent_client_requests(&mut client, call("name"))
            .await
            .remove(0);

        assert!(
            refused["error"]["code"] == -32021 || refused["result"]["isError"] == true,
            "{revision} {refused}"
        );
        assert_eq!(form["method"], "elicitation/create");
    }
}

#[tokio::test(start_paused = true)]
async fn a_url_elicitation_has_an_id_in_one_revision_and_a_url_in_both() {
    req!(
        "elicitation.url.fields-2025-11-25",
        "elicitation.url.fields"
    );
    let url = "https://a.example/login?flow=1#top";
    for (revision, has_id) in [("2025-11-25", true), (MODERN, false)] {
        let mut client = RevisionClient::with(revision, server(), everything()).await;

        let first = sent_client_requests(&mut client, url_elicitation_call(url))
            .await
            .remove(0);
        let second = sent_client_requests(&mut client, url_elicitation_call(url))
            .await
            .remove(0);

        assert_eq!(first["method"], "elicitation/create");
        assert_eq!(first["params"]["mode"], "url");
        assert_eq!(first["params"]["url"], url);
        assert_eq!(first["params"]["message"], "Sign in");
        let id = first["params"].get("elicitationId");
        assert_eq!(id.is_some_and(Value::is_string), has_id, "{revision}");
        assert_eq!(
            id != second["params"].get("elicitationId"),
            has_id,
            "each has its own"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_elicitation_url_must_be_a_web_page() {
    req!("elicitation.url.valid");
    for revision in ["2025-11-25", MODERN] {
        let mut client = RevisionClient::with(revision, server(), everything()).await;
        for url in [
            "",
            "a",
            "/login",
            "//a.example/",
            "https:",
            "https://",
            "https:///x",
            "a b",
            "https://a b/",
            "https://a.example/\n",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "file://a.example/etc/passwd",
            "javascript://a.example/%0aalert(1)",
            "ftp://a.example/",
        ] {
            let result = client.tool("visit", json!({ "url": url })).await;

            assert_eq!(result["isError"], true, "{revision} {url:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_violates_the_form_is_not_passed_on_as_accepted() {
    req!("elicitation.validate-2025-06-18");
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut client = RevisionClient::with(revision, server(), everything()).await;
        for content in [
            json!({ "name": 7 }),
            json!({}),
            json!({ "name": null }),
            json!([]),
        ] {
            let client_request = sent_client_requests(&mut client, call("name"))
                .await
                .remove(0);
            let result = json!({ "action": "accept", "content": content });

            client
                .peer
                .send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": result }))
                .await;

            let response = client.peer.next().await;
            assert_eq!(response["result"]["isError"], true, "{revision} {content}");
        }
    }
}
