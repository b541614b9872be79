//! Skills: listed, read when needed, and verified.

use serde_json::{Value, json};
use turnbuckle_client::{CallError, Client, SkillError, SkillMismatch};
use turnbuckle_protocol::skills::digest;
use turnbuckle_server::{Server, Skill, Skills};

use crate::servers::{
    mock_ndjson::{MockServer, discover_result, initialize_result},
    turnbuckle::both_eras,
};

const MANIFEST: &str = "skill://tea/SKILL.md";
const POTS: &str = "skill://tea/references/pots.md";
const TEA: &str = "---\nname: tea\ndescription: Brews tea\n---\nBoil water.\n";

fn skill_server() -> Server {
    let tea = Skill::parse(TEA)
        .unwrap()
        .file("references/pots.md", "A pot holds four cups.")
        .unwrap();
    let tea = tea.file("logo.bin", &b"\xff\x00\xfe"[..]).unwrap();
    Server::new("library", "1.0").skills(Skills::new([tea]))
}

#[tokio::test]
async fn skills_are_listed_and_read_in_both_eras() {
    for client in both_eras(skill_server).await {
        let skills = client.skills().all().await.unwrap();
        assert_eq!(skills.len(), 1);
        assert_eq!(client.skill(MANIFEST).await.unwrap(), skills[0]);

        let skill = client.read_skill(&skills[0]).await.unwrap();

        assert_eq!((skill.name(), skill.text()), ("tea", TEA));
        assert_eq!(skill.files().len(), 3);
        assert_eq!(skill.file(POTS).await.unwrap(), b"A pot holds four cups.");
        assert_eq!(
            skill.file("skill://tea/logo.bin").await.unwrap(),
            b"\xff\x00\xfe"
        );
        let error = skill.file("skill://coffee/SKILL.md").await.unwrap_err();
        assert!(
            matches!(error, SkillError::Mismatch(SkillMismatch::NotListed { .. })),
            "{error}"
        );
        let inside = client.directory("skill://tea").all().await.unwrap();
        assert_eq!(inside.len(), 3);
    }
}

/// A server of either era with one skill and the given responses to `resources/read`.
fn server(legacy: bool, entry: &Value, manifest: &str) -> MockServer {
    let (server, method, mut sent) = if legacy {
        (
            MockServer::legacy("2025-11-25"),
            "initialize",
            initialize_result("2025-11-25"),
        )
    } else {
        (MockServer::modern(), "server/discover", discover_result())
    };
    sent["capabilities"]["extensions"] = json!({ "io.modelcontextprotocol/skills": {} });
    server.respond(method, sent);
    server.respond("skills/list", json!({ "skills": [entry] }));
    let manifest = manifest.to_owned();
    server.on("resources/read", move |request| {
        let uri = &request["params"]["uri"];
        let text = if uri == MANIFEST { &*manifest } else { "pots" };
        json!({ "contents": [{ "uri": uri, "text": text }] })
    });
    server
}

fn entry(manifest: &str) -> Value {
    let file = |uri: &str, text: &str| json!({ "uri": uri, "digest": digest(text.as_bytes()), "size": text.len() });
    json!({
        "uri": MANIFEST,
        "frontmatter": { "name": "tea", "description": "Brews tea" },
        "resources": [file(MANIFEST, manifest), file(POTS, "pots")],
    })
}

#[tokio::test(start_paused = true)]
async fn no_file_is_read_before_it_is_needed() {
    for legacy in [true, false] {
        let server = server(legacy, &entry(TEA), TEA);
        let client = server.connect().await;

        let skills = client.skills().all().await.unwrap();
        server.expect_no_message().await;
        assert_eq!(server.count("resources/read"), 0);

        client.read_skill(&skills[0]).await.unwrap();
        server.expect_no_message().await;
        assert_eq!(server.count("resources/read"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_differs_from_its_listing_is_rejected() {
    let other_head = TEA.replace("Brews tea", "Steals tea");
    let mut unlisted = entry(TEA);
    unlisted["resources"] = json!([]);
    for (entry, manifest, failed) in [
        (entry(TEA), TEA.replace("Boil", "Burn"), "digest"),
        (entry(TEA), format!("{TEA}more"), "size"),
        (entry(&other_head), other_head, "frontmatter"),
        (entry("# Tea"), "# Tea".to_owned(), "head"),
        (unlisted, TEA.to_owned(), "not listed"),
    ] {
        for legacy in [true, false] {
            let server = server(legacy, &entry, &manifest);
            let client = server.connect().await;
            let skills = client.skills().all().await.unwrap();

            let error = client.read_skill(&skills[0]).await.unwrap_err();

            let SkillError::Mismatch(mismatch) = error else {
                panic!("{error}");
            };
            let found = match mismatch {
                SkillMismatch::Digest { .. } => "digest",
                SkillMismatch::Size { .. } => "size",
                SkillMismatch::Frontmatter { member } => {
                    assert_eq!(member, "description");
                    "frontmatter"
                }
                SkillMismatch::Head(_) => "head",
                SkillMismatch::NotListed { .. } => "not listed",
                other => panic!("{other}"),
            };
            assert_eq!(found, failed);
            assert!(server.count("resources/read") <= 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dynamic_files_without_digest_are_not_verified() {
    let mut dynamic = entry(TEA);
    dynamic["resources"] = json!("dynamic");
    let server = server(false, &dynamic, TEA);
    let client = server.connect().await;
    let skills = client.skills().all().await.unwrap();

    let skill = client.read_skill(&skills[0]).await.unwrap();

    assert!(skill.files().is_empty());
    assert_eq!(skill.file(POTS).await.unwrap(), b"pots");
}

#[tokio::test(start_paused = true)]
async fn a_response_with_another_uri_is_an_error() {
    let server = server(false, &entry(TEA), TEA);
    server.respond(
        "resources/read",
        json!({ "contents": [{ "uri": POTS, "text": TEA }] }),
    );
    let client = server.connect().await;
    let skills = client.skills().all().await.unwrap();

    let error = client.read_skill(&skills[0]).await.unwrap_err();

    assert!(
        matches!(
            error,
            SkillError::Mismatch(SkillMismatch::NotTheFile { .. })
        ),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn skills_are_not_requested_without_the_extension() {
    for server in [MockServer::modern(), MockServer::legacy("2025-11-25")] {
        let client: Client = server.connect().await;

        let errors = [
            client.skills().all().await.unwrap_err(),
            client.skill(MANIFEST).await.unwrap_err(),
            client.directory("skill://tea").all().await.unwrap_err(),
        ];

        for error in errors {
            assert!(
                matches!(error, CallError::CapabilityNotAdvertised { .. }),
                "{error}"
            );
        }
        assert_eq!(server.count("skills/list"), 0);
    }
}
