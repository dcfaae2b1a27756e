"""The runner of mutants: a survivor, a stale mutant and broken tests each fail the run."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
MUTANT = {"file": "lab.py", "old": "a + b", "new": "a - b"}
NAMES = ["snippets/one", "snippets/two", "kernels/one"]


@pytest.fixture
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_mutants", ROOT / "tests/mutants/run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def tree_with(folder: Path, test: str) -> Path:
    """A tree of one lab that adds, and one test of it."""
    (folder / "tests" / "snippets").mkdir(parents=True)
    (folder / "lab.py").write_text("def add(a, b):\n    return a + b\n")
    (folder / "tests/snippets/test_lab.py").write_text(
        f"from lab import add\n\n\ndef test_adds():\n    assert {test}\n"
    )
    return folder


def test_a_mutant_that_a_test_notices_is_killed(tmp_path: Path, runner: ModuleType) -> None:
    tree = tree_with(tmp_path, "add(2, 3) == 5")
    outcome = runner.try_all(tree, "snippets/lab", [MUTANT])
    assert (outcome.killed, outcome.survivors, outcome.fault) == (1, [], "")
    assert "a + b" in (tree / "lab.py").read_text()


def test_a_mutant_that_no_test_notices_survives_and_is_named(
    tmp_path: Path, runner: ModuleType
) -> None:
    outcome = runner.try_all(tree_with(tmp_path, "add(2, 0) == 2"), "snippets/lab", [MUTANT])
    assert outcome.survivors == ["lab.py: a + b\n    became a - b"]
    assert outcome.line().split()[:4] == ["snippets/lab", "1", "0", "1"]


def test_a_mutant_that_never_ends_is_killed(
    tmp_path: Path, runner: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tree_with(tmp_path, "add(2, 3) == 5")
    for_ever = MUTANT | {"new": "[1 for _ in iter(int, 1)]"}
    passes = runner.all_pass
    monkeypatch.setattr(
        runner, "all_pass", lambda tree, name, limit=None: passes(tree, name, limit and 2.0)
    )
    assert runner.try_all(tree, "snippets/lab", [for_ever]).killed == 1


@pytest.mark.parametrize(
    ("test", "mutant", "told"),
    [
        ("add(2, 3) == 6", MUTANT, "its tests fail before anything is broken"),
        ("add(2, 3) == 5", MUTANT | {"old": "a * b"}, "not exactly once in lab.py: a * b"),
    ],
)
def test_what_cannot_be_tried_is_said(
    tmp_path: Path, runner: ModuleType, test: str, mutant: dict[str, str], told: str
) -> None:
    outcome = runner.try_all(tree_with(tmp_path, test), "snippets/lab", [mutant])
    assert (outcome.killed, outcome.fault) == (0, told)
    assert told in outcome.line()


def test_a_lesson_stands_for_its_labs_and_exercises(runner: ModuleType) -> None:
    names = ["snippets/roofline", "snippets/waves", "snippets/banks", "practice/fused_bytes"]
    found = ["snippets/roofline", "snippets/waves", "practice/fused_bytes"]
    assert runner.chosen(names, ["roofline"]) == found
    assert runner.chosen(names, ["snippets/roofline"]) == ["snippets/roofline"]


def test_an_unknown_name_is_all_that_a_run_prints(
    runner: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="no mutants for nonesuch; there are "):
        runner.main(["nonesuch"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("survivors", "fault", "status"), [([], "", 0), (["x"], "", 1), ([], "broken", 1)]
)
def test_the_exit_status_says_whether_all_were_killed(
    runner: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    survivors: list[str],
    fault: str,
    status: int,
) -> None:
    def made_up(_tree: Path, name: str, mutants: list[Any]) -> Any:
        return runner.Outcome(name, len(mutants) - len(survivors), survivors, 1.0, fault)

    monkeypatch.setattr(runner, "try_all", made_up)
    monkeypatch.setattr(runner, "PACKAGES", ())
    assert runner.main(["snippets/waves", "snippets/roofs"]) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["mutants", "of", "all", "killed", "survived", "seconds"]
    assert [line.split()[0] for line in lines[1:4]] == ["snippets/waves", "snippets/roofs", "all"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ([], NAMES),
        (["snippets"], NAMES[:2]),
        (["two"], NAMES[1:2]),
        (["kernels/one", "snippets/two"], NAMES[1:]),
    ],
)
def test_a_folder_or_a_stem_stands_for_all_of_it(
    runner: ModuleType, asked: list[str], found: list[str]
) -> None:
    assert runner.chosen(NAMES, asked) == found


def test_refuses_what_has_no_mutants(runner: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no mutants for kernels/two; there are snippets/one"):
        runner.chosen(NAMES, ["kernels/two"])
