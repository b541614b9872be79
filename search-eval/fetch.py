#!/usr/bin/env python3
"""Fetches the packages that the judged queries are about.

fetch.py [PACKAGE…]     all packages with a file in queries/, or those named

Unpacks each into `eval/<package>-<version>` of the build folder, unless it exists. Uses the registries that cargo, npm and pip
are configured for.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")).resolve()
PACKAGES = TARGET / "eval"


def main(names):
    known = {file.stem: tomllib.loads(file.read_text()) for file in sorted((HERE / "queries").glob("*.toml"))}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"error: no queries for {' or '.join(unknown)}")
    failures = [name for name in names or known if not fetch(known[name])]
    if failures:
        sys.exit(f"error: could not fetch {', '.join(failures)}")


def fetch(queries):
    """Returns whether the package exists with every file that a query expects."""
    name, version = queries["package"], queries["version"]
    folder = PACKAGES / f"{name}-{version}"
    if not folder.exists():
        print(f"fetching {name} {version} ({queries['registry']})", flush=True)
        try:
            with scratch() as here:
                # Renamed when complete, so an existing folder is always complete.
                REGISTRIES[queries["registry"]](name, version, here).rename(folder)
        except (OSError, subprocess.CalledProcessError, tarfile.TarError) as error:
            print(f"{name} {version}: {error}", file=sys.stderr)
            return False
    wanted = {file["path"] for query in queries["query"] for file in query["relevant"]}
    missing = sorted(path for path in wanted if not (folder / path).is_file())
    for path in missing:
        print(f"{name} {version} lacks {path}", file=sys.stderr)
    return not missing


def from_crates(name, version, here):
    """Uses cargo, which supports every registry protocol but also fetches the dependencies."""
    (here / "src").mkdir()
    (here / "src" / "lib.rs").touch()
    (here / "Cargo.toml").write_text(
        f'[package]\nname = "fetch"\nedition = "2024"\n[dependencies]\n{name} = "={version}"\n[workspace]\n')
    run("cargo", "vendor", "--quiet", "--versioned-dirs", "vendor", cwd=here)
    return here / "vendor" / f"{name}-{version}"


def from_pypi(name, version, here):
    """Fetches the source distribution, which contains tests and manual like a repository."""
    python = PACKAGES / "python" / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", python.parent.parent)
    run(python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--no-binary", name, "--dest", here, f"{name}=={version}")
    return unpack(here)


def from_npm(name, version, here):
    run("npm", "pack", "--loglevel=error", "--pack-destination", here, f"{name}@{version}", stdout=subprocess.DEVNULL)
    return unpack(here)


REGISTRIES = {"crates": from_crates, "pypi": from_pypi, "npm": from_npm}


def unpack(here):
    """Unpacks an archive with a single top-level folder."""
    archive, = [*here.glob("*.tar.gz"), *here.glob("*.tgz")]
    inside = here / "unpacked"
    with tarfile.open(archive) as tar:
        tar.extractall(inside, filter="data")
    folder, = inside.iterdir()
    return folder


@contextlib.contextmanager
def scratch():
    PACKAGES.mkdir(parents=True, exist_ok=True)
    here = pathlib.Path(tempfile.mkdtemp(prefix="fetch-", dir=PACKAGES))
    try:
        yield here
    finally:
        shutil.rmtree(here, ignore_errors=True)


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, **options)


if __name__ == "__main__":
    main(sys.argv[1:])
