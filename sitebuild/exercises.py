"""The exercises as Markdown for a page, and what a browser needs to check an answer.

An exercise is one file, `snippets/practice/<stem>.py`: what to do and the hints in its docstring,
then the solution, then, below a line `# check`, the cases it must pass. What a reader starts from
is made from the solution, so that the two cannot drift apart: lines between `# solution` and
`# end` become dots, or the lines that stand in comments after `# instead`.
"""

import ast
import json
import re
from pathlib import Path
from typing import NamedTuple

from sitebuild.engine import pin
from sitebuild.labs import ROOT, source_files

FOLDER = ROOT / "snippets" / "practice"
BLOCK = re.compile(
    r"^(?P<indent> *)# solution\n(?P<solution>.*?)(?: *# instead\n(?P<instead>.*?))?^ *# end\n",
    re.M | re.S,
)
STATIC = "Check needs JavaScript and a page served over http."
NO_ENGINE = "Check is off: this copy was built without Python for the browser."
COMMENT = re.compile(r"^( *)# ?", re.M)


class Exercise(NamedTuple):
    """The parts of one exercise; `statement` and `hints` are Markdown."""

    stem: str
    title: str
    statement: str
    hints: list[str]
    skeleton: str
    solution: str


def exercises() -> list[str]:
    """Return the stems of all exercises, in the order of the alphabet."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if "# check\n" in path.read_text())


def read(stem: str) -> Exercise:
    """Return one exercise.

    Raises
    ------
    ValueError
        If there is no such exercise, naming those there are, or if a part is missing, naming the
        file and the part.
    """
    path = FOLDER / f"{stem}.py"
    if not path.is_file():
        raise ValueError(f"no exercise is named {stem!r}; there are {', '.join(exercises())}")
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    paragraphs = (ast.get_docstring(tree) or "").split("\n\n")
    hints = [p.removeprefix("Hint: ") for p in paragraphs if p.startswith("Hint: ")]
    statement = [p for p in paragraphs[1:] if not p.startswith(("Hint: ", "Check it: "))]
    below = source.splitlines(keepends=True)[tree.body[0].end_lineno if tree.body else 0 :]
    answer = "".join(below).split("\n# check\n")[0].strip("\n") + "\n"
    parts = {
        "a title and a statement in its docstring": bool(statement),
        "2 to 4 paragraphs that begin with 'Hint: '": 2 <= len(hints) <= 4,
        "a line '# check' below the solution": "\n# check\n" in source,
        "lines between '# solution' and '# end'": BLOCK.search(answer) is not None,
    }
    for part, is_there in parts.items():
        if not is_there:
            raise ValueError(f"{path.relative_to(ROOT).as_posix()} needs {part}")
    return Exercise(
        stem,
        paragraphs[0],
        "\n\n".join(statement),
        hints,
        BLOCK.sub(_start, answer),
        BLOCK.sub(lambda block: block["solution"], answer),
    )


def _start(block: re.Match[str]) -> str:
    """Return what a reader finds in place of one piece of the solution."""
    if block["instead"] is None:
        return f"{block['indent']}...\n"
    return COMMENT.sub(r"\1", block["instead"])


def exercise(stem: str) -> str:
    """Return one exercise as Markdown: statement, start, hints one inside another, solution."""
    parts, pinned = read(stem), pin()
    here = pinned.folder.is_dir()
    feature = f' data-feature="exercise" data-python="{pinned.megabytes():.1f} MB"' if here else ""
    # a section: the search takes the end of any inner div for that of a div it should leave out
    return f"""### In code: {parts.title}

<section class="exercise"{feature} data-exercise="{stem}" data-search-exclude markdown>

{parts.statement}

```python title="Start"
{parts.skeleton}```

<p class="exercise-off">{STATIC if here else NO_ENGINE} In a copy of the course's repository,
<code>python -m snippets.practice.{stem} answer.py</code> checks the file answer.py.</p>

{_ladder(parts.hints)}

??? success "Solution"
{_indented(f"```python{chr(10)}{parts.solution}```")}

</section>
"""


def _ladder(hints: list[str], number: int = 1) -> str:
    """Return hints that fold open one after another: each lies inside the one before it."""
    last = number == len(hints)
    inner = hints[number - 1] + ("" if last else f"\n\n{_ladder(hints, number + 1)}")
    return f'??? question "Hint {number} of {len(hints)}"\n{_indented(inner)}'


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


def write_checks(site: Path) -> None:
    """Write what the page needs to check an answer: `assets/exercises/<stem>.json`.

    Each has the files of one program, and `answer`, where the reader's own text belongs.
    """
    folder = site / "assets" / "exercises"
    folder.mkdir(parents=True, exist_ok=True)
    for stem in exercises():
        files = {
            path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
            for path in source_files(f"snippets.practice.{stem}")
        }
        files["check.py"] = (
            f"from snippets.practice import grading, {stem}\n\n"
            f'grading.grade({stem}.cases(), "answer.py")\n'
        )
        program = {"module": "check", "answer": "answer.py", "files": files}
        (folder / f"{stem}.json").write_text(json.dumps(program), "utf-8")
