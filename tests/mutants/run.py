"""Break labs, exercises and kernels in the ways their mutants files list; their tests must notice.

Run it: `make mutants`, `make mutants STEM=roofline`, or `python -m tests.mutants.run` with names
such as snippets/roofline; a folder or a stem stands for all of it, that of a lesson for its labs
and exercises too. Ends with exit status 1 if a mutant survived or could not be tried. Works on a
copy of the tree, so that an interruption leaves nothing broken behind.
"""

import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

from sitebuild.parts import parts

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("snippets", "kernels", "sitebuild", "docs", "tests", "requirements")
LINE = "{:34} {:>7} {:>7} {:>9} {:>8}"


class Outcome(NamedTuple):
    """What became of the mutants of one file."""

    name: str
    killed: int
    survivors: list[str]
    seconds: float
    fault: str = ""  # why nothing was tried

    def line(self) -> str:
        if self.fault:
            return f"{self.name:34} {self.fault}"
        counts = self.killed + len(self.survivors), self.killed, len(self.survivors)
        return LINE.format(self.name, *counts, f"{self.seconds:.0f}")


def all_pass(tree: Path, name: str, time_limit_s: float | None = None) -> bool:
    """Run the tests of `<folder>/<stem>` in `tree`, whose modules come first on the path.

    A mutant that runs on for ever is noticed too: past the time limit the tests do not pass.
    """
    folder, stem = name.split("/")
    command = [sys.executable, "-m", "pytest", "-q", "-x", f"tests/{folder}/test_{stem}.py"]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, timeout=time_limit_s)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def try_all(tree: Path, name: str, mutants: list[dict[str, str]]) -> Outcome:
    """Try the mutants of one file, each alone."""
    began = time.monotonic()
    if not all_pass(tree, name):
        return Outcome(name, 0, [], 0.0, "its tests fail before anything is broken")
    time_limit_s = 60 + 10 * (time.monotonic() - began)
    survivors = []
    for mutant in mutants:
        path = tree / mutant["file"]
        original = path.read_text("utf-8")
        if original.count(mutant["old"]) != 1:
            return Outcome(
                name, 0, [], 0.0, f"not exactly once in {mutant['file']}: {mutant['old']}"
            )
        path.write_text(original.replace(mutant["old"], mutant["new"]), "utf-8")
        if all_pass(tree, name, time_limit_s):
            survivors.append(f"{mutant['file']}: {mutant['old']}\n    became {mutant['new']}")
        path.write_text(original, "utf-8")
    seconds = time.monotonic() - began
    return Outcome(name, len(mutants) - len(survivors), survivors, seconds)


def chosen(names: list[str], asked: list[str]) -> list[str]:
    """Return the names that were asked for, all if none was. Ends the run for an unknown one."""
    wanted = {part for name in asked for part in parts(name)}
    found = [n for n in names if not asked or {n, *n.split("/")} & wanted]
    known = {*names, *(part for name in names for part in name.split("/"))}
    if unknown := [name for name in asked if name.strip("/") not in known]:
        sys.exit(f"no mutants for {', '.join(unknown)}; there are {', '.join(names)}")
    return found


def main(asked: list[str]) -> int:
    """Try the mutants asked for and print a table. Returns 1 unless all were killed."""
    files = {f"{f.parent.name}/{f.stem}": f for f in (ROOT / "tests/mutants").glob("*/*.toml")}
    names, outcomes = chosen(sorted(files, reverse=True), asked), []
    print(LINE.format("mutants of", "all", "killed", "survived", "seconds"), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in PACKAGES:
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "mkdocs.yml"):
            shutil.copy(ROOT / name, tree)
        for name in names:
            mutants = tomllib.loads(files[name].read_text("utf-8"))["mutant"]
            outcomes.append(try_all(tree, name, mutants))
            print(outcomes[-1].line(), flush=True)
    survivors = [text for outcome in outcomes for text in outcome.survivors]
    faults = [outcome for outcome in outcomes if outcome.fault]
    killed, seconds = sum(o.killed for o in outcomes), sum(o.seconds for o in outcomes)
    total = Outcome("all", killed, survivors, seconds)
    print(total.line())
    for text in survivors:
        print(f"SURVIVED {text}")
    return 1 if survivors or faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
