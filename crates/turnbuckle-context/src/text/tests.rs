use proptest::prelude::*;
use rusqlite::Connection;

use super::tokenize::*;

/// Creates a table like that of the index, with one row per text.
fn table(texts: &[&str]) -> Connection {
    let db = Connection::open_in_memory().unwrap();
    let create = "CREATE VIRTUAL TABLE t USING fts5 (body, idents, \
                  tokenize = 'porter unicode61 remove_diacritics 2')";
    db.execute(create, []).unwrap();
    for text in texts {
        let row = (text, identifier_parts(text));
        db.execute("INSERT INTO t VALUES (?1, ?2)", row).unwrap();
    }
    db
}

fn found(db: &Connection, query: &str) -> rusqlite::Result<Vec<i64>> {
    let mut statement =
        db.prepare("SELECT rowid FROM t WHERE t MATCH ?1 ORDER BY bm25(t), rowid")?;
    let rows = statement.query_map([query], |row| row.get(0))?;
    rows.collect()
}

fn search(texts: &[&str], text: &str) -> Vec<i64> {
    found(&table(texts), &fts_query(text).unwrap()).unwrap()
}

#[test]
fn identifiers_are_split_into_words() {
    for (identifier, parts) in [
        ("camelCase", &["camel", "Case"][..]),
        ("PascalCase", &["Pascal", "Case"]),
        ("snake_case_", &["snake", "case"]),
        ("SCREAMING_CASE", &["SCREAMING", "CASE"]),
        ("kebab-case", &["kebab", "case"]),
        ("HTTPServer", &["HTTP", "Server"]),
        ("parseURLs", &["parse", "URLs"]),
        ("URLsOfPage", &["URLs", "Of", "Page"]),
        ("getID", &["get", "ID"]),
        ("sha256Sum", &["sha", "256", "Sum"]),
        ("Ärger_überAll", &["Ärger", "über", "All"]),
        ("cafe\u{301}Noir", &["cafe\u{301}", "Noir"]),
        ("word", &["word"]),
        ("_", &[]),
        ("", &[]),
    ] {
        assert_eq!(split_identifier(identifier), parts, "{identifier}");
    }
}

#[test]
fn only_identifiers_that_fts5_does_not_split_are_listed_in_parts() {
    let text = "let open_file = fooBar(HTTPServer::new, sha256, x1); // words of prose";
    assert_eq!(identifier_parts(text), "foo bar http server sha 256");
}

#[test]
fn a_sentence_is_searched_by_its_significant_words() {
    let query = fts_query("How does the router match paths?").unwrap();
    assert_eq!(query, r#""router" OR "match" OR "paths""#);
}

#[test]
fn a_name_is_searched_whole_and_in_parts() {
    let query = fts_query("is Router::withState ok").unwrap();
    let expected =
        r#""router withstate" OR "router" OR "withstate" OR "with state" OR "state" OR "ok""#;
    assert_eq!(query, expected);
}

#[test]
fn stop_words_are_searched_if_the_text_has_no_other_words() {
    assert_eq!(
        fts_query("what is this").unwrap(),
        r#""what" OR "is" OR "this""#
    );
    assert_eq!(fts_query("x").unwrap(), r#""x""#);
    for nothing in ["", " \t\n", "\"", "*()^:-", "🦀", "\0", "_"] {
        assert_eq!(fts_query(nothing), None, "{nothing:?}");
    }
}

#[test]
fn the_end_of_a_long_path_is_also_a_phrase() {
    let texts = ["see src/lib.rs for it", "a rs lib of src"];
    let best = search(&texts, "/home/someone/project/src/lib.rs:12:5");
    assert_eq!(best, [1, 2]);
}

#[test]
fn a_name_is_found_in_other_naming_conventions() {
    let styles = [
        "openFile",
        "OpenFile",
        "open_file",
        "OPEN_FILE",
        "open-file",
        "open::file",
    ];
    let expected: Vec<i64> = (1..=6).collect();
    for style in styles {
        let mut found = search(&styles, style);
        found.sort_unstable();
        assert_eq!(found, expected, "{style}");
    }
}

#[test]
fn fts5_operators_are_treated_as_words() {
    let texts = ["nothing", "near and not or"];
    for text in [
        "NEAR(a b)",
        "near AND",
        "NOT near",
        "body:near",
        "\"near",
        "near*",
        "^near",
        "{near}",
        "near + ",
    ] {
        assert_eq!(search(&texts, text), [2], "{text}");
    }
}

#[test]
fn chinese_and_japanese_words_are_found_inside_a_sentence() {
    let texts = [
        "これは日本語の文章です",
        "数据库连接失败",
        "한국어문장입니다",
    ];
    assert_eq!(search(&texts, "日本語"), [1]);
    assert_eq!(search(&texts, "连接"), [2]);
    assert_eq!(search(&texts, "문장"), [3]);
}

#[test]
fn accents_do_not_matter() {
    let texts = ["das Café ist zu", "le résumé"];
    assert_eq!(search(&texts, "cafe\u{301}"), [1]);
    assert_eq!(search(&texts, "resume"), [2]);
}

#[test]
fn a_long_stack_trace_is_reduced_to_significant_terms() {
    let mut trace =
        String::from("thread 'main' panicked: ConnectionPoolExhausted in acquire_connection\n");
    for line in 0..300 {
        trace.push_str(&format!(
            "  {line}: 0x7ffd{line:08x} at a.rs:{line} {line:016x}\n"
        ));
    }
    assert!(trace.len() > 10_000);
    let query = fts_query(&trace).unwrap();
    assert_eq!(query.split(" OR ").count(), MAX_TERMS);
    for name in [
        "\"connectionpoolexhausted\"",
        "\"acquire connection\"",
        "\"panicked\"",
    ] {
        assert!(query.contains(name), "{name} in {query}");
    }
}

#[test]
fn a_very_long_word_is_omitted() {
    let endless = "a".repeat(100_000);
    assert_eq!(fts_query(&endless), None);
    assert_eq!(
        fts_query(&format!("{endless} failed")).unwrap(),
        "\"failed\""
    );
}

#[test]
fn names_are_distinguished_from_words() {
    let identifiers = |text| -> Vec<String> {
        let names = name_tokens(text).filter(NameToken::is_identifier);
        names.map(|name| name.as_str().to_owned()).collect()
    };
    let text =
        "where does Router call a.b() and foo_bar or Foo::bar, HTTPServer in well-known src/main?";
    assert_eq!(
        identifiers(text),
        ["a.b", "foo_bar", "Foo::bar", "HTTPServer"]
    );
    assert_eq!(name_tokens("Foo::bar").next().unwrap().last(), "bar");
    assert_eq!(name_tokens("foo_bar").next().unwrap().last(), "foo_bar");
    assert!(name_tokens("src/lib.rs:3").next().unwrap().is_path());
}

#[test]
fn plain_words_are_distinct_and_without_stop_words() {
    let words = plain_words("The HTTPServer of the server, and a file");
    assert_eq!(words, ["httpserver", "http", "server", "file"]);
}

proptest! {
    #[test]
    fn any_text_gives_a_valid_and_bounded_query(text in any_text()) {
        let db = table(&["some text", &text]);
        if let Some(query) = fts_query(&text) {
            prop_assert!(query.split(" OR ").count() <= MAX_TERMS);
            prop_assert!(query.len() < 40_000);
            prop_assert!(found(&db, &query).is_ok(), "{query}");
        }
    }

    #[test]
    fn a_text_of_words_finds_itself(text in "[a-zA-Z_.:/ \"()]{1,80}") {
        let db = table(&["", &text]);
        if let Some(query) = fts_query(&text) {
            prop_assert_eq!(found(&db, &query).unwrap(), [2], "{}", query);
        }
    }

    #[test]
    fn the_parts_of_an_identifier_are_its_letters(identifier in "[a-zA-Z0-9äÖß_-]{0,40}") {
        let letters: String = identifier.chars().filter(|sign| sign.is_alphanumeric()).collect();
        prop_assert_eq!(split_identifier(&identifier).concat(), letters);
    }
}

/// Any characters, and special characters of FTS5 and shells among words of several scripts.
fn any_text() -> impl Strategy<Value = String> {
    let special = r#"([a-zA-Z0-9_]{1,12}|AND|OR|NOT|NEAR\(|["'`*^:+(){}\[\]\\-]|\x00|🦀|日本語|שלום|عربي|é|\n| ){0,60}"#;
    prop_oneof![any::<String>(), special.prop_map(|text: String| text)]
}

#[test]
fn identifiers_in_code_are_split() {
    assert_eq!(
        split_identifier("parseJSONValue"),
        ["parse", "JSON", "Value"]
    );
    assert_eq!(
        split_identifier("list-URLs_v12"),
        ["list", "URLs", "v", "12"]
    );
    assert_eq!(
        identifier_parts("fn open_file(p: HTTPServer)"),
        "http server"
    );
}
