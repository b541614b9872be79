//! Packages and their dependencies, as cargo resolves them with all features.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Command, Stdio},
};

use serde_json::Value;

/// Every package of the build.
#[derive(Debug)]
pub struct PackageGraph {
    packages: BTreeMap<String, Package>,
}

/// One package in one version.
#[derive(Debug)]
#[non_exhaustive]
pub struct Package {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The license expression; empty without one.
    pub license: String,
    /// The registry or repository; `None` for a member of this workspace.
    pub source: Option<String>,
    /// The path of its manifest.
    pub manifest: String,
    normal: Vec<String>,
}

impl PackageGraph {
    /// Runs `cargo metadata` for this workspace.
    ///
    /// # Panics
    ///
    /// If cargo cannot be run or prints unexpected JSON.
    pub fn from_workspace() -> Self {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--all-features"])
            .current_dir(crate::root())
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "cargo metadata: {}", output.status);
        Self::read(&serde_json::from_slice(&output.stdout).expect("cargo prints JSON"))
    }

    fn read(metadata: &Value) -> Self {
        let normal: BTreeMap<_, _> = list(&metadata["resolve"]["nodes"])
            .iter()
            .map(|node| (text(&node["id"]), normal_dependencies(node)))
            .collect();
        let package = |value: &Value| {
            let id = text(&value["id"]);
            let package = Package {
                name: text(&value["name"]),
                version: text(&value["version"]),
                license: value["license"].as_str().unwrap_or_default().to_owned(),
                source: value["source"].as_str().map(str::to_owned),
                manifest: text(&value["manifest_path"]),
                normal: normal.get(&id).cloned().unwrap_or_default(),
            };
            (id, package)
        };
        Self {
            packages: list(&metadata["packages"]).iter().map(package).collect(),
        }
    }

    /// Returns every package, including the workspace members.
    pub fn packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.values()
    }

    /// Returns the packages of this workspace.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages().filter(|package| package.source.is_none())
    }

    /// Returns the names of the direct dependencies, without dev-dependencies and build-dependencies.
    pub fn dependencies(&self, package: &Package) -> BTreeSet<&str> {
        package
            .normal
            .iter()
            .map(|id| &*self.packages[id].name)
            .collect()
    }

    /// Returns the names of the direct and indirect dependencies.
    pub fn reachable(&self, package: &Package) -> BTreeSet<&str> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&String> = package.normal.iter().collect();
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                open.extend(&self.packages[id].normal);
            }
        }
        seen.into_iter()
            .map(|id| &*self.packages[id].name)
            .collect()
    }
}

fn normal_dependencies(node: &Value) -> Vec<String> {
    let is_normal = |dependency: &&Value| {
        list(&dependency["dep_kinds"])
            .iter()
            .any(|kind| kind["kind"].is_null())
    };
    list(&node["deps"])
        .iter()
        .filter(is_normal)
        .map(|dependency| text(&dependency["pkg"]))
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("cargo metadata has a list here")
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .expect("cargo metadata has a string here")
        .to_owned()
}
