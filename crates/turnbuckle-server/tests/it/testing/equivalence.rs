//! One handler, in every mode of client requests.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{
    Context, Elicitation, SamplingBuilder, Server, TaskSupport, Tool, ToolError,
    testing::{SideEffects, ToolCase, assert_equivalent},
};
use turnbuckle_spec_coverage::req;

#[derive(Deserialize, JsonSchema)]
struct Topic {
    topic: String,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name.
    name: String,
}

/// Sends three client requests, has two side effects, and reports progress.
fn letters(effects: SideEffects) -> Server {
    let write = move |args: Topic, cx: Context| {
        let effects = effects.clone();
        async move {
            cx.progress(1, 4).await;
            let Some(name) = cx
                .elicit(Elicitation::form::<Name>("Who signs?").key("name"))
                .await?
                .accepted()
            else {
                return Ok("unsigned".to_owned());
            };
            cx.log(LogLevel::Info, format!("signed by {}", name.name))
                .await;
            let draft = cx
                .once("draft", async || {
                    effects.record(format!("drafted about {}", args.topic));
                    Ok(format!("Dear all, {}", args.topic))
                })
                .await?;
            cx.progress(2, 4).await;
            let polished = cx.sample("polish", SamplingBuilder::text(&draft)).await?;
            let roots = cx.roots("where").await?;
            cx.progress(3, 4).await;
            cx.once("post", async || {
                effects.record("posted");
                Ok(())
            })
            .await?;
            Ok(format!(
                "{} / {} / {}",
                polished.text(),
                name.name,
                roots.len()
            ))
        }
    };
    Server::new("letters", "1").tool(Tool::new("write", write))
}

fn client(method: &str, _params: &Value) -> Value {
    match method {
        "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ada" } }),
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "polished" },
        }),
        "roots/list" => json!({ "roots": [{ "uri": "file:///home" }] }),
        other => panic!("asked {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_returns_the_same_result_in_every_client_request_mode() {
    req!(
        "mrtr.only-way",
        "mrtr.server.repeat",
        "mrtr.result.request-state"
    );

    let trace = assert_equivalent(
        ToolCase::new("write", json!({ "topic": "tea" })),
        letters,
        client,
    )
    .await;

    assert_eq!(trace.result["content"][0]["text"], "polished / Ada / 1");
    assert_eq!(trace.effects, ["drafted about tea", "posted"]);
    assert_eq!(
        trace.client_requests,
        ["elicitation/create", "sampling/createMessage", "roots/list"]
    );
    let progress: Vec<_> = trace
        .notifications
        .iter()
        .filter_map(|one| one["progress"].as_f64())
        .collect();
    assert_eq!(progress, [1.0, 2.0, 3.0]);
}

#[tokio::test(start_paused = true)]
async fn declining_is_an_outcome_in_both_eras() {
    let refuse = |_: &str, _: &Value| json!({ "action": "decline" });

    let trace = assert_equivalent(
        ToolCase::new("write", json!({ "topic": "tea" })),
        letters,
        refuse,
    )
    .await;

    assert_eq!(trace.result["content"][0]["text"], "unsigned");
    assert!(trace.effects.is_empty());
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the side effects differ")]
async fn a_side_effect_outside_of_once_is_detected() {
    let careless = |effects: SideEffects| {
        let run = move |cx: Context| {
            effects.record("sent");
            async move {
                cx.elicit(Elicitation::form::<Name>("Who?").key("name"))
                    .await?;
                Ok("done".to_owned())
            }
        };
        Server::new("careless", "1").tool(Tool::new("send", run))
    };

    assert_equivalent(ToolCase::new("send", json!({})), careless, client).await;
}

/// A tool that reports whether it runs as a task, so that the modes differ.
fn telltale(support: Option<TaskSupport>) -> impl Fn(SideEffects) -> Server {
    move |effects: SideEffects| {
        let run = move |cx: Context| {
            let effects = effects.clone();
            async move {
                effects.record(format!("as a task: {}", cx.is_task()));
                Ok("done".to_owned())
            }
        };
        let tool = Tool::new("tell", run);
        let tool = match support {
            Some(support) => tool.task(support),
            None => tool,
        };
        Server::new("telltale", "1").tool(tool)
    }
}

#[tokio::test(start_paused = true)]
#[should_panic(
    expected = "the side effects differ:\n  as a call: [\"as a task: false\"]\n  as a task: [\"as a task: true\"]"
)]
async fn a_tool_without_declared_task_support_runs_as_a_call_and_as_a_task() {
    assert_equivalent(ToolCase::new("tell", json!({})), telltale(None), client).await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_run_only_in_the_modes_it_supports() {
    for (support, effects) in [
        (TaskSupport::Forbidden, "as a task: false"),
        (TaskSupport::Required, "as a task: true"),
    ] {
        let server = telltale(Some(support));
        let trace = assert_equivalent(ToolCase::new("tell", json!({})), server, client).await;
        assert_eq!(trace.effects, [effects]);
    }
}

#[tokio::test(start_paused = true)]
async fn failures_and_errors_are_equal_in_every_mode() {
    let failing = |_: SideEffects| {
        let fail = async || Err::<String, _>(ToolError::new("out of ink"));
        Server::new("failing", "1").tool(Tool::new("fail", fail))
    };

    let trace = assert_equivalent(ToolCase::new("fail", json!({})), failing, client).await;
    assert_eq!(trace.result["isError"], true);

    let trace = assert_equivalent(ToolCase::new("missing", json!({})), failing, client).await;
    assert_eq!(trace.error.unwrap()["code"], -32602);
}
