//! What an agent does with the context server, from end to end: on stdio and on HTTP, in both eras.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};
use turnbuckle_client::http::Http;
use turnbuckle_client::stdio::Child;
use turnbuckle_client::{Client, Era, EraChoice, Target};

use crate::serving::Serving;
use crate::stage::Stage;

/// A repository of three files.
fn repository(stage: &Stage) -> String {
    stage.write("project/.git/HEAD", "ref: refs/heads/main\n");
    stage.write(
        "project/src/parser.rs",
        "/// Reads a configuration.\npub fn parse_config(text: &str) -> Config {\n    todo!()\n}\n",
    );
    stage.write(
        "project/src/server.rs",
        "/// Accepts connections.\npub fn accept_loop() {\n    todo!()\n}\n",
    );
    stage.write("project/README.md", "# Example\n\nReads configurations.\n");
    let path = stage.path().join("project").canonicalize().unwrap();
    path.to_str().unwrap().to_owned()
}

async fn connect(to: impl Into<Target>, era: EraChoice) -> Client {
    let client = Client::builder("flow", "1").era(era).connect(to.into());
    client.await.unwrap()
}

/// Calls a tool that shall succeed, says something in words, and returns its data.
async fn call(client: &Client, tool: &str, arguments: Value) -> Value {
    let output = client.call_tool(tool, arguments).await.unwrap();
    assert!(!output.is_error(), "{tool}: {}", output.text());
    assert!(!output.text().trim().is_empty(), "{tool} says nothing");
    output.structured().unwrap()
}

/// Uses every tool, resource and prompt once.
async fn flow(client: &Client, project: &str) {
    let tools = client.tools().all().await.unwrap();
    for tool in &tools {
        let name = &tool.name;
        assert!(tool.description.is_some(), "{name}");
        assert!(tool.output_schema.is_some(), "{name}");
        assert!(tool.annotations.is_some(), "{name}");
    }
    memory(client, project).await;
    let used = code(client, project).await;
    collections(client, project).await;
    resources_and_prompts(client, project, &used).await;
    debugging(client).await;
}

async fn memory(client: &Client, project: &str) {
    let checkpoint = json!({
        "content": "The parser reads nested tables; next: error positions.",
        "project_path": project,
        "metadata": { "summary": "Parser done", "tags": "parser,toml" },
    });
    let saved = call(client, "checkpoint_save", checkpoint).await;
    let id = saved["checkpoint_id"].as_str().unwrap().to_owned();
    let search = json!({ "query": "how far is the parser?", "project_path": project });
    let found = call(client, "checkpoint_search", search).await;
    assert_eq!(found["checkpoints"][0]["checkpoint"]["id"], id);
    let list = json!({ "project_path": project, "content_mode": "full" });
    let listed = call(client, "checkpoint_list", list).await;
    assert_eq!(listed["checkpoints"][0]["summary"], "Parser done");

    let remediation = json!({
        "error_msg": "error[E0502]: cannot borrow `x` as mutable at src/main.rs:4",
        "solution": "Clone the value before the loop.",
        "project_path": project,
    });
    call(client, "remediation_save", remediation).await;
    let search = json!({ "error_msg": "E0502 cannot borrow as mutable", "project_path": project });
    let found = call(client, "remediation_search", search).await;
    assert_eq!(found["remediations"].as_array().unwrap().len(), 1);

    let skill = json!({
        "name": "release",
        "description": "How a release is made",
        "content": "1. Change the version.\n2. Tag it.",
        "tags": ["release"],
    });
    call(client, "skill_save", skill).await;
    let found = call(client, "skill_search", json!({ "query": "make a release" })).await;
    assert_eq!(found["skills"][0]["skill"]["name"], "release");
    let skills = client.skills().all().await.unwrap();
    assert_eq!(skills.len(), 1);

    let operation = saved["operation_id"].as_str().unwrap();
    let status = call(client, "status", json!({ "operation_id": operation })).await;
    assert_eq!(status["status"], "completed");
    assert_eq!(call(client, "status", json!({})).await["status"], "healthy");
}

/// Returns a checkpoint to read.
async fn code(client: &Client, project: &str) -> String {
    let steps = Arc::new(AtomicU32::new(0));
    let seen = steps.clone();
    let indexing = client
        .call_tool("index_repository", json!({ "path": project }))
        .on_progress(move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
        });
    let indexed: Value = indexing.await.unwrap().structured().unwrap();
    assert_eq!(indexed["files_indexed"], 3, "{indexed}");
    // Clients of the modern era get a task for it, and look in on that.
    let is_task = client.server().era == Era::Modern;
    assert!(
        is_task || steps.load(Ordering::Relaxed) > 0,
        "no progress was told"
    );
    let search = json!({ "query": "where is the configuration read?", "project_path": project });
    let found = call(client, "repository_search", search).await;
    let text = found.to_string();
    assert!(text.contains("src/parser.rs"), "{text}");
    let status = call(client, "status", json!({ "project_path": project })).await;
    assert!(status.to_string().contains("files"), "{status}");
    let listed = call(
        client,
        "checkpoint_list",
        json!({ "project_path": project }),
    )
    .await;
    listed["checkpoints"][0]["id"].as_str().unwrap().to_owned()
}

async fn collections(client: &Client, project: &str) {
    let listed = call(client, "collection_list", json!({})).await;
    let names: Vec<_> = listed["collections"].as_array().unwrap().iter().collect();
    let main = names[0]["name"].as_str().unwrap();
    assert!(main.ends_with("/main"), "{main}");
    let name = main.replace("/main", "/topic");
    let create = json!({ "collection_name": name, "vector_size": 384 });
    let created = call(client, "collection_create", create).await;
    assert_eq!(created["collection_name"], name);
    let deleted = call(
        client,
        "collection_delete",
        json!({ "collection_name": name }),
    )
    .await;
    assert_eq!(deleted["deleted"], true);
    let _ = project;
}

async fn resources_and_prompts(client: &Client, project: &str, checkpoint: &str) {
    let resources = client.resources().all().await.unwrap();
    let uris: Vec<_> = resources
        .iter()
        .map(|resource| resource.uri.as_str())
        .collect();
    let uri = format!("checkpoint://{checkpoint}");
    assert!(uris.contains(&uri.as_str()), "{uris:?}");
    let read = client.read_resource(&uri).await.unwrap();
    let read = serde_json::to_string(&read).unwrap();
    assert!(read.contains("nested tables"), "{read}");
    let prompts = client.prompts().all().await.unwrap();
    let names: Vec<_> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let prompt = client
        .get_prompt("resume_work", [("project_path", project)])
        .await
        .unwrap();
    let prompt = serde_json::to_string(&prompt).unwrap();
    assert!(prompt.contains("Parser done"), "{prompt}");
}

async fn debugging(client: &Client) {
    let session = call(client, "debug_create_session", json!({ "program": "flow" })).await;
    call(client, "status", json!({})).await;
    let sessions = call(client, "debug_list_sessions", json!({})).await;
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    let found = json!({ "function_pattern": "status", "entry_type": "exit", "max_results": 1 });
    let found = call(client, "debug_log_query", found).await;
    assert_eq!(found["entries"][0]["class_name"], "flow");
    assert!(found["entries"][0]["duration_ms"].is_number());
    let tree = call(client, "debug_log_tree", json!({ "format": "json" })).await;
    assert!(tree["tree"].to_string().contains("tools status"), "{tree}");
    let close = json!({ "session_id": session["session_id"] });
    assert_eq!(
        call(client, "debug_close_session", close).await["status"],
        "ok"
    );
    call(client, "debug_log_disable", json!({})).await;
    call(client, "debug_log_clear", json!({})).await;
    call(client, "debug_log_enable", json!({})).await;
    assert_eq!(
        call(client, "debug_log_status", json!({})).await["entry_count"],
        0
    );
}

#[test]
fn everything_works_on_stdio_in_the_modern_era() {
    on_stdio(EraChoice::Modern);
}

#[test]
fn everything_works_on_stdio_in_the_legacy_era() {
    on_stdio(EraChoice::Legacy);
}

#[test]
fn everything_works_on_http_in_the_modern_era() {
    on_http(EraChoice::Modern);
}

#[test]
fn everything_works_on_http_in_the_legacy_era() {
    on_http(EraChoice::Legacy);
}

fn on_stdio(era: EraChoice) {
    let stage = Stage::new();
    let project = repository(&stage);
    let child = Child::new(env!("CARGO_BIN_EXE_turnbuckle"))
        .args(["serve", "--stdio", "--data", "data"])
        .env("HOME", stage.path())
        .current_dir(stage.path());
    stage.runtime.block_on(async {
        let client = connect(child, era).await;
        flow(&client, &project).await;
        client.close().await;
    });
}

fn on_http(era: EraChoice) {
    let stage = Stage::new();
    let project = repository(&stage);
    let server = Serving::on_a_port(&stage);
    stage.runtime.block_on(async {
        let client = connect(Http::new(&server.told), era).await;
        flow(&client, &project).await;
        client.close().await;
    });
    server.end();
}

#[test]
fn a_call_that_runs_when_the_server_is_asked_to_end_is_answered() {
    let stage = Stage::new();
    let project = repository(&stage);
    for number in 0..1_500 {
        let text = format!("pub fn number_{number}() -> u32 {{\n    {number}\n}}\n");
        stage.write(&format!("project/src/many/f{number}.rs"), &text);
    }
    let server = Serving::on_a_port(&stage);
    let url = server.told.clone();
    let (told, mut works) = tokio::sync::mpsc::unbounded_channel();

    let indexed: Value = stage.runtime.block_on(async {
        let client = connect(Http::new(&url), EraChoice::Legacy).await;
        let indexing = client
            .call_tool("index_repository", json!({ "path": project }))
            .on_progress(move |_| {
                let _ = told.send(());
            });
        let ending = async {
            // As soon as it tells that it works, it is asked to end.
            works.recv().await.unwrap();
            server.signal(Signal::TERM);
        };
        let (indexed, ()) = tokio::join!(async { indexing.await }, ending);
        indexed.unwrap().structured().unwrap()
    });

    assert_eq!(indexed["files_indexed"], 1_503, "{indexed}");
    let (status, said) = server.wait();
    assert!(status.success(), "{said}");
    assert!(said.contains("ending"), "{said}");
}

#[test]
fn a_second_signal_ends_a_server_with_calls_that_run() {
    let stage = Stage::new();
    let project = repository(&stage);
    for number in 0..2_000 {
        let text = format!("pub fn number_{number}() {{}}\n");
        stage.write(&format!("project/src/many/f{number}.rs"), &text);
    }
    let server = Serving::on_a_port(&stage);
    let (told, mut works) = tokio::sync::mpsc::unbounded_channel();

    let running = stage.runtime.block_on(async {
        let client = connect(Http::new(&server.told), EraChoice::Legacy).await;
        let indexing = client
            .call_tool("index_repository", json!({ "path": project }))
            .on_progress(move |_| {
                let _ = told.send(());
            });
        let indexing = tokio::spawn(indexing.into_future());
        works.recv().await.unwrap();
        // At once: the call has to be running still, and two different signals are never taken for one.
        server.signal(Signal::TERM);
        server.signal(Signal::INT);
        // Held until the server is gone: a call that is given up would be over before the second signal is seen.
        (client, indexing)
    });

    let (status, said) = server.wait();
    drop(running);
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("interrupted"), "{said}");
}
