//! Completion of arguments.

use serde_json::json;
use turnbuckle_protocol::types::{CompleteParams, CompletionContext, CompletionReference};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{EVERY, MockServer};

#[tokio::test(start_paused = true)]
async fn a_completion_request_has_reference_and_argument() {
    req!("completion.request.shape");
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        let found = json!({ "values": ["Oslo"], "total": 1, "hasMore": false });
        server.respond("completion/complete", json!({ "completion": found }));
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
            let requested = server.next("completion/complete").await;
            assert_eq!(requested["params"]["ref"], named, "{revision}");
            let argument = json!({ "name": "city", "value": "Os" });
            assert_eq!(requested["params"]["argument"], argument, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn completion_context_is_sent_in_the_revisions_that_define_it() {
    req!("lifecycle.operation.version-must");
    for (revision, has_a_place) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", true),
        ("2025-11-25", true),
    ] {
        let server = MockServer::legacy(revision);
        server.respond(
            "completion/complete",
            json!({ "completion": { "values": [] } }),
        );
        let client = server.connect().await;
        let mut context = CompletionContext::default();
        context.arguments = Some([("country".to_owned(), "Norway".to_owned())].into());

        let params = CompleteParams::new(CompletionReference::prompt("p"), "city", "");
        client.complete(params.context(context)).await.unwrap();

        let requested = server.next("completion/complete").await;
        assert_eq!(
            requested["params"].get("context").is_some(),
            has_a_place,
            "{requested}"
        );
    }
}
