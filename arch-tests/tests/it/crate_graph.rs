//! The allowed dependencies between our crates. Dev-dependencies are not restricted.

use std::{collections::BTreeSet, fs, process::Command};

use turnbuckle_arch_tests::graph::{Package, PackageGraph};

/// The crates under `crates/`, each with those of ours that it may depend on. A new crate needs its line.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("turnbuckle-text", &[]),
    ("turnbuckle-protocol", &["text"]),
    ("turnbuckle-macros", &[]),
    ("turnbuckle-schema", &[]),
    ("turnbuckle-auth", &["protocol", "text"]),
    ("turnbuckle-store", &["protocol"]),
    ("turnbuckle-store-redis", &["protocol", "store"]),
    (
        "turnbuckle-server",
        &["protocol", "schema", "store", "text"],
    ),
    ("turnbuckle-client", &["protocol", "schema", "auth", "text"]),
    (
        "turnbuckle-context",
        &["protocol", "schema", "store", "server", "text"],
    ),
    (
        "turnbuckle-gateway",
        &["protocol", "server", "client", "text"],
    ),
    (
        "turnbuckle-check",
        &["protocol", "schema", "client", "spec-coverage", "text"],
    ),
    (
        "turnbuckle",
        &[
            "protocol",
            "store",
            "store-redis",
            "server",
            "client",
            "auth",
            "gateway",
            "macros",
        ],
    ),
    (
        "turnbuckle-cli",
        &[
            "protocol",
            "store",
            "store-redis",
            "server",
            "client",
            "auth",
            "context",
            "check",
            "gateway",
            "macros",
            "text",
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

/// Crates that implement OAuth.
const OAUTH: &[&str] = &["turnbuckle-auth", "oauth2", "openidconnect", "jsonwebtoken"];

#[test]
fn crates_depend_only_on_allowed_crates() {
    let graph = PackageGraph::from_workspace();
    for package in library_crates(&graph) {
        let (_, allowed) = ALLOWED_DEPENDENCIES
            .iter()
            .find(|(name, _)| *name == package.name)
            .unwrap_or_else(|| panic!("`{}` needs a line in ALLOWED_DEPENDENCIES", package.name));
        for dependency in graph.dependencies(package) {
            let ours = dependency == "turnbuckle" || dependency.starts_with("turnbuckle-");
            let is_allowed = dependency
                .strip_prefix("turnbuckle-")
                .is_some_and(|name| allowed.contains(&name))
                || (package.name == "turnbuckle-cli" && dependency == "turnbuckle");
            assert!(
                !ours || is_allowed,
                "`{}` must not depend on `{dependency}`",
                package.name
            );
        }
    }
}

#[test]
fn every_listed_crate_exists() {
    let graph = PackageGraph::from_workspace();
    let exists = |name: &str| graph.members().any(|package| package.name == name);
    for (name, allowed) in ALLOWED_DEPENDENCIES {
        assert!(exists(name), "`{name}` does not exist");
        for dependency in *allowed {
            let dependency = format!("turnbuckle-{dependency}");
            assert!(exists(&dependency), "`{dependency}` does not exist");
        }
    }
}

#[test]
fn protocol_has_no_runtime() {
    assert_reaches_none("turnbuckle-protocol", RUNTIMES);
}

#[test]
fn store_depends_on_neither_server_nor_client() {
    assert_reaches_none(
        "turnbuckle-store",
        &["turnbuckle-server", "turnbuckle-client"],
    );
}

#[test]
fn server_does_not_depend_on_oauth() {
    assert_reaches_none("turnbuckle-server", OAUTH);
}

#[test]
fn every_package_inherits_the_workspace_lints() {
    for package in PackageGraph::from_workspace().members() {
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

#[test]
fn a_first_server_builds_at_most_80_packages() {
    let packages = packages_of("turnbuckle-examples", &[]);
    assert!(packages.len() <= 80, "{}: {packages:?}", packages.len());
    for package in ["axum", "turnbuckle-auth", "turnbuckle-client", "jsonschema"] {
        assert!(!has(&packages, package), "`hello` builds `{package}`");
    }
}

/// Cargo unifies the features of the packages that it selects, also if only one of them is built: `cargo run --example hello`
/// in the root selects the examples and the command line with its tests, so the server of the example has skills.
/// `cargo example hello` selects only the examples.
#[test]
fn a_first_server_by_plain_cargo_run_builds_at_most_91_packages() {
    let packages = packages_of_default_member("turnbuckle-examples");
    assert!(packages.len() <= 91, "{}: {packages:?}", packages.len());
    for package in [
        "axum",
        "turnbuckle-auth",
        "turnbuckle-client",
        "turnbuckle-schema",
        "jsonschema",
        "rusqlite",
    ] {
        assert!(!has(&packages, package), "`hello` builds `{package}`");
    }
}

#[test]
fn a_command_line_without_check_and_serve_builds_only_the_client() {
    let packages = packages_of("turnbuckle-cli", &["tls"]);
    assert!(has(&packages, "turnbuckle-client"), "{packages:?}");
    for package in ["turnbuckle-check", "turnbuckle-server", "rusqlite"] {
        assert!(!has(&packages, package), "it builds `{package}`");
    }
}

/// A package and its version.
type PackageVersion = (String, String);

/// Returns the packages that cargo builds for one package of the workspace, with these features only.
fn packages_of(package: &str, features: &[&str]) -> BTreeSet<PackageVersion> {
    let features = features.join(",");
    let lines = cargo_tree(&[
        "--edges",
        "normal,build",
        "--package",
        package,
        "--no-default-features",
        "--features",
        &features,
        "--prefix",
        "none",
    ]);
    lines.lines().filter_map(package_version).collect()
}

/// Returns the packages that cargo builds for an example of a default member, if it selects all of them. Examples get the
/// features of dev-dependencies, too.
fn packages_of_default_member(member: &str) -> BTreeSet<PackageVersion> {
    let edges = "normal,build,dev";
    let lines = cargo_tree(&["--edges", edges, "--no-dedupe", "--prefix", "depth"]);
    // A line is the depth and the package, without a space between them.
    let depth_and_name = |line: &str| {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (depth, name) = line.split_at(digits);
        (depth.to_owned(), name.to_owned())
    };
    let mut is_in_member = false;
    let lines = lines.lines().map(depth_and_name).filter(|(depth, name)| {
        if depth == "0" {
            is_in_member = name.starts_with(&format!("{member} "));
        }
        is_in_member
    });
    lines
        .filter_map(|(_, name)| package_version(&name))
        .collect()
}

/// Returns the output of `cargo tree` in the root of the workspace.
fn cargo_tree(options: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--format", "{p}"])
        .args(options)
        .current_dir(turnbuckle_arch_tests::root())
        .output()
        .expect("cargo runs");
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

fn package_version(line: &str) -> Option<PackageVersion> {
    let mut words = line.split(' ');
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

fn has(packages: &BTreeSet<PackageVersion>, name: &str) -> bool {
    packages.iter().any(|(package, _)| package == name)
}

fn assert_reaches_none(name: &str, forbidden: &[&str]) {
    let graph = PackageGraph::from_workspace();
    let package = library_crates(&graph)
        .find(|package| package.name == name)
        .expect("the crate exists");
    let reached = graph.reachable(package);
    let violations: Vec<_> = forbidden
        .iter()
        .filter(|name| reached.contains(**name))
        .collect();
    assert!(
        violations.is_empty(),
        "`{name}` must not depend on {violations:?}"
    );
}

fn library_crates(graph: &PackageGraph) -> impl Iterator<Item = &Package> {
    let crates = turnbuckle_arch_tests::root().join("crates");
    graph
        .members()
        .filter(move |package| std::path::Path::new(&package.manifest).starts_with(&crates))
}
