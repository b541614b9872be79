//! An agent's use of the context server, end to end: on stdio and HTTP, in both eras.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use rustix::process::Signal;
use serde_json::{Value, json};
use turnbuckle_client::{
    Client, Era, LifecycleMode, Target, http::HttpTarget, stdio::ServerCommand,
};

use crate::{sandbox::Sandbox, serve_process::ServeProcess};

/// A repository of three files.
fn repository(sandbox: &Sandbox) -> String {
    sandbox.write("project/.git/HEAD", "ref: refs/heads/main\n");
    sandbox.write(
        "project/src/parser.rs",
        "/// Reads a configuration.\npub fn parse_config(text: &str) -> Config {\n    todo!()\n}\n",
    );
    sandbox.write(
        "project/src/server.rs",
        "/// Accepts connections.\npub fn accept_loop() {\n    todo!()\n}\n",
    );
    sandbox.write("project/README.md", "# Example\n\nReads configurations.\n");
    let path = sandbox.path().join("project").canonicalize().unwrap();
    path.to_str().unwrap().to_owned()
}

async fn connect(to: impl Into<Target>, era: LifecycleMode) -> Client {
    let client = Client::builder("flow", "1")
        .lifecycle_mode(era)
        .connect(to.into());
    client.await.unwrap()
}

/// Calls a tool that must succeed and return text, and returns its structured content.
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
    // Clients of the modern era get a task, and poll it.
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
    on_stdio(LifecycleMode::Modern);
}

#[test]
fn everything_works_on_stdio_in_the_legacy_era() {
    on_stdio(LifecycleMode::Legacy);
}

#[test]
fn everything_works_on_http_in_the_modern_era() {
    on_http(LifecycleMode::Modern);
}

#[test]
fn everything_works_on_http_in_the_legacy_era() {
    on_http(LifecycleMode::Legacy);
}

fn on_stdio(era: LifecycleMode) {
    let sandbox = Sandbox::new();
    let project = repository(&sandbox);
    let child = ServerCommand::new(env!("CARGO_BIN_EXE_turnbuckle"))
        .args(["serve", "--stdio", "--data", "data"])
        .env("HOME", sandbox.path())
        .current_dir(sandbox.path());
    sandbox.runtime.block_on(async {
        let client = connect(child, era).await;
        flow(&client, &project).await;
        client.close().await;
    });
}

fn on_http(era: LifecycleMode) {
    let sandbox = Sandbox::new();
    let project = repository(&sandbox);
    let server = ServeProcess::on_free_port(&sandbox);
    sandbox.runtime.block_on(async {
        let client = connect(HttpTarget::new(&server.address), era).await;
        flow(&client, &project).await;
        client.close().await;
    });
    server.stop();
}

#[test]
fn a_running_call_is_finished_at_shutdown() {
    let sandbox = Sandbox::new();
    let project = repository(&sandbox);
    for number in 0..1_500 {
        let text = format!("pub fn number_{number}() -> u32 {{\n    {number}\n}}\n");
        sandbox.write(&format!("project/src/many/f{number}.rs"), &text);
    }
    let server = ServeProcess::on_free_port(&sandbox);
    let url = server.address.clone();
    let (progress, mut progressed) = tokio::sync::mpsc::unbounded_channel();

    let indexed: Value = sandbox.runtime.block_on(async {
        let client = connect(HttpTarget::new(&url), LifecycleMode::Legacy).await;
        let indexing = client
            .call_tool("index_repository", json!({ "path": project }))
            .on_progress(move |_| {
                let _ = progress.send(());
            });
        let ending = async {
            // The server gets the signal as soon as it reports progress.
            progressed.recv().await.unwrap();
            server.signal(Signal::TERM);
        };
        let (indexed, ()) = tokio::join!(async { indexing.await }, ending);
        indexed.unwrap().structured().unwrap()
    });

    assert_eq!(indexed["files_indexed"], 1_503, "{indexed}");
    let (status, stderr) = server.wait();
    assert!(status.success(), "{stderr}");
    assert!(stderr.contains("shutting down"), "{stderr}");
}

#[test]
fn a_second_signal_aborts_running_calls() {
    let sandbox = Sandbox::new();
    let project = repository(&sandbox);
    for number in 0..2_000 {
        let text = format!("pub fn number_{number}() {{}}\n");
        sandbox.write(&format!("project/src/many/f{number}.rs"), &text);
    }
    let server = ServeProcess::on_free_port(&sandbox);
    let (progress, mut progressed) = tokio::sync::mpsc::unbounded_channel();

    let running = sandbox.runtime.block_on(async {
        let client = connect(HttpTarget::new(&server.address), LifecycleMode::Legacy).await;
        let indexing = client
            .call_tool("index_repository", json!({ "path": project }))
            .on_progress(move |_| {
                let _ = progress.send(());
            });
        let indexing = tokio::spawn(indexing.into_future());
        progressed.recv().await.unwrap();
        // Immediately, while the call is running. Two different signals are never merged into one.
        server.signal(Signal::TERM);
        server.signal(Signal::INT);
        // Held until the server has ended: a dropped call would be cancelled before the second signal.
        (client, indexing)
    });

    let (status, stderr) = server.wait();
    drop(running);
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
}
