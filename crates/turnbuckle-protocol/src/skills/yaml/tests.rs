use serde_json::json;

use super::*;

#[test]
fn scalars_follow_the_core_schema() {
    for (yaml, expected) in [
        ("a: tea", json!("tea")),
        ("a: 'tea: green'", json!("tea: green")),
        ("a: \"1\\n\"", json!("1\n")),
        ("a: 1", json!(1)),
        ("a: -1", json!(-1)),
        ("a: +1", json!(1)),
        ("a: 0x1F", json!(31)),
        ("a: 0o17", json!(15)),
        ("a: 1.5", json!(1.5)),
        ("a: 1e3", json!(1000.0)),
        ("a: .5", json!(0.5)),
        ("a: 1.0.0", json!("1.0.0")),
        ("a: 2026-07-28", json!("2026-07-28")),
        ("a: 0xtea", json!("0xtea")),
        ("a: yes", json!("yes")),
        ("a: true", json!(true)),
        ("a:", json!(null)),
        ("a: ~", json!(null)),
        ("a: !!str 1", json!("1")),
        ("a: |\n  one\n  two\n", json!("one\ntwo\n")),
        ("a: >\n  one\n  two\n", json!("one two\n")),
        ("a: [1, x, {b: c}]", json!([1, "x", { "b": "c" }])),
        (
            "a:\n  - b: 1\n    c: 2\n  - d\n",
            json!([{ "b": 1, "c": 2 }, "d"]),
        ),
        ("a: {1: x, true: y}", json!({ "1": "x", "true": "y" })),
        ("x: &x [1]\na: *x", json!([1])),
    ] {
        let read = read(yaml).unwrap_or_else(|error| panic!("{yaml:?}: {error}"));
        assert_eq!(read["a"], expected, "{yaml:?}");
    }
}

#[test]
fn values_that_json_cannot_represent_and_ambiguous_ones_are_rejected() {
    for yaml in [
        "a: .inf",
        "a: .NaN",
        "a: 1\na: 2",
        "? [a]\n: b",
        "a: !secret b",
        "a: *b",
        "a: &a [*a]",
        "a: b\n---\nc: d",
        "a: [",
        "a: \"",
        "a: b: c",
    ] {
        assert!(read(yaml).is_err(), "{yaml:?} is {:?}", read(yaml));
    }
}

#[test]
fn aliases_cannot_grow_without_bound() {
    let mut bomb = "a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n".to_owned();
    for level in 1..20 {
        let below = format!("*a{},", level - 1).repeat(9);
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(60_000),
        "*a,".repeat(1_000)
    );

    assert!(read(&bomb).unwrap_err().contains("aliases"));
    assert!(read(&long).unwrap_err().contains("aliases"));
}

#[test]
fn depth_is_bounded() {
    for deep in [
        "[".repeat(60_000),
        "{a: ".repeat(10_000),
        "- ".repeat(20_000),
        format!("{}{}", "[".repeat(40), "]".repeat(40)),
    ] {
        assert!(read(&deep).is_err());
    }
    assert!(read(&format!("{}{}", "[".repeat(20), "]".repeat(20))).is_ok());
}

#[test]
fn no_text_makes_it_panic() {
    // Tokens with a meaning in YAML, combined by a small generator.
    const PIECES: [&str; 24] = [
        "a", ": ", ":", "\n", "- ", "  ", "[", "]", "{", "}", ",", "&a ", "*a", "!t ", "'", "\"",
        "|", ">", "#", "?", "%", "\t", "---\n", "ü",
    ];
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push_str(PIECES[usize::try_from(state % 24).unwrap()]);
        }
        let _ = read(&text);
    }
}
