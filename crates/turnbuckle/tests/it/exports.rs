//! The list of re-exports.

use std::collections::BTreeSet;

/// Returns the names that a `pub use` or `pub mod` of a crate root exports.
fn exported(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join(" ");
    for statement in code.split(';') {
        if let Some((_, module)) = statement.rsplit_once("pub mod ") {
            names.insert(module.trim().to_owned());
        }
        let Some((_, path)) = statement.rsplit_once("pub use ") else {
            continue;
        };
        let list = path.split_once('{').map_or_else(
            || path.rsplit("::").next().unwrap_or_default(),
            |(_, list)| list.trim_end().trim_end_matches('}'),
        );
        let items = list.split(',').map(str::trim);
        names.extend(items.filter(|item| !item.is_empty()).map(str::to_owned));
    }
    names
}

#[test]
fn every_public_item_of_the_server_is_exported_here() {
    let server = exported(include_str!("../../../turnbuckle-server/src/lib.rs"));
    let facade = exported(include_str!("../../src/lib.rs"));
    assert!(server.len() > 40, "{server:?}");

    let missing: Vec<_> = server.difference(&facade).collect();

    assert!(
        missing.is_empty(),
        "add to `crates/turnbuckle/src/lib.rs`: {missing:?}"
    );
}
