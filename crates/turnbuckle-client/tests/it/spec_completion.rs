//! Completion of arguments.

use serde_json::json;
use turnbuckle_protocol::types::{CompleteParams, CompletionContext, CompletionReference};
use turnbuckle_spec_coverage::req;

use crate::fake_lines::{EVERY, FakeServer};

#[tokio::test(start_paused = true)]
async fn a_completion_names_what_is_completed_and_how_far_it_is() {
    req!("completion.request.shape");
    for revision in EVERY {
        let server = FakeServer::speaking(revision);
        let found = json!({ "values": ["Oslo"], "total": 1, "hasMore": false });
        server.answer("completion/complete", json!({ "completion": found }));
        let client = server.connect().await;
        let prompt = CompletionReference::prompt("forecast");
        let resource = CompletionReference::resource("weather://{city}");

        for (reference, named) in [
            (prompt, json!({ "type": "ref/prompt", "name": "forecast" })),
            (
                resource,
                json!({ "type": "ref/resource", "uri": "weather://{city}" }),
            ),
        ] {
            let params = CompleteParams::new(reference, "city", "Os");
            let completion = client.complete(params).await.unwrap();

            assert_eq!(completion.values, ["Oslo"]);
            let asked = server.next("completion/complete").await;
            assert_eq!(asked["params"]["ref"], named, "{revision}");
            let argument = json!({ "name": "city", "value": "Os" });
            assert_eq!(asked["params"]["argument"], argument, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_known_besides_is_said_where_the_revision_has_a_place_for_it() {
    req!("lifecycle.operation.version-must");
    for (revision, has_a_place) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", true),
        ("2025-11-25", true),
    ] {
        let server = FakeServer::legacy(revision);
        server.answer(
            "completion/complete",
            json!({ "completion": { "values": [] } }),
        );
        let client = server.connect().await;
        let mut context = CompletionContext::default();
        context.arguments = Some([("country".to_owned(), "Norway".to_owned())].into());

        let params = CompleteParams::new(CompletionReference::prompt("p"), "city", "");
        client.complete(params.context(context)).await.unwrap();

        let asked = server.next("completion/complete").await;
        assert_eq!(
            asked["params"].get("context").is_some(),
            has_a_place,
            "{asked}"
        );
    }
}
