//! Changing skills.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use tokio::time::sleep;
use turnbuckle_server::{Server, Skill, Skills, testing::ChangeRecorder};
use turnbuckle_store::{ServerChange, Store, StoreLimits};

use crate::{
    ndjson::test_client::{Peer, modern},
    skills::test_folder::{TestFolder, check_digests, digest, listed, read},
    spec::revision_client::{EVERY, RevisionClient},
};

const TEA: &str = "skill://drinks/tea/SKILL.md";
const POTS: &str = "skill://drinks/tea/references/pots.md";

#[tokio::test(start_paused = true)]
async fn changes_on_disk_are_seen_within_a_second() {
    let place = TestFolder::new();
    let mut client = RevisionClient::new("2026-07-28", place.server()).await;
    assert_eq!(listed(&mut client).await, [""; 0]);

    place.skill("drinks/tea", "How to brew tea.");
    sleep(Duration::from_millis(1_100)).await;
    assert_eq!(listed(&mut client).await, [TEA]);

    place.skill("drinks/tea", "How to brew coffee.");
    place.write("drinks/tea/a.txt", "a");
    sleep(Duration::from_millis(1_100)).await;
    let got = client.result("skills/get", json!({ "uri": TEA })).await;
    assert_eq!(
        got["skill"]["frontmatter"]["description"],
        "How to brew coffee."
    );
    check_digests(&mut client, &got["skill"]).await;

    place.remove("drinks/tea");
    sleep(Duration::from_millis(1_100)).await;
    assert_eq!(listed(&mut client).await, [""; 0]);
    for method in ["skills/get", "resources/read"] {
        assert_eq!(client.code(method, json!({ "uri": TEA })).await, -32602);
    }
    let folder = json!({ "uri": "skill://drinks" });
    assert_eq!(
        client.code("resources/directory/read", folder).await,
        -32602
    );
}

#[tokio::test(start_paused = true)]
async fn served_bytes_match_the_listed_digest() {
    let place = TestFolder::with_skills();
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, place.server()).await;
        listed(&mut client).await;
        // Same length and timestamp: only the bytes differ.
        for content in [
            "A pot holds 1 cup.",
            "A pot holds 2 cup.",
            "A pot holds 3 cup.",
        ] {
            place.write("drinks/tea/references/pots.md", content);

            let bytes = read(&mut client, POTS).await;
            let got = client.result("skills/get", json!({ "uri": TEA })).await;

            assert_eq!(bytes, content.as_bytes(), "{revision}");
            let files = got["skill"]["resources"].as_array().unwrap();
            let file = files.iter().find(|file| file["uri"] == POTS).unwrap();
            assert_eq!(file["digest"], digest(&bytes), "{revision}");
            assert_eq!(file["size"], bytes.len());
        }
    }
}

#[tokio::test]
async fn digest_and_bytes_agree_while_the_file_is_written_again_and_again() {
    let place = TestFolder::with_skills();
    let server = place.server();
    let path = place.skills().join("drinks/tea/references/pots.md");
    // After the first read the content stays consistent.
    fs::write(&path, "x ".repeat(20_000)).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let writer = std::thread::spawn(move || {
        for round in 0.. {
            if stopped.load(std::sync::atomic::Ordering::Relaxed) {
                return;
            }
            let text = format!("{round} ").repeat(20_000);
            let fresh = path.with_extension("new");
            fs::write(&fresh, text).unwrap();
            fs::rename(&fresh, &path).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let mut client = RevisionClient::new("2026-07-28", server).await;
    for _ in 0..30 {
        let response = client.call("resources/read", json!({ "uri": POTS })).await;
        // It may change too fast to read, but what is served is one version.
        if let Some(text) = response["result"]["contents"][0]["text"].as_str() {
            let first = text.split(' ').next().unwrap();
            assert!(text.split_terminator(' ').all(|one| one == first));
        } else {
            assert_eq!(response["error"]["code"], -32603, "{response}");
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
}

#[tokio::test(start_paused = true)]
async fn sessions_receive_changes_without_subscribing() {
    let place = TestFolder::with_skills();
    let mut peer = Peer::initialized(place.server(), "2025-11-25", json!({})).await;
    for uri in ["skill://tidy/SKILL.md", "skill://drinks/tea"] {
        let response = peer
            .call("resources/subscribe", json!({ "uri": uri }))
            .await;
        assert_eq!(response["result"], json!({}), "{uri}");
    }
    for uri in [
        "skill://missing/SKILL.md",
        "skill://tidy/../tidy",
        "skill://",
    ] {
        let response = peer
            .call("resources/subscribe", json!({ "uri": uri }))
            .await;
        assert_eq!(response["error"]["code"], -32002, "{uri}");
    }

    place.write("drinks/tea/references/pots.md", "Changed.");
    assert_eq!(updated(&peer.next().await), POTS);

    place.skill("wash", "How to wash up.");
    let message = peer.next().await;
    assert_eq!(message["method"], "notifications/resources/list_changed");

    place.remove("tidy");
    let message = peer.next().await;
    assert_eq!(message["method"], "notifications/resources/list_changed");
    assert_eq!(updated(&peer.next().await), "skill://tidy/SKILL.md");
}

#[tokio::test(start_paused = true)]
async fn subscriptions_receive_changes_without_polling() {
    let place = TestFolder::with_skills();
    let mut peer = Peer::new(place.server());
    let wanted = json!({ "resourcesListChanged": true, "resourceSubscriptions": [POTS] });
    let listen = modern(json!({ "notifications": wanted }));
    peer.request("subscriptions/listen", listen).await;
    let acknowledged = peer.next().await;
    assert_eq!(acknowledged["params"]["notifications"], wanted);

    place.write("drinks/tea/references/pots.md", "Changed.");
    assert_eq!(updated(&peer.next().await), POTS);

    place.write("drinks/tea/references/new.md", "New.");
    let message = peer.next().await;
    assert_eq!(message["method"], "notifications/resources/list_changed");
}

#[tokio::test(start_paused = true)]
async fn a_change_on_disk_that_two_instances_notice_is_announced_once() {
    let place = TestFolder::with_skills();
    let mut limits = StoreLimits::default();
    limits.bus.repeat_window = Duration::from_secs(10);
    let store = Store::memory_with(limits);
    let mut clients = Vec::new();
    for _ in 0..2 {
        let server = place.server().store(store.clone());
        let mut client = RevisionClient::new("2026-07-28", server).await;
        listed(&mut client).await;
        clients.push(client);
    }
    let mut changes = ChangeRecorder::new(&Server::new("recorder", "1").store(store));

    place.skill("wash", "How to wash up.");
    sleep(Duration::from_millis(1_100)).await;
    for client in &mut clients {
        assert!(
            listed(client)
                .await
                .contains(&"skill://wash/SKILL.md".to_owned())
        );
    }

    let list_changes = changes.take().into_iter();
    let list_changes = list_changes.filter(|change| *change == ServerChange::ResourcesChanged);
    assert_eq!(list_changes.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn scanning_stops_when_the_last_clone_is_dropped() {
    let place = TestFolder::with_skills();
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = alive();
    let server = place.server();
    let clone = server.clone();
    let mut peer = Peer::new(server);
    peer.call_modern("server/discover", json!({})).await;
    assert!(alive() > before + 1, "the folder is scanned");

    peer.leave().await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(alive(), before + 1, "the clone is still there");
    drop(clone);
    tokio::task::yield_now().await;

    assert_eq!(alive(), before);
}

#[tokio::test(start_paused = true)]
async fn registered_skills_are_added_and_removed_at_runtime() {
    let server = Server::new("cook", "1").skills(Skills::new([]));
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server.clone()).await;
        assert_eq!(listed(&mut client).await, [""; 0]);
        let tea = |text: &str| {
            Skill::new("tea", "How to brew tea.", text)
                .unwrap()
                .under("drinks")
                .unwrap()
                .file("references/pots.md", "Pots.")
                .unwrap()
        };

        server.add_skill(tea("Boil water."));
        assert_eq!(
            list_changed(&mut client).await,
            client.is_modern() as usize ^ 1
        );
        assert_eq!(listed(&mut client).await, [TEA], "{revision}");
        assert_eq!(read(&mut client, POTS).await, b"Pots.");
        server.add_skill(tea("Boil more water."));
        let text = String::from_utf8(read(&mut client, TEA).await).unwrap();
        assert!(text.ends_with("Boil more water."), "{text}");
        let got = client.result("skills/get", json!({ "uri": TEA })).await;
        check_digests(&mut client, &got["skill"]).await;

        assert!(server.remove_skill(TEA));
        assert_eq!(
            list_changed(&mut client).await,
            client.is_modern() as usize ^ 1
        );
        assert!(!server.remove_skill(TEA));
        assert_eq!(listed(&mut client).await, [""; 0]);
        assert_eq!(
            client.code("skills/get", json!({ "uri": TEA })).await,
            -32602
        );
    }
}

/// Counts the notifications of one change in a session. Other clients must subscribe.
async fn list_changed(client: &mut RevisionClient) -> usize {
    if client.is_modern() {
        return 0;
    }
    let message = client.peer.next().await;
    assert_eq!(message["method"], "notifications/resources/list_changed");
    1
}

fn updated(message: &Value) -> &str {
    assert_eq!(
        message["method"], "notifications/resources/updated",
        "{message}"
    );
    message["params"]["uri"].as_str().unwrap()
}
