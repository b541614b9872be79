"""The packages of other projects: their sources, and how a program of ours runs on them.

They are installed from their registries into the build folder, each in a folder of its own; a second run only looks at
the stamps. A package knows how to install itself, and gives the command line of a script that uses it.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
TOOLS = TARGET / "tools" / "interop"


class Npm:
    def __init__(self, *packages, scripts=HERE / "typescript", tools=TOOLS):
        self.packages, self.scripts = packages, scripts
        self.folder = tools / f"npm-{slug(packages[0])}"

    def install(self):
        node = subprocess.check_output(["node", "--version"], text=True).strip()
        if int(re.match(r"v(\d+)", node)[1]) < 22:
            raise OSError(f"Node 22 or newer is needed, and `node` is {node}")
        install_once(self.folder, self.packages, lambda: run(
            "npm", "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", self.folder,
            *self.packages))
        # Node looks for packages in the folder of the importing file.
        for file in self.scripts.glob("*.[cm]js"):
            shutil.copy(file, self.folder)

    def command(self, script, *arguments):
        return ["node", self.folder / script, *arguments]


class Pip:
    def __init__(self, *packages, scripts=HERE / "python", tools=TOOLS):
        self.packages, self.scripts = packages, scripts
        self.folder = tools / f"pip-{slug(packages[0])}"

    def install(self):
        install_once(self.folder, self.packages, lambda: (
            run(sys.executable, "-m", "venv", self.folder),
            run(self.folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                *self.packages)))

    def command(self, script, *arguments):
        return [self.folder / "bin" / "python", "-B", self.scripts / script, *arguments]


class Cargo:
    """A package of ours that uses one of crates.io and has a separate lock file."""

    def __init__(self, folder, profile="dev", target=TARGET):
        self.manifest, self.profile, self.target = HERE / folder / "Cargo.toml", profile, target

    def install(self):
        run("cargo", "build", "--quiet", "--locked", "--profile", self.profile, "--manifest-path", self.manifest,
            "--target-dir", self.target)

    def command(self, binary, *arguments):
        return [self.target / ("debug" if self.profile == "dev" else self.profile) / binary, *arguments]


class Crate:
    """A program of crates.io, with the dependencies that its own lock file names."""

    def __init__(self, name, version, *features, tools=TOOLS):
        self.name, self.version, self.features = name, version, features
        self.folder = tools / f"cargo-{slug(name)}"

    def install(self):
        build = self.folder / "build"
        install_once(self.folder, [self.name, self.version, *self.features], lambda: (
            run("cargo", "install", "--quiet", "--locked", self.name, "--version", f"={self.version}",
                "--features", ",".join(self.features), "--root", self.folder, "--target-dir", build,
                "--config", 'profile.release.lto="thin"', "--config", "profile.release.codegen-units=1"),
            shutil.rmtree(build)))

    def command(self, binary, *arguments):
        return [self.folder / "bin" / binary, *arguments]


class Program:
    """A script or binary of a package, and the first words of its command line."""

    def __init__(self, package, *words):
        self.package, self.words = package, words

    def command(self, *arguments):
        return self.package.command(*self.words, *arguments)


def install(packages):
    """Installs each once; returns those that could not be installed, and why."""
    missing = {}
    for package in dict.fromkeys(packages):
        try:
            package.install()
        except (OSError, subprocess.CalledProcessError) as error:
            missing[package] = str(error)
    return missing


def install_once(folder, packages, action):
    stamp, wanted = folder / "installed", "\n".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing {' '.join(packages)}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    action()
    stamp.write_text(wanted)


def run(*command):
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT)


def slug(name):
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
