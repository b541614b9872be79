//! Arrays of messages.

use super::*;

fn batch(json: &str) -> Vec<Result<Message<'_>, MalformedMessage>> {
    match parse(json.as_bytes()) {
        Ok(Incoming::Batch(entries)) => entries,
        other => panic!("not a batch: {other:?}"),
    }
}

fn pings(count: usize) -> String {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    format!("[{}]", vec![ping; count].join(","))
}

#[test]
fn every_entry_is_classified_separately() {
    let entries = batch(
        r#"[ {"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1}}, 2, [], {"jsonrpc":"2.0","method":"n"}, {"id":"z"} ]"#,
    );

    assert_eq!(entries.len(), 5);
    assert!(matches!(&entries[0], Ok(Message::Request(r)) if r.params.get("x") == Some("1")));
    assert!(matches!(&entries[1], Err(m) if m.error.code == -32600 && m.id.is_none()));
    assert!(matches!(&entries[2], Err(m) if m.error.code == -32600 && m.id.is_none()));
    assert!(matches!(&entries[3], Ok(Message::Notification(_))));
    assert!(matches!(&entries[4], Err(m) if m.id == Some("z".into())));
}

#[test]
fn an_empty_array_is_rejected() {
    assert_eq!(rejection("[]"), (-32600, None));
    assert_eq!(rejection(" [ ] "), (-32600, None));
}

#[test]
fn at_most_a_hundred_entries() {
    assert_eq!(batch(&pings(100)).len(), 100);
    assert_eq!(rejection(pings(101)), (-32600, None));
    assert_eq!(
        rejection(format!("[{}1]", "1,".repeat(1_000_000))),
        (-32600, None)
    );
}

#[test]
fn one_broken_entry_breaks_the_array() {
    assert_eq!(
        rejection(r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{]"#),
        (-32700, None)
    );
    assert_eq!(
        rejection(r#"[{"jsonrpc":"2.0","id":1,"method":"a"}"#),
        (-32700, None)
    );
}
