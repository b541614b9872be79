#!/usr/bin/env python3
"""Converts the benchmark of semble to queries for `turnbuckle-search-eval others`.

semble.py SEMBLE CLONES FOLDER

SEMBLE is a checkout of github.com/MinishLab/semble, CLONES contains a clone (bare or not) per repository of its
`benchmarks/repos.json`, under the name given there. For each clone that contains the pinned commit, writes to FOLDER the
part of that commit that semble indexes, and a file of queries. Prints what is omitted.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# semble does not have grades: its `relevant` and `secondary` files count the same.
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
            print(f"{name}: no clone with {revision}, {len(annotations)} queries omitted")
            without += len(annotations)
            continue
        root = repository.get("benchmark_root") or ""
        target_folder = folder / f"{name}-{revision[:12]}"
        if not target_folder.exists():
            check_out(clone, f"{revision}:{root}", target_folder)
        entries = [entry for annotation in annotations if (entry := query(annotation, name, root, target_folder))]
        (folder / f"{name}.toml").write_text("\n".join([head(name, revision), *entries]))
        kept += len(entries)
        dropped += len(annotations) - len(entries)
    print(f"{kept} queries, {dropped} dropped, {without} about repositories without their commit")


def git_folder(clone):
    hidden = clone / ".git"
    return hidden if hidden.exists() else clone


def has(clone, revision):
    return git(clone, "cat-file", "-e", f"{revision}^{{commit}}", check=False).returncode == 0


def check_out(clone, tree, target_folder):
    """Writes a tree unchanged: `git archive` would omit files with `export-ignore`."""
    with tempfile.TemporaryDirectory(prefix=".semble-", dir=target_folder.parent) as scratch:
        whole = pathlib.Path(scratch) / "tree"
        whole.mkdir()
        environment = os.environ | {"GIT_INDEX_FILE": f"{scratch}/index"}
        git(clone, "read-tree", tree, env=environment)
        git(clone, f"--work-tree={whole}", "checkout-index", "--all", env=environment, cwd=whole)
        # Renamed when complete, so an existing folder is always complete.
        shutil.move(whole, target_folder)


def git(clone, *words, check=True, **options):
    return subprocess.run(["git", f"--git-dir={clone.resolve()}", *words], check=check, capture_output=not check, **options)


def query(annotation, name, root, target_folder):
    """Returns one query, or None if an expected file does not exist."""
    targets = annotation["relevant"] + annotation.get("secondary", [])
    targets = [target if isinstance(target, str) else target["path"] for target in targets]
    paths = {target: inside(target, root, target_folder) for target in targets}
    if missing := [target for target, path in paths.items() if path is None]:
        print(f"{name}: dropped, {' and '.join(missing)} not in {root or 'it'}: {annotation['query']}")
        return None
    category = annotation["category"]
    kind = "symbol" if category == "symbol" else "natural"
    # Two locations in one file count once.
    lines = [f"  {{ path = {quoted(path)}, grade = {GRADE} }}," for path in dict.fromkeys(paths.values())]
    return "\n".join([
        "[[query]]", f"text = {quoted(annotation['query'])}", f"kind = {quoted(kind)}",
        f"category = {quoted(category)}", "relevant = [", *lines, "]", ""])


def inside(target, root, target_folder):
    """Returns the path relative to the indexed part: most paths start at the repository, some at that part."""
    for path in (target.removeprefix(f"{root}/"), target):
        if (target_folder / path).is_file():
            return path
    return None


def head(name, revision):
    return f"""\
package = {quoted(name)}
registry = "git"
version = {quoted(revision[:12])}
tuned = false
style = "plain"
"""


def quoted(text):
    """Returns a TOML basic string, which has the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
