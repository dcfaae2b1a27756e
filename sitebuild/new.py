"""Start a lesson or a kernel from templates: `make new KIND=kernel STEM=tile_copy`.

A lesson takes the name of its exercise as well: `KIND=lesson STEM=tile_sizes EXERCISE=best_tile`.
Everything is made or nothing: what exists is never overwritten, and a write that fails takes back
those before it. What is made runs and passes its tests; `tests/test_layout.py` then lists what is
left to fill.
"""

import importlib.util
import keyword
import re
import sys
from pathlib import Path

from sitebuild.labs import ROOT

TEMPLATES = Path(__file__).resolve().parent / "templates"
FILES = {
    "lesson": {
        "page.md": "docs/lessons/{stem}.md",
        "lab.py": "snippets/{stem}.py",
        "test.py": "tests/snippets/test_{stem}.py",
        "mutants.toml": "tests/mutants/snippets/{stem}.toml",
        "exercise.py": "snippets/practice/{exercise}.py",
        "exercise_test.py": "tests/practice/test_{exercise}.py",
        "exercise_mutants.toml": "tests/mutants/practice/{exercise}.toml",
    },
    "kernel": {
        "page.md": "docs/kernels/{stem}.md",
        "kernel.py": "kernels/{stem}.py",
        "test.py": "tests/kernels/test_{stem}.py",
        "mutants.toml": "tests/mutants/kernels/{stem}.toml",
    },
}
STEM = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
IMPORT = re.compile(r"^(?P<start>from kernels\.\w+ import )(?P<names>.+)$", re.M)


class RefusedError(ValueError):
    """Nothing was made. The message says what came and what is allowed."""


def create(kind: str, stem: str, root: Path = ROOT, exercise: str = "") -> list[Path]:
    """Write the files of a new lesson or kernel and its line in `nav`; return what was written.

    Raises
    ------
    RefusedError
        If the kind is unknown, a name is not fit or missing, or one of the files is there already.
    OSError
        If a file cannot be written; then none is.
    """
    _check(kind, stem, exercise)
    contents = {
        root / to.format(stem=stem, exercise=exercise): _text(kind, name, stem, exercise)
        for name, to in FILES[kind].items()
    }
    if found := [path.relative_to(root).as_posix() for path in contents if path.exists()]:
        raise RefusedError(f"{stem} is taken: {', '.join(found)}")
    config = root / "mkdocs.yml"
    before = config.read_text("utf-8")
    contents[config] = with_line_in_nav(before, f"{kind}s", stem)
    try:
        for path, text in contents.items():
            path.write_text(text, "utf-8")
    except OSError:
        for path in contents:
            if path != config:
                path.unlink(missing_ok=True)
        config.write_text(before, "utf-8")
        raise
    return list(contents)


def with_line_in_nav(config: str, section: str, stem: str) -> str:
    """Return mkdocs.yml with a page after the last one of its section."""
    lines = config.splitlines(keepends=True)
    places = [n for n, line in enumerate(lines) if re.match(rf" +- {section}/\w+\.md$", line)]
    if not places:
        raise RefusedError(f"mkdocs.yml has no page of {section}/ in nav to stand after")
    indent = lines[places[-1]].split("-")[0]
    lines.insert(places[-1] + 1, f"{indent}- {section}/{stem}.md\n")
    return "".join(lines)


def _check(kind: str, stem: str, exercise: str) -> None:
    if kind not in FILES:
        raise RefusedError(f"KIND is {kind!r}; allowed: {', '.join(FILES)}")
    asked = {"STEM": (stem, "tile_sizes")}
    if kind == "lesson":
        asked["EXERCISE"] = (exercise, "best_tile")
    for what, (name, example) in asked.items():
        if not STEM.fullmatch(name) or keyword.iskeyword(name):
            raise RefusedError(
                f"{what} is {name!r}; allowed: a noun in lower case, words joined by one "
                f"underscore, such as {example}"
            )
        if importlib.util.find_spec(name) is not None:
            raise RefusedError(
                f"{what} is {name!r}, which would hide the Python module of that name"
            )
    if exercise == stem:
        raise RefusedError(f"EXERCISE is {exercise!r}, as STEM is; a name leads to one thing")


def _text(kind: str, name: str, stem: str, exercise: str) -> str:
    text = (TEMPLATES / kind / name).read_text("utf-8").replace("new_stem_exercise", exercise)
    text = text.replace("new_stem", stem).replace("new-stem", stem.replace("_", "-"))
    text = text.replace("New stem", stem.replace("_", " ").capitalize())
    return IMPORT.sub(_sorted, text)


def _sorted(line: re.Match[str]) -> str:
    """Put the imported names in the linter's order, in which the stem's place depends on it."""
    names = sorted(line["names"].split(", "), key=lambda name: (not name.isupper(), name))
    return line["start"] + ", ".join(names)


def main() -> int:
    kind, stem, exercise = (*sys.argv[1:], "", "", "")[:3]
    try:
        made = create(kind, stem, exercise=exercise)
    except (RefusedError, OSError) as fault:
        print(f"Nothing was made: {fault}", file=sys.stderr)
        return 2
    print("\n".join(path.relative_to(ROOT).as_posix() for path in made))
    print(f"\nIts place among the other {kind}s is its line in mkdocs.yml. What is left to fill:")
    print("  .venv/bin/python -m pytest -q tests/test_layout.py")
    if kind == "kernel":
        print("By hand, in the same place of the order:")
        print(f'  kernels/bench/cases.py    "{stem}" in STEMS')
        print(f"  docs/kernels/index.md     | [Its name]({stem}.md) | What it teaches. |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
