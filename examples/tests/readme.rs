//! The program in the README is an example, so that it is compiled and run.

#[test]
fn the_readme_shows_the_example() {
    let example = include_str!("../readme.rs");
    let readme = include_str!("../../README.md");
    let start = example.find("use ").expect("the example has imports");

    assert!(
        readme.contains(&format!("```rust\n{}```", &example[start..])),
        "copy `examples/readme.rs` into the README"
    );
}
