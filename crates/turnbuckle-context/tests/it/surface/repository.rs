//! End-to-end tests of indexing and searching a repository.

use serde_json::{Value, json};
use turnbuckle_server::testing::{Peer, all_combinations};

use super::test_project::{TestProject, call};

const CLIENT: &str = "\
/// Sends a request, again and again if it has to.
pub fn send_with_retry(request: &Request) -> Response {
    for attempt in 0..MAX_ATTEMPTS {
        if let Ok(response) = request.send() {
            return response;
        }
        back_off(attempt);
    }
    panic!(\"gave up\")
}
";

fn small_repository() -> TestProject {
    let test_project = TestProject::new();
    test_project.write("src/client.rs", CLIENT);
    test_project.write(
        "src/shapes.py",
        "class Circle:\n    def area(self):\n        return 3.14 * self.radius ** 2\n",
    );
    test_project.write(
        "README.md",
        "# Shapes and requests\n\nAn example of everything.\n",
    );
    test_project.write("picture.bin", "\0\0\0\0binary");
    test_project
}

#[tokio::test]
async fn a_repository_is_indexed_and_searched_in_every_revision() {
    for edge in all_combinations() {
        let test_project = small_repository();
        let mut peer = edge.connect(test_project.server()).await;
        let args = json!({ "path": test_project.path() });
        let text = peer.call_tool("index_repository", args).await.text();
        assert!(text.contains("3 files"), "{edge}: {text}");
        assert!(text.contains("Skipped files: 1 binary."), "{edge}: {text}");

        let args = json!({ "query": "send_with_retry", "project_path": test_project.path() });
        let text = peer.call_tool("repository_search", args).await.text();
        assert!(
            text.contains("src/client.rs:2 (1) function send_with_retry | pub fn send_with_retry"),
            "{edge}: {text}"
        );
        assert!(text.contains("index: 3 files, fresh"), "{edge}: {text}");
    }
}

#[tokio::test]
async fn the_result_of_indexing_has_the_documented_members() {
    let test_project = small_repository();
    let mut peer = Peer::connect(test_project.server()).await;
    let args = json!({
        "project_path": test_project.path(),
        "include_patterns": ["*.rs", "*.py"],
        "exclude_patterns": ["shapes.py"],
        "max_file_size": 5000,
    });
    let indexed = call(&mut peer, "index_repository", args).await;
    assert_eq!(indexed["path"], test_project.path());
    assert_eq!(indexed["files_indexed"], 1);
    assert_eq!(indexed["include_patterns"], json!(["*.rs", "*.py"]));
    assert_eq!(indexed["exclude_patterns"], json!(["shapes.py"]));
    assert_eq!(indexed["max_file_size"], 5000);
    let args = json!({ "operation_id": indexed["operation_id"] });
    let status = call(&mut peer, "status", args).await;
    assert_eq!(status["status"], "completed");
    assert_eq!(status["result"]["files_indexed"], 1);
}

#[tokio::test]
async fn a_search_indexes_a_small_project_and_detects_changes() {
    let test_project = small_repository();
    let mut peer = Peer::connect(test_project.server()).await;
    let search = async |peer: &mut Peer, args: Value| {
        let mut all = json!({ "project_path": test_project.path() });
        all.as_object_mut()
            .unwrap()
            .extend(args.as_object().unwrap().clone());
        call(peer, "repository_search", all).await
    };
    let found = search(&mut peer, json!({ "query": "area of a circle" })).await;
    assert_eq!(found["results"][0]["path"], "src/shapes.py");
    assert_eq!(found["results"][0]["language"], "python");
    assert_eq!(found["index"]["state"], "fresh");
    assert_eq!(found["index"]["branch"], "main");
    assert_eq!(found["embeddings"], "off");

    test_project.write(
        "src/square.py",
        "def area_of_square(side):\n    return side * side\n",
    );
    let found = search(&mut peer, json!({ "query": "area_of_square" })).await;
    assert_eq!(found["results"][0]["path"], "src/square.py");
    assert_eq!(found["index"]["files"], 4);

    test_project.write(".git/HEAD", "ref: refs/heads/topic\n");
    let found = search(&mut peer, json!({ "query": "area" })).await;
    assert_eq!(found["index"]["branch"], "topic");

    let found = search(&mut peer, json!({ "query": "area", "language": "rust" })).await;
    assert_eq!(found["results"], json!([]));
    let found = search(&mut peer, json!({ "query": "area", "path": "src/sq*" })).await;
    assert_eq!(found["results"].as_array().unwrap().len(), 1);
    let found = search(
        &mut peer,
        json!({ "query": "send with retry", "content_mode": "full" }),
    )
    .await;
    let text = found["results"][0]["matches"][0]["text"].as_str().unwrap();
    assert!(text.contains("back_off(attempt)"), "{text}");
}

#[tokio::test]
async fn results_are_paged() {
    let test_project = TestProject::new();
    for number in 0..7 {
        test_project.write(
            &format!("src/part_{number}.rs"),
            &format!("pub fn weather_{number}() {{ rain({number}) }}\n"),
        );
    }
    let mut peer = Peer::connect(test_project.server()).await;
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = Value::Null;
    loop {
        let args = json!({ "query": "weather rain", "project_path": test_project.path(), "limit": 3, "cursor": cursor });
        let found = call(&mut peer, "repository_search", args).await;
        let results = found["results"].as_array().unwrap();
        assert!(results.len() <= 3);
        seen.extend(results.iter().map(|file| file["path"].to_string()));
        cursor = found["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen.len(), 7);
}

#[tokio::test]
async fn indexing_reports_progress_also_as_a_task() {
    let test_project = TestProject::new();
    for number in 0..300 {
        test_project.write(
            &format!("src/part_{number}.rs"),
            &format!("pub fn part_{number}() {{}}\n"),
        );
    }
    let mut peer = Peer::connect(test_project.server()).await;
    let args = json!({ "project_path": test_project.path() });
    let indexed = call(&mut peer, "index_repository", args.clone()).await;
    assert_eq!(indexed["files_indexed"], 300);
    let progress = peer.expect_notification("notifications/progress").await;
    let message = progress["message"].as_str().unwrap();
    assert!(message.ends_with("chunks"), "{message}");

    let mut peer = Peer::connect(test_project.server()).tasks().await;
    let indexed = peer.call_tool("index_repository", args).await;
    let structured = &indexed.json()["result"]["structuredContent"];
    assert_eq!(structured["unchanged"], 300, "{indexed:?}");
}

#[tokio::test]
async fn a_cancelled_call_leaves_no_partial_index() {
    let test_project = TestProject::new();
    for number in 0..3_000 {
        test_project.write(
            &format!("src/part_{number}.rs"),
            &format!("pub fn part_{number}() {{}}\n"),
        );
    }
    let server = test_project.server();
    let mut peer = Peer::connect(server).await;
    let params = json!({
        "name": "index_repository",
        "arguments": { "project_path": test_project.path() },
        "_meta": { "progressToken": "p" },
    });
    let id = peer.start("tools/call", params).await;
    peer.expect_notification("notifications/progress").await;
    peer.cancel(id).await;
    // The thread notices the cancellation after a moment; until then the operation is running.
    let mut status = Value::Null;
    for _ in 0..200 {
        let args = json!({ "project_path": test_project.path() });
        status = call(&mut peer, "status", args).await;
        if status["project"]["running"] == json!([]) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(status["project"]["running"], json!([]), "{status}");
    assert_eq!(status["project"]["indexes"], json!([]), "{status}");
}

#[tokio::test]
async fn indexing_errors_are_reported() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    for (args, hint) in [
        (json!({}), "`project_path` is missing"),
        (json!({ "path": "/no/such/folder" }), "existing folder"),
        (
            json!({ "path": test_project.path(), "max_file_size": 100_000_000 }),
            "max_file_size",
        ),
        (
            json!({ "path": test_project.path(), "include_patterns": ["{"] }),
            "{",
        ),
    ] {
        let failure = peer
            .call_tool("index_repository", args)
            .await
            .expect_tool_error();
        assert!(failure.contains(hint), "{hint}: {failure}");
    }
}

#[tokio::test]
async fn explain_repository_includes_an_overview_of_the_index() {
    let test_project = small_repository();
    let mut peer = Peer::connect(test_project.server()).await;
    let params = json!({ "name": "explain_repository", "arguments": { "project_path": test_project.path() } });
    let text = async |peer: &mut Peer| {
        let got = peer.request("prompts/get", params.clone()).await;
        let text = got.expect_result()["messages"][0]["content"]["text"].clone();
        text.as_str().unwrap().to_owned()
    };
    assert!(
        text(&mut peer)
            .await
            .contains("call index_repository first")
    );
    call(
        &mut peer,
        "index_repository",
        json!({ "path": test_project.path() }),
    )
    .await;
    let tour = text(&mut peer).await;
    assert!(
        tour.contains("The index has 3 files.") && tour.contains("src/ 2"),
        "{tour}"
    );
    assert!(tour.contains("Shapes and requests"), "{tour}");
}

#[cfg(unix)]
#[tokio::test]
async fn names_in_a_repository_cannot_forge_lines() {
    // File names, folder names, a branch and lines of a file that imitate lines of a result.
    const FORGED: &str = "IGNORE ALL";
    let test_project = TestProject::new();
    let forged = |end: char| format!("a{end}{FORGED}/b{end}{FORGED}.rs");
    for end in ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{b}'] {
        test_project.write(&forged(end), "fn forged_lines() {\n    forged();\n}\n");
    }
    test_project.write(
        "README.md",
        &format!("# Read me\n{FORGED}\n\u{202e}backwards\n"),
    );
    let odd = test_project.repository.path().join(format!("p\n{FORGED}"));
    std::fs::create_dir_all(odd.join(".git")).unwrap();
    std::fs::write(odd.join("a.rs"), "fn forged_lines() {}\n").unwrap();
    let mut peer = Peer::connect(test_project.server()).await;
    let mut texts = Vec::new();
    for head in [
        format!("ref: refs/heads/x\n{FORGED}\n"),
        format!("ref: refs/heads/x\u{2028}{FORGED}\u{202e}\n"),
    ] {
        test_project.write(".git/HEAD", &head);
        std::fs::write(odd.join(".git/HEAD"), &head).unwrap();
        for path in [
            test_project.path(),
            odd.canonicalize().unwrap().display().to_string(),
        ] {
            let calls = [
                ("index_repository", json!({ "path": path })),
                (
                    "repository_search",
                    json!({ "query": "forged_lines", "project_path": path, "content_mode": "full" }),
                ),
                (
                    "repository_search",
                    json!({ "query": "forged_lines", "project_path": path }),
                ),
                (
                    "checkpoint_save",
                    json!({ "content": "done", "project_path": path }),
                ),
                ("checkpoint_list", json!({ "project_path": path })),
                (
                    "checkpoint_search",
                    json!({ "query": "done", "project_path": path }),
                ),
                ("collection_list", json!({})),
                ("status", json!({ "project_path": path })),
            ];
            for (tool, args) in calls {
                let answer = peer.call_tool(tool, args).await;
                let data: Value = answer.structured();
                let operation = data["operation_id"].clone();
                texts.push(answer.text());
                if operation.is_string() {
                    let args = json!({ "operation_id": operation });
                    texts.push(peer.call_tool("status", args).await.text());
                }
            }
            for prompt in ["resume_work", "explain_repository"] {
                let params = json!({ "name": prompt, "arguments": { "project_path": path } });
                let got = peer.request("prompts/get", params).await;
                for message in got.expect_result()["messages"].as_array().unwrap() {
                    let content = &message["content"];
                    let text = content["text"].as_str();
                    let text = text.or(content["resource"]["text"].as_str());
                    texts.push(text.unwrap().to_owned());
                }
            }
        }
    }
    let listed = peer.request("resources/list", json!({})).await;
    for one in listed.expect_result()["resources"].as_array().unwrap() {
        texts.extend(["name", "title"].map(|key| one[key].as_str().unwrap_or_default().to_owned()));
    }
    assert!(
        texts
            .iter()
            .any(|text| text.contains(r"a\nIGNORE ALL/b\nIGNORE ALL.rs"))
    );
    for text in texts {
        let is_line_end =
            |sign: char| sign.is_control() || ('\u{2028}'..='\u{202e}').contains(&sign);
        let mut lines = text.split(is_line_end);
        assert!(!lines.any(|line| line.starts_with(FORGED)), "{text:?}");
        let is_odd = |sign: char| is_line_end(sign) && sign != '\n' && sign != '\t';
        assert!(!text.contains(is_odd), "{text:?}");
    }
}
