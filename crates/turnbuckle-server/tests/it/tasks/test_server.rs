//! A server with tools that run as tasks, and a client for them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;
use turnbuckle_protocol::RpcError;
use turnbuckle_server::{
    Context, Elicitation, ElicitationOutcome, SamplingBuilder, Server, TaskSupport, Tool, ToolError,
};

use crate::ndjson::test_client::{Peer, modern_with};

#[derive(Deserialize, JsonSchema)]
struct Work {
    seconds: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

fn who(response: ElicitationOutcome<Name>) -> String {
    response
        .accepted()
        .map_or("missing".to_owned(), |it| it.name)
}

pub(crate) fn server() -> Server {
    let work = Tool::new("work", async |work: Work, cx: Context| {
        cx.progress_message(1.0, Some(2.0), "half way").await;
        cx.log(turnbuckle_protocol::types::LogLevel::Error, "working")
            .await;
        sleep(Duration::from_secs(work.seconds)).await;
        cx.progress(2.0, 2.0).await;
        Ok(format!("worked {} s", work.seconds))
    });
    let fail = Tool::new("fail", async || Err::<String, _>(ToolError::new("no luck")));
    let break_ = Tool::new("break", async || {
        let error = RpcError::new(-32050, "broken").with_data("pieces");
        Err::<String, _>(ToolError::protocol(error))
    });
    let panic = Tool::new("panic", async |work: Work| -> Result<String, ToolError> {
        panic!("after {}", work.seconds)
    });
    let ask = Tool::new("ask", async |cx: Context| {
        let name = cx
            .elicit(Elicitation::form::<Name>("Who?").key("name"))
            .await?;
        Ok(format!("hello {}", who(name)))
    });
    let ask_twice = Tool::new("ask_twice", async |cx: Context| {
        let (first, second) = tokio::try_join!(
            cx.elicit(Elicitation::form::<Name>("First?").key("first")),
            cx.elicit(Elicitation::form::<Name>("Second?").key("second")),
        )?;
        let said = cx
            .sample("thought", SamplingBuilder::text("Think!"))
            .await?;
        Ok(format!("{} {} {}", who(first), who(second), said.model))
    });
    let impatient = Tool::new("impatient", async |cx: Context| {
        let response = cx.elicit(Elicitation::form::<Name>("Quick, who?").key("name"));
        match tokio::time::timeout(Duration::from_secs(5), response).await {
            Ok(response) => Ok(who(response?)),
            Err(_) => {
                sleep(Duration::from_secs(5)).await;
                Ok("declined".to_owned())
            }
        }
    });
    let first = Tool::new("ask_first", async |cx: Context| {
        let name = who(cx
            .elicit(Elicitation::form::<Name>("Who?").key("name"))
            .await?);
        cx.into_task().await?;
        sleep(Duration::from_secs(10)).await;
        let again = who(cx
            .elicit(Elicitation::form::<Name>("Still?").key("again"))
            .await?);
        Ok(format!("{name}, {again}, {}", cx.is_task()))
    });
    let chatter = Tool::new("chatter", async |cx: Context| {
        for step in 1..=1000 {
            cx.progress_message(step, None, format!("step {step}"))
                .await;
        }
        sleep(Duration::from_secs(10)).await;
        Ok("silent".to_owned())
    });
    let optional = [
        chatter, work, fail, break_, panic, ask, ask_twice, impatient,
    ];
    let server = Server::new("tasks", "1")
        .tool(Tool::new("plain", async || Ok("plain".to_owned())))
        .tool(Tool::new("must", async || Ok("done".to_owned())).task(TaskSupport::Required))
        .tool(first.task(TaskSupport::Optional).task_after_input());
    optional.into_iter().fold(server, |server, tool| {
        server.tool(tool.task(TaskSupport::Optional))
    })
}

/// All client capabilities.
pub(crate) fn everything() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

/// A client that requests tasks, in a session of 2025-11-25.
pub(crate) async fn client_in_session() -> Peer {
    Peer::initialized(server(), "2025-11-25", everything()).await
}

/// Sends a request and returns its response, and the notifications before it.
pub(crate) async fn request_with_notifications(
    peer: &mut Peer,
    method: &str,
    params: Value,
) -> (Value, Vec<Value>) {
    let id = peer.request(method, params).await;
    response_to(peer, id).await
}

/// Waits for a response, and returns it with the notifications before it.
pub(crate) async fn response_to(peer: &mut Peer, id: i64) -> (Value, Vec<Value>) {
    let mut notified = Vec::new();
    loop {
        let message = peer.next().await;
        if message["id"] == id {
            return (message, notified);
        }
        notified.push(message);
    }
}

/// Calls a tool as a task, in a session; returns the task.
pub(crate) async fn start(peer: &mut Peer, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "task": {}, "_meta": { "progressToken": 5 } });
    let (response, _) = request_with_notifications(peer, "tools/call", params).await;
    let task = response["result"]["task"].clone();
    assert!(task.is_object(), "{response}");
    task
}

/// The parameters that name a task.
pub(crate) fn id(task: &Value) -> Value {
    json!({ "taskId": task["taskId"] })
}

/// Sends a request with the tasks extension.
pub(crate) async fn request_with_extension(peer: &mut Peer, method: &str, params: Value) -> Value {
    let (response, notified) =
        request_with_notifications(peer, method, modern_with(params, everything())).await;
    assert_eq!(notified, Vec::<Value>::new(), "nothing is sent for tasks");
    response
}

/// Calls a tool that becomes a task. Returns the task.
pub(crate) async fn start_server_directed(peer: &mut Peer, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": 5 } });
    let response = request_with_extension(peer, "tools/call", params).await;
    assert_eq!(response["result"]["resultType"], "task", "{response}");
    response["result"].clone()
}
