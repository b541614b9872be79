//! Tasks of a turnbuckle server, in both designs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_client::{
    CallError, CallOutcome, Client, ClientBuilder, FormRequest, LifecycleMode, Timeouts,
};
use turnbuckle_protocol::types::{
    TaskStatus,
    elicitation::{ElicitSchema, StringSchema},
};
use turnbuckle_server::{Context, Elicitation, Server, TaskSupport, Tool, ToolError};
use turnbuckle_spec_coverage::req;

use crate::servers::turnbuckle::connect;

const ERAS: [LifecycleMode; 2] = [LifecycleMode::Modern, LifecycleMode::Legacy];

fn server() -> Server {
    async fn work(args: Value, _: Context) -> Result<String, ToolError> {
        let seconds = args["seconds"].as_u64().unwrap_or(30);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok("worked".to_owned())
    }
    async fn fail(_: Value, _: Context) -> Result<String, ToolError> {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Err(ToolError::new("no luck"))
    }
    async fn elicit_name(_: Value, cx: Context) -> Result<String, ToolError> {
        let form = ElicitSchema::new().required("name", StringSchema::new());
        let mut names = Vec::new();
        for key in ["first", "second"] {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let response = cx
                .elicit(Elicitation::raw_form(key, form.clone()).key(key))
                .await?;
            names.push(
                response
                    .accepted()
                    .map_or(Value::Null, |content| content["name"].clone()),
            );
        }
        Ok(Value::from(names).to_string())
    }
    let schema = || json!({ "type": "object" });
    Server::new("worker", "1.0")
        .tool(Tool::raw("work", schema(), work).task(TaskSupport::Optional))
        .tool(Tool::raw("fail", schema(), fail).task(TaskSupport::Optional))
        .tool(Tool::raw("ask", schema(), elicit_name).task(TaskSupport::Optional))
        .tool(Tool::raw("must", schema(), work).task(TaskSupport::Required))
        .tool(Tool::raw("never", schema(), work))
}

fn client(era: LifecycleMode) -> ClientBuilder {
    Client::builder("test", "1")
        .lifecycle_mode(era)
        .on_form_elicitation(|form: FormRequest| async move {
            form.accept(json!({ "name": form.message() }))
        })
}

async fn start_task(client: &Client, tool: &str) -> turnbuckle_client::Task {
    match client.call_tool_as_task(tool, json!({})).await.unwrap() {
        CallOutcome::Task(task) => task,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_and_awaited() {
    req!(
        "ext-tasks.poll.until-terminal",
        "tasks.get.until-terminal",
        "tasks.tool.optional"
    );
    for era in ERAS {
        let client = connect(client(era), server()).await;
        let task = start_task(&client, "work").await;
        assert_eq!(task.last_seen().unwrap().status, TaskStatus::Working);
        assert_eq!(task.poll().await.unwrap().task.status, TaskStatus::Working);

        let ended = task.wait().await.unwrap();

        assert_eq!(ended.status, TaskStatus::Completed);
        let result = task.result().await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("worked"));
        // The id alone gives access to the task.
        let again = client.task(task.id()).result().await.unwrap();
        assert_eq!(again.content[0].as_text(), Some("worked"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_has_a_result_in_both_designs() {
    for era in ERAS {
        let client = connect(client(era), server()).await;

        let result = start_task(&client, "fail").await.result().await.unwrap();

        assert!(result.is_error.unwrap_or_default());
        assert_eq!(result.content[0].as_text(), Some("no luck"));
    }
}

#[tokio::test(start_paused = true)]
async fn input_requests_of_a_task_are_resolved_by_callbacks() {
    req!(
        "ext-tasks.input.fulfil",
        "ext-tasks.input.continue",
        "ext-tasks.input.same-trust",
        "tasks.input.call-result"
    );
    for era in ERAS {
        let client = connect(client(era), server()).await;

        let result = start_task(&client, "ask").await.result().await.unwrap();

        assert_eq!(result.content[0].as_text(), Some(r#"["first","second"]"#));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled() {
    req!("cancellation.tasks");
    for era in ERAS {
        let client = connect(client(era), server()).await;
        let task = start_task(&client, "work").await;

        task.cancel().await.unwrap();

        assert_eq!(task.wait().await.unwrap().status, TaskStatus::Cancelled);
        let error = task.result().await.unwrap_err();
        assert!(matches!(error, CallError::TaskCancelled { .. }), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_the_task_that_it_became() {
    req!("ext-tasks.create.client-both");
    let client = connect(client(LifecycleMode::Modern), server()).await;

    let slow = client.call_tool("ask", json!({})).await.unwrap();
    let plain = client
        .call_tool("never", json!({ "seconds": 0 }))
        .await
        .unwrap();

    assert_eq!(slow.content[0].as_text(), Some(r#"["first","second"]"#));
    assert_eq!(plain.content[0].as_text(), Some("worked"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_requires_a_task_is_called_as_one() {
    req!("tasks.tool.required-client");
    for era in ERAS {
        let client = connect(client(era), server()).await;

        let result = client.call_tool("must", json!({})).await.unwrap();

        assert_eq!(result.content[0].as_text(), Some("worked"));
        assert!(matches!(
            client.call_tool_as_task("must", json!({})).await.unwrap(),
            CallOutcome::Task(_)
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cached_task_only_tool_is_called_as_a_task_at_once() {
    req!("tasks.tool.required-client");
    let direct_calls = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&direct_calls);
    let client = client(LifecycleMode::Legacy).on_traffic(move |traffic| {
        let call = traffic.message.contains(r#""method":"tools/call""#);
        if call && !traffic.message.contains(r#""task":"#) {
            calls.fetch_add(1, Ordering::Relaxed);
        }
    });
    let client = connect(client, server()).await;
    client.tools().all().await.unwrap();

    client.call_tool("must", json!({})).await.unwrap();

    assert_eq!(direct_calls.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_forbids_tasks_is_called_without_one() {
    for era in ERAS {
        let client = connect(client(era), server()).await;

        let started = client
            .call_tool_as_task("never", json!({ "seconds": 1 }))
            .await
            .unwrap();

        assert!(matches!(&started, CallOutcome::Finished(_)), "{started:?}");
        assert_eq!(
            started.result().await.unwrap().content[0].as_text(),
            Some("worked")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_became_a_task_has_the_timeouts_of_a_call() {
    let client = connect(client(LifecycleMode::Modern), server()).await;
    let patience = Timeouts {
        total: Duration::from_secs(10),
        ..Timeouts::default()
    };

    let call = client
        .call_tool("work", json!({ "seconds": 3600 }))
        .timeouts(patience);
    let error = call.await.unwrap_err();

    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn tasks_are_listed_if_the_server_supports_it() {
    req!("tasks.capability.list-method");
    let legacy = connect(client(LifecycleMode::Legacy), server()).await;
    let task = start_task(&legacy, "work").await;
    let other = start_task(&legacy, "fail").await;
    let mut listed: Vec<_> = legacy
        .tasks()
        .all()
        .await
        .unwrap()
        .into_iter()
        .map(|task| task.task_id)
        .collect();
    let mut task_ids = vec![task.id().to_owned(), other.id().to_owned()];
    listed.sort();
    task_ids.sort();
    assert_eq!(listed, task_ids);

    let modern = connect(client(LifecycleMode::Modern), server()).await;
    let error = modern.tasks().all().await.unwrap_err();
    assert!(
        matches!(error, CallError::CapabilityNotAdvertised { .. }),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unknown_task_is_an_error_of_the_server() {
    for era in ERAS {
        let client = connect(client(era), server()).await;

        let error = client.task("nothing").wait().await.unwrap_err();

        assert_eq!(error.rpc().unwrap().code, -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_call_is_the_error_of_the_task() {
    async fn failing(_: Value, _: Context) -> Result<String, ToolError> {
        panic!("on purpose")
    }
    for era in ERAS {
        let tool =
            Tool::raw("broken", json!({ "type": "object" }), failing).task(TaskSupport::Optional);
        let client = connect(client(era), Server::new("broken", "1.0").tool(tool)).await;

        let error = start_task(&client, "broken")
            .await
            .result()
            .await
            .unwrap_err();

        assert!(
            matches!(
                error,
                CallError::Rejected {
                    method: "tools/call",
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(error.rpc().unwrap().code, -32603);
    }
}
