//! The build cost of a server: the number of packages, and the CPU time of a clean build.
//!
//! Ours is `bench/hello`; a Rust peer is its package in `bench/peers`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use turnbuckle_bench::{Failure, cores::Cores, process::children_cpu_time};

use crate::programs::compare::{
    figure::{Figure, Goal, Metric, Sample},
    peer::{Peer, Role},
};

/// Returns the figures that are quick to measure.
pub(crate) fn figures() -> Vec<Box<dyn Figure>> {
    vec![Box::new(Packages)]
}

/// Returns the figures that take minutes for each peer.
pub(crate) fn builds() -> Vec<Box<dyn Figure>> {
    vec![Box::new(Build)]
}

/// The number of packages that are compiled for a server.
struct Packages;

impl Figure for Packages {
    fn group(&self) -> &'static str {
        "weight"
    }

    fn case(&self) -> String {
        "packages that a server is made of".to_owned()
    }

    fn goal(&self) -> Option<Goal> {
        Some(Goal::at_most(Metric::Crates, 80.0))
    }

    fn rounds(&self) -> usize {
        1
    }

    fn round(&self, peer: &Peer, _: Cores) -> Result<Option<Sample>, Failure> {
        let Some(manifest) = manifest(peer) else {
            return Ok(None);
        };
        let mut command = Command::new("cargo");
        command
            .args(["tree", "--locked", "--edges", "normal,build"])
            .args(["--prefix", "none", "--no-dedupe", "--manifest-path"])
            .arg(manifest);
        let output = command.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("cargo tree: {}", output.status).into());
        }
        let packages = packages(&String::from_utf8(output.stdout)?);
        Ok(Some(vec![(Metric::Crates, packages as f64)]))
    }
}

/// A clean release build.
struct Build;

impl Figure for Build {
    fn group(&self) -> &'static str {
        "weight"
    }

    fn case(&self) -> String {
        "clean release build".to_owned()
    }

    fn rounds(&self) -> usize {
        1
    }

    fn round(&self, peer: &Peer, places: Cores) -> Result<Option<Sample>, Failure> {
        let Some(manifest) = manifest(peer) else {
            return Ok(None);
        };
        cargo(&["fetch", "--locked"], &manifest, None)?;
        let target = bench().join("../target/bench-weight");
        clear(&target)?;
        let (cpu, began) = (children_cpu_time()?, Instant::now());
        places.on_both_cores(|| {
            let build = ["build", "--release", "--locked", "--offline", "--quiet"];
            cargo(&build, &manifest, Some(&target))
        })?;
        let (cpu, seconds) = (children_cpu_time()? - cpu, began.elapsed());
        clear(&target)?;
        Ok(Some(vec![
            (Metric::CpuSeconds, cpu.as_secs_f64()),
            (Metric::Seconds, seconds.as_secs_f64()),
        ]))
    }
}

/// Returns the cargo package of a server, if it has one.
fn manifest(peer: &Peer) -> Option<PathBuf> {
    let manifest = match peer.role {
        Role::Limit => return None,
        Role::Ours => bench().join("hello/Cargo.toml"),
        Role::Peer => bench().join("peers").join(&peer.name).join("Cargo.toml"),
    };
    manifest.is_file().then_some(manifest)
}

fn bench() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Counts the packages of a tree that lists each as often as it is needed.
fn packages(tree: &str) -> usize {
    let lines = tree.lines().filter(|line| !line.is_empty());
    let names = lines.map(|line| line.trim_end_matches(" (*)"));
    names.collect::<BTreeSet<_>>().len()
}

fn cargo(words: &[&str], manifest: &Path, target: Option<&Path>) -> Result<(), Failure> {
    let mut command = Command::new("cargo");
    command.args(words).arg("--manifest-path").arg(manifest);
    if let Some(target) = target {
        command.arg("--target-dir").arg(target);
    }
    // The default profile of cargo, whichever profile the others are measured with.
    command
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_LTO", "false");
    match command.stdout(Stdio::null()).status()? {
        status if status.success() => Ok(()),
        status => Err(format!("{command:?}: {status}").into()),
    }
}

fn clear(folder: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_counts_once_and_each_of_its_versions() {
        let tree = "hello v0.0.0 (/x)\nsyn v2.0.1\nsyn v3.0.1\nsyn v2.0.1 (*)\n\nserde_derive v1.0.1 (proc-macro)\n";

        assert_eq!(packages(tree), 4);
    }
}
