//! Tasks of both designs, between clients and servers of all eras.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{RunningGateway, testing::every_pair};
use turnbuckle_server::{
    Context, Elicitation, Server, TaskSupport, Tool, ToolError,
    testing::{Peer, PeerBuilder},
};

use crate::upstreams::{ERAS, client, desk, start, upstream};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name.
    name: String,
}

async fn sign(cx: Context) -> Result<String, ToolError> {
    let elicitation = Elicitation::form::<Name>("Who signs?").key("name");
    let name = cx.elicit(elicitation).await?;
    let name = name.accepted().map_or("unknown".to_owned(), |it| it.name);
    Ok(format!("signed by {name}"))
}

async fn report() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_secs(90)).await;
    Ok("done".to_owned())
}

async fn fail() -> Result<String, ToolError> {
    Err(ToolError::new("no paper"))
}

async fn forever() -> Result<String, ToolError> {
    std::future::pending().await
}

/// A server with tools that run as tasks.
fn workshop() -> Server {
    Server::new("workshop", "1.0.0")
        .tool(Tool::new("sign", sign).task(TaskSupport::Optional))
        .tool(Tool::new("report", report).task(TaskSupport::Optional))
        .tool(Tool::new("fail", fail).task(TaskSupport::Optional))
        .tool(Tool::new("forever", forever).task(TaskSupport::Optional))
        .tool(Tool::new("required", report).task(TaskSupport::Required))
}

async fn gateway(mode: LifecycleMode) -> RunningGateway {
    start([upstream("workshop", mode, workshop())]).await
}

/// Clients of both eras.
fn peers(server: &Server) -> [PeerBuilder; 2] {
    [
        Peer::connect(server.clone()).legacy("2025-11-25"),
        Peer::connect(server.clone()).modern(),
    ]
}

/// Calls a tool as a task, and returns the task.
async fn start_task(peer: &mut Peer, tool: &str) -> Value {
    let params = json!({ "name": tool, "arguments": {}, "task": { "ttl": 600_000 } });
    let response = peer.request("tools/call", params).await;
    let result = response.expect_result().clone();
    match result.get("task") {
        Some(task) => task.clone(),
        None => {
            assert_eq!(result["resultType"], "task", "{result}");
            result
        }
    }
}

fn id(task: &Value) -> &str {
    task["taskId"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn results_errors_and_input_of_tasks_pass_in_every_pair() {
    every_pair(workshop, async |peer, pair| {
        let mut peer = peer.tasks().respond_with(client).await;
        let report = peer.call_tool("report", json!({})).await;
        assert_eq!(report.text(), "done", "{pair}");
        let signed = peer.call_tool("sign", json!({})).await;
        assert_eq!(signed.text(), "signed by Ada", "{pair}");
        let failed = peer.call_tool("fail", json!({})).await;
        assert_eq!(failed.expect_tool_error(), "no paper", "{pair}");
        let required = peer.call_tool("required", json!({})).await;
        assert_eq!(required.text(), "done", "{pair}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_task_has_one_id_until_its_end() {
    every_pair(workshop, async |peer, pair| {
        let mut peer = peer.tasks().await;
        let task = start_task(&mut peer, "report").await;
        assert_eq!(task["status"], "working", "{pair}");
        let params = json!({ "taskId": id(&task) });
        let state = peer.request("tasks/get", params.clone()).await;
        assert_eq!(state.expect_result()["taskId"], task["taskId"], "{pair}");
        tokio::time::sleep(Duration::from_secs(180)).await;
        let state = peer.request("tasks/get", params).await;
        assert_eq!(state.expect_result()["status"], "completed", "{pair}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_ends_at_the_server() {
    every_pair(workshop, async |peer, pair| {
        let mut peer = peer.tasks().await;
        let task = start_task(&mut peer, "forever").await;
        let params = json!({ "taskId": id(&task) });
        peer.request("tasks/cancel", params.clone())
            .await
            .expect_result();
        let state = peer.request("tasks/get", params).await;
        assert_eq!(state.expect_result()["status"], "cancelled", "{pair}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn unknown_forged_and_altered_ids_are_unknown_tasks() {
    every_pair(workshop, async |peer, pair| {
        let mut peer = peer.tasks().await;
        let task = start_task(&mut peer, "forever").await;
        let altered = format!("{}A", id(&task));
        for id in ["", "x", "AAAAAAAAAAAAAAAAAAAAAAAA", &altered] {
            for method in ["tasks/get", "tasks/cancel"] {
                let response = peer.request(method, json!({ "taskId": id })).await;
                let error = response.expect_error(-32602);
                let message = error["message"].as_str().unwrap();
                assert!(message.contains("unknown task"), "{pair}: {message}");
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_task_of_another_session_is_unknown() {
    for mode in ERAS {
        let gateway = gateway(mode).await;
        let connect = || Peer::connect(gateway.server()).legacy("2025-11-25");
        let (mut first, mut second) = (connect().await, connect().await);
        let task = start_task(&mut first, "report").await;
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let response = second.request(method, json!({ "taskId": id(&task) })).await;
            response.expect_error(-32602);
        }
        let listed = second.request("tasks/list", json!({})).await;
        assert_eq!(listed.expect_result()["tasks"], json!([]), "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_other_design_is_unknown() {
    for mode in ERAS {
        let gateway = gateway(mode).await;
        let [legacy, modern] = peers(&gateway.server());
        let (mut legacy, mut modern) = (legacy.await, modern.tasks().await);
        let of_legacy = start_task(&mut legacy, "forever").await;
        let of_modern = start_task(&mut modern, "forever").await;
        let get = async |peer: &mut Peer, task: &Value| {
            let response = peer
                .request("tasks/get", json!({ "taskId": id(task) }))
                .await;
            response.expect_error(-32602);
        };
        get(&mut modern, &of_legacy).await;
        get(&mut legacy, &of_modern).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_of_the_other_design_is_unknown() {
    every_pair(workshop, async |peer, pair| {
        let mut peer = peer.tasks().await;
        let methods: &[&str] = if peer.revision().is_stateless() {
            &["tasks/list", "tasks/result"]
        } else {
            &["tasks/update"]
        };
        for method in methods {
            let task = start_task(&mut peer, "forever").await;
            let params = json!({ "taskId": id(&task), "inputResponses": {} });
            let response = peer.request(method, params).await;
            let code = response.error().map(|error| error["code"].clone());
            assert_eq!(code, Some(json!(-32601)), "{pair}: {method}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn lists_of_tasks_are_merged_and_paged() {
    let one_per_page = || workshop().page_size(1);
    let gateway = start([
        upstream("a", LifecycleMode::Legacy, one_per_page()),
        upstream("b", LifecycleMode::Modern, workshop()),
        upstream("c", LifecycleMode::Legacy, one_per_page()),
        upstream("d", LifecycleMode::Legacy, desk()),
    ])
    .await;
    let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    let mut started = Vec::new();
    for tool in ["a_forever", "a_forever", "b_forever", "c_forever"] {
        started.push(start_task(&mut peer, tool).await["taskId"].clone());
    }
    let (mut listed, mut params) = (Vec::new(), json!({}));
    loop {
        let page = peer.request("tasks/list", params).await;
        let page = page.expect_result().clone();
        let tasks = page["tasks"].as_array().unwrap();
        listed.extend(tasks.iter().map(|task| task["taskId"].clone()));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    started.sort_by_key(Value::to_string);
    listed.sort_by_key(Value::to_string);
    assert_eq!(listed, started);
    let forged = peer.request("tasks/list", json!({ "cursor": "x" })).await;
    forged.expect_error(-32602);
}

#[tokio::test(start_paused = true)]
async fn task_methods_require_the_extension() {
    for mode in ERAS {
        let gateway = gateway(mode).await;
        let connect = || Peer::connect(gateway.server()).modern();
        let (mut with, mut without) = (connect().tasks().await, connect().await);
        let task = start_task(&mut with, "forever").await;
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": id(&task), "inputResponses": {} });
            let response = without.request(method, params).await;
            let error = response.expect_error(-32021);
            let extensions = &error["data"]["requiredCapabilities"]["extensions"];
            assert_eq!(extensions[EXTENSION], json!({}), "{mode:?} {method}");
        }
        let params = json!({ "taskId": id(&task) });
        let state = with.request("tasks/get", params).await;
        assert_eq!(state.expect_result()["status"], "working", "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_tasks_has_no_task_methods() {
    for mode in ERAS {
        let gateway = start([upstream("desk", mode, desk())]).await;
        for peer in peers(&gateway.server()) {
            let mut peer = peer.tasks().await;
            let response = peer.request("tasks/get", json!({ "taskId": "x" })).await;
            response.expect_error(-32601);
            let params = json!({ "name": "greet", "arguments": { "name": "Ada" }, "task": {} });
            let called = peer.request("tools/call", params).await;
            assert_eq!(called.text(), "Hello, Ada!");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_server_without_tasks_runs_as_a_task_of_the_gateway() {
    let gateway = start([
        upstream("workshop", LifecycleMode::Legacy, workshop()),
        upstream("desk", LifecycleMode::Legacy, desk()),
    ])
    .await;
    let peer = Peer::connect(gateway.server()).legacy("2025-11-25");
    let mut peer = peer.respond_with(client).await;
    let task = start_task(&mut peer, "desk_sign").await;
    let params = json!({ "taskId": id(&task) });
    let result = peer.request("tasks/result", params).await;
    assert_eq!(result.text(), "Yours, Ada");
    let related = &result.expect_result()["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], task["taskId"]);
}

#[tokio::test(start_paused = true)]
async fn client_requests_and_results_name_the_task_that_the_client_knows() {
    for mode in ERAS {
        let gateway = gateway(mode).await;
        let capabilities = json!({ "elicitation": {} });
        let peer = Peer::connect(gateway.server()).legacy("2025-11-25");
        let mut peer = peer.capabilities(capabilities).await;
        let task = start_task(&mut peer, "sign").await;
        let request = peer
            .start("tasks/result", json!({ "taskId": id(&task) }))
            .await;
        let asked = peer.expect_request("elicitation/create").await;
        let related = "io.modelcontextprotocol/related-task";
        assert_eq!(
            asked.params["_meta"][related]["taskId"], task["taskId"],
            "{mode:?}"
        );
        let accepted = json!({ "action": "accept", "content": { "name": "Bo" } });
        peer.respond(&asked, accepted).await;
        let result = peer.finish(request).await;
        assert_eq!(result.text(), "signed by Bo");
        let meta = &result.expect_result()["_meta"];
        assert_eq!(meta[related]["taskId"], task["taskId"], "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_requires_a_task_can_be_called_by_a_modern_client_without_tasks() {
    let gateway = gateway(LifecycleMode::Legacy).await;
    let mut peer = Peer::connect(gateway.server()).modern().await;
    let response = peer.call_tool("required", json!({})).await;
    assert_eq!(response.text(), "done");
}

#[tokio::test(start_paused = true)]
async fn listeners_get_the_changes_of_their_tasks() {
    for mode in ERAS {
        let gateway = gateway(mode).await;
        let mut peer = Peer::connect(gateway.server()).modern().tasks().await;
        let task = start_task(&mut peer, "report").await;
        peer.listen(json!({ "taskIds": [id(&task), "forged"] }))
            .await;
        let ended = peer.expect_notification("notifications/tasks").await;
        assert_eq!(ended["taskId"], task["taskId"], "{mode:?}");
        assert_eq!(ended["status"], "completed", "{mode:?}");
        assert!(ended["_meta"]["io.modelcontextprotocol/subscriptionId"].is_number());
    }
}

#[tokio::test(start_paused = true)]
async fn clients_see_which_tools_may_run_as_tasks() {
    for mode in ERAS {
        let gateway = gateway(mode).await;
        let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
        let tools = peer.request("tools/list", json!({})).await;
        let tools = &tools.expect_result()["tools"];
        assert_eq!(tools[0]["execution"]["taskSupport"], "optional", "{mode:?}");
        let mut peer = Peer::connect(gateway.server()).modern().await;
        let discovered = peer.request("server/discover", json!({})).await;
        let capabilities = &discovered.expect_result()["capabilities"];
        assert!(capabilities["extensions"][EXTENSION].is_object());
        assert!(capabilities.get("tasks").is_none());
    }
}
