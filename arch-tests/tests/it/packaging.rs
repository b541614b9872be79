//! Packages that are published have complete metadata and depend only on versions that can be published; CI runs every step of `./test`.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// The packages that are published. All others have `publish = false`.
const PUBLISHED: &[&str] = &[
    "turnbuckle",
    "turnbuckle-auth",
    "turnbuckle-check",
    "turnbuckle-cli",
    "turnbuckle-client",
    "turnbuckle-context",
    "turnbuckle-gateway",
    "turnbuckle-macros",
    "turnbuckle-protocol",
    "turnbuckle-schema",
    "turnbuckle-server",
    "turnbuckle-spec-coverage",
    "turnbuckle-store",
    "turnbuckle-store-redis",
    "turnbuckle-text",
];

fn members() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(turnbuckle_arch_tests::root())
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    metadata["packages"].as_array().expect("a list").clone()
}

fn is_published(package: &Value) -> bool {
    PUBLISHED.iter().any(|name| package["name"] == *name)
}

#[test]
fn only_listed_packages_are_published() {
    for package in members() {
        // `publish = false` is an empty list of registries.
        let is_private = package["publish"].as_array().is_some_and(Vec::is_empty);
        assert_eq!(is_private, !is_published(&package), "{}", package["name"]);
    }
}

#[test]
fn published_packages_have_complete_metadata() {
    for package in members().iter().filter(|package| is_published(package)) {
        let name = &package["name"];
        for key in [
            "description",
            "license",
            "readme",
            "documentation",
            "rust_version",
        ] {
            let is_set = package[key].as_str().is_some_and(|text| !text.is_empty());
            assert!(is_set, "{name}: `{key}` is missing");
        }
        for (key, most) in [("keywords", 5), ("categories", 5)] {
            let count = package[key].as_array().map_or(0, Vec::len);
            assert!((1..=most).contains(&count), "{name}: {count} {key}");
        }
        let manifest = package["manifest_path"].as_str().expect("a path");
        let folder = Path::new(manifest).parent().expect("a folder");
        for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            assert!(folder.join(file).exists(), "{name}: {file} is missing");
        }
    }
}

#[test]
fn published_packages_depend_on_published_versions() {
    for package in members().iter().filter(|package| is_published(package)) {
        let dependencies = package["dependencies"].as_array().expect("a list");
        // Cargo removes a dev-dependency without a version when it packages.
        let is_needed =
            |dependency: &&Value| dependency["kind"] != "dev" || dependency["req"] != "*";
        for dependency in dependencies.iter().filter(is_needed) {
            let edge = format!("{} -> {}", package["name"], dependency["name"]);
            assert_ne!(dependency["req"], "*", "{edge}: a version is missing");
            let is_ours = !dependency["path"].is_null();
            assert!(
                !is_ours || is_published(dependency),
                "{edge}: not published"
            );
        }
    }
}

/// Packages as for a release, in the order of the dependencies, but does not compile the packages.
#[test]
fn published_packages_contain_every_file_that_they_include() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "package",
        "--no-verify",
        "--offline",
        "--allow-dirty",
        "--quiet",
    ]);
    for name in PUBLISHED {
        cargo.args(["--package", name]);
    }
    let output = cargo
        .arg("--target-dir")
        .arg(&target)
        .current_dir(turnbuckle_arch_tests::root())
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");

    for package in members().iter().filter(|package| is_published(package)) {
        let (name, version) = (&package["name"], &package["version"]);
        let label = [name, version].map(|text| text.as_str().expect("a text"));
        let root = label.join("-");
        let files = archive_files(&target.join(format!("package/{root}.crate")), &root);
        let manifest = package["manifest_path"].as_str().expect("a path");
        let folder = Path::new(manifest).parent().expect("a folder");
        for file in files.iter().filter(|file| is_compiled(file)) {
            let text = fs::read_to_string(folder.join(file)).expect("the file is text");
            for included in included_files(file, &text) {
                let (from, to) = (file.display(), included.display());
                assert!(files.contains(&included), "{name}: {from} includes {to}");
            }
        }
    }
}

/// Returns the paths of the files in the archive of a package.
fn archive_files(archive: &Path, root: &str) -> BTreeSet<PathBuf> {
    let output = Command::new("tar")
        .arg("-tzf")
        .arg(archive)
        .output()
        .expect("tar runs");
    assert!(output.status.success(), "{}", archive.display());
    let listed = String::from_utf8(output.stdout).expect("tar prints UTF-8");
    let inside = |line: &str| Path::new(line).strip_prefix(root).ok().map(Path::to_owned);
    listed.lines().filter_map(inside).collect()
}

/// Returns whether a user of the package compiles the file. `guides.rs` is only for doc tests in the workspace.
fn is_compiled(file: &Path) -> bool {
    let is_rust = file.extension().is_some_and(|extension| extension == "rs");
    is_rust && file.starts_with("src") && file != Path::new("src/guides.rs")
}

/// Returns the files that a source file names with `include_str!` or `#[path]`.
fn included_files(file: &Path, text: &str) -> Vec<PathBuf> {
    let folder = file.parent().expect("a folder");
    let mut included = Vec::new();
    for start in ["include_str!(\"", "include_bytes!(\"", "#[path = \""] {
        for rest in text.split(start).skip(1) {
            let named = rest.split('"').next().unwrap_or_default();
            included.push(without_parents(&folder.join(named)));
        }
    }
    included
}

/// Resolves `..`; a path that leaves the package keeps it.
fn without_parents(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if resolved.file_name().is_some() => {
                resolved.pop();
            }
            part => resolved.push(part),
        }
    }
    resolved
}

#[test]
fn ci_runs_every_step_of_the_test_script() {
    let root = turnbuckle_arch_tests::root();
    let script = fs::read_to_string(root.join("test")).unwrap();
    let workflow = fs::read_to_string(root.join(".github/workflows/ci.yml")).unwrap();
    let steps = script
        .lines()
        .find_map(|line| line.strip_prefix("steps=(")?.strip_suffix(')'))
        .expect("the script lists its steps");
    let run = workflow
        .lines()
        .filter_map(|line| line.trim().strip_prefix("steps: "));

    let steps: BTreeSet<_> = steps.split_whitespace().collect();
    let run: BTreeSet<_> = run.flat_map(str::split_whitespace).collect();

    assert_eq!(run, steps);
}

/// `./test next-revision` runs its tests; this only finds out early that a table has changed.
#[test]
fn the_patch_with_the_next_revision_applies() {
    let root = turnbuckle_arch_tests::root();
    let copy_of_a_repository = !root.join(".git").exists();
    if copy_of_a_repository {
        return;
    }
    let output = Command::new("git")
        .args(["apply", "--check", "spec/next-revision.patch"])
        .current_dir(root)
        .output()
        .expect("git runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "see docs/adding-a-revision.md:\n{errors}"
    );
}
