#!/usr/bin/env python3
"""Turns the benchmark of semble into queries as `turnbuckle-search-eval others` reads them.

semble.py SEMBLE CLONES FOLDER

SEMBLE is a checkout of github.com/MinishLab/semble, CLONES has a clone (bare or not) per repository of its
`benchmarks/repos.json`, under the name given there. FOLDER gets, for each whose pinned commit is in its clone, the
part of that commit that semble indexes, and a file of queries. What is left out is said.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# semble tells no grades apart: what it calls relevant and what it calls secondary count the same.
GRADE = 3


def main(semble, clones, folder):
    benchmarks = pathlib.Path(semble) / "benchmarks"
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    kept = dropped = without = 0
    for repository in json.loads((benchmarks / "repos.json").read_text()):
        name, revision = repository["name"], repository["revision"]
        annotations = json.loads((benchmarks / "annotations" / f"{name}.json").read_text())
        clone = git_folder(pathlib.Path(clones) / name)
        if not has(clone, revision):
            print(f"{name}: no clone with {revision}, {len(annotations)} queries left out")
            without += len(annotations)
            continue
        root = repository.get("benchmark_root") or ""
        place = folder / f"{name}-{revision[:12]}"
        if not place.exists():
            check_out(clone, f"{revision}:{root}", place)
        entries = [entry for annotation in annotations if (entry := query(annotation, name, root, place))]
        (folder / f"{name}.toml").write_text("\n".join([head(name, revision), *entries]))
        kept += len(entries)
        dropped += len(annotations) - len(entries)
    print(f"{kept} queries, {dropped} dropped, {without} about repositories without their commit")


def git_folder(clone):
    hidden = clone / ".git"
    return hidden if hidden.exists() else clone


def has(clone, revision):
    return git(clone, "cat-file", "-e", f"{revision}^{{commit}}", check=False).returncode == 0


def check_out(clone, tree, place):
    """Writes a tree as it is: `git archive` would leave out what `export-ignore` says."""
    with tempfile.TemporaryDirectory(prefix=".semble-", dir=place.parent) as scratch:
        whole = pathlib.Path(scratch) / "tree"
        whole.mkdir()
        environment = os.environ | {"GIT_INDEX_FILE": f"{scratch}/index"}
        git(clone, "read-tree", tree, env=environment)
        git(clone, f"--work-tree={whole}", "checkout-index", "--all", env=environment, cwd=whole)
        # A folder that is there is whole: it gets its name when everything is in it.
        shutil.move(whole, place)


def git(clone, *words, check=True, **options):
    return subprocess.run(["git", f"--git-dir={clone.resolve()}", *words], check=check, capture_output=not check, **options)


def query(annotation, name, root, place):
    """One query; nothing if it wants a file that is not there."""
    targets = annotation["relevant"] + annotation.get("secondary", [])
    targets = [target if isinstance(target, str) else target["path"] for target in targets]
    paths = {target: inside(target, root, place) for target in targets}
    if missing := [target for target, path in paths.items() if path is None]:
        print(f"{name}: dropped, {' and '.join(missing)} not in {root or 'it'}: {annotation['query']}")
        return None
    category = annotation["category"]
    kind = "symbol" if category == "symbol" else "natural"
    # Two places in one file are one file.
    lines = [f"  {{ path = {quoted(path)}, grade = {GRADE} }}," for path in dict.fromkeys(paths.values())]
    return "\n".join([
        "[[query]]", f"text = {quoted(annotation['query'])}", f"kind = {quoted(kind)}",
        f"category = {quoted(category)}", "relevant = [", *lines, "]", ""])


def inside(target, root, place):
    """Most paths begin at the repository, some at the part that is indexed."""
    for path in (target.removeprefix(f"{root}/"), target):
        if (place / path).is_file():
            return path
    return None


def head(name, revision):
    return f"""\
package = {quoted(name)}
registry = "git"
version = {quoted(revision[:12])}
tuned = false
asked = "plainly"
"""


def quoted(text):
    """A basic string of TOML has the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
