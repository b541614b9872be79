//! Skills, from the view of clients.

use serde_json::{Value, json};
use turnbuckle_server::{CacheHint, Resource, Server, Skill, Skills};

use crate::{
    http::test_client::HttpTestClient,
    ndjson::test_client::{Peer, initialize},
    skills::test_folder::{TestFolder, check_digests, listed, read},
    spec::revision_client::{EVERY, RevisionClient},
};

const TEA: &str = "skill://drinks/tea/SKILL.md";

#[tokio::test(start_paused = true)]
async fn skills_are_listed_with_digests_of_what_is_read() {
    let place = TestFolder::with_skills();
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, place.server()).await;

        let list = client.result("skills/list", json!({})).await;

        assert_eq!(list["skills"][0]["uri"], TEA, "{revision}");
        assert_eq!(
            list["skills"][0]["frontmatter"],
            json!({ "name": "tea", "description": "How to brew tea." })
        );
        let uris: Vec<_> = list["skills"][0]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["uri"].as_str().unwrap())
            .collect();
        assert_eq!(
            uris,
            [
                TEA,
                "skill://drinks/tea/leaf.png",
                "skill://drinks/tea/references/old/leaf.bin",
                "skill://drinks/tea/references/pots.md",
            ]
        );
        for entry in list["skills"].as_array().unwrap() {
            check_digests(&mut client, entry).await;
            let got = client
                .result("skills/get", json!({ "uri": entry["uri"] }))
                .await;
            assert_eq!(&got["skill"], entry, "{revision}");
            assert_eq!(got.get("nextCursor"), None);
        }
        if client.is_modern() {
            assert_eq!(list["ttlMs"], 0);
            assert_eq!(list["cacheScope"], "private");
        } else {
            assert_eq!(list.as_object().unwrap().len(), 1, "{list}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn contents_are_text_or_bytes_by_their_kind() {
    let place = TestFolder::with_skills();
    place.write("tidy/README", "plain");
    place.write("tidy/drawing.svg", "<svg/>");
    place.write("tidy/fake.png", "text");
    place.write("tidy/run.PY", "print()");
    let mut client = RevisionClient::new("2026-07-28", place.server()).await;
    for (uri, media_type, member) in [
        ("skill://tidy/SKILL.md", "text/markdown", "text"),
        ("skill://tidy/README", "text/plain", "text"),
        ("skill://tidy/drawing.svg", "image/svg+xml", "text"),
        ("skill://tidy/fake.png", "image/png", "blob"),
        ("skill://tidy/run.PY", "text/x-python", "text"),
        (
            "skill://drinks/tea/references/old/leaf.bin",
            "application/octet-stream",
            "blob",
        ),
    ] {
        let read = client.result("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["contents"][0]["mimeType"], media_type, "{uri}");
        assert!(read["contents"][0][member].is_string(), "{uri}");
        assert_eq!(read["contents"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn every_manifest_is_a_listed_resource_after_the_servers_own() {
    let place = TestFolder::with_skills();
    let server = place
        .server()
        .resource(Resource::text("note://a", "a", "A"));
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server.clone()).await;

        let list = client.result("resources/list", json!({})).await;

        let list = list["resources"].as_array().unwrap().clone();
        let uris: Vec<_> = list
            .iter()
            .map(|one| one["uri"].as_str().unwrap())
            .collect();
        assert_eq!(
            uris,
            ["note://a", TEA, "skill://tidy/SKILL.md"],
            "{revision}"
        );
        assert_eq!(list[1]["name"], "tea");
        assert_eq!(list[1]["description"], "How to brew tea.");
        assert_eq!(list[1]["mimeType"], "text/markdown");
        assert_eq!(read(&mut client, "note://a").await, b"A");
    }
}

#[tokio::test(start_paused = true)]
async fn the_extension_and_resources_are_declared() {
    for server in [
        TestFolder::new().server(),
        Server::new("cook", "1").skills(Skills::new([])),
    ] {
        let mut peer = Peer::new(server);
        let modern = peer.call_modern("server/discover", json!({})).await;
        let legacy = peer
            .call("initialize", initialize("2025-11-25", json!({})))
            .await;
        for response in [modern, legacy] {
            let capabilities = &response["result"]["capabilities"];
            assert_eq!(
                capabilities["extensions"],
                json!({ "io.modelcontextprotocol/skills": { "directoryRead": true } })
            );
            assert_eq!(
                capabilities["resources"],
                json!({ "subscribe": true, "listChanged": true })
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_skills_there_are_no_such_methods() {
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, Server::new("cook", "1")).await;
        for method in ["skills/list", "skills/get", "resources/directory/read"] {
            let code = client.code(method, json!({ "uri": TEA })).await;
            assert_eq!(code, -32601, "{revision} {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn folders_list_what_is_directly_in_them() {
    let place = TestFolder::with_skills();
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, place.server()).await;
        for (uri, expected) in [
            ("skill://drinks", vec![("tea", "inode/directory")]),
            (
                "skill://drinks/tea",
                vec![
                    ("tea", "text/markdown"),
                    ("leaf.png", "image/png"),
                    ("references", "inode/directory"),
                ],
            ),
            (
                "skill://drinks/tea/references/",
                vec![("old", "inode/directory"), ("pots.md", "text/markdown")],
            ),
            ("skill://tidy", vec![("tidy", "text/markdown")]),
        ] {
            let read = client
                .result("resources/directory/read", json!({ "uri": uri }))
                .await;
            let found: Vec<_> = read["resources"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| {
                    (
                        one["name"].as_str().unwrap(),
                        one["mimeType"].as_str().unwrap(),
                    )
                })
                .collect();
            assert_eq!(found, expected, "{revision} {uri}");
        }
        for uri in [
            TEA,
            "skill://drinks/te",
            "skill://missing",
            "skill://",
            "",
            "note://a",
        ] {
            let response = client
                .call("resources/directory/read", json!({ "uri": uri }))
                .await;
            assert_eq!(response["error"]["code"], -32602, "{revision} {uri}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn list_cursors_are_valid_only_for_their_list() {
    let place = TestFolder::with_skills();
    place.skill("sweep", "How to sweep.");
    let mut client = RevisionClient::new("2026-07-28", place.server().page_size(1)).await;
    let folder = |uri: &str| json!({ "uri": uri });

    let mut cursors = Vec::new();
    for (method, params, member, pages) in [
        ("skills/list", json!({}), "skills", 3),
        ("resources/list", json!({}), "resources", 3),
        (
            "resources/directory/read",
            folder("skill://drinks/tea"),
            "resources",
            3,
        ),
        (
            "resources/directory/read",
            folder("skill://drinks/tea/references"),
            "resources",
            2,
        ),
    ] {
        let mut seen = Vec::new();
        let mut params = params.clone();
        for page in 1..=pages {
            let response = client.result(method, params.clone()).await;
            assert_eq!(response[member].as_array().unwrap().len(), 1);
            seen.push(response[member][0]["uri"].clone());
            params["cursor"] = response["nextCursor"].clone();
            assert_eq!(
                params["cursor"].is_string(),
                page < pages,
                "{method} {page}"
            );
            if page == 1 {
                cursors.push((method, params.clone()));
            }
        }
        seen.dedup();
        assert_eq!(seen.len(), pages, "{method}");
    }
    for (at, (method, params)) in cursors.iter().enumerate() {
        for (other, (_, foreign)) in cursors.iter().enumerate().filter(|(other, _)| *other != at) {
            let mut params = params.clone();
            params["cursor"] = foreign["cursor"].clone();
            let code = client.code(method, params).await;
            assert_eq!(code, -32602, "{at} {other}");
        }
    }
}

#[tokio::test]
async fn skills_are_served_over_http() {
    let place = TestFolder::with_skills();
    let caller = HttpTestClient::new(place.server());
    let session = caller.clone().in_session("2025-06-18").await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "skills/list" });

    let modern = caller.modern("skills/list", json!({})).await.json().await;
    let read = caller.modern("resources/read", json!({ "uri": TEA })).await;
    let legacy = session.post(&list).await.json().await;

    assert_eq!(modern["result"]["skills"], legacy["result"]["skills"]);
    assert_eq!(modern["result"]["skills"].as_array().unwrap().len(), 2);
    let read = read.json().await;
    assert!(
        read["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("---\n")
    );
}

#[tokio::test(start_paused = true)]
async fn cache_hints_are_those_of_the_server() {
    let place = TestFolder::with_skills();
    let minute = CacheHint::public(std::time::Duration::from_secs(60));
    let server = Server::new("cook", "1")
        .cache_lists(minute)
        .skills(Skills::from_folder(place.skills()).cache(minute));
    let mut client = RevisionClient::new("2026-07-28", server).await;
    for (method, params) in [
        ("skills/list", json!({})),
        ("skills/get", json!({ "uri": TEA })),
        ("resources/directory/read", json!({ "uri": "skill://tidy" })),
        ("resources/list", json!({})),
        ("resources/read", json!({ "uri": TEA })),
    ] {
        let response = client.result(method, params).await;
        assert_eq!(response["ttlMs"], 60_000, "{method}");
        assert_eq!(response["cacheScope"], "public", "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_folders_and_registered_skills_are_one_list() {
    let (one, two) = (TestFolder::with_skills(), TestFolder::new());
    two.skill("tidy", "Another way to tidy up.");
    two.skill("wash", "How to wash up.");
    let by_hand = Skill::new("dry", "How to dry up.", "Take a towel.").unwrap();
    let skills = Skills::from_folder(one.skills())
        .folder(two.skills())
        .skill(by_hand);
    let mut client =
        RevisionClient::new("2026-07-28", Server::new("cook", "1").skills(skills)).await;

    let list = client.result("skills/list", json!({})).await;

    let described: Vec<&Value> = list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| &skill["frontmatter"]["description"])
        .collect();
    assert_eq!(
        described,
        [
            "How to dry up.",
            "How to brew tea.",
            "How to tidy up.",
            "How to wash up."
        ]
    );
    assert_eq!(listed(&mut client).await.len(), 4);
}
