use super::*;

fn code(text: &str) -> String {
    let blanked = without_tests(&without_comments_and_strings(text));
    assert_eq!(blanked.lines().count(), text.lines().count());
    blanked.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn comments_are_blank() {
    assert_eq!(code("a // b\nc /* d /* e */ f */ g"), "a c g");
    assert_eq!(code("/// println!()\n//! x\ncode"), "code");
}

#[test]
fn strings_are_blank() {
    assert_eq!(code(r#"f("unsafe \" // ", 1)"#), "f( , 1)");
    assert_eq!(code(r##"f(r#"a " b"#, br"c\", r"d")"##), "f( , , )");
    assert_eq!(code("f(\"é\", x)"), "f( , x)");
}

#[test]
fn a_character_is_not_a_lifetime() {
    assert_eq!(code(r"f('a', '\'', '{', '\u{7f}', x)"), "f( , , , , x)");
    assert_eq!(
        code("fn f<'a>(x: &'a str) -> Cow<'_, str>"),
        "fn f<'a>(x: &'a str) -> Cow<'_, str>"
    );
}

#[test]
fn a_name_that_ends_in_r_does_not_begin_a_raw_string() {
    assert_eq!(code(r#"for"x" y"#), "for y");
}

#[test]
fn tests_are_blank() {
    assert_eq!(
        code("a\n#[cfg(test)]\nmod tests {\n    fn f() { b }\n}\nc"),
        "a c"
    );
    assert_eq!(code("#[cfg(test)]\nmod tests;\nc"), "c");
    assert_eq!(code("#[cfg(test)]\n#[path = \"x\"]\nuse a::b;\nd"), "d");
}
