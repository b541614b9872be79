//! What the README shows is what the examples are.

#[test]
fn the_readme_shows_hello_as_it_is() {
    let hello = include_str!("../hello.rs");
    let readme = include_str!("../../README.md");

    let code = &hello[hello.find("use std").expect("the imports are there")..];

    assert!(
        readme.contains(&format!("```rust\n{code}```")),
        "copy `examples/hello.rs` into the README"
    );
}
