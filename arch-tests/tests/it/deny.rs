//! Checks the licenses, bans and sources of `deny.toml` without cargo-deny.
//!
//! Advisories need a database, so only cargo-deny checks them.

use std::{collections::BTreeMap, fs};

use toml::{Table, Value};
use turnbuckle_arch_tests::{
    graph::{Package, PackageGraph},
    license,
};

#[test]
fn every_license_is_allowed() {
    let rules = rules();
    let allowed = texts(&rules["licenses"]["allow"]);
    assert_all(
        |package| license::is_met(&package.license, &allowed),
        |package| &package.license,
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

/// Only a warning, as in `deny.toml`: duplicates usually come from dependencies.
#[test]
fn several_major_versions_of_a_package_are_reported() {
    let graph = PackageGraph::from_workspace();
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
    let graph = PackageGraph::from_workspace();
    let foreign = graph.packages().filter(|package| package.source.is_some());
    let bad: Vec<_> = foreign
        .filter(|package| !is_fine(package))
        .map(|package| format!("{} {}: {}", package.name, package.version, why(package)))
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

fn rules() -> Table {
    let text = fs::read_to_string(turnbuckle_arch_tests::root().join("deny.toml"));
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
