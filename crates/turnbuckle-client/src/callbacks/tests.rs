use turnbuckle_protocol::types::{ContentBlock, ElicitAction};
use turnbuckle_spec_coverage::{ran_in, req};

use crate::callbacks::*;

const MODERN: Revision = Revision::V2026_07_28;
const BEFORE: Revision = Revision::V2025_11_25;
const OLDER: Revision = Revision::V2025_06_18;

async fn handle(
    callbacks: &Callbacks,
    method: &str,
    params: Value,
    of: Revision,
) -> Result<Value, RpcError> {
    ran_in(of.as_str());
    callbacks.handle(method, &params.to_string(), of).await
}

fn name_form() -> Value {
    json!({
        "message": "who?",
        "requestedSchema": {
            "type": "object",
            "properties": { "name": { "type": "string", "default": "Ada" } },
            "required": ["name"],
        },
    })
}

/// Returns callbacks that respond to a form with this result.
fn with_form(answer: fn(FormRequest) -> Result<ElicitResult, FormError>) -> Callbacks {
    let mut callbacks = Callbacks::default();
    callbacks.on_form_elicitation(move |form| async move { answer(form) });
    callbacks
}

fn question(mut params: Value) -> Value {
    if params.get("messages").is_none() {
        params["messages"] =
            json!([{ "role": "user", "content": { "type": "text", "text": "hi" } }]);
    }
    params["maxTokens"] = json!(10);
    params
}

fn with_model(content: ContentBlock, tools: bool) -> Callbacks {
    let mut callbacks = Callbacks::default();
    callbacks.on_sampling(move |_| {
        let result = CreateMessageResult::new("m", content.clone());
        std::future::ready(Ok(result))
    });
    if tools {
        callbacks.sampling_tools();
    }
    callbacks
}

fn tool_use() -> ContentBlock {
    serde_json::from_value(json!({ "type": "tool_use", "id": "1", "name": "look", "input": {} }))
        .unwrap()
}

#[test]
fn capabilities_follow_from_the_callbacks() {
    req!("elicitation.capability.mode", "sampling.tools.declare", in: ["2025-11-25", "2026-07-28"]);
    let written = |callbacks: &Callbacks| {
        let mut capabilities = serde_json::to_value(callbacks.capabilities()).unwrap();
        let extensions = capabilities
            .as_object_mut()
            .unwrap()
            .shift_remove("extensions");
        assert_eq!(
            extensions,
            Some(json!({ "io.modelcontextprotocol/tasks": {} }))
        );
        capabilities
    };
    let mut callbacks = Callbacks::default();
    assert_eq!(written(&callbacks), json!({}));

    callbacks.on_form_elicitation(|form| async move { form.decline() });
    assert_eq!(
        written(&callbacks),
        json!({ "elicitation": { "form": {} } })
    );
    callbacks.on_url_elicitation(|_| async { ElicitationAction::Accept });
    callbacks.on_sampling(|request| async move { Err(request.user_rejected()) });
    callbacks.set_roots(Roots::new(["file:///a"]).unwrap());
    assert_eq!(
        written(&callbacks),
        json!({
            "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": { "listChanged": true },
        })
    );
    callbacks.sampling_tools();
    assert_eq!(written(&callbacks)["sampling"], json!({ "tools": {} }));
}

#[test]
fn url_elicitation_alone_is_not_declared_to_revisions_with_only_forms() {
    let mut callbacks = Callbacks::default();
    callbacks.on_url_elicitation(|_| async { ElicitationAction::Accept });
    let mut capabilities = callbacks.capabilities();

    capabilities.downgrade_to(OLDER);

    assert_eq!(capabilities.elicitation, None);
}

#[tokio::test]
async fn undeclared_methods_are_rejected() {
    req!("roots.error.unsupported");
    let no_callbacks = Callbacks::default();
    for (method, params) in [
        ("elicitation/create", name_form()),
        ("sampling/createMessage", question(json!({}))),
        ("roots/list", json!({})),
        ("tools/call", json!({})),
    ] {
        for revision in Revision::ALL {
            let error = handle(&no_callbacks, method, params.clone(), revision)
                .await
                .unwrap_err();
            assert_eq!(error.code, -32601, "{method} {revision}");
        }
    }
    let form = with_form(|form| form.accept_defaults());
    let error = handle(
        &form,
        "elicitation/create",
        name_form(),
        Revision::V2025_03_26,
    )
    .await;
    assert_eq!(error.unwrap_err().code, -32601);
}

#[tokio::test]
async fn an_undeclared_elicitation_mode_has_its_own_error() {
    req!("elicitation.mode.undeclared-error");
    let url = json!({ "mode": "url", "message": "go", "url": "https://example.com", "elicitationId": "1" });
    let form = with_form(|form| form.accept_defaults());
    let mut visit = Callbacks::default();
    visit.on_url_elicitation(|_| async { ElicitationAction::Accept });

    for revision in [BEFORE, MODERN] {
        let error = handle(&form, "elicitation/create", url.clone(), revision)
            .await
            .unwrap_err();
        assert_eq!(error.code, -32602);
        let error = handle(&visit, "elicitation/create", name_form(), revision)
            .await
            .unwrap_err();
        assert_eq!(error.code, -32602);
        let answer = handle(&visit, "elicitation/create", url.clone(), revision)
            .await
            .unwrap();
        assert_eq!(answer, json!({ "action": "accept" }));
    }
    let mut both = form.clone();
    both.on_url_elicitation(|_| async { ElicitationAction::Accept });
    let error = handle(&both, "elicitation/create", url, OLDER)
        .await
        .unwrap_err();
    assert_eq!(error.code, -32602);
}

#[tokio::test]
async fn elicitation_without_a_mode_is_a_form() {
    req!("elicitation.request.mode-default");
    let callbacks = with_form(|form| form.accept_defaults());

    for revision in [OLDER, BEFORE, MODERN] {
        let answer = handle(&callbacks, "elicitation/create", name_form(), revision)
            .await
            .unwrap();
        assert_eq!(
            answer,
            json!({ "action": "accept", "content": { "name": "Ada" } })
        );
    }
}

#[tokio::test]
async fn only_an_accepted_form_has_content() {
    req!("elicitation.result.actions");
    let anyway = |action| ElicitResult::new(action).content(JsonObject::new());
    for (action, expected) in [
        (ElicitAction::Decline, json!({ "action": "decline" })),
        (ElicitAction::Cancel, json!({ "action": "cancel" })),
        (
            ElicitAction::Accept,
            json!({ "action": "accept", "content": { "name": "Ada" } }),
        ),
    ] {
        let mut callbacks = Callbacks::default();
        callbacks.on_form_elicitation(move |_| async move { anyway(action) });

        for revision in [OLDER, BEFORE, MODERN] {
            let answer = handle(&callbacks, "elicitation/create", name_form(), revision).await;
            assert_eq!(answer.unwrap(), expected, "{revision}");
        }
    }
    for (consent, action) in [
        (ElicitationAction::Accept, "accept"),
        (ElicitationAction::Decline, "decline"),
        (ElicitationAction::Cancel, "cancel"),
    ] {
        let mut callbacks = Callbacks::default();
        callbacks.on_url_elicitation(move |_| async move { consent });
        let page = json!({ "mode": "url", "message": "go", "url": "https://a.example/", "elicitationId": "1" });
        for revision in [BEFORE, MODERN] {
            let answer = handle(&callbacks, "elicitation/create", page.clone(), revision).await;
            assert_eq!(answer.unwrap(), json!({ "action": action }), "{revision}");
        }
    }
}

#[tokio::test]
async fn invalid_form_content_is_never_sent() {
    let wrong = JsonObject::from_iter([("name".to_owned(), json!(7))]);
    let mut by_hand = Callbacks::default();
    by_hand.on_form_elicitation(move |_| {
        let answer = ElicitResult::accept(wrong.clone());
        async move { answer }
    });
    let by_form = with_form(|form| form.accept(json!({ "name": 7 })));

    for callbacks in [by_hand, by_form] {
        let answer = handle(&callbacks, "elicitation/create", name_form(), BEFORE).await;
        assert_eq!(answer.unwrap_err().code, -32603);
    }
}

#[tokio::test]
async fn invalid_params_are_reported() {
    let mut callbacks = with_model(ContentBlock::text("hi"), false);
    callbacks.on_form_elicitation(|form| async move { form.decline() });
    callbacks.set_roots(Roots::new(["file:///a"]).unwrap());
    for (method, params) in [
        ("elicitation/create", json!({})),
        (
            "elicitation/create",
            json!({ "message": "who?", "mode": "dance" }),
        ),
        (
            "elicitation/create",
            json!({ "message": "who?", "requestedSchema": { "type": "object", "properties": { "a": { "type": "object" } } } }),
        ),
        ("sampling/createMessage", json!({ "messages": [] })),
        (
            "sampling/createMessage",
            json!({ "messages": [{ "role": "tool", "content": [] }], "maxTokens": 1 }),
        ),
        ("roots/list", json!("all")),
    ] {
        let error = handle(&callbacks, method, params.clone(), MODERN)
            .await
            .unwrap_err();
        assert_eq!(error.code, -32602, "{method} {params}");
    }
}

#[tokio::test]
async fn unsafe_urls_never_reach_the_callback() {
    let mut callbacks = Callbacks::default();
    callbacks.on_url_elicitation(|visit| async move { panic!("shown: {}", visit.url()) });
    for url in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://a@b.example/",
    ] {
        let params = json!({ "mode": "url", "message": "go", "url": url, "elicitationId": "1" });

        let error = handle(&callbacks, "elicitation/create", params, BEFORE)
            .await
            .unwrap_err();

        assert_eq!(error.code, -32602, "{url}");
    }
}

#[tokio::test]
async fn a_panicking_callback_fails_only_its_request() {
    let at_once = with_form(|_| panic!("at once"));
    let mut later = Callbacks::default();
    later.on_form_elicitation(|form| async move {
        tokio::task::yield_now().await;
        if form.message() == "who?" {
            panic!("later");
        }
        form.decline()
    });

    for callbacks in [at_once, later] {
        let error = handle(&callbacks, "elicitation/create", name_form(), BEFORE)
            .await
            .unwrap_err();
        assert_eq!(
            error,
            RpcError::internal("the client failed to handle the request")
        );
    }
}

#[tokio::test]
async fn the_current_roots_are_listed() {
    req!("roots.list.shape");
    req!("roots.uri.file");
    let roots = Roots::new(["file:///a"]).unwrap();
    let mut callbacks = Callbacks::default();
    callbacks.set_roots(roots.clone());

    roots.add("file:///b").unwrap();

    for revision in Revision::ALL {
        let answer = handle(&callbacks, "roots/list", json!({}), revision)
            .await
            .unwrap();
        assert_eq!(
            answer,
            json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b" }] })
        );
    }
}

#[tokio::test]
async fn a_sampling_result_has_the_shape_of_the_revision() {
    req!("sampling.result.shape");
    let mut callbacks = Callbacks::default();
    callbacks.on_sampling(|request| async move {
        let blocks = [ContentBlock::text("one"), ContentBlock::text("two")];
        assert_eq!(request.max_tokens, 10);
        Ok(CreateMessageResult::with_blocks("m", blocks))
    });
    let answer = async |revision| {
        let answer = handle(
            &callbacks,
            "sampling/createMessage",
            question(json!({})),
            revision,
        );
        answer.await.unwrap()
    };

    for revision in [BEFORE, MODERN] {
        let answer = answer(revision).await;
        assert_eq!(answer["content"].as_array().unwrap().len(), 2);
        assert_eq!(
            (&answer["role"], &answer["model"]),
            (&json!("assistant"), &json!("m"))
        );
    }
    for revision in [OLDER, Revision::V2024_11_05] {
        assert_eq!(answer(revision).await["content"]["type"], "text");
    }
}

#[tokio::test]
async fn a_rejected_sampling_request_has_its_own_code() {
    req!("sampling.error.rejected");
    let mut callbacks = Callbacks::default();
    callbacks.on_sampling(|request| async move { Err(request.user_rejected()) });

    let answer = handle(
        &callbacks,
        "sampling/createMessage",
        question(json!({})),
        BEFORE,
    )
    .await;

    assert_eq!(answer.unwrap_err().code, -1);
}

#[tokio::test]
async fn undeclared_sampling_tools_are_rejected() {
    req!("sampling.tools.client-error");
    let tools =
        question(json!({ "tools": [{ "name": "look", "inputSchema": { "type": "object" } }] }));
    let choice = question(json!({ "toolChoice": { "mode": "auto" } }));
    let without = with_model(ContentBlock::text("hi"), false);
    let with = with_model(ContentBlock::text("hi"), true);
    for params in [tools, choice] {
        for revision in [BEFORE, MODERN] {
            let answer = handle(&without, "sampling/createMessage", params.clone(), revision).await;
            assert_eq!(answer.unwrap_err().code, -32602);
            let answer = handle(&with, "sampling/createMessage", params.clone(), revision).await;
            assert!(answer.is_ok());
        }
        let answer = handle(&with, "sampling/createMessage", params, OLDER).await;
        assert_eq!(answer.unwrap_err().code, -32602);
    }
}

#[tokio::test]
async fn missing_or_mixed_tool_results_are_reported() {
    req!("sampling.tool-result.error");
    let callbacks = with_model(ContentBlock::text("hi"), true);
    let used = json!({ "role": "assistant", "content": tool_use() });
    let result = json!({ "type": "tool_result", "toolUseId": "1", "content": [] });
    let mixed = json!({ "role": "user", "content": [result, { "type": "text", "text": "x" }] });
    for messages in [json!([used]), json!([used, mixed])] {
        let params = question(json!({ "messages": messages }));

        let answer = handle(&callbacks, "sampling/createMessage", params, BEFORE).await;

        assert_eq!(answer.unwrap_err().code, -32602);
    }
}

#[tokio::test]
async fn the_tool_choice_is_passed_to_the_callback() {
    req!("sampling.tool-choice.required");
    req!("sampling.tool-choice.none");
    for (mode, block, fits) in [
        ("required", ContentBlock::text("no"), false),
        ("required", tool_use(), true),
        ("none", ContentBlock::text("no"), true),
        ("none", tool_use(), false),
        ("auto", tool_use(), true),
    ] {
        let callbacks = with_model(block, true);
        let params = question(json!({ "toolChoice": { "mode": mode } }));

        for revision in [BEFORE, MODERN] {
            let answer = handle(
                &callbacks,
                "sampling/createMessage",
                params.clone(),
                revision,
            )
            .await;
            assert_eq!(answer.is_ok(), fits, "{mode} {revision}");
        }
    }
}

#[tokio::test]
async fn a_requested_task_is_ignored() {
    req!("tasks.capability.ignore-undeclared");
    let callbacks = with_model(ContentBlock::text("hi"), false);
    let params = question(json!({ "task": { "ttl": 1000 } }));

    let answer = handle(&callbacks, "sampling/createMessage", params, BEFORE).await;

    assert_eq!(answer.unwrap()["content"]["text"], "hi");
}
