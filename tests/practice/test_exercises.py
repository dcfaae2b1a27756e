"""What all exercises have in common: start, solution, hints and check come from one file."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sitebuild import exercises as module
from sitebuild.exercises import exercise, exercises, read, write_checks

WIDTH = 78  # characters of a line that the page shows without scrolling
STEMS = exercises()
PLANTED = {"planted_fault": 3}  # lines of a start that are wrong on purpose


def kept_lines(text: str, of: str) -> bool:
    """Whether the lines of `text` stand in `of` in this order."""
    rest = iter(of.splitlines())
    return all(line in rest for line in text.splitlines())


@pytest.mark.parametrize("stem", STEMS)
def test_the_solution_passes_and_the_start_does_not(judge, stem: str) -> None:
    parts = read(stem)
    found = judge(stem, parts.skeleton)
    assert judge(stem, parts.solution) == ""
    assert re.match(r"Check \d+ of \d+:\n\n.+", found)
    assert re.search(r"^(gave|raised) {4,6}\S.*\nexpected  \S", found, re.M)


@pytest.mark.parametrize("stem", STEMS)
def test_the_start_is_valid_and_shows_nothing_of_the_markers(stem: str) -> None:
    parts = read(stem)
    ast.parse(parts.skeleton)
    lines = (parts.skeleton + parts.solution).splitlines()
    long = [line for line in lines if len(line) > WIDTH]
    assert long == [], f"longer than {WIDTH} characters in snippets/practice/{stem}.py"
    assert [line for line in lines if re.search(r"# (solution|instead|end|check)$", line)] == []


@pytest.mark.parametrize("stem", STEMS)
def test_the_start_holds_nothing_of_the_solution_but_what_is_given(stem: str) -> None:
    parts = read(stem)
    given = [line for line in parts.skeleton.splitlines() if line.strip() != "..."]
    planted = [line for line in given if line not in parts.solution.splitlines()]
    shared = "\n".join(line for line in given if line not in planted)
    assert kept_lines(shared, parts.solution)
    assert parts.skeleton != parts.solution
    assert len(planted) == PLANTED.get(stem, 0)


@pytest.mark.parametrize("stem", STEMS)
def test_an_exercise_has_two_to_four_hints_and_says_how_to_check_it(stem: str) -> None:
    parts = read(stem)
    assert 2 <= len(parts.hints) <= 4
    assert not parts.title.endswith(".")
    doc = ast.get_docstring(ast.parse((module.FOLDER / f"{stem}.py").read_text())) or ""
    assert doc.endswith(f"Check it: `python -m snippets.practice.{stem} answer.py`")


@pytest.mark.parametrize("stem", STEMS)
def test_what_is_asked_names_every_argument(stem: str) -> None:
    parts = read(stem)
    functions = [n for n in ast.parse(parts.skeleton).body if isinstance(n, ast.FunctionDef)]
    names = {argument.arg for function in functions for argument in function.args.args}
    named = set(re.findall(r"`(\w+)[`.]", parts.statement)) | {"N", "d"}  # sizes, as in the lessons
    assert names - named == set()


@pytest.mark.parametrize("stem", STEMS)
def test_a_check_holds_results_against_something_but_the_solution(stem: str) -> None:
    source = (module.FOLDER / f"{stem}.py").read_text()
    answer, check = source.split("\n# check\n")
    solved = {n.name for n in ast.walk(ast.parse(answer)) if isinstance(n, ast.FunctionDef)}
    used = {n.id for n in ast.walk(ast.parse(check)) if isinstance(n, ast.Name)}
    assert solved & used == set()


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("stem", STEMS)
def test_the_page_gets_all_that_a_check_needs(stem: str, tmp_path: Path) -> None:
    write_checks(tmp_path)
    program = json.loads((tmp_path / "assets" / "exercises" / f"{stem}.json").read_text())
    alone = tmp_path / "alone"
    write_files(alone, program["files"] | {program["answer"]: read(stem).solution})
    command = [sys.executable, "-I", "-c", RUN, str(alone), program["module"]]
    done = subprocess.run(command, cwd=alone, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.startswith("Right: all ")


# what the browser's Python does: the folder of the files, and nothing else of ours, on the path
RUN = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_module(sys.argv[2])"

FORM = '''"""A title

What to do.

Hint: The first.

Hint: The second.

Check it: `python -m snippets.practice.form answer.py`
"""


def f() -> int:
    """Return one."""
    # solution
    return 1
    # end


# check
'''


@pytest.fixture
def form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr(module, "ROOT", tmp_path)

    def written(source: str) -> module.Exercise:
        (tmp_path / "form.py").write_text(source)
        return read("form")

    return written


def test_a_file_is_read_into_its_parts(form) -> None:
    parts = form(FORM)
    assert parts.title == "A title"
    assert parts.statement == "What to do."
    assert parts.hints == ["The first.", "The second."]
    assert parts.solution == 'def f() -> int:\n    """Return one."""\n    return 1\n'
    assert parts.skeleton == 'def f() -> int:\n    """Return one."""\n    ...\n'


def test_what_stands_in_comments_after_instead_is_planted(form) -> None:
    body = "    return 1\n    # instead\n    # if True:\n    #     return 2\n    # end\n"
    parts = form(FORM.replace("    return 1\n    # end\n", body))
    assert parts.solution.endswith('one."""\n    return 1\n')
    assert parts.skeleton.endswith('one."""\n    if True:\n        return 2\n')
    parts = form(FORM.replace("    # end\n", "    # instead\n    # end\n"))
    assert parts.skeleton.endswith('"""Return one."""\n')


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ("What to do.\n\n", "", "a title and a statement"),
        ("Hint: The second.", "The second.", "2 to 4 paragraphs that begin with 'Hint: '"),
        ("Hint: The second.", "\n\n".join(["Hint: More."] * 4), "2 to 4 paragraphs"),
        ("# check\n", "# checks\n", "a line '# check' below the solution"),
        ("    # end\n", "", "lines between '# solution' and '# end'"),
    ],
)
def test_a_part_that_is_missing_is_named_with_the_file(
    form, old: str, new: str, missing: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(missing)) as raised:
        form(FORM.replace(old, new))
    assert str(raised.value).startswith("form.py needs ")


def test_a_misspelt_exercise_is_told_which_there_are() -> None:
    told = f"no exercise is named 'warp_in_flight'; there are {', '.join(STEMS)}"
    with pytest.raises(ValueError, match=re.escape(told)):
        exercise("warp_in_flight")


def test_hints_fold_open_one_inside_another() -> None:
    hints, shown = read("warps_in_flight").hints, exercise("warps_in_flight")
    folds = re.findall(r'^( *)\?\?\? \w+ "(.+)"$', shown, re.M)
    assert [len(indent) for indent, _ in folds] == [0, 4, 8, 0]
    names = [name for _, name in folds]
    assert names == ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3", "Solution"]
    words = " ".join(shown.split())
    assert re.search(".*".join(re.escape(" ".join(hint.split())) for hint in hints), words)


@pytest.mark.parametrize("built", [True, False])
def test_without_python_in_the_site_an_exercise_says_that_check_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: bool
) -> None:
    pinned = module.pin()._replace(sha256={"python": "1"})
    monkeypatch.setattr("sitebuild.engine.CACHE", tmp_path)
    monkeypatch.setattr(module, "pin", lambda: pinned)
    write_files(tmp_path, {f"{pinned.version}/python": "x" * 1_300_000} if built else {})
    shown = exercise("warps_in_flight")
    assert ('data-feature="exercise" data-python="1.3 MB"' in shown) is built
    assert ("Check needs JavaScript" in shown) is built
    assert ("Check is off: this copy was built without Python" in shown) is not built
    assert "python -m snippets.practice.warps_in_flight answer.py" in shown
