//! Who may depend on whom. Dependencies of tests are free.

use std::fs;

use turnbuckle_house::graph::{Graph, Package};

/// The crates under `crates/`, each with those of ours that it may know. A new crate needs its line.
const ROOMS: &[(&str, &[&str])] = &[
    ("turnbuckle-protocol", &[]),
    ("turnbuckle-macros", &[]),
    ("turnbuckle-schema", &[]),
    ("turnbuckle-auth", &["protocol"]),
    ("turnbuckle-store", &["protocol"]),
    ("turnbuckle-server", &["protocol", "schema", "store"]),
    ("turnbuckle-client", &["protocol", "schema", "auth"]),
    ("turnbuckle-context", &["protocol", "store", "server"]),
    (
        "turnbuckle-check",
        &["protocol", "schema", "client", "ledger"],
    ),
    ("turnbuckle-gateway", &["protocol", "server", "client"]),
    (
        "turnbuckle",
        &["protocol", "store", "server", "client", "auth", "macros"],
    ),
    (
        "turnbuckle-cli",
        &[
            "protocol", "store", "server", "client", "auth", "context", "check", "gateway",
            "macros",
        ],
    ),
];

/// Crates that bring a runtime, a socket or a clock with them.
const RUNTIMES: &[&str] = &[
    "tokio",
    "hyper",
    "mio",
    "async-std",
    "smol",
    "async-io",
    "socket2",
    "futures-executor",
];

/// Crates that speak OAuth.
const OAUTH: &[&str] = &["turnbuckle-auth", "oauth2", "openidconnect", "jsonwebtoken"];

#[test]
fn no_room_knows_one_above_it() {
    let graph = Graph::of_workspace();
    for package in rooms(&graph) {
        let (_, allowed) = ROOMS
            .iter()
            .find(|(name, _)| *name == package.name)
            .unwrap_or_else(|| {
                panic!(
                    "`{}` has no line in ROOMS: say whom it may know",
                    package.name
                )
            });
        for known in graph.dependencies(package) {
            let ours = known == "turnbuckle" || known.starts_with("turnbuckle-");
            let may = known
                .strip_prefix("turnbuckle-")
                .is_some_and(|room| allowed.contains(&room))
                || (package.name == "turnbuckle-cli" && known == "turnbuckle");
            assert!(!ours || may, "`{}` must not know `{known}`", package.name);
        }
    }
}

#[test]
fn protocol_has_no_runtime() {
    assert_reaches_none("turnbuckle-protocol", RUNTIMES);
}

#[test]
fn store_knows_neither_server_nor_client() {
    assert_reaches_none(
        "turnbuckle-store",
        &["turnbuckle-server", "turnbuckle-client"],
    );
}

#[test]
fn server_knows_no_oauth() {
    assert_reaches_none("turnbuckle-server", OAUTH);
}

#[test]
fn every_package_takes_the_lints_of_the_workspace() {
    for package in Graph::of_workspace().members() {
        let manifest = fs::read_to_string(&package.manifest).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let inherits = manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace")?.as_bool());
        assert_eq!(
            inherits,
            Some(true),
            "`{}`: `[lints] workspace = true` is missing",
            package.name
        );
    }
}

fn assert_reaches_none(name: &str, forbidden: &[&str]) {
    let graph = Graph::of_workspace();
    let package = rooms(&graph)
        .find(|package| package.name == name)
        .expect("the crate is there");
    let reached = graph.reachable(package);
    let found: Vec<_> = forbidden
        .iter()
        .filter(|name| reached.contains(**name))
        .collect();
    assert!(found.is_empty(), "`{name}` must not reach {found:?}");
}

fn rooms(graph: &Graph) -> impl Iterator<Item = &Package> {
    let crates = turnbuckle_house::root().join("crates");
    graph
        .members()
        .filter(move |package| std::path::Path::new(&package.manifest).starts_with(&crates))
}
