use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn digests(kind: DefinitionKind, definition: &Value) -> DefinitionDigests {
    DefinitionDigests::new(kind, definition)
}

fn notes() -> LockFile {
    let mut lock = ServerLock::new();
    lock.target = Some("https://example.com/mcp".to_owned());
    lock.revision = Some("2026-07-28".to_owned());
    lock.set_instructions(Some("Use add."));
    for (kind, name) in [
        (DefinitionKind::Tool, "sub.item"),
        (DefinitionKind::Tool, "add"),
        (DefinitionKind::Prompt, "summary"),
        (DefinitionKind::Template, "note://{id}"),
    ] {
        lock.insert(kind, name, digests(kind, &json!({ "name": name })));
    }
    let mut file = LockFile::new();
    file.servers.insert("notes".to_owned(), lock);
    file
}

#[test]
fn a_definition_is_one_line_and_names_are_sorted() {
    let text = notes().to_string();
    let lines: Vec<_> = text
        .lines()
        .map(|line| &line[..line.len().min(24)])
        .collect();
    assert_eq!(
        lines,
        [
            "version = 1",
            "",
            "[servers.notes]",
            "target = \"https://exampl",
            "revision = \"2026-07-28\"",
            "instructions = \"sha256:4",
            "",
            "[servers.notes.tools]",
            "add = { digest = \"sha256",
            "\"sub.item\" = { digest = ",
            "",
            "[servers.notes.prompts]",
            "summary = { digest = \"sh",
            "",
            "[servers.notes.templates",
            "\"note://{id}\" = { digest",
        ]
    );
    assert_eq!(LockFile::parse(&text), Ok(notes()));
}

#[test]
fn an_error_has_line_and_column() {
    let digest = format!("\"sha256:{}\"", "0".repeat(64));
    let with_tool = |line: &str| format!("version = 1\n[servers.a.tools]\n{line}\n");
    let cases = [
        (String::new(), "line 1, column 1: `version = 1` is missing"),
        (
            "version = 2".to_owned(),
            "line 1, column 11: the version must be 1",
        ),
        (
            "version = \"1\"".to_owned(),
            "line 1, column 11: the version must be 1",
        ),
        (
            "version = 1\nnames = 3".to_owned(),
            "line 2, column 1: unknown key `names`",
        ),
        (
            "version = 1\nservers = 3".to_owned(),
            "line 2, column 11: expected a table",
        ),
        (
            "version = 1\n[servers.a]\nskills = 3".to_owned(),
            "line 3, column 1: unknown key `skills`",
        ),
        (
            "version = 1\n[servers.a]\ntarget = 3".to_owned(),
            "line 3, column 10: expected a string",
        ),
        (
            with_tool("x = { digest = \"sha256:00\" }"),
            "line 3, column 16: expected a digest: `sha256:` and 64 hexadecimal digits",
        ),
        (
            with_tool("x = { }"),
            "line 3, column 5: `digest` is missing",
        ),
        (
            with_tool(
                &format!("é = {{ digest = {digest}, arguments = {digest} }}").replace("é", "\"é\""),
            ),
            "line 3, column 93: unknown key `arguments`",
        ),
        (
            with_tool(&format!(
                "x = {{ digest = {digest} }}\nx = {{ digest = {digest} }}"
            )),
            "line 4, column 1: duplicate key",
        ),
        ("version = 1\n[servers.a".to_owned(), "line 2, column 11: "),
    ];
    for (text, expected) in cases {
        let error = LockFile::parse(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}\n{error}");
    }
}

/// A server with any names.
fn any_server() -> impl Strategy<Value = ServerLock> {
    let definitions = prop::collection::vec((0..3_usize, any::<String>(), any::<String>()), 0..6);
    let texts = (any::<Option<String>>(), any::<Option<String>>());
    (definitions, texts).prop_map(|(definitions, (target, instructions))| {
        let mut lock = ServerLock::new();
        lock.target = target;
        lock.set_instructions(instructions.as_deref());
        for (kind, name, text) in definitions {
            let kind = DefinitionKind::ALL[kind];
            let definition = json!({ "name": name, "description": text });
            lock.insert(kind, name, digests(kind, &definition));
        }
        lock
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read(servers in prop::collection::btree_map(any::<String>(), any_server(), 0..3)) {
        let file = LockFile { servers };
        let text = file.to_string();
        prop_assert_eq!(LockFile::parse(&text), Ok(file));
    }

    #[test]
    fn any_text_is_read_or_an_error(text in "(version = 1\n)?([\\[\\]{}=\".a-c\n ]|servers|tools|digest|é)*") {
        if let Err(error) = LockFile::parse(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.matches('\n').count() + 1);
        }
    }

    #[test]
    fn digests_depend_on_the_value_and_not_on_its_text(text in any::<String>(), number in any::<i64>()) {
        let one = format!("{{\"name\":{},\"inputSchema\":{{\"a\":{number}, \"b\":1.0}}}}", json!(text));
        let other = format!("{{ \"inputSchema\" : {{\"b\":1,\"a\":{number}}},\n\"name\":{} }}", json!(text));
        let read = |text: &str| digests(DefinitionKind::Tool, &serde_json::from_str(text).unwrap());
        prop_assert_eq!(read(&one), read(&other));
        let changed = one.replacen("1.0", "1.5", 1);
        prop_assert_eq!(read(&changed).changes_since(&read(&one)), ["input"]);
    }
}
