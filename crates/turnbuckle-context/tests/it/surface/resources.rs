//! Tests of resources: lists, reads, subscriptions and completion.

use serde_json::{Value, json};
use turnbuckle_server::testing::{Peer, all_combinations};

use super::test_project::{TestProject, call};

async fn listed(peer: &mut Peer) -> Vec<String> {
    let listed = peer.request("resources/list", json!({})).await;
    let resources = listed.expect_result()["resources"]
        .as_array()
        .unwrap()
        .clone();
    let uris = resources.iter().map(|one| one["uri"].as_str().unwrap());
    uris.filter(|uri| !uri.starts_with("debuglog:"))
        .map(str::to_owned)
        .collect()
}

async fn save(peer: &mut Peer, test_project: &TestProject, content: &str) -> String {
    let args = json!({ "content": content, "project_path": test_project.path() });
    let saved = peer.call_tool("checkpoint_save", args).await.text();
    let id = saved
        .split_whitespace()
        .find(|word| word.starts_with("ckpt_"));
    id.unwrap().trim_matches(['.', ':']).to_owned()
}

#[tokio::test]
async fn saved_items_can_be_listed_and_read_in_every_revision() {
    for edge in all_combinations() {
        let test_project = TestProject::new();
        let mut peer = edge.connect(test_project.server()).await;
        let id = save(&mut peer, &test_project, "The state of things.").await;
        let uri = format!("checkpoint://{id}");
        assert!(listed(&mut peer).await.contains(&uri), "{edge}");
        let read = peer.request("resources/read", json!({ "uri": uri })).await;
        let contents = &read.expect_result()["contents"][0];
        assert_eq!(contents["mimeType"], "text/markdown", "{edge}");
        let text = contents["text"].as_str().unwrap();
        assert!(
            text.contains("The state of things.") && text.contains("branch main"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn the_list_includes_writes_of_other_processes() {
    let test_project = TestProject::new();
    let mut here = Peer::connect(test_project.server()).await;
    let mut there = Peer::connect(test_project.server()).await;
    let first = save(&mut here, &test_project, "here").await;
    assert!(
        listed(&mut there)
            .await
            .contains(&format!("checkpoint://{first}"))
    );
    let second = save(&mut there, &test_project, "there").await;
    assert!(
        listed(&mut here)
            .await
            .contains(&format!("checkpoint://{second}"))
    );

    let collection = "collection://";
    let name = listed(&mut here).await;
    let name = name
        .iter()
        .find_map(|uri| uri.strip_prefix(collection))
        .unwrap();
    call(
        &mut there,
        "collection_delete",
        json!({ "collection_name": name }),
    )
    .await;
    let left = listed(&mut here).await;
    assert_eq!(left, [""; 0], "what is gone is not listed");
}

#[tokio::test]
async fn only_the_newest_items_are_listed_and_all_can_be_read() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let mut ids = Vec::new();
    for number in 0..25 {
        ids.push(
            save(
                &mut peer,
                &test_project,
                &format!("number {number} of {}", number * 37),
            )
            .await,
        );
    }
    let checkpoints = listed(&mut peer).await;
    let checkpoints = checkpoints
        .iter()
        .filter(|uri| uri.starts_with("checkpoint:"));
    assert_eq!(checkpoints.count(), 20);
    let oldest = json!({ "uri": format!("checkpoint://{}", ids[0]) });
    peer.request("resources/read", oldest).await.expect_result();
}

#[tokio::test]
async fn unknown_resources_are_not_found() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let id = save(&mut peer, &test_project, "here").await;
    for uri in [
        "checkpoint://ckpt_0000000000000000".to_owned(),
        "checkpoint://nonsense".to_owned(),
        format!("remediation://{id}"),
        "collection://owner_0000000000000000/project_0000000000000000/main".to_owned(),
        "skill://nothing/SKILL.md".to_owned(),
    ] {
        let read = peer.request("resources/read", json!({ "uri": uri })).await;
        read.expect_error(-32602);
    }
}

#[tokio::test]
async fn collections_are_listed_and_changes_are_notified_in_both_eras() {
    for revision in [None, Some("2025-11-25")] {
        let test_project = TestProject::new();
        let connect = Peer::connect(test_project.server());
        let mut peer = match revision {
            Some(revision) => connect.legacy(revision).await,
            None => connect.await,
        };
        save(&mut peer, &test_project, "one").await;
        let all = listed(&mut peer).await;
        let uri = all
            .iter()
            .find(|uri| uri.starts_with("collection:"))
            .unwrap();
        assert!(uri.ends_with("/main"), "{uri}");
        peer.notifications();
        peer.listen(json!({ "resourceSubscriptions": [uri], "resourcesListChanged": true }))
            .await;
        save(&mut peer, &test_project, "two, which is another thing").await;
        let updated = peer
            .expect_notification("notifications/resources/updated")
            .await;
        assert_eq!(updated["uri"], *uri);
        peer.expect_notification("notifications/resources/list_changed")
            .await;
        let read = peer.request("resources/read", json!({ "uri": uri })).await;
        let text = read.expect_result()["contents"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        let collection: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(collection["point_count"], 2);
        assert_eq!(
            format!("collection://{}", collection["name"].as_str().unwrap()),
            *uri
        );
    }
}

#[tokio::test]
async fn saved_skills_are_published_by_the_skills_extension() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    for name in ["Brew tea!", "brew   Tea?", "日本茶"] {
        let args = json!({ "name": name, "description": "Use it when thirsty.", "content": format!("Boil water: {name}.") });
        call(&mut peer, "skill_save", args).await;
    }
    let listed = peer.request("skills/list", json!({})).await;
    let skills = listed.expect_result()["skills"].as_array().unwrap().clone();
    let uris: Vec<_> = skills
        .iter()
        .map(|skill| skill["uri"].as_str().unwrap())
        .collect();
    assert!(uris.contains(&"skill://brew-tea/SKILL.md"), "{uris:?}");
    for uri in uris {
        let read = peer.request("resources/read", json!({ "uri": uri })).await;
        let text = read.expect_result()["contents"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(text.contains("Boil water"), "{text}");
    }
}

#[tokio::test]
async fn ids_are_completed() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let id = save(&mut peer, &test_project, "here").await;
    let params = json!({
        "ref": { "type": "ref/resource", "uri": "checkpoint://{id}" },
        "argument": { "name": "id", "value": "ckpt_" },
    });
    let completed = peer.request("completion/complete", params).await;
    assert_eq!(
        completed.expect_result()["completion"]["values"],
        json!([id])
    );
}

#[tokio::test]
async fn the_server_works_mounted_in_a_server_without_skills() {
    let test_project = TestProject::new();
    let desk =
        turnbuckle_server::Server::new("desk", "1.0.0").mount("context", test_project.server());
    let mut peer = Peer::connect(desk).await;
    let args = json!({ "name": "Tea", "description": "When thirsty.", "content": "Boil water." });
    call(&mut peer, "context_skill_save", args).await;
    let args = json!({ "content": "here", "project_path": test_project.path() });
    let saved = call(&mut peer, "context_checkpoint_save", args).await;
    let uri = format!("checkpoint://{}", saved["checkpoint_id"].as_str().unwrap());
    peer.request("resources/read", json!({ "uri": uri }))
        .await
        .expect_result();
}
