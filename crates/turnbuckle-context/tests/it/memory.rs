//! Tests of saving, searching and listing items.

use serde_json::{Map, Value, json};
use turnbuckle_context::{
    ContextError, DataDir, Database, Owner, Redactor,
    evaluation::memory::{
        HalfLife, ItemKind, MemoryHit, MemoryQuery, NewItem, SaveOutcome, delete, find,
        find_operation, find_skill, list, record_use, save, search,
    },
};

const DAY: i64 = 24 * 60 * 60 * 1_000;

fn database() -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path().join("a.db")).unwrap();
    (folder, database)
}

fn keep(database: &Database, new_item: NewItem) -> SaveOutcome {
    save(database, Redactor::standard(), new_item).unwrap()
}

fn rejection(database: &Database, new_item: NewItem) -> String {
    let error = save(database, Redactor::standard(), new_item).unwrap_err();
    assert!(
        matches!(error, ContextError::InvalidRequest(_)),
        "{error:?}"
    );
    error.to_string()
}

fn search_items(database: &Database, kind: ItemKind, text: &str) -> Vec<MemoryHit> {
    search(&[database], &MemoryQuery::new(kind, text)).unwrap()
}

fn bodies(hits: &[MemoryHit]) -> Vec<&str> {
    hits.iter().map(|hit| &*hit.item.body).collect()
}

#[test]
fn saved_items_are_found_after_reopening() {
    let (folder, database) = database();
    let new_item = NewItem::checkpoint("The parser now accepts nested comments.")
        .title("Parser: nested comments")
        .branch("feature/comments")
        .tags(["parser"])
        .meta(Map::from_iter([("step".to_owned(), json!("3"))]));
    let saved = keep(&database, new_item);
    drop(database);

    let again = Database::open(folder.path().join("a.db")).unwrap();

    let hits = search_items(&again, ItemKind::Checkpoint, "what about nested comments?");
    assert_eq!(hits[0].item, saved.item);
    assert_eq!(hits[0].item.branch, "feature/comments");
    assert_eq!(hits[0].item.tags, ["parser"]);
    assert_eq!(hits[0].item.meta["step"], "3");
    assert_eq!(find(&again, &saved.item.id).unwrap(), Some(saved.item));
}

#[test]
fn a_save_is_recorded_as_an_operation() {
    let (_folder, database) = database();
    let saved = keep(&database, NewItem::checkpoint("half way"));
    let operation = find_operation(&database, &saved.operation)
        .unwrap()
        .unwrap();
    assert_eq!(operation.kind, "checkpoint_save");
    assert_eq!(
        operation.result.unwrap(),
        json!({ "checkpoint_id": saved.item.id })
    );
}

#[test]
fn duplicates_are_stored_once() {
    let (_folder, database) = database();
    let first = keep(
        &database,
        NewItem::checkpoint("Moved the cache to disk.\r\nTests pass.  "),
    );
    let again = NewItem::checkpoint("Moved the cache to disk.\nTests pass.\n")
        .title("Cache on disk")
        .tags(["cache"]);
    let second = keep(&database, again);
    assert!(first.is_new && !second.is_new);
    assert_eq!(first.item.id, second.item.id);
    assert_eq!(second.item.title, "Cache on disk");
    assert_eq!(second.item.tags, ["cache"]);
    assert_eq!(second.item.created, first.item.created);
    assert!(second.similar_to.is_empty());
    assert_eq!(
        list(&database, ItemKind::Checkpoint, 10, None)
            .unwrap()
            .items
            .len(),
        1
    );
    assert_eq!(
        search_items(&database, ItemKind::Checkpoint, "cache").len(),
        1
    );
}

#[test]
fn the_same_text_on_another_branch_is_another_item() {
    let (_folder, database) = database();
    let first = keep(
        &database,
        NewItem::checkpoint("Moved the cache to disk.").branch("main"),
    );
    let second = keep(
        &database,
        NewItem::checkpoint("Moved the cache to disk.").branch("next"),
    );
    assert!(second.is_new);
    assert_eq!(second.similar_to[0].id, first.item.id);
    assert_eq!(second.similar_to[0].similarity, 1.0);
}

#[test]
fn near_duplicates_are_reported_and_stored() {
    let (_folder, database) = database();
    keep(
        &database,
        NewItem::checkpoint("Renamed the login page and fixed its tests."),
    );
    let first = keep(
        &database,
        NewItem::checkpoint(
            "The upload endpoint checks the size of files now; limit is 10 MB; tests for it are in upload_test.py",
        ),
    );
    let second = keep(
        &database,
        NewItem::checkpoint(
            "The upload endpoint checks the size of files now; limit is 20 MB; the tests for it are in upload_test.py",
        ),
    );
    assert!(second.is_new);
    assert_eq!(second.similar_to.len(), 1);
    assert_eq!(second.similar_to[0].id, first.item.id);
    assert!(second.similar_to[0].similarity > 0.6);
}

#[test]
fn a_skill_with_the_same_name_is_replaced() {
    let (_folder, database) = database();
    let first = keep(
        &database,
        NewItem::skill("Release a version", "How to release", "Tag it.").tags(["old"]),
    );
    record_use(&database, &[&first.item.id, "skill_0000000000000000"]).unwrap();
    let second = keep(
        &database,
        NewItem::skill("release-a_Version", "How to release", "Sign it.").tags(["new"]),
    );
    assert!(!second.is_new);
    assert_eq!(second.item.id, first.item.id);
    assert_eq!(second.item.created, first.item.created);
    assert_eq!(
        (second.item.usage, &second.item.tags[..]),
        (1, &["new".to_owned()][..])
    );
    let found = find_skill(&database, "RELEASE A VERSION").unwrap().unwrap();
    assert_eq!(
        (&*found.body, &*found.title),
        ("Sign it.", "release-a_Version")
    );
    assert!(search_items(&database, ItemKind::Skill, "tag").is_empty());
    assert!(find_skill(&database, "release").unwrap().is_none());
}

#[test]
fn a_sentence_finds_items_with_some_of_its_words() {
    let (_folder, database) = database();
    keep(
        &database,
        NewItem::checkpoint("Switched the session store from Redis to SQLite because of latency."),
    );
    keep(
        &database,
        NewItem::checkpoint("Wrote the changelog for 1.4."),
    );
    let hits = search_items(
        &database,
        ItemKind::Checkpoint,
        "Why did we decide last month to move away from redis for keeping user sessions?",
    );
    assert_eq!(hits.len(), 1);
    assert!(hits[0].item.body.contains("Redis"));
    assert!(
        hits[0].score > 0.1 && hits[0].score <= 1.0,
        "{}",
        hits[0].score
    );
}

#[test]
fn a_better_match_has_a_higher_score() {
    let (_folder, database) = database();
    for text in [
        "database pool: waits for a free connection now",
        "connection of the websocket is closed after the timeout of a minute",
        "database connection timeout raised to 30 seconds",
        "the colour of buttons",
    ] {
        keep(&database, NewItem::checkpoint(text));
    }
    let hits = search_items(
        &database,
        ItemKind::Checkpoint,
        "database connection timeout",
    );
    assert_eq!(hits.len(), 3);
    assert!(hits[0].item.body.contains("raised"));
    assert!(hits[0].score > 0.6, "{}", hits[0].score);
    assert!(
        hits[1].score < hits[0].score * 0.8,
        "{} {}",
        hits[0].score,
        hits[1].score
    );
    let mut strict = MemoryQuery::new(ItemKind::Checkpoint, "database connection timeout");
    strict.min_score = 0.6;
    assert_eq!(search(&[&database], &strict).unwrap().len(), 1);
}

#[test]
fn a_name_is_found_whole_and_in_parts() {
    let (_folder, database) = database();
    keep(
        &database,
        NewItem::checkpoint("parseHttpHeader is slow; see also the parser"),
    );
    keep(&database, NewItem::checkpoint("parse_query is fast"));
    for question in [
        "parseHttpHeader",
        "parse_http_header",
        "http header",
        "where do we parse a header",
    ] {
        let hits = search_items(&database, ItemKind::Checkpoint, question);
        assert!(hits[0].item.body.contains("slow"), "{question}");
    }
}

#[test]
fn newer_items_rank_first_and_old_ones_are_still_found() {
    let (_folder, database) = database();
    let old = keep(
        &database,
        NewItem::checkpoint("alpha beta gamma").branch("one"),
    );
    std::thread::sleep(std::time::Duration::from_millis(3));
    let new = keep(
        &database,
        NewItem::checkpoint("alpha beta gamma").branch("two"),
    );
    let hits = search_items(&database, ItemKind::Checkpoint, "alpha beta");
    assert_eq!(hits[0].item.id, new.item.id);
    assert_eq!(hits[1].item.id, old.item.id);

    let mut later = MemoryQuery::new(ItemKind::Checkpoint, "alpha beta");
    later.now += 30 * DAY;
    let after_a_month = search(&[&database], &later).unwrap()[0].score;
    assert!((after_a_month / hits[0].score - 0.75).abs() < 0.01);
    later.now += 100 * 365 * DAY;
    let after_a_century = search(&[&database], &later).unwrap()[0].score;
    assert!((after_a_century / hits[0].score - 0.5).abs() < 0.01);
    later.half_life = HalfLife {
        checkpoint: std::time::Duration::ZERO,
        ..HalfLife::default()
    };
    assert!((search(&[&database], &later).unwrap()[0].score - hits[0].score).abs() < 1e-3);
}

#[test]
fn items_with_less_confidence_rank_lower() {
    let (_folder, database) = database();
    keep(
        &database,
        NewItem::checkpoint("the queue is drained at exit").confidence(0.3),
    );
    keep(
        &database,
        NewItem::checkpoint("at exit the queue is drained, really"),
    );
    let hits = search_items(&database, ItemKind::Checkpoint, "queue drained exit");
    assert!(hits[0].item.confidence > 0.9);
    assert!(rejection(&database, NewItem::checkpoint("x").confidence(1.5)).contains("from 0 to 1"));
    assert!(
        rejection(&database, NewItem::checkpoint("x").confidence(f64::NAN)).contains("from 0 to 1")
    );
}

#[test]
fn results_can_be_limited_to_one_branch() {
    let (_folder, database) = database();
    keep(
        &database,
        NewItem::checkpoint("the index is built in batches").branch("main"),
    );
    keep(
        &database,
        NewItem::checkpoint("the index is built at once").branch("next"),
    );
    let mut query = MemoryQuery::new(ItemKind::Checkpoint, "how is the index built");
    query.branch = Some("next".to_owned());
    assert_eq!(
        bodies(&search(&[&database], &query).unwrap()),
        ["the index is built at once"]
    );
}

#[test]
fn the_same_error_with_other_numbers_is_found_first() {
    let (_folder, database) = database();
    for (error, solution) in [
        (
            "error[E0382]: borrow of moved value: `config`\n  --> src/main.rs:31:9",
            "clone it",
        ),
        (
            "error[E0308]: mismatched types\n  --> src/main.rs:31:9",
            "convert it",
        ),
        (
            "thread 'main' panicked at src/pool.rs:88:14: index out of bounds: the len is 4 but the index is 4",
            "off by one in `grow`",
        ),
        (
            "thread 'main' panicked at src/pool.rs:12:1: called `Option::unwrap()` on a `None` value",
            "the pool was empty",
        ),
        ("connect ECONNREFUSED 127.0.0.1:5432", "start the database"),
        (
            "request failed with status code 404 for /v1/users/17",
            "the route lacks a version",
        ),
    ] {
        keep(&database, NewItem::remediation(error, solution));
    }
    for (error, solution) in [
        (
            "thread 'main' panicked at /home/x/work/src/pool.rs:140:3: index out of bounds: the len is 9 but the index is 12",
            "off by one in `grow`",
        ),
        (
            "error[E0308]: mismatched types\n  --> crates/a/src/lib.rs:7:5",
            "convert it",
        ),
        (
            "Error: connect ECONNREFUSED 10.0.0.9:5432",
            "start the database",
        ),
        (
            "npm ERR! request failed with status code 404 for /v1/users/99",
            "the route lacks a version",
        ),
        (
            "called `Option::unwrap()` on a `None` value",
            "the pool was empty",
        ),
    ] {
        let hits = search_items(&database, ItemKind::Remediation, error);
        assert_eq!(hits[0].item.body, solution, "{error}: {hits:#?}");
        assert!(hits[0].score > 0.5, "{error}: {}", hits[0].score);
        assert!(
            hits.get(1)
                .is_none_or(|second| second.score < hits[0].score)
        );
    }
    let long_log = format!(
        "{}\nerror[E0382]: borrow of moved value: `config`\n   --> src/x.rs:1:1\n{}",
        "   Compiling a\n".repeat(300),
        "note: x\n".repeat(300)
    );
    assert_eq!(
        search_items(&database, ItemKind::Remediation, &long_log)[0]
            .item
            .body,
        "clone it"
    );
}

#[test]
fn several_databases_are_searched_as_one() {
    let ((_one, project), (_two, shared)) = (database(), database());
    keep(
        &project,
        NewItem::remediation("linker `cc` not found", "install gcc"),
    );
    keep(
        &shared,
        NewItem::remediation(
            "linker `cc` not found on the path",
            "install build-essential",
        ),
    );
    keep(
        &shared,
        NewItem::remediation("disk full while linking", "clean the target folder"),
    );
    let query = MemoryQuery::new(ItemKind::Remediation, "error: linker `cc` not found");
    let hits = search(&[&project, &shared], &query).unwrap();
    assert_eq!(hits[0].source, 0);
    assert_eq!(hits[1].source, 1);
    assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert_eq!(search(&[], &query).unwrap(), []);
}

#[test]
fn kinds_projects_and_owners_are_separate() {
    let (data, one, two) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let data_dir = DataDir::new(data.path());
    let open = |owner: &Owner, folder: &tempfile::TempDir| {
        let project = data_dir
            .project(owner, folder.path().to_str().unwrap())
            .unwrap();
        data_dir.open_project(owner, &project).unwrap()
    };
    let (ada, bob) = (Owner::for_user("ada"), Owner::for_user("bob"));
    let saved = keep(&open(&ada, &one), NewItem::checkpoint("the secret plan"));
    for other in [
        open(&ada, &two),
        open(&bob, &one),
        data_dir.open_shared(&ada).unwrap(),
    ] {
        assert!(search_items(&other, ItemKind::Checkpoint, "secret plan").is_empty());
        assert!(find(&other, &saved.item.id).unwrap().is_none());
        assert!(!delete(&other, &saved.item.id).unwrap());
    }
    assert!(search_items(&open(&ada, &one), ItemKind::Remediation, "secret plan").is_empty());
    assert!(search_items(&open(&ada, &one), ItemKind::Skill, "secret plan").is_empty());
    assert_eq!(
        search_items(&open(&ada, &one), ItemKind::Checkpoint, "secret plan").len(),
        1
    );
}

#[test]
fn deleted_items_are_not_found() {
    let (_folder, database) = database();
    let saved = keep(&database, NewItem::checkpoint("throw this away"));
    assert!(delete(&database, &saved.item.id).unwrap());
    assert!(!delete(&database, &saved.item.id).unwrap());
    assert!(search_items(&database, ItemKind::Checkpoint, "throw away").is_empty());
    assert!(keep(&database, NewItem::checkpoint("throw this away")).is_new);
}

#[test]
fn concurrent_saves_of_a_duplicate_create_one_item() {
    let (folder, database) = database();
    drop(database);
    let path = folder.path().join("a.db");
    let ids: Vec<(String, bool)> = std::thread::scope(|scope| {
        let work = |at: usize| {
            let database = Database::open(&path).unwrap();
            let mut saved = Vec::new();
            for number in 0..5 {
                keep(
                    &database,
                    NewItem::checkpoint(format!("of thread {at}, number {number}")),
                );
                saved.push(keep(
                    &database,
                    NewItem::checkpoint(format!("of all, number {number}")),
                ));
            }
            saved
                .into_iter()
                .map(|saved| (saved.item.id, saved.is_new))
                .collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..4).map(|at| scope.spawn(move || work(at))).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let new = ids.iter().filter(|(_, is_new)| *is_new).count();
    let mut distinct: Vec<&String> = ids.iter().map(|(id, _)| id).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!((ids.len(), new, distinct.len()), (20, 5, 5));
    let database = Database::open(&path).unwrap();
    assert_eq!(
        list(&database, ItemKind::Checkpoint, 100, None)
            .unwrap()
            .items
            .len(),
        25
    );
}

#[test]
fn pages_neither_repeat_nor_omit_items() {
    let (_folder, database) = database();
    let first: Vec<String> = (0..10)
        .map(|number| {
            keep(&database, NewItem::checkpoint(format!("number {number}")))
                .item
                .id
        })
        .collect();
    let mut seen = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = list(&database, ItemKind::Checkpoint, 3, after.as_deref()).unwrap();
        seen.extend(page.items.iter().map(|item| item.id.clone()));
        keep(
            &database,
            NewItem::checkpoint(format!("later {}", seen.len())),
        );
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let expected: Vec<String> = first.into_iter().rev().collect();
    assert_eq!(seen, expected);
    let error = list(
        &database,
        ItemKind::Checkpoint,
        3,
        Some("1; DROP TABLE item"),
    )
    .unwrap_err();
    assert!(matches!(error, ContextError::InvalidRequest(_)));
}

#[test]
fn too_long_and_empty_members_are_rejected_by_name() {
    let (_folder, database) = database();
    let text = |length: usize| "ä".repeat(length);
    let meta = |key: &str, value: Value| Map::from_iter([(key.to_owned(), value)]);
    for (new_item, says) in [
        (NewItem::checkpoint(" \n"), "`content` is empty"),
        (
            NewItem::checkpoint("x".repeat(102_401)),
            "`content` has 102401 bytes; at most 102400 are allowed",
        ),
        (
            NewItem::checkpoint("x").title(text(501)),
            "`summary` has 501 characters; at most 500 are",
        ),
        (NewItem::remediation("", "x"), "`error_msg` is empty"),
        (NewItem::remediation("x", ""), "`solution` is empty"),
        (
            NewItem::remediation(text(1_001), "x"),
            "put the rest into `context`",
        ),
        (
            NewItem::remediation("x", text(5_001)),
            "`solution` has 5001 characters",
        ),
        (
            NewItem::remediation("x", "y").detail("x".repeat(10_241)),
            "`context` has 10241 bytes",
        ),
        (NewItem::skill(text(201), "d", "c"), "`name` has 201"),
        (
            NewItem::skill("n", text(2_001), "c"),
            "`description` has 2001",
        ),
        (
            NewItem::skill("n", "d", text(50_001)),
            "`content` has 50001",
        ),
        (NewItem::skill("n", " ", "c"), "`description` is empty"),
        (NewItem::skill("…", "d", "c"), "letter or digit"),
        (
            NewItem::checkpoint("x").tags(vec!["a"; 33]),
            "`tags` has 33 entries",
        ),
        (
            NewItem::checkpoint("x").tags([text(101)]),
            "`tags` has 101 characters",
        ),
        (
            NewItem::checkpoint("x").meta((0..33).map(|n| (n.to_string(), json!(1))).collect()),
            "`metadata` has 33",
        ),
        (
            NewItem::checkpoint("x").meta(meta(&text(101), json!(1))),
            "`metadata` has 101",
        ),
        (
            NewItem::checkpoint("x").meta(meta("k", json!(text(2_001)))),
            "`metadata.k` has 2001",
        ),
        (
            NewItem::checkpoint("x").meta(meta("k", json!([[text(2_000)]]))),
            "`metadata.k` has",
        ),
        (NewItem::checkpoint("x").branch(""), "`branch` is empty"),
    ] {
        let rejection = rejection(&database, new_item);
        assert!(rejection.contains(says), "{rejection}");
    }
    keep(
        &database,
        NewItem::checkpoint("x".repeat(102_400)).title(text(500)),
    );
    keep(
        &database,
        NewItem::remediation(text(1_000), text(5_000)).detail("x".repeat(10_240)),
    );
    keep(
        &database,
        NewItem::skill("n".repeat(200), text(2_000), text(50_000)),
    );
}

#[test]
fn any_text_can_be_saved_and_searched() {
    let (_folder, database) = database();
    let long = "word another \u{1F600} ".repeat(5_000);
    for text in [
        "nul \0 inside",
        "\u{202e}sdrawkcab\u{202c} right to left: שלום",
        "\"quotes\" AND OR NOT NEAR(a b, 3) col:x ^y z* {a b} - (",
        "'; DROP TABLE item; --",
        "\u{feff}\u{200b}",
        "漢字とかな",
        "e\u{301}\u{301}\u{301}",
        "\u{fffd}\u{10ffff}",
        "[]{}()<>|\\/?*+.^$",
        &long,
    ] {
        let saved = keep(
            &database,
            NewItem::checkpoint(text)
                .title(text.chars().take(500).collect::<String>())
                .tags([text.chars().take(90).collect::<String>()]),
        );
        assert_eq!(find(&database, &saved.item.id).unwrap().unwrap().body, text);
        keep(
            &database,
            NewItem::remediation(text.chars().take(900).collect::<String>(), "x"),
        );
        for kind in ItemKind::ALL {
            search_items(&database, kind, text);
        }
    }
    assert!(
        search_items(&database, ItemKind::Checkpoint, "שלום")[0]
            .item
            .body
            .contains("right to left")
    );
    assert!(
        search_items(&database, ItemKind::Checkpoint, "nul inside")[0]
            .item
            .body
            .contains('\0')
    );
    assert!(
        search_items(&database, ItemKind::Checkpoint, "漢字")[0]
            .item
            .body
            .contains("かな")
    );
    assert!(search_items(&database, ItemKind::Checkpoint, "").is_empty());
    assert!(search_items(&database, ItemKind::Checkpoint, "?!").is_empty());
}

#[test]
fn saved_items_are_redacted() {
    let (folder, database) = database();
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let new_item = NewItem::remediation(
        format!("push with {token} failed"),
        format!("renew {token}"),
    )
    .detail(&*token)
    .tags([&*token])
    .meta(Map::from_iter([(
        token.clone(),
        json!({ "deep": [token] }),
    )]));
    let saved = keep(&database, new_item);
    assert_eq!(saved.redacted.values().sum::<u32>(), saved.item.redacted);
    assert!(saved.item.redacted >= 6);
    assert!(!format!("{saved:?}").contains(&token));
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path())
            .unwrap()
            .to_ascii_lowercase();
        let needle = token.to_ascii_lowercase();
        assert!(
            !bytes
                .windows(needle.len())
                .any(|window| window == needle.as_bytes())
        );
    }
}

#[test]
fn an_old_item_with_common_words_is_found_among_thousands() {
    let (_folder, database) = database();
    let old = keep(
        &database,
        NewItem::checkpoint("lantern bridge copper meadow"),
    );
    let words = ["lantern", "bridge", "copper", "meadow"];
    let mut lines = vec![
        json!({ "format": "turnbuckle-memory", "version": 1 }).to_string(),
        json!({ "type": "project", "root": "/x" }).to_string(),
    ];
    for number in 0..14_000 {
        let body = format!("{} note {number}", words[number % 4]);
        let item = json!({ "type": "item", "kind": "checkpoint", "title": "t", "body": body });
        lines.push(item.to_string());
    }
    let data = tempfile::tempdir().unwrap();
    let data_dir = DataDir::new(data.path());
    let ada = Owner::for_user("ada");
    let first =
        json!({ "type": "item", "kind": "checkpoint", "title": "t", "body": old.item.body });
    lines.insert(2, first.to_string());
    let text = lines.join("\n");
    let options = turnbuckle_context::transfer::ImportOptions::default();
    turnbuckle_context::transfer::import(
        &data_dir,
        &ada,
        Redactor::standard(),
        &options,
        &mut text.as_bytes(),
    )
    .unwrap();
    let id = data_dir.project_ids(&ada).unwrap().pop().unwrap();
    let many = data_dir.open_project_by_id(&ada, &id).unwrap().unwrap();

    let hits = search_items(&many, ItemKind::Checkpoint, "meadow copper bridge lantern");

    assert_eq!(hits[0].item.body, old.item.body);
    assert!(hits[1].score < hits[0].score / 2.0);
}
