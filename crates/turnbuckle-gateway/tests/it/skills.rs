//! Skills of one and of several servers.

use serde_json::{Value, json};
use turnbuckle_gateway::Upstream;
use turnbuckle_server::testing::Peer;

use crate::{
    scripts::{Script, initialized, resources},
    upstreams::start,
};

const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// A server with skills, each listed on a page of its own, and a resource for each file.
fn server(name: &'static str, skills: &'static [&'static str], reads_directories: bool) -> Script {
    let entry = move |path: &str| {
        let uri = format!("skill://{path}/SKILL.md");
        let title = path.rsplit('/').next();
        let file = json!({ "uri": uri, "digest": "sha256:00", "size": 1 });
        json!({
            "uri": uri, "frontmatter": { "name": title, "description": name }, "resources": [file],
        })
    };
    Script::new(move |method, params| match method {
        "initialize" => {
            let settings = json!({ "directoryRead": reads_directories, "x": 1 });
            initialized(&json!({ "resources": {}, "extensions": { (EXTENSION): settings } }))
        }
        "resources/list" => {
            let uris: Vec<_> = skills
                .iter()
                .map(|path| format!("skill://{path}/SKILL.md"))
                .collect();
            resources(&uris.iter().map(String::as_str).collect::<Vec<_>>())
        }
        "skills/list" => {
            let at: usize = params["cursor"]
                .as_str()
                .map_or(0, |cursor| cursor.parse().unwrap());
            let mut page = json!({ "skills": [entry(skills[at])], "com.example/a": at });
            if at + 1 < skills.len() {
                page["nextCursor"] = json!((at + 1).to_string());
            }
            page
        }
        "skills/get" => {
            let path = params["uri"]
                .as_str()
                .unwrap()
                .strip_prefix("skill://")
                .unwrap();
            json!({ "skill": entry(path.strip_suffix("/SKILL.md").unwrap()) })
        }
        "resources/directory/read" => {
            let directory = params["uri"].as_str().unwrap();
            json!({ "resources": [
                { "uri": format!("{directory}/SKILL.md"), "name": name },
                { "uri": format!("{directory}/secret"), "name": name, "mimeType": "inode/directory" },
            ] })
        }
        _ => Value::Null,
    })
}

/// Returns the URIs and descriptions of all skills.
async fn list(peer: &mut Peer) -> Vec<String> {
    let (mut found, mut params) = (Vec::new(), json!({}));
    loop {
        let page = peer
            .request("skills/list", params)
            .await
            .expect_result()
            .clone();
        for skill in page["skills"].as_array().unwrap() {
            let uri = skill["uri"].as_str().unwrap();
            found.push(format!(
                "{uri} {}",
                skill["frontmatter"]["description"].as_str().unwrap()
            ));
        }
        if peer.revision().is_stateless() {
            assert_eq!(page["resultType"], "complete");
            assert_eq!(page["cacheScope"], "private");
        }
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return found,
        }
    }
}

async fn peers(upstreams: impl IntoIterator<Item = Upstream>) -> [Peer; 2] {
    let gateway = start(upstreams).await;
    [
        Peer::connect(gateway.server()).legacy("2025-11-25").await,
        Peer::connect(gateway.server()).modern().await,
    ]
}

#[tokio::test(start_paused = true)]
async fn skills_of_several_servers_are_one_list() {
    let a = server("a", &["tea", "drinks/coffee"], true);
    let b = server("b", &["tea", "food/tea"], true);
    for mut peer in peers([a.upstream("a"), b.upstream("b")]).await {
        let expected = [
            "skill://tea/SKILL.md a",
            "skill://drinks/coffee/SKILL.md a",
            "skill://food/tea/SKILL.md b",
        ];
        assert_eq!(
            list(&mut peer).await,
            expected,
            "the first server keeps an equal URI"
        );
        let unknown = peer.request("skills/list", json!({ "cursor": "1" })).await;
        unknown.expect_error(-32602);
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_is_read_at_the_server_that_lists_it() {
    let a = server("a", &["tea"], true);
    let b = server("b", &["tea", "food/soup"], true);
    for mut peer in peers([a.upstream("a"), b.upstream("b")]).await {
        for (path, server) in [("tea", "a"), ("food/soup", "b")] {
            let uri = json!({ "uri": format!("skill://{path}/SKILL.md") });
            let skill = peer.request("skills/get", uri).await;
            let skill = &skill.expect_result()["skill"];
            assert_eq!(skill["frontmatter"]["description"], server, "{path}");
            let uri = json!({ "uri": format!("skill://{path}") });
            let directory = peer.request("resources/directory/read", uri).await;
            let entries = &directory.expect_result()["resources"];
            assert_eq!(entries[0]["name"], server, "{path}");
        }
        let uri = json!({ "uri": "skill://food" });
        let directory = peer.request("resources/directory/read", uri).await;
        assert_eq!(directory.expect_result()["resources"][0]["name"], "b");
        peer.request("skills/get", json!({}))
            .await
            .expect_error(-32602);
    }
}

#[tokio::test(start_paused = true)]
async fn hidden_skills_are_neither_listed_nor_read() {
    let a = || server("a", &["tea", "coffee"], true).upstream("a");
    let deny = [
        "skill://coffee/*",
        "skill://tea/secret/*",
        "skill://tea/secret",
    ];
    let b = server("b", &["soup"], true).upstream("b");
    for upstreams in [vec![a().deny(deny)], vec![a().deny(deny), b]] {
        let is_single = upstreams.len() == 1;
        for mut peer in peers(upstreams).await {
            let listed = list(&mut peer).await;
            assert_eq!(listed[0], "skill://tea/SKILL.md a");
            assert_eq!(listed.len(), if is_single { 1 } else { 2 });
            let get = peer
                .request("skills/get", json!({ "uri": "skill://coffee/SKILL.md" }))
                .await;
            get.expect_error(-32602);
            let uri = json!({ "uri": "skill://coffee" });
            let read = peer.request("resources/directory/read", uri).await;
            read.expect_error(-32602);
            let uri = json!({ "uri": "skill://tea" });
            let read = peer.request("resources/directory/read", uri).await;
            let entries = read.expect_result()["resources"]
                .as_array()
                .unwrap()
                .clone();
            assert_eq!(entries.len(), 1, "{entries:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_settings_that_all_servers_have_are_declared() {
    let upstreams = || {
        [
            server("a", &["tea"], true).upstream("a"),
            server("b", &["soup"], false).upstream("b"),
        ]
    };
    let other = Script::new(|_, _| Value::Null).upstream("c");
    let gateway = start(upstreams().into_iter().chain([other])).await;
    let mut peer = Peer::connect(gateway.server()).modern().await;
    let discovered = peer.request("server/discover", json!({})).await;
    let extensions = &discovered.expect_result()["capabilities"]["extensions"];
    assert_eq!(extensions[EXTENSION], json!({ "x": 1 }));
    let other = peer.request("com.example/other", json!({})).await;
    other.expect_error(-32601);
}

#[tokio::test(start_paused = true)]
async fn without_skills_their_methods_are_unknown() {
    let servers = ["a", "b"].map(|name| Script::new(|_, _| Value::Null).upstream(name));
    for mut peer in peers(servers).await {
        for method in ["skills/list", "skills/get", "resources/directory/read"] {
            let response = peer.request(method, json!({ "uri": "skill://tea" })).await;
            response.expect_error(-32601);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_list_of_one_server_passes_unchanged() {
    for mut peer in peers([server("a", &["tea", "coffee"], true).upstream("a")]).await {
        let page = peer.request("skills/list", json!({ "cursor": "1" })).await;
        assert_eq!(page.expect_result()["com.example/a"], 1);
    }
}
