//! Tests that owners of one server do not see each other's data.

use serde_json::{Value, json};
use turnbuckle_context::OwnershipPolicy;
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Server,
    ndjson::NdjsonServer,
    testing::{Peer, PeerBuilder},
};

use super::test_project::{TestProject, call};

async fn peer(server: &Server, name: &str) -> Peer {
    let lines =
        NdjsonServer::new(server.clone()).principal(Principal::new("https://id.example", name));
    PeerBuilder::ndjson(lines).await
}

async fn names(peer: &mut Peer, method: &str, list: &str, key: &str) -> Vec<String> {
    let listed = peer.request(method, json!({})).await;
    let all = listed.expect_result()[list].as_array().unwrap().clone();
    let names = all.iter().map(|one| one[key].as_str().unwrap());
    names
        .filter(|name| !name.starts_with("debuglog:"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn callers_do_not_see_data_of_other_owners() {
    let test_project = TestProject::new();
    let server = test_project.shared_server();
    let (mut ada, mut bob) = (peer(&server, "ada").await, peer(&server, "bob").await);
    let args = json!({ "content": "Ada's secret plan", "project_path": test_project.path() });
    let saved = call(&mut ada, "checkpoint_save", args).await;
    let args = json!({ "name": "Plan", "description": "Ada's way", "content": "Think first." });
    call(&mut ada, "skill_save", args).await;
    let args = json!({ "error_msg": "it broke", "solution": "glue" });
    call(&mut ada, "remediation_save", args).await;

    let ours = names(&mut ada, "resources/list", "resources", "uri").await;
    assert!(ours.len() >= 2, "{ours:?}");
    assert_eq!(
        names(&mut bob, "resources/list", "resources", "uri").await,
        [""; 0]
    );
    let foreign = format!("checkpoint://{}", saved["checkpoint_id"].as_str().unwrap());
    for uri in ours
        .iter()
        .map(String::as_str)
        .chain([&*foreign, "skill://Plan"])
    {
        ada.request("resources/read", json!({ "uri": uri }))
            .await
            .expect_result();
        let theirs = bob.request("resources/read", json!({ "uri": uri })).await;
        let unknown = bob
            .request(
                "resources/read",
                json!({ "uri": "checkpoint://ckpt_0000000000000000" }),
            )
            .await;
        assert_eq!(
            theirs.expect_error(-32602)["message"],
            unknown.expect_error(-32602)["message"],
            "what is foreign looks like what never was"
        );
    }

    let project = json!({ "project_path": test_project.path() });
    assert_eq!(
        call(&mut bob, "checkpoint_list", project).await["checkpoints"],
        json!([])
    );
    let args = json!({ "query": "secret plan", "project_path": test_project.path() });
    assert_eq!(
        call(&mut bob, "checkpoint_search", args).await["checkpoints"],
        json!([])
    );
    let args = json!({ "query": "plan" });
    assert_eq!(
        call(&mut bob, "skill_search", args).await["skills"],
        json!([])
    );
    let args = json!({ "error_msg": "it broke" });
    assert_eq!(
        call(&mut bob, "remediation_search", args).await["remediations"],
        json!([])
    );
    let args = json!({ "operation_id": saved["operation_id"] });
    let failure = bob.call_tool("status", args).await.expect_tool_error();
    assert!(failure.starts_with("not found: operation"), "{failure}");
}

#[tokio::test]
async fn completion_and_prompts_use_only_data_of_the_caller() {
    let test_project = TestProject::new();
    let server = test_project.shared_server();
    let (mut ada, mut bob) = (peer(&server, "ada").await, peer(&server, "bob").await);
    let args = json!({ "content": "Ada's secret plan", "project_path": test_project.path() });
    call(&mut ada, "checkpoint_save", args).await;
    let complete = async |peer: &mut Peer| {
        let params = json!({
            "ref": { "type": "ref/prompt", "name": "resume_work" },
            "argument": { "name": "project_path", "value": "" },
        });
        let completed = peer.request("completion/complete", params).await;
        completed.expect_result()["completion"]["values"].clone()
    };
    assert_eq!(complete(&mut ada).await, json!([test_project.path()]));
    assert_eq!(complete(&mut bob).await, json!([]));
    let params =
        json!({ "name": "resume_work", "arguments": { "project_path": test_project.path() } });
    let got = bob.request("prompts/get", params).await;
    let text = got.expect_result()["messages"].to_string();
    assert!(text.contains("No checkpoint exists"), "{text}");
}

#[tokio::test]
async fn callers_are_not_notified_about_other_owners() {
    let test_project = TestProject::new();
    let server = test_project.shared_server();
    let (mut ada, mut bob) = (peer(&server, "ada").await, peer(&server, "bob").await);
    let args = json!({ "content": "one", "project_path": test_project.path() });
    call(&mut ada, "checkpoint_save", args).await;
    let ours = names(&mut ada, "resources/list", "resources", "uri").await;
    let collection = ours
        .iter()
        .find(|uri| uri.starts_with("collection:"))
        .unwrap();
    bob.listen(json!({ "resourceSubscriptions": [collection] }))
        .await;
    ada.listen(json!({ "resourceSubscriptions": [collection] }))
        .await;
    let args = json!({ "content": "quite another two", "project_path": test_project.path() });
    call(&mut ada, "checkpoint_save", args).await;
    ada.expect_notification("notifications/resources/updated")
        .await;
    bob.expect_no_message().await;
}

#[tokio::test]
async fn subscribers_are_notified_only_about_their_own_data() {
    let test_project = TestProject::new();
    let server = test_project.shared_server();
    let (mut ada, mut bob) = (peer(&server, "ada").await, peer(&server, "bob").await);
    let save = |summary: &str| {
        let metadata = json!({ "summary": summary });
        json!({ "content": "one", "project_path": test_project.path(), "metadata": metadata })
    };
    call(&mut ada, "checkpoint_save", save("first")).await;
    for watcher in [&mut ada, &mut bob] {
        let watched = json!({ "resourceSubscriptions": ["checkpoint://"] });
        watcher.listen(watched).await;
    }
    call(&mut ada, "checkpoint_save", save("second")).await;
    ada.expect_notification("notifications/resources/updated")
        .await;
    bob.expect_no_message().await;
}

#[tokio::test]
async fn an_unauthenticated_caller_is_told_to_sign_in() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.shared_server()).await;
    for (tool, args) in [
        (
            "checkpoint_list",
            json!({ "project_path": test_project.path() }),
        ),
        ("status", json!({ "operation_id": "op_0000000000000000" })),
        ("collection_list", json!({})),
    ] {
        let failure = peer.call_tool(tool, args).await.expect_tool_error();
        assert!(failure.contains("sign in"), "{tool}: {failure}");
    }
    let listed = names(&mut peer, "resources/list", "resources", "uri").await;
    assert_eq!(listed, [""; 0]);
    let extensions: Value = peer
        .request("server/discover", json!({}))
        .await
        .expect_result()["capabilities"]["extensions"]
        .clone();
    assert!(
        extensions.get("io.modelcontextprotocol/skills").is_none(),
        "{extensions}"
    );
}

#[tokio::test]
async fn without_allowed_folders_no_file_is_read() {
    let test_project = TestProject::new();
    test_project.write("src/lib.rs", "pub fn here() {}\n");
    let server = test_project.builder(OwnershipPolicy::PerPrincipal).build();
    let mut ada = peer(&server, "ada").await;
    for (tool, args) in [
        ("index_repository", json!({ "path": test_project.path() })),
        (
            "repository_search",
            json!({ "query": "here", "project_path": test_project.path() }),
        ),
        (
            "checkpoint_save",
            json!({ "content": "x", "project_path": "/root" }),
        ),
    ] {
        let failure = ada.call_tool(tool, args).await.expect_tool_error();
        assert!(
            failure.contains("not configured to use any folder"),
            "{tool}: {failure}"
        );
    }
}

#[tokio::test]
async fn a_memory_of_another_owner_cannot_be_forgotten() {
    let test_project = TestProject::new();
    let server = test_project.shared_server();
    let (mut ada, mut bob) = (peer(&server, "ada").await, peer(&server, "bob").await);
    let args = json!({ "content": "Ada's plan", "project_path": test_project.path() });
    let saved = call(&mut ada, "checkpoint_save", args).await;
    let args = json!({ "id": saved["checkpoint_id"] });

    let refused = bob.call_tool("memory_forget", args.clone()).await;

    let failure = refused.expect_tool_error();
    assert!(failure.starts_with("not found: item"), "{failure}");
    call(&mut ada, "memory_forget", args).await;
}
