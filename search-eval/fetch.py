#!/usr/bin/env python3
"""Fetches the packages that the judged queries are about.

fetch.py [PACKAGE…]     all that have a file in queries/, or those named

Each is unpacked into `eval/<package>-<version>` of the build folder; one that is there already is left alone. They come
from the registries that cargo, npm and pip are configured for.
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
PLACE = TARGET / "eval"


def main(names):
    known = {file.stem: tomllib.loads(file.read_text()) for file in sorted((HERE / "queries").glob("*.toml"))}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"error: no queries for {' or '.join(unknown)}")
    failures = [name for name in names or known if not fetch(known[name])]
    if failures:
        sys.exit(f"error: could not fetch {', '.join(failures)}")


def fetch(queries):
    """Says whether the package is there, with every file that a query wants."""
    name, version = queries["package"], queries["version"]
    folder = PLACE / f"{name}-{version}"
    if not folder.exists():
        print(f"fetching {name} {version} ({queries['registry']})", flush=True)
        try:
            with scratch() as here:
                # A folder that is there is whole: it gets its name when everything is in it.
                REGISTRIES[queries["registry"]](name, version, here).rename(folder)
        except (OSError, subprocess.CalledProcessError, tarfile.TarError) as error:
            print(f"{name} {version}: {error}", file=sys.stderr)
            return False
    wanted = {file["path"] for query in queries["query"] for file in query["relevant"]}
    missing = sorted(path for path in wanted if not (folder / path).is_file())
    for path in missing:
        print(f"{name} {version} has no {path}", file=sys.stderr)
    return not missing


def from_crates(name, version, here):
    """Only cargo knows how to ask its registry, and it asks for what a package depends on."""
    (here / "src").mkdir()
    (here / "src" / "lib.rs").touch()
    (here / "Cargo.toml").write_text(
        f'[package]\nname = "fetch"\nedition = "2024"\n[dependencies]\n{name} = "={version}"\n[workspace]\n')
    run("cargo", "vendor", "--quiet", "--versioned-dirs", "vendor", cwd=here)
    return here / "vendor" / f"{name}-{version}"


def from_pypi(name, version, here):
    """The source distribution, since that has the tests and the manual as a repository does."""
    python = PLACE / "python" / "bin" / "python"
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
    """Such an archive has one folder, and everything is in that."""
    archive, = [*here.glob("*.tar.gz"), *here.glob("*.tgz")]
    inside = here / "unpacked"
    with tarfile.open(archive) as tar:
        tar.extractall(inside, filter="data")
    folder, = inside.iterdir()
    return folder


@contextlib.contextmanager
def scratch():
    PLACE.mkdir(parents=True, exist_ok=True)
    here = pathlib.Path(tempfile.mkdtemp(prefix="fetch-", dir=PLACE))
    try:
        yield here
    finally:
        shutil.rmtree(here, ignore_errors=True)


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, **options)


if __name__ == "__main__":
    main(sys.argv[1:])
