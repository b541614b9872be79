//! Files that must not be served.

use std::fs;

use serde_json::json;
use turnbuckle_protocol::skills::FrontmatterError;
use turnbuckle_server::{Resource, Server, Skill, SkillError, Skills};

use crate::{
    ndjson::test_client::{Peer, modern},
    skills::test_folder::{TestFolder, check_digests, listed, read},
    spec::revision_client::{EVERY, RevisionClient},
};

#[tokio::test(start_paused = true)]
async fn no_uri_leads_out_of_the_folder() {
    let folder = TestFolder::with_skills();
    fs::write(folder.outside().join("secret.txt"), "secret").unwrap();
    let absolute = format!("skill://{}", folder.outside().join("secret.txt").display());
    let long = format!("skill://tidy/{}", "../".repeat(20_000));
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, folder.server()).await;
        let missing = if client.is_modern() { -32602 } else { -32002 };
        for uri in [
            "skill://tidy/../../secret.txt",
            "skill://tidy/../secret.txt",
            "skill://../secret.txt",
            "skill://..%2fsecret.txt",
            "skill://tidy/%2e%2e/%2e%2e/secret.txt",
            "skill://tidy/%2E%2E%2F%2E%2E%2Fsecret.txt",
            "skill://tidy/..%5c..%5csecret.txt",
            "skill://tidy/..\\..\\secret.txt",
            "skill://tidy/SKILL.md\u{0}.txt",
            "skill://tidy/SKILL.md%00",
            "skill://tidy/./SKILL.md",
            "skill://tidy//SKILL.md",
            "skill:///tidy/SKILL.md",
            "skill:////etc/passwd",
            "skill:///etc/passwd",
            "skill://tidy/SKILL.md/",
            "skill://tidy/SKILL.md?x",
            "skill://tidy/%53KILL.md",
            "skill://TIDY/SKILL.md",
            "SKILL://tidy/SKILL.md",
            "skill://tidy",
            "skill://",
            "file:///etc/passwd",
            &absolute,
            &long,
        ] {
            let params = json!({ "uri": uri });
            let code = client.code("resources/read", params.clone()).await;
            assert_eq!(code, missing, "{revision} {uri:.60}");
            let code = client.code("skills/get", params.clone()).await;
            assert_eq!(code, -32602, "{revision} {uri:.60}");
            if uri != "skill://tidy" {
                let code = client.code("resources/directory/read", params).await;
                assert_eq!(code, -32602, "{revision} {uri:.60}");
            }
        }
        for uri in [json!(7), json!(null), json!(["skill://tidy"])] {
            for method in ["skills/get", "resources/directory/read", "resources/read"] {
                let code = client.code(method, json!({ "uri": uri })).await;
                assert_eq!(code, -32602, "{revision} {method} {uri}");
            }
        }
        for cursor in [json!(7), json!("abc"), json!("")] {
            let code = client
                .code("skills/list", json!({ "cursor": cursor }))
                .await;
            assert_eq!(code, -32602, "{revision} {cursor}");
        }
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn links_out_of_the_folder_are_not_followed() {
    use std::os::unix::{fs::symlink, net::UnixListener};
    let folder = TestFolder::with_skills();
    let (outside, tidy) = (
        folder.outside().join("private"),
        folder.skills().join("tidy"),
    );
    fs::create_dir_all(outside.join("evil")).unwrap();
    fs::write(outside.join("secret.txt"), "secret").unwrap();
    fs::write(
        outside.join("evil/SKILL.md"),
        "---\nname: evil\ndescription: x\n---\n",
    )
    .unwrap();
    symlink(outside.join("secret.txt"), tidy.join("secret.txt")).unwrap();
    symlink(&outside, tidy.join("outside")).unwrap();
    symlink(outside.join("evil"), folder.skills().join("evil")).unwrap();
    symlink("/etc/passwd", tidy.join("passwd")).unwrap();
    symlink("../../private/secret.txt", tidy.join("relative.txt")).unwrap();
    symlink("..", tidy.join("up")).unwrap();
    symlink("gone", tidy.join("dangling")).unwrap();
    symlink("../drinks/tea/references/pots.md", tidy.join("pots.md")).unwrap();
    let _socket = UnixListener::bind(tidy.join("socket")).unwrap();
    let mut client = RevisionClient::new("2026-07-28", folder.server()).await;

    let got = client
        .result("skills/get", json!({ "uri": "skill://tidy/SKILL.md" }))
        .await;

    let uris: Vec<_> = got["skill"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["uri"].as_str().unwrap())
        .collect();
    assert_eq!(uris, ["skill://tidy/SKILL.md", "skill://tidy/pots.md"]);
    assert_eq!(listed(&mut client).await.len(), 2);
    check_digests(&mut client, &got["skill"]).await;

    // A served file becomes a link, without a scan since.
    fs::remove_file(tidy.join("SKILL.md")).unwrap();
    symlink(outside.join("evil/SKILL.md"), tidy.join("SKILL.md")).unwrap();
    let params = json!({ "uri": "skill://tidy/SKILL.md" });
    assert_eq!(client.code("resources/read", params).await, -32602);
    assert_eq!(listed(&mut client).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn invalid_skills_are_omitted_and_the_others_served() {
    let folder = TestFolder::with_skills();
    let head = |head: &str| format!("---\n{head}\n---\nText.\n");
    for (path, text) in [
        ("no-head", "# Nothing\n".to_owned()),
        (
            "open-head",
            "---\nname: open-head\ndescription: x\n".to_owned(),
        ),
        ("no-yaml", head("name: [")),
        ("no-name", head("description: x")),
        ("no-description", head("name: no-description")),
        ("other-name", head("name: another\ndescription: x")),
        ("Upper", head("name: Upper\ndescription: x")),
        (
            "double--hyphen",
            head("name: double--hyphen\ndescription: x"),
        ),
        (
            "reserved",
            head("name: reserved\ndescription: x\nmetadata: {io.modelcontextprotocol/x: 1}"),
        ),
        (
            "bomb",
            head(
                "name: bomb\ndescription: x\na: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]",
            ),
        ),
    ] {
        folder.write(&format!("{path}/SKILL.md"), text);
    }
    folder.write("no-text/SKILL.md", [b'-', b'-', b'-', b'\n', 0xFF]);
    folder.write("lower/skill.md", head("name: lower\ndescription: x"));
    folder.write("SKILL.md", head("name: skills\ndescription: x"));
    let all = RevisionClient::new("2026-07-28", folder.server()).await;
    let mut client = all;
    // A skill does not contain other skills. This one is also invalid.
    assert_eq!(listed(&mut client).await, [""; 0]);

    fs::remove_file(folder.skills().join("SKILL.md")).unwrap();
    let mut client = RevisionClient::new("2026-07-28", folder.server()).await;

    assert_eq!(
        listed(&mut client).await,
        ["skill://drinks/tea/SKILL.md", "skill://tidy/SKILL.md"]
    );
    let params = json!({ "uri": "skill://no-head/SKILL.md" });
    assert_eq!(client.code("resources/read", params).await, -32602);
}

#[tokio::test(start_paused = true)]
async fn a_skill_inside_a_skill_is_a_part_of_it_and_hidden_files_are_not() {
    let folder = TestFolder::with_skills();
    folder.skill("tidy/inner", "How to tidy inside.");
    folder.write("tidy/.env", "SECRET=1");
    folder.write("tidy/.git/config", "x");
    folder.write(
        ".hidden/ghost/SKILL.md",
        "---\nname: ghost\ndescription: x\n---\n",
    );
    let mut client = RevisionClient::new("2026-07-28", folder.server()).await;

    assert_eq!(listed(&mut client).await.len(), 2);
    read(&mut client, "skill://tidy/inner/SKILL.md").await;
    for uri in [
        "skill://tidy/.env",
        "skill://tidy/.git/config",
        "skill://.hidden/ghost/SKILL.md",
    ] {
        let code = client.code("resources/read", json!({ "uri": uri })).await;
        assert_eq!(code, -32602, "{uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_encoded_in_addresses() {
    let folder = TestFolder::new();
    folder.skill("süße sachen/tea", "x");
    folder.write("süße sachen/tea/100% #1?.md", "x");
    let mut client = RevisionClient::new("2026-07-28", folder.server()).await;

    let uris = listed(&mut client).await;

    assert_eq!(uris, ["skill://s%C3%BC%C3%9Fe%20sachen/tea/SKILL.md"]);
    let got = client.result("skills/get", json!({ "uri": uris[0] })).await;
    assert_eq!(
        got["skill"]["resources"][0]["uri"],
        "skill://s%C3%BC%C3%9Fe%20sachen/tea/100%25%20%231%3F.md"
    );
    check_digests(&mut client, &got["skill"]).await;
}

#[tokio::test(start_paused = true)]
async fn skills_beyond_the_limits_are_left_out() {
    let folder = TestFolder::new();
    for (name, files) in [("full", 511), ("crowded", 512)] {
        folder.skill(name, "x");
        for file in 0..files {
            folder.write(&format!("{name}/files/{file}.txt"), "");
        }
    }
    let rest = 16 * 1024 * 1024 - "---\nname: large\ndescription: x\n---\n# large\n".len();
    for (name, bytes) in [("large", rest), ("huger", rest + 1)] {
        folder.skill(name, "x");
        folder.write(&format!("{name}/data.bin"), vec![0; bytes]);
    }
    let mut client = RevisionClient::new("2026-07-28", folder.server()).await;

    assert_eq!(
        listed(&mut client).await,
        ["skill://full/SKILL.md", "skill://large/SKILL.md"]
    );
    let got = client
        .result("skills/get", json!({ "uri": "skill://full/SKILL.md" }))
        .await;
    assert_eq!(got["skill"]["resources"].as_array().unwrap().len(), 512);
}

#[test]
fn registered_skills_obey_the_same_rules() {
    let tea = || Skill::new("tea", "How to brew tea.", "Boil water.").unwrap();

    assert_eq!(
        Skill::new("Tea", "x", "").unwrap_err(),
        FrontmatterError::Name.into()
    );
    assert_eq!(
        Skill::new("tea", " ", "").unwrap_err(),
        FrontmatterError::Description.into()
    );
    assert_eq!(
        Skill::parse("# Tea").unwrap_err(),
        FrontmatterError::Missing.into()
    );
    for path in [
        "", "/a", "a/", "a//b", "../a", "a/../b", ".", "a\\b", "a\0", "SKILL.md",
    ] {
        let error = tea().file(path, "x").unwrap_err();
        assert_eq!(error, SkillError::InvalidPath(path.to_owned()));
        assert!(path == "SKILL.md" || tea().under(path).is_err(), "{path}");
    }
    let pots = tea().file("pots/a.md", "x").unwrap();
    assert!(pots.clone().file("pots", "x").is_err());
    assert!(pots.clone().file("pots/a.md/b", "x").is_err());
    assert!(pots.file("pots/a.md", "y").is_ok());
    let large = tea().file("a.bin", vec![0; 16 * 1024 * 1024]);
    assert_eq!(large.unwrap_err(), SkillError::TooLarge);
    let many = (0..511).fold(tea(), |tea, at| tea.file(format!("{at}"), "").unwrap());
    assert_eq!(many.file("511", "").unwrap_err(), SkillError::TooManyFiles);
}

#[tokio::test(start_paused = true)]
async fn any_description_is_listed_unchanged() {
    for description in [
        "plain",
        "a: b # c",
        "\"quoted\" and 'quoted'",
        "line one\nline two\n---\nthree",
        "tab\t nul-like \\0 ü 世界 🍵 \u{7f} \u{85} \u{2028} \u{feff}",
        "- [x] {y} &z *z !t %d @e `f`",
    ] {
        let skill = Skill::new("tea", description, "---\n").unwrap();
        assert_eq!(skill.description(), description);
        let server = Server::new("cook", "1").skills(Skills::new([skill.clone()]));
        let mut client = RevisionClient::new("2026-07-28", server).await;

        let got = client
            .result("skills/get", json!({ "uri": skill.uri() }))
            .await;

        assert_eq!(got["skill"]["frontmatter"]["description"], description);
        check_digests(&mut client, &got["skill"]).await;
    }
}

#[test]
#[should_panic(expected = "built with `Server::skills`")]
fn adding_a_skill_without_the_skills_extension_panics() {
    Server::new("cook", "1").add_skill(Skill::new("tea", "x", "").unwrap());
}

#[tokio::test(start_paused = true)]
async fn updates_of_hidden_resources_are_not_sent_with_skills() {
    let secret =
        Resource::text("skill://tidy/secret", "secret", "").visible_to(|who| who.is_some());
    let server = TestFolder::with_skills().server().resource(secret);
    let mut peer = Peer::new(server.clone());
    let uris = ["skill://tidy/secret", "skill://tidy/SKILL.md"];
    let filter = json!({ "notifications": { "resourceSubscriptions": uris } });
    peer.request("subscriptions/listen", modern(filter)).await;
    peer.next().await;

    server.resource_updated("skill://tidy/secret");
    server.resource_updated("skill://tidy/SKILL.md");

    let received = peer.next().await;
    assert_eq!(received["params"]["uri"], "skill://tidy/SKILL.md");
}
