//! Downgrades to older revisions, and upgrades from them.

use serde_json::{Value, json};
use turnbuckle_protocol::{
    Revision::{self, *},
    VersionedPayload,
    types::{
        elicitation::PrimitiveSchema,
        tasks::{self, legacy},
        *,
    },
};

use crate::samples;

fn downgraded<T: VersionedPayload>(mut thing: T, to: Revision) -> T {
    thing.downgrade_to(to);
    thing
}

fn upgraded<T: VersionedPayload>(mut thing: T, from: Revision) -> T {
    thing.upgrade_from(from);
    thing
}

#[test]
fn revisions_are_ordered_by_their_date() {
    assert!(Revision::ALL.is_sorted());
    for revision in Revision::ALL {
        assert_eq!(revision.as_str().parse(), Ok(revision));
        assert_eq!(serde_json::to_value(revision).unwrap(), revision.as_str());
    }
    assert!("2025-01-01".parse::<Revision>().is_err());
    assert!("".parse::<Revision>().is_err());
}

#[test]
fn downgrading_twice_equals_downgrading_once() {
    for sample in samples::all() {
        for revision in Revision::ALL
            .into_iter()
            .filter(|revision| sample.is_in(*revision))
        {
            assert_eq!(
                (sample.returned)(revision),
                (sample.downgraded)(revision),
                "{} {revision}",
                sample.definition
            );
        }
    }
}

#[test]
fn the_oldest_revision_is_handled_like_the_next() {
    for sample in samples::all() {
        assert_eq!(
            (sample.downgraded)(V2024_10_07),
            (sample.downgraded)(V2024_11_05)
        );
    }
}

#[test]
fn the_newest_form_of_a_tool_result_is_unchanged() {
    let result = CallToolResult::new(samples::blocks()).structured_content(json!([1]));

    assert_eq!(downgraded(result.clone(), V2026_07_28), result);
}

#[test]
fn a_structured_value_other_than_an_object_becomes_text() {
    for (revision, is_text) in [
        (V2026_07_28, false),
        (V2025_11_25, true),
        (V2024_11_05, true),
    ] {
        let result = CallToolResult::default().structured_content(json!([1, 2]));
        let result = downgraded(result, revision);
        assert_eq!(result.structured_content.is_none(), is_text);
        assert_eq!(result.content.len(), usize::from(is_text));
    }
}

#[test]
fn structured_objects_are_sent_since_2025_06_18() {
    for revision in Revision::ALL {
        let result = downgraded(CallToolResult::structured(json!({ "sum": 3 })), revision);
        assert_eq!(result.structured_content.is_some(), revision >= V2025_06_18);
        assert_eq!(result.content[0].as_text(), Some(r#"{"sum":3}"#));
    }
}

#[test]
fn structured_content_alone_becomes_text_in_older_revisions() {
    let alone = CallToolResult::default().structured_content(json!({ "sum": 3 }));

    assert!(downgraded(alone.clone(), V2025_06_18).content.is_empty());
    assert_eq!(
        downgraded(alone, V2025_03_26).content,
        [ContentBlock::text(r#"{"sum":3}"#)]
    );
}

#[test]
fn a_resource_link_becomes_text_before_2025_06_18() {
    let link = Resource::new("file:///a", "a")
        .title("A")
        .description("The letter");

    let block = downgraded(ContentBlock::ResourceLink(link), V2025_03_26);

    assert_eq!(block.as_text(), Some("A: file:///a\nThe letter"));
}

#[test]
fn audio_becomes_text_in_2024_11_05() {
    let audio = ContentBlock::audio("AAAA", "audio/wav");

    assert_eq!(downgraded(audio.clone(), V2025_03_26), audio);
    assert_eq!(
        downgraded(audio, V2024_11_05).as_text(),
        Some("[audio/wav left out]")
    );
}

#[test]
fn an_unknown_block_becomes_text_for_every_session() {
    let unknown = ContentBlock::Unknown(json!({ "type": "hologram" }));

    assert_eq!(downgraded(unknown.clone(), V2026_07_28), unknown);
    assert_eq!(
        downgraded(unknown, V2025_11_25).as_text(),
        Some(r#"{"type":"hologram"}"#)
    );
}

#[test]
fn the_title_of_a_tool_moves_to_its_annotations() {
    let tool = downgraded(samples::tool(), V2025_03_26);

    assert_eq!(tool.title, None);
    assert_eq!(tool.annotations.unwrap().title.as_deref(), Some("Add"));
    assert_eq!(downgraded(samples::tool(), V2024_11_05).annotations, None);
}

#[test]
fn output_schemas_have_an_object_root_in_sessions() {
    let array =
        samples::tool().output_schema(json!({ "type": "array" }).as_object().unwrap().clone());

    assert!(
        downgraded(array.clone(), V2026_07_28)
            .output_schema
            .is_some()
    );
    assert!(downgraded(array, V2025_11_25).output_schema.is_none());
    assert!(
        downgraded(samples::tool(), V2025_06_18)
            .output_schema
            .is_some()
    );
    assert!(
        downgraded(samples::tool(), V2025_03_26)
            .output_schema
            .is_none()
    );
}

#[test]
fn execution_hints_are_for_2025_11_25_alone() {
    for revision in Revision::ALL {
        let tool = downgraded(samples::tool(), revision);
        assert_eq!(
            tool.execution.is_some(),
            revision == V2025_11_25,
            "{revision}"
        );
    }
}

#[test]
fn caching_hints_are_cleared_for_sessions() {
    let list = ListToolsResult::new([])
        .ttl_ms(5u64)
        .cache_scope(CacheScope::Public);

    assert_eq!(downgraded(list.clone(), V2026_07_28), list);
    assert_eq!(downgraded(list, V2025_11_25), ListToolsResult::new([]));
}

#[test]
fn modern_keys_leave_meta_and_others_stay() {
    let params = EmptyParams::default().meta(samples::request_meta());

    let meta = downgraded(params, V2025_11_25).meta;

    let keys: Vec<_> = meta.iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["example.com/color", "progressToken", "traceparent"]);
}

#[test]
fn capabilities_are_those_of_the_revision() {
    let client = |to| downgraded(samples::client_capabilities(), to);
    let server = |to| downgraded(samples::server_capabilities(), to);

    assert!(client(V2026_07_28).tasks.is_none());
    assert_eq!(client(V2026_07_28).roots, Some(RootsCapability::default()));
    assert!(client(V2025_11_25).tasks.is_some());
    assert!(client(V2025_11_25).can_elicit_url());
    assert!(client(V2025_11_25).has_extension("io.modelcontextprotocol/ui"));
    assert!(!client(V2025_11_25).has_extension(tasks::EXTENSION));
    assert_eq!(
        client(V2025_06_18).elicitation,
        Some(ElicitationCapability::default())
    );
    assert_eq!(
        client(V2025_06_18).sampling,
        Some(SamplingCapability::default())
    );
    assert!(client(V2025_06_18).extensions.is_none() && client(V2025_06_18).tasks.is_none());
    assert!(client(V2025_03_26).elicitation.is_none());
    assert!(server(V2025_03_26).completions.is_some());
    assert!(server(V2024_11_05).completions.is_none());
    assert!(server(V2026_07_28).tasks.is_none());
    assert!(server(V2026_07_28).has_extension(tasks::EXTENSION));
}

#[test]
fn url_elicitation_alone_means_no_elicitation_in_2025_06_18() {
    let url = ElicitationCapability::default().url(JsonObject::new());
    let capabilities = ClientCapabilities::new().elicitation(url);

    assert!(downgraded(capabilities, V2025_06_18).elicitation.is_none());
}

#[test]
fn declared_capabilities_count_only_if_the_revision_has_them() {
    let client = |from| upgraded(samples::client_capabilities(), from);

    assert!(!client(V2025_06_18).can_elicit_url());
    assert!(client(V2025_06_18).can_elicit_form());
    assert!(!client(V2025_06_18).can_sample_with_tools());
    assert!(client(V2025_03_26).elicitation.is_none());
    assert!(!client(V2025_11_25).has_extension(tasks::EXTENSION));
    assert!(client(V2026_07_28).has_extension(tasks::EXTENSION));
    assert!(client(V2026_07_28).tasks.is_none());
    let server = |from| upgraded(samples::server_capabilities(), from);
    assert!(server(V2025_06_18).tasks.is_none() && server(V2025_06_18).extensions.is_none());
    assert!(server(V2025_11_25).tasks.is_some() && server(V2025_11_25).extensions.is_some());
    assert!(!server(V2025_11_25).has_extension(tasks::EXTENSION));
}

#[test]
fn a_server_of_2024_may_complete_without_declaring_it() {
    let server = |from| upgraded(ServerCapabilities::new(), from);

    assert!(server(V2024_11_05).completions.is_some());
    assert!(server(V2024_10_07).completions.is_some());
    assert!(server(V2025_03_26).completions.is_none());
}

#[test]
fn a_form_is_simplified_for_2025_06_18() {
    let params = ElicitParams::Form(ElicitFormParams::new("Who?", samples::form()));

    let value = serde_json::to_value(downgraded(params, V2025_06_18)).unwrap();

    let fields = &value["requestedSchema"]["properties"];
    assert_eq!(fields["name"].get("default"), None);
    assert_eq!(fields["age"].get("default"), None);
    assert_eq!(fields["news"]["default"], true);
    assert_eq!(
        fields["size"],
        json!({ "type": "string", "description": "Yours", "enum": ["s", "l"], "enumNames": ["Small", "Large"] })
    );
    assert_eq!(fields["sizes"]["description"], "All");
    assert_eq!(
        fields["tags"],
        json!({ "type": "string", "title": "Tags", "enum": ["a", "b"] })
    );
}

#[test]
fn names_of_options_become_titles_again() {
    let value = json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {
        "size": { "type": "string", "enum": ["s"], "enumNames": ["Small"] } } } });
    let params: ElicitParams = serde_json::from_value(value).unwrap();

    let ElicitParams::Form(form) = upgraded(params, V2025_06_18) else {
        panic!("not a form");
    };

    let Some(PrimitiveSchema::SingleSelect(choice)) = form.requested_schema.field("size") else {
        panic!("not a choice");
    };
    assert_eq!(
        serde_json::to_value(choice).unwrap(),
        json!({ "type": "string", "oneOf": [{ "const": "s", "title": "Small" }] })
    );
}

#[test]
fn a_url_elicitation_has_an_id_only_in_2025_11_25() {
    let anonymous = ElicitParams::Url(ElicitUrlParams::new("m", "https://example.com/"));
    let name = |params, to| -> Option<Value> {
        let value = serde_json::to_value(downgraded(params, to)).unwrap();
        value.get("elicitationId").cloned()
    };

    assert_eq!(name(samples::elicit_url(), V2025_11_25), Some(json!("e1")));
    assert_eq!(name(samples::elicit_url(), V2026_07_28), None);
    assert_eq!(
        name(anonymous, V2025_11_25),
        Some(json!("https://example.com/"))
    );
}

#[test]
fn a_url_elicitation_becomes_a_form_with_the_url_before_2025_11_25() {
    let params = downgraded(samples::elicit_url(), V2025_06_18);

    assert!(matches!(params, ElicitParams::Form(_)));
    assert_eq!(params.message(), "Sign in\nhttps://example.com/in");
}

#[test]
fn sampled_messages_have_one_block_each_before_2025_11_25() {
    let params = downgraded(samples::create_message_params(), V2025_06_18);

    assert!(params.tools.is_none() && params.tool_choice.is_none() && params.task.is_none());
    assert!(
        params
            .messages
            .iter()
            .all(|message| message.content.len() == 1)
    );
    assert_eq!(
        params.messages[2].content[0].as_text(),
        Some(r#"add({"a":1})"#)
    );
    assert_eq!(params.messages[2].role, Role::Assistant);
}

#[test]
fn a_sampling_result_has_one_block_before_2025_11_25() {
    let blocks = |blocks: Vec<ContentBlock>| {
        downgraded(CreateMessageResult::with_blocks("m", blocks), V2025_06_18).content
    };

    assert_eq!(
        blocks(vec!["a".into(), "b".into()]),
        [ContentBlock::text("a\nb")]
    );
    assert_eq!(blocks(vec![]), [ContentBlock::text("")]);
    let image = ContentBlock::image("AAAA", "image/png");
    assert_eq!(blocks(vec![image.clone(), image.clone()]), [image]);
}

#[test]
fn a_task_parameter_exists_in_2025_11_25_only() {
    let params = || CallToolParams::new("a").task(legacy::TaskMetadata::default());

    for revision in Revision::ALL {
        let task = downgraded(params(), revision).task;
        assert_eq!(task.is_some(), revision == V2025_11_25, "{revision}");
    }
    assert!(upgraded(params(), V2026_07_28).task.is_none());
    assert!(upgraded(params(), V2025_11_25).task.is_some());
}

#[test]
fn tasks_are_translated_between_their_designs() {
    let task = Task::new("t1", "2025-11-25T10:30:00Z")
        .ttl_ms(9u64)
        .poll_interval_ms(3u64);
    let nested = legacy::CreateTaskResult::from(tasks::CreateTaskResult::new(task.clone()));

    assert_eq!(
        serde_json::to_value(&nested).unwrap(),
        json!({ "task": {
            "taskId": "t1", "status": "working", "createdAt": "2025-11-25T10:30:00Z",
            "lastUpdatedAt": "2025-11-25T10:30:00Z", "ttl": 9, "pollInterval": 3,
        } })
    );
    assert_eq!(tasks::CreateTaskResult::from(nested).task, task);
}

#[test]
fn a_tool_error_fails_a_task_of_2025_11_25() {
    let task = Task::new("t1", "2025-11-25T10:30:00Z").status(TaskStatus::Completed);
    let got = tasks::GetTaskResult::new(task);

    let failed = legacy::GetTaskResult::from(
        got.clone()
            .result(json!({ "content": [], "isError": true })),
    );
    let done = legacy::GetTaskResult::from(got.result(json!({ "content": [] })));

    assert_eq!(failed.task.status, TaskStatus::Failed);
    assert_eq!(done.task.status, TaskStatus::Completed);
}

#[test]
fn a_task_without_time_to_live_has_null() {
    let task = Task::new("t1", "2025-11-25T10:30:00Z");

    assert_eq!(serde_json::to_value(&task).unwrap()["ttlMs"], Value::Null);
    assert_eq!(
        serde_json::to_value(legacy::Task::from(task)).unwrap()["ttl"],
        Value::Null
    );
}

#[test]
fn the_tables_of_revisions_agree() {
    for (index, revision) in Revision::ALL.into_iter().enumerate() {
        assert_eq!(revision.index(), index);
        assert_eq!(revision.as_str().parse(), Ok(revision));
        let date = revision.as_str();
        let stateless = revision.is_stateless().then_some(revision);
        assert_eq!(Revision::stateless_from_name(date), stateless);
        assert_eq!(
            Revision::STATELESS.contains(&revision),
            revision.is_stateless()
        );
    }
    assert!(Revision::ALL.is_sorted());
    assert!(!Revision::LATEST_LEGACY.is_stateless() && Revision::MODERN.is_stateless());
    assert_eq!(Revision::stateless_from_name("2026-07-29"), None);
}
