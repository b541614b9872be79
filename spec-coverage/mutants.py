#!/usr/bin/env python3
"""Breaks the code behind claimed requirements, one edit at a time, and demands that a claiming test fails.

mutants.py CLAIMS BUILD [--all | --only TEXT]
mutants.py CLAIMS BUILD --patch FILE BINARY=TEXT…

CLAIMS is the folder that `TURNBUCKLE_CLAIMS` named in the last run of the unit tests, BUILD the build folder. The edits are the
entries of spec/mutants.toml. Each is applied to a copy of the tracked files in BUILD/mutants, which has a build folder of its own.
Then the tests that claim the row run: those of the edited package, or of every package if it has none. At least one
must fail. An edit is an error if its text does not occur exactly once, if it does not compile, or if no test claims its row.

By default a sample runs: it starts at an entry chosen by the commit hash, and ends when the budget of TURNBUCKLE_MUTANT_SECONDS
(240 by default) is used up. --all runs every entry; --only those with TEXT in their row or file.

--patch applies a patch to the copy instead. The whole workspace must compile, and the tests of each BINARY with TEXT in
their name must pass.
Prints a line per entry and last the figure. Exits 0 if every entry that ran was caught, 1 otherwise, 2 if nothing could run.
"""
import collections, os, pathlib, shutil, subprocess, sys, time, tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    claims, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    options = sys.argv[3:]
    if options[:1] == ["--patch"]:
        return MutantBuild(build).run_patched(*options[1:])
    mutants = tomllib.loads((ROOT / "spec/mutants.toml").read_text())["mutant"]
    tests = read_claims(claims)
    if not tests:
        return fail(f"no claims in {claims}: run the unit tests first")
    errors = [text for mutant in mutants for text in entry_errors(mutant, tests)]
    for text in errors:
        print(f"ERROR    {text}")
    chosen, budget = choose(mutants, options)
    mutant_build = MutantBuild(build)
    counts, started = collections.Counter(error=len(errors)), time.monotonic()
    for mutant in chosen:
        if counts["run"] and time.monotonic() - started > budget:
            break
        if entry_errors(mutant, tests):
            continue
        counts["run"] += 1
        outcome, detail = mutant_build.run(mutant, tests[mutant["row"]])
        counts[outcome] += 1
        print(f"{outcome:8} {mutant['row']}  {mutant['file']}{detail}", flush=True)
    print(f"mutants: {counts['caught']} of {counts['run']} caught, {counts['survived']} survived, "
          f"{counts['error']} errors, {len(mutants)} in all")
    return 0 if counts["run"] and counts["caught"] == counts["run"] and not counts["error"] else 1


def fail(text):
    print(f"error: {text}", file=sys.stderr)
    return 2


def read_claims(folder):
    """Returns the tests of each row, each as (binary, test)."""
    tests = collections.defaultdict(set)
    for file in folder.glob("*.tsv"):
        for line in file.read_text().splitlines():
            row, binary, test = line.split("\t")[:3]
            if not row.startswith("@"):
                tests[row].add((binary, test))
    return tests


def entry_errors(mutant, tests):
    """Returns the errors of an entry that are visible without running it."""
    name = f"{mutant['row']}  {mutant['file']}"
    file = ROOT / mutant["file"]
    if not file.is_file():
        return [f"{name}: the file does not exist"]
    count = file.read_text().count(mutant["find"])
    if count != 1:
        return [f"{name}: `find` occurs {count} times: {mutant['find']!r}"]
    if mutant["row"] not in tests:
        return [f"{name}: no test claims the row"]
    return []


def choose(mutants, options):
    """Returns the entries to run, in order, and the time budget in seconds."""
    if options[:1] == ["--only"]:
        return [it for it in mutants if options[1] in it["row"] or options[1] in it["file"]], float("inf")
    if options == ["--all"]:
        return mutants, float("inf")
    commit = git("rev-parse", "HEAD").strip()
    start = int(commit[:8] or "0", 16) % len(mutants)
    return mutants[start:] + mutants[:start], float(os.environ.get("TURNBUCKLE_MUTANT_SECONDS", 240))


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True).stdout


class MutantBuild:
    """A copy of the tracked files, with a build folder that only mutants use."""

    def __init__(self, build):
        self.tree, self.target = build / "mutants/tree", build / "mutants/target"
        self.environment = {**os.environ, "CARGO_TARGET_DIR": str(self.target), "CARGO_INCREMENTAL": "1"}
        self.environment.pop("TURNBUCKLE_CLAIMS", None)
        if not self.target.exists():
            seed(build / "debug", self.target / "debug")
        self.copy_tree()
        self.started = time.monotonic()

    def copy_tree(self):
        """Copies changed files only, so that only they are rebuilt, and removes deleted ones."""
        tracked = [name for name in git("ls-files", "-z").split("\0") if name and (ROOT / name).is_file()]
        for name in tracked:
            source, copy = ROOT / name, self.tree / name
            if not copy.is_file() or copy.read_bytes() != source.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)
        for copy in [path for path in self.tree.rglob("*") if path.is_file()]:
            if str(copy.relative_to(self.tree)) not in set(tracked):
                copy.unlink()

    def run(self, mutant, tests):
        """Applies an edit, runs the tests, and reverts the edit."""
        file = self.tree / mutant["file"]
        original = file.read_text()
        file.write_text(original.replace(mutant["find"], mutant["replace"]))
        try:
            for binary, names in by_binary(mutant, tests):
                built = self.nextest(binary, ["--no-run"])
                if built.returncode:
                    return "error", f": does not build\n{built.stderr[-2000:]}"
                chosen = " + ".join(f"test(={name})" for name in names)
                ran = self.nextest(binary, ["-E", chosen])
                if ran.returncode == 100:
                    return "caught", f"  ({failed_test(ran.stderr)})"
                if ran.returncode:
                    return "error", f": the tests do not run\n{ran.stderr[-2000:]}"
            return "survived", f"  {mutant['find']!r} -> {mutant['replace']!r}"
        finally:
            file.write_text(original)

    def run_patched(self, patch, *tests):
        """Applies a patch, checks the workspace and runs tests that must pass; the next `copy_tree` reverts it."""
        # Outside of the repository, so that the paths of the patch are relative to the copy.
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.tree.parent)}
        subprocess.run(["git", "apply", str(ROOT / patch)], cwd=self.tree, env=environment, check=True)
        # The packages and features of `clippy`, so that the third-party crates it checked are in the seed.
        command = ["cargo", "check", "--workspace", "--all-targets", "--all-features"]
        failed = self.report(self.cargo(command), "cargo check")
        for binary, text in (test.split("=") for test in tests):
            failed |= self.report(self.nextest(binary, ["-E", f"test({text})"]), f"{binary} {text}")
        return failed

    def report(self, ran, name):
        """Prints the end of the output and the time of a command; returns whether it failed."""
        seconds = time.monotonic() - self.started
        self.started = time.monotonic()
        print(ran.stderr[-8000:] if ran.returncode else f"{name}: ok, {seconds:.0f} s", flush=True)
        return ran.returncode != 0

    def nextest(self, binary, options):
        package, _, kind = binary.partition("::")
        selected = ["--test", kind] if kind else ["--lib"]
        return self.cargo(["cargo", "nextest", "run", "-p", package, *selected, "--all-features", *options])

    def cargo(self, command):
        return subprocess.run(command, cwd=self.tree, env=self.environment, text=True, capture_output=True)


def by_binary(mutant, tests):
    """Returns the tests to run by binary, preferring the edited package."""
    package = pathlib.Path(mutant["file"]).parts[1]
    own = [it for it in tests if it[0].split("::")[0] == package]
    names = collections.defaultdict(list)
    for binary, test in sorted(own or tests):
        names[binary].append(test)
    return names.items()


def failed_test(output):
    lines = [line for line in output.splitlines() if " FAIL " in line or "TIMEOUT" in line]
    return lines[0].split()[-1] if lines else "failed"


def seed(source, copy):
    """Copies the built third-party crates, so that they are not built again."""
    if not source.exists():
        return
    third_party = lambda name: "turnbuckle" not in name
    for folder in (".fingerprint", "build"):
        for entry in (source / folder).glob("*"):
            if third_party(entry.name):
                shutil.copytree(entry, copy / folder / entry.name, dirs_exist_ok=True)
    (copy / "deps").mkdir(parents=True, exist_ok=True)
    for entry in (source / "deps").glob("*"):
        if third_party(entry.name) and entry.suffix in (".d", ".rlib", ".rmeta", ".so"):
            shutil.copy2(entry, copy / "deps" / entry.name)


if __name__ == "__main__":
    sys.exit(main())
