"""Break each lab and kernel in the ways its mutants file lists, and show that its tests notice.

Run it: `make mutants`, or `python -m tests.mutants.run snippets/roofline` for those named.
Works on a copy of the tree, so that an interruption leaves nothing broken behind.
"""

import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("snippets", "kernels", "sitebuild", "docs", "tests")


def tests_pass(tree: Path, name: str) -> bool:
    """Run the tests of `<folder>/<stem>` in `tree`, whose modules come first on the path."""
    folder, stem = name.split("/")
    command = [sys.executable, "-m", "pytest", "-q", "-x", f"tests/{folder}/test_{stem}.py"]
    done = subprocess.run(command, cwd=tree, capture_output=True)
    return done.returncode == 0


def main() -> None:
    files = {f"{f.parent.name}/{f.stem}": f for f in (ROOT / "tests/mutants").glob("*/*.toml")}
    wanted = sys.argv[1:] or sorted(files, reverse=True)
    if unknown := set(wanted) - set(files):
        sys.exit(f"no mutants for {', '.join(sorted(unknown))}; there are {', '.join(files)}")
    survivors = killed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in PACKAGES:
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "mkdocs.yml"):
            shutil.copy(ROOT / name, tree)
        for name in wanted:
            if not tests_pass(tree, name):
                sys.exit(f"{name}: its tests fail before anything is broken")
            for mutant in tomllib.loads(files[name].read_text("utf-8"))["mutant"]:
                path = tree / mutant["file"]
                original = path.read_text("utf-8")
                path.write_text(original.replace(mutant["old"], mutant["new"], 1), "utf-8")
                survived = tests_pass(tree, name)
                path.write_text(original, "utf-8")
                survivors += survived
                killed += not survived
                if survived:
                    print(f"SURVIVED {name}: {mutant['old']} -> {mutant['new']}")
            print(f"{name}: done", flush=True)
    print(f"{killed} mutants killed, {survivors} survived")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
