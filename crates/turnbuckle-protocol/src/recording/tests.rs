use super::*;

const CLIENT: MessageSide = MessageSide::Client;
const SERVER: MessageSide = MessageSide::Server;

/// Writes entries with the rules, and returns the lines without the header.
fn written(rules: RedactionRules, kinds: impl IntoIterator<Item = EntryKind>) -> String {
    let mut writer = RecordingWriter::new(rules, RecordingLimits::default());
    let mut out = Vec::new();
    for kind in kinds {
        writer.write(&mut out, 0, 1, kind);
    }
    String::from_utf8(out).unwrap()
}

fn line(from: MessageSide, text: &str) -> EntryKind {
    EntryKind::from_line(from, text.as_bytes())
}

/// Numbers messages of one connection from 1.
fn entries(messages: &[(MessageSide, &str)]) -> Vec<RecordedEntry> {
    let numbered = (1..).zip(messages);
    numbered
        .map(|(seq, (from, text))| RecordedEntry {
            seq,
            t: 0,
            conn: 1,
            kind: line(*from, text),
        })
        .collect()
}

/// Returns the links as (from, to, kind).
fn links(messages: &[(MessageSide, &str)]) -> Vec<(u64, u64, LinkKind)> {
    let links = correlate(&entries(messages));
    links
        .iter()
        .map(|link| (link.from.seq, link.to.seq, link.kind))
        .collect()
}

#[test]
fn lines_have_the_form_of_the_format() {
    let mut writer = RecordingWriter::default();
    let mut out = Vec::new();
    let header = RecordingHeader::new("2026-11-18T02:00:00Z", "turnbuckle 0.2.0");
    writer.write_header(&mut out, header.target("notes", "stdio"));
    let open = OpenEntry::program(["node", "server.js"]).env(["API_KEY"]);
    writer.write(&mut out, 0, 1, EntryKind::Open(open));
    writer.write(
        &mut out,
        812,
        1,
        line(CLIENT, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
    );
    writer.write(&mut out, 990, 1, line(SERVER, "Server starting"));
    writer.write(&mut out, 991, 1, EntryKind::from_line(SERVER, b"\xff\xfe"));
    writer.write(&mut out, 999, 1, EntryKind::Close(CloseEntry::signal(15)));

    let expected = r#"{"recording":1,"started":"2026-11-18T02:00:00Z","by":"turnbuckle 0.2.0","redacted":["headers"],"target":{"name":"notes","transport":"stdio"}}
{"seq":1,"t":0,"conn":1,"kind":"open","command":["node","server.js"],"env":["API_KEY"]}
{"seq":2,"t":812,"conn":1,"kind":"message","from":"client","message":{"jsonrpc":"2.0","id":1,"method":"ping"}}
{"seq":3,"t":990,"conn":1,"kind":"noise","from":"server","text":"Server starting"}
{"seq":4,"t":991,"conn":1,"kind":"noise","from":"server","base64":"//4="}
{"seq":5,"t":999,"conn":1,"kind":"close","signal":15}
"#;
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_message_keeps_its_bytes_apart_from_line_ends() {
    let text = "{ \"jsonrpc\":\"2.0\",\r\n\"id\" : 1.0, \"method\":\"\\u0070ing\" }\n";

    let EntryKind::Message(entry) = line(CLIENT, text) else {
        panic!("this is a message");
    };

    let expected = "{ \"jsonrpc\":\"2.0\",  \"id\" : 1.0, \"method\":\"\\u0070ing\" }";
    assert_eq!(entry.message.as_str(), expected);
}

#[test]
fn what_is_not_a_message_is_noise() {
    for text in [
        "",
        "Server starting",
        r#"{"level":"info"}"#,
        "[]",
        "{\"a\":",
        "1",
        r#"{"id":1,"access_token":"s3cret"}"#,
        r#"[{"jsonrpc":"2.0","method":"a"},{"access_token":"s3cret"}]"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
    ] {
        assert_eq!(line(SERVER, text).name(), "noise", "{text}");
    }
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
        r#"[{"jsonrpc":"2.0","method":"a"}]"#,
    ] {
        assert_eq!(line(SERVER, text).name(), "message", "{text}");
    }
}

#[test]
fn unknown_kinds_and_members_are_read() {
    let text = r#"{"recording":1,"later":true}
{"seq":7,"t":1,"conn":2,"kind":"later","a":{"b":[1.50]},"\u0063":2}
{"seq":8,"kind":"close","code":3,"later":[]}
"#;

    let recording = Recording::from_slice(text.as_bytes());

    assert_eq!(recording.errors, []);
    let [unknown, close] = &recording.entries[..] else {
        panic!("{recording:?}");
    };
    assert_eq!(unknown.kind.name(), "later");
    let mut again = Vec::new();
    unknown.write(&mut again);
    let expected = r#"{"seq":7,"t":1,"conn":2,"kind":"later","a":{"b":[1.50]},"c":2}"#;
    assert_eq!(String::from_utf8(again).unwrap().trim_end(), expected);
    assert_eq!(close.kind, EntryKind::Close(CloseEntry::code(3)));
}

#[test]
fn a_line_that_cannot_be_read_is_reported_with_its_number() {
    let text = "{\"recording\":2}\n\n{\"seq\":1,\"kind\":\"close\"}\n[1,2,3,4]\nnoise\n{\"seq\":2,\"kind\":\"cl";

    let recording = Recording::from_slice(text.as_bytes());

    assert_eq!(recording.entries.len(), 1);
    let errors: Vec<_> = recording.errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "line 1: version 2 of the format is newer than version 1",
            "line 4: not an entry: invalid type: array, expected object",
            "line 5: not an entry: expected ident",
            "line 6: the last line is incomplete",
        ]
    );
}

#[test]
fn a_complete_last_line_needs_no_line_end() {
    let text = "{\"recording\":1}\n{\"seq\":1,\"kind\":\"close\"}";
    let recording = Recording::from_slice(text.as_bytes());
    assert_eq!((recording.entries.len(), recording.errors.len()), (1, 0));
}

#[test]
fn a_line_that_is_too_long_is_skipped() {
    let long = "x".repeat(200);
    let text = format!("{{\"recording\":1}}\n{long}\n{{\"seq\":1,\"kind\":\"close\"}}\n{long}");
    for size in [1, 7, 64, 1000] {
        let mut reader = RecordingReader::new(100);
        let mut lines = Vec::new();
        for mut chunk in text.as_bytes().chunks(size) {
            while let Some(line) = reader.next(&mut chunk) {
                lines.push(line);
            }
        }
        lines.extend(reader.finish());

        let errors: Vec<_> = lines
            .iter()
            .filter_map(|line| line.as_ref().err())
            .collect();
        let too_long = |line| RecordingError {
            line,
            kind: RecordingErrorKind::TooLong,
        };
        assert_eq!(errors, [&too_long(2), &too_long(4)], "chunks of {size}");
        assert_eq!(lines.len(), 4);
    }
}

#[test]
fn an_entry_that_is_too_long_becomes_a_gap() {
    let limits = RecordingLimits::default().entry(100);
    let mut writer = RecordingWriter::new(RedactionRules::new(), limits);
    let mut out = Vec::new();

    writer.write(&mut out, 5, 1, line(SERVER, &"x".repeat(80)));
    writer.write(&mut out, 6, 1, line(SERVER, "short"));

    let expected = r#"{"seq":1,"t":5,"conn":1,"kind":"gap","dropped":1,"reason":"entry"}
{"seq":2,"t":6,"conn":1,"kind":"noise","from":"server","text":"short"}
"#;
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_full_file_ends_with_gaps() {
    let limits = RecordingLimits::default().file(5_000);
    let mut writer = RecordingWriter::new(RedactionRules::new(), limits);
    let mut out = Vec::new();

    for _ in 0..100 {
        writer.write(&mut out, 1, 1, line(SERVER, &"x".repeat(50)));
    }
    writer.finish(&mut out, 2);

    assert!(writer.is_full() && out.len() < 5_000, "{}", out.len());
    let mut text = b"{\"recording\":1}\n".to_vec();
    text.extend(&out);
    let recording = Recording::from_slice(&text);
    let gaps: Vec<_> = recording.entries.iter().rev().take(3).collect();
    assert_eq!(gaps[0].kind.name(), "gap");
    assert_eq!(gaps[1].kind.name(), "gap");
    assert_eq!(gaps[2].kind.name(), "noise");
    let EntryKind::Gap(last) = &gaps[0].kind else {
        panic!("{gaps:?}");
    };
    // All entries are either written or counted.
    assert_eq!(recording.entries.len() as u64 - 2 + 1 + last.dropped, 100);
}

#[test]
fn credentials_in_headers_are_always_redacted() {
    let mut request =
        RequestEntry::new(1, "POST", "/mcp?access_token=s3cret&page=2#id_token=s3cret");
    request.add_header("AUTHORIZATION", "Bearer s3cret-token");
    request.add_header("Mcp-Session-Id", "s3cret");
    request.add_header("Referer", "https://ada:s3cret@example.com/?q=1");
    request.add_header("Accept", "text/event-stream");
    let mut response = ResponseEntry::new(1, 200);
    response.add_header("set-cookie", "id=s3cret");
    response.add_header("mcp-session-id", "s3cret");

    let text = written(
        RedactionRules::new(),
        [EntryKind::Request(request), EntryKind::Response(response)],
    );

    let expected = r#"{"seq":1,"t":0,"conn":1,"kind":"request","exchange":1,"method":"POST","url":"/mcp?access_token=$redacted:1&page=2#id_token=$redacted:1","headers":[["AUTHORIZATION",{"$redacted":2}],["Mcp-Session-Id",{"$redacted":1}],["Referer","https://$redacted:3@example.com/?q=1"],["Accept","text/event-stream"]]}
{"seq":2,"t":0,"conn":1,"kind":"response","exchange":1,"status":200,"headers":[["set-cookie",{"$redacted":4}],["mcp-session-id",{"$redacted":1}]]}
"#;
    assert_eq!(text, expected);
}

#[test]
fn credentials_of_programs_are_always_redacted() {
    let command = [
        "node",
        "--token",
        "s3cret",
        "--api-key=s3cret",
        "DB_PASSWORD=s3cret",
        "--verbose",
        "Authorization: Bearer s3cret",
        "http://ada:s3cret@host/",
        "--port",
        "80",
    ];
    let stderr = OutputEntry::new(SERVER, b"sent header Bearer s3cret-abcdef to the server");

    let text = written(
        RedactionRules::new(),
        [
            EntryKind::Open(OpenEntry::program(command)),
            EntryKind::Stderr(stderr),
        ],
    );

    assert!(!text.contains("s3cret"), "{text}");
    assert!(
        text.contains(r#""node","--token",{"$redacted":1},"#),
        "{text}"
    );
    assert!(
        text.contains(r#""--verbose","#) && text.contains(r#""--port","80""#),
        "{text}"
    );
}

#[test]
fn tokens_in_output_are_always_redacted() {
    let log = |text: &str| EntryKind::Stderr(OutputEntry::new(SERVER, text.as_bytes()));

    let text = written(
        RedactionRules::new(),
        [
            log(r#"{"access_token":"s3cret","expires_in":5}"#),
            log("connecting with client-secret=s3cret, a=b"),
            log("GET https://ada:s3cret@host/mcp?code=s3cret  failed"),
        ],
    );

    assert!(!text.contains("s3cret"), "{text}");
    let kept = [
        r#"\"expires_in\":5"#,
        "connecting with client-secret=$redacted:",
        " a=b",
        "  failed",
    ];
    assert!(kept.iter().all(|kept| text.contains(kept)), "{text}");
}

#[test]
fn named_values_in_any_output_are_redacted() {
    for text in [
        r#"DEBUG {"access_token":"s3cret"}"#,
        r#"  "access_token": "s3cret","#,
        r#"{"access_token": "s3cret", "a"#,
        "token: s3cret",
        "API key = s3cret",
        "password = 's3cret words'",
        r#"password="two s3cret words""#,
        r#"password="a\" s3cret""#,
        "passphrase := s3cret",
        "Authorization: Basic dTpzM2NyZXQ= s3cret",
        "cookie: id=1; other=s3cret",
        "token: Basic s3cret",
        r#"{"msg":"GET https://h/?access_token=s3cret"}"#,
        r#"{"msg":"sent password=s3cret"}"#,
        r#"{"msg":"{\"access_token\":\"s3cret\"}"}"#,
        r#"INFO "{\"access_token\":\"s3cret\"}""#,
        r#"tokens: ["a", "s3cret"]"#,
    ] {
        let bytes = [text.as_bytes(), b" \xff"].concat();
        for bytes in [text.as_bytes(), &bytes] {
            let kind = EntryKind::Stderr(OutputEntry::new(SERVER, bytes));
            let written = written(RedactionRules::new(), [kind.clone()]);
            assert!(!written.contains("s3cret"), "{written}");
            let recording = Recording::from_slice(written.as_bytes());
            assert_ne!(
                recording.entries.first().map(|entry| &entry.kind),
                Some(&kind)
            );
            assert!(!written.contains("base64"), "{text}: {written}");
        }
    }
}

#[test]
fn output_without_secrets_is_written_unchanged() {
    for text in [
        "session::connect took 5 ms",
        "listening on http://127.0.0.1:80/mcp?page=2",
        "level=info count=5 name=\"a b\"",
        r#"{"msg":"at 12:30, a=b","n":1}"#,
        "password=",
    ] {
        let kind = EntryKind::Stderr(OutputEntry::new(SERVER, text.as_bytes()));
        let written = written(RedactionRules::new(), [kind]);
        assert!(!written.contains("$redacted"), "{written}");
    }
}

#[test]
fn arguments_with_a_named_secret_are_redacted() {
    for argument in [
        "--env=GITHUB_TOKEN=s3cret",
        "Server=h;User Id=sa;Password=s3cret",
        "jdbc:sqlserver://h;password=s3cret",
        "--api-token=abc://s3cret",
        "--key=abc://s3cret",
        "--passphrase=s3cret",
        "DB_CREDENTIALS=s3cret",
        "pwd=s3cret",
        "postgres://h/db?sslmode=on&password=s3cret",
    ] {
        let kind = EntryKind::Open(OpenEntry::program([argument]));
        let text = written(RedactionRules::new(), [kind]);
        assert!(!text.contains("s3cret"), "{text}");
    }
    let plain = ["--volume=/code:/app", "https://tokens.example/a:b"];
    let text = written(
        RedactionRules::new(),
        [EntryKind::Open(OpenEntry::program(plain))],
    );
    assert!(!text.contains("$redacted"), "{text}");
}

#[test]
fn patterns_apply_to_urls_and_encoded_headers() {
    let mut request = RequestEntry::new(1, "GET", "/users/sk-s3cret/a");
    request.add_header("Referer", "https://h/sk%2Ds3cret");
    // `sk-s3cret` and a line end.
    request.add_header("X-Name", "=?base64?c2stczNjcmV0Cg==?=");
    let open = OpenEntry::program(["https://h/sk-s3cret/a", "abc://sk-s3cret"]);
    let rules = RedactionRules::new().pattern(|text| text.starts_with("sk-"));

    let text = written(rules, [EntryKind::Request(request), EntryKind::Open(open)]);

    for secret in ["s3cret", "sk%2D", "c2stczNjcmV0"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn placeholders_keep_their_numbers_when_an_entry_is_redacted_again() {
    let mut request =
        RequestEntry::new(1, "GET", "https://$redacted:4@h/?access_token=$redacted:3");
    request.add_header(
        "Authorization",
        RecordedText::Redacted(RedactedValue { number: 5 }),
    );
    let message = r#"{"jsonrpc":"2.0","method":"m","params":{"pin":{"$redacted":7},"PIN":"a"}}"#;
    let hostile = r#"{"jsonrpc":"2.0","method":"m","params":{"a":{"$redacted":18446744073709551615},"pin":{"$redacted":1,"b":2}}}"#;
    let rules = RedactionRules::new().key("pin");

    let stderr = EntryKind::Stderr(OutputEntry::new(SERVER, b"token=$redacted:2 secret=a"));
    let kinds = [
        EntryKind::Request(request),
        line(CLIENT, message),
        line(CLIENT, hostile),
        stderr,
    ];
    let text = written(rules, kinds);

    assert!(
        text.contains("https://$redacted:4@h/?access_token=$redacted:3"),
        "{text}"
    );
    assert!(
        text.contains(r#"["Authorization",{"$redacted":5}]"#),
        "{text}"
    );
    assert!(
        text.contains(r#"{"pin":{"$redacted":7},"PIN":{"$redacted":8}}"#),
        "{text}"
    );
    assert!(text.contains(r#""pin":{"$redacted":9}"#), "{text}");
    assert!(
        text.contains("token=$redacted:2 secret=$redacted:8"),
        "{text}"
    );
}

#[test]
fn json_that_is_not_a_message_is_redacted_by_names() {
    for text in [
        r#"{"id":1,"access_token":"s3cret"}"#,
        r#"[{"access_token":"s3cret"}]"#,
        r#"[{"jsonrpc":"2.0","method":"a"},{"id":1,"refresh_token":"s3cret"}]"#,
        r#"{"result":{},"id_token":"s3cret"}"#,
    ] {
        let text = written(RedactionRules::new(), [line(SERVER, text)]);
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[test]
fn rules_redact_by_key_pointer_and_pattern() {
    let rules = RedactionRules::new()
        .key("password")
        .pointer("/params/arguments/a~1b/0")
        .unwrap()
        .pattern(|text| text.starts_with("sk-"));
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{ "arguments": {"a/b":[ [1, 2], 3], "Pass\u0077ord":"x", "list":["sk-1","a sk-1"], "\u0061":"\u0073k-1"}}}"#;

    let text = written(rules, [line(CLIENT, message)]);

    let expected = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{ "arguments": {"a/b":[ {"$redacted":1}, 3], "Pass\u0077ord":{"$redacted":2}, "list":[{"$redacted":3},"a sk-1"], "\u0061":{"$redacted":3}}}}"#;
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_pointer_applies_to_each_message_of_a_batch() {
    let rules = RedactionRules::new().pointer("/params/x").unwrap();
    let batch = r#"[{"jsonrpc":"2.0","method":"a","params":{"x":1}},{"jsonrpc":"2.0","method":"b","params":{"x":2}}]"#;

    let text = written(rules, [line(CLIENT, batch)]);

    assert!(
        !text.contains(r#""x":1"#) && !text.contains(r#""x":2"#),
        "{text}"
    );
}

#[test]
fn output_that_mentions_a_key_is_redacted_as_a_whole() {
    let rules = || RedactionRules::new().key("password");
    let log = |text: &[u8]| EntryKind::Stderr(OutputEntry::new(SERVER, text));

    let text = written(
        rules(),
        [
            log(b"PASSWORD is s3cret"),
            log(b"\xff password s3cret"),
            log(br#"{"level":1,"password":"s3cret"}"#),
            log(br#"{"password":"s3cret"#),
            log(b"ready"),
        ],
    );

    assert!(!text.contains("s3cret"), "{text}");
    assert!(
        text.contains(r#""text":"{\"level\":1,\"password\":{\"$redacted\":"#),
        "{text}"
    );
    assert!(text.contains("ready"), "{text}");
}

#[test]
fn headers_that_repeat_arguments_are_redacted_with_rules() {
    let mut request = RequestEntry::new(1, "POST", "/mcp");
    request.add_header("Mcp-Param-Pin", "1234");

    let kinds = [EntryKind::Request(request)];
    let without = written(RedactionRules::new(), kinds.clone());
    let with = written(RedactionRules::new().key("pin"), kinds);

    assert!(without.contains("1234") && !with.contains("1234"), "{with}");
}

#[test]
fn a_pointer_must_be_one() {
    for text in ["", "a", "/~", "/~2"] {
        assert!(RedactionRules::new().pointer(text).is_err(), "{text}");
    }
    let rules = RedactionRules::new().key("a").pointer("/b").unwrap();
    let rules = rules.pattern(|_| false);
    assert_eq!(rules.names(), ["headers", "a", "/b", "re:"]);
}

#[test]
fn responses_belong_to_requests_of_the_other_side() {
    let messages = [
        (CLIENT, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#),
        (
            SERVER,
            r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#,
        ),
        (CLIENT, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        (SERVER, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        (SERVER, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        (CLIENT, r#"{"jsonrpc":"2.0","id":"1","method":"ping"}"#),
        (
            SERVER,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
        ),
    ];
    let expected = [(3, 2, LinkKind::Response), (4, 1, LinkKind::Response)];
    assert_eq!(links(&messages), expected);
}

#[test]
fn a_response_prefers_its_exchange_and_its_connection() {
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let entry = |seq, conn, exchange: Option<u64>, kind: EntryKind| RecordedEntry {
        seq,
        t: 0,
        conn,
        kind: match exchange {
            Some(number) => kind.in_exchange(number),
            None => kind,
        },
    };
    let pairs = |entries: &[RecordedEntry]| -> Vec<_> {
        let links = correlate(entries);
        links
            .iter()
            .map(|link| (link.from.seq, link.to.seq))
            .collect()
    };

    let http = [
        entry(1, 1, Some(1), line(CLIENT, request)),
        entry(2, 2, Some(2), line(CLIENT, request)),
        entry(3, 1, Some(3), line(CLIENT, request)),
        entry(4, 1, Some(1), line(SERVER, response)),
        // A stream on another connection.
        entry(5, 9, Some(9), line(SERVER, response)),
    ];
    assert_eq!(pairs(&http), [(4, 1), (5, 3)]);

    let processes = [
        entry(1, 1, None, line(CLIENT, request)),
        entry(2, 2, None, line(SERVER, response)),
    ];
    assert_eq!(pairs(&processes), []);
}

#[test]
fn messages_are_linked_to_the_request_they_concern() {
    let messages = [
        (
            CLIENT,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"}}}"#,
        ),
        (
            SERVER,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#,
        ),
        (
            CLIENT,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        ),
        (
            CLIENT,
            r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"note:1"}}"#,
        ),
        (
            SERVER,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note:1"}}"#,
        ),
        (
            CLIENT,
            r#"{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{}}"#,
        ),
        (
            SERVER,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}}"#,
        ),
    ];
    let expected = [
        (2, 1, LinkKind::Progress),
        (3, 1, LinkKind::Cancellation),
        (5, 4, LinkKind::Subscription),
        (7, 6, LinkKind::Subscription),
    ];
    assert_eq!(links(&messages), expected);
}

#[test]
fn rounds_and_tasks_are_linked_to_the_request_that_began_them() {
    let messages = [
        (
            CLIENT,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
        ),
        (
            SERVER,
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":{"$redacted":4}}}"#,
        ),
        (
            CLIENT,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"requestState":{"$redacted":4}}}"#,
        ),
        (
            SERVER,
            r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"t"}}"#,
        ),
        (
            CLIENT,
            r#"{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"t"}}"#,
        ),
        (
            SERVER,
            r#"{"jsonrpc":"2.0","id":3,"result":{"taskId":"t"}}"#,
        ),
        (
            SERVER,
            r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t"}}"#,
        ),
        (
            SERVER,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#,
        ),
    ];
    let expected = [
        (2, 1, LinkKind::Response),
        (3, 1, LinkKind::Round),
        (4, 3, LinkKind::Response),
        (5, 3, LinkKind::Task),
        (6, 5, LinkKind::Response),
        (7, 3, LinkKind::Task),
        (8, 3, LinkKind::Task),
    ];
    assert_eq!(links(&messages), expected);
}

#[test]
fn messages_of_a_batch_are_linked_one_by_one() {
    let request =
        r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]"#;
    let response = r#"[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]"#;

    let links = correlate(&entries(&[(CLIENT, request), (SERVER, response)]));

    let places: Vec<_> = links
        .iter()
        .map(|link| (link.from.index, link.to.index))
        .collect();
    assert_eq!(places, [(0, 1), (1, 0)]);
}

#[test]
fn a_buffer_drops_the_oldest_lines() {
    let limits = BufferLimits {
        bytes: 100,
        entries: 3,
    };
    let mut buffer = RecordingBuffer::new(limits);
    for seq in 1..=5 {
        buffer.push(seq, vec![b'x'; 10]);
    }

    assert_eq!(
        (buffer.after(0).dropped, buffer.after(0).lines.len()),
        (2, 3)
    );
    assert_eq!(
        (buffer.after(1).dropped, buffer.after(1).lines.len()),
        (1, 3)
    );
    assert_eq!(
        (buffer.after(4).dropped, buffer.after(4).lines.len()),
        (0, 1)
    );

    buffer.push(6, vec![b'x'; 95]);
    assert_eq!(
        (buffer.after(0).dropped, buffer.after(0).lines.len()),
        (5, 1)
    );
}
