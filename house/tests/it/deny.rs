//! What `deny.toml` says of licences, bans and sources, checked without cargo-deny.
//!
//! Advisories need a database of their own: only cargo-deny itself checks them.

use std::collections::BTreeMap;
use std::fs;

use toml::{Table, Value};
use turnbuckle_house::graph::{Graph, Package};
use turnbuckle_house::licence;

#[test]
fn every_licence_is_allowed() {
    let rules = rules();
    let allowed = texts(&rules["licenses"]["allow"]);
    assert_all(
        |package| licence::is_met(&package.licence, &allowed),
        |package| &package.licence,
    );
}

#[test]
fn nothing_banned_is_built() {
    let rules = rules();
    let banned = rules["bans"]["deny"].as_array().unwrap();
    let banned: Vec<_> = banned
        .iter()
        .map(|ban| ban["crate"].as_str().unwrap())
        .collect();
    assert_all(|package| !banned.contains(&&*package.name), |_| "is banned");
}

#[test]
fn everything_comes_from_an_allowed_registry() {
    let rules = rules();
    let allowed = texts(&rules["sources"]["allow-registry"]);
    let comes_from = |package: &Package| package.source.clone().unwrap_or_default();
    let is_allowed = |package: &Package| {
        allowed
            .iter()
            .any(|url| comes_from(package) == format!("registry+{url}"))
    };
    assert_all(is_allowed, |package| {
        package.source.as_deref().unwrap_or_default()
    });
}

/// A warning, as in `deny.toml`: the fault is seldom ours to mend.
#[test]
fn several_majors_of_one_package_are_told() {
    let graph = Graph::of_workspace();
    let mut versions = BTreeMap::<_, Vec<_>>::new();
    for package in graph.packages() {
        versions
            .entry(&package.name)
            .or_default()
            .push(&package.version);
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        eprintln!("warning: `{name}` is built as {versions:?}");
    }
}

fn assert_all(is_fine: impl Fn(&Package) -> bool, why: impl Fn(&Package) -> &str) {
    let graph = Graph::of_workspace();
    let foreign = graph.packages().filter(|package| package.source.is_some());
    let bad: Vec<_> = foreign
        .filter(|package| !is_fine(package))
        .map(|package| format!("{} {}: {}", package.name, package.version, why(package)))
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

fn rules() -> Table {
    let text = fs::read_to_string(turnbuckle_house::root().join("deny.toml"));
    text.expect("deny.toml is there")
        .parse()
        .expect("deny.toml is TOML")
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list of strings");
    list.iter()
        .map(|value| value.as_str().expect("a string").to_owned())
        .collect()
}
