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
        // A path such as `server::` before a `{` names a module; all other paths name an item.
        let paths = path.split([',', '{', '}']).map(str::trim);
        let items = paths.filter(|path| !path.is_empty() && !path.ends_with("::"));
        names.extend(items.map(|path| path.rsplit("::").next().unwrap_or(path).to_owned()));
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
