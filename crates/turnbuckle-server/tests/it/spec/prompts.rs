//! Prompts and the completion of their arguments.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_server::{Context, Prompt, ResourceTemplate, Server, Variables};
use turnbuckle_spec_coverage::req;

use crate::spec::revision_client::{EVERY, RevisionClient};

#[derive(Deserialize, JsonSchema)]
struct Review {
    file: String,
    #[serde(default)]
    style: Option<String>,
}

fn server() -> Server {
    let review = Prompt::new("review", async |args: Review| {
        Ok(format!("{} {:?}", args.file, args.style))
    })
    .complete(
        "file",
        (0..250)
            .map(|at| format!("file{at:03}"))
            .collect::<Vec<_>>(),
    )
    .complete("style", ["short", "long"]);
    let log = ResourceTemplate::new("log://{day}", "log", async |_: Variables, _: Context| {
        Ok("")
    })
    .complete("day", ["monday", "tuesday"]);
    Server::new("prompts", "1").prompt(review).template(log)
}

fn completing(reference: &Value, name: &str, value: &str) -> Value {
    json!({ "ref": reference, "argument": { "name": name, "value": value } })
}

fn review() -> Value {
    json!({ "type": "ref/prompt", "name": "review" })
}

#[tokio::test(start_paused = true)]
async fn an_unknown_prompt_or_missing_argument_is_rejected() {
    req!(
        "prompts.error.unknown",
        "prompts.error.missing-arguments",
        "prompts.server.validate-args"
    );
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        for params in [
            json!({ "name": "missing" }),
            json!({ "name": "Review", "arguments": { "file": "a" } }),
            json!({ "name": "review" }),
            json!({ "name": "review", "arguments": {} }),
            json!({ "name": "review", "arguments": { "style": "short" } }),
            json!({ "name": "review", "arguments": { "file": 7 } }),
            json!({ "name": "review", "arguments": { "file": ["a"] } }),
        ] {
            let shown = params.to_string();
            assert_eq!(
                client.code("prompts/get", params).await,
                -32602,
                "{revision} {shown}"
            );
        }
        let arguments = json!({ "name": "review", "arguments": { "file": "a" } });
        let prompt = client.result("prompts/get", arguments).await;
        assert_eq!(prompt["messages"][0]["content"]["text"], "a None");
    }
}

#[tokio::test(start_paused = true)]
async fn a_completion_has_at_most_100_values_and_reports_whether_there_are_more() {
    req!(
        "completion.max-100",
        "completion.has-more",
        "completion.result.shape"
    );
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;

        let many = client
            .result("completion/complete", completing(&review(), "file", "file"))
            .await;
        let few = client
            .result(
                "completion/complete",
                completing(&review(), "file", "file24"),
            )
            .await;

        let many = &many["completion"];
        assert_eq!(many["values"].as_array().unwrap().len(), 100, "{revision}");
        assert!(
            many["values"]
                .as_array()
                .unwrap()
                .iter()
                .all(Value::is_string)
        );
        assert_eq!(many["hasMore"], true, "{revision}");
        assert_eq!(many["total"], 250, "{revision}");
        let few = &few["completion"];
        assert_eq!(few["values"].as_array().unwrap().len(), 10, "{revision}");
        assert_ne!(few["hasMore"], true, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn variables_of_templates_are_completed_too() {
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        let reference = json!({ "type": "ref/resource", "uri": "log://{day}" });

        let found = client
            .result("completion/complete", completing(&reference, "day", "m"))
            .await;

        assert_eq!(
            found["completion"]["values"],
            json!(["monday"]),
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_completion_of_an_unknown_reference_is_rejected() {
    req!(
        "completion.error.bad-ref",
        "completion.error.missing-args",
        "completion.server.validate"
    );
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        let argument = json!({ "name": "file", "value": "" });
        for params in [
            completing(
                &json!({ "type": "ref/prompt", "name": "missing" }),
                "file",
                "",
            ),
            completing(
                &json!({ "type": "ref/resource", "uri": "log://missing" }),
                "day",
                "",
            ),
            completing(&json!({ "type": "ref/moon" }), "file", ""),
            completing(&json!("review"), "file", ""),
            json!({ "ref": review() }),
            json!({ "ref": review(), "argument": { "name": "file" } }),
            json!({ "ref": review(), "argument": { "value": "a" } }),
            json!({ "ref": review(), "argument": { "name": "file", "value": 7 } }),
            json!({ "argument": argument }),
        ] {
            let shown = params.to_string();
            assert_eq!(
                client.code("completion/complete", params).await,
                -32602,
                "{revision} {shown}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_completers_does_not_have_the_method() {
    req!("completion.error.unsupported");
    let server = || Server::new("p", "1").prompt(Prompt::new("p", async || Ok("")));
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        let params = completing(&json!({ "type": "ref/prompt", "name": "p" }), "a", "");

        assert_eq!(
            client.code("completion/complete", params).await,
            -32601,
            "{revision}"
        );
    }
}
