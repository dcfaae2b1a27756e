"""The check of an exercise, tried on answers."""

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from sitebuild.exercises import read
from snippets.practice.grading import complaint

Edit = tuple[str, str]


@pytest.fixture
def judge(tmp_path: Path) -> Callable[[str, str], str]:
    """Return what the check of an exercise says of a whole answer; nothing when it is right."""

    def judged(stem: str, answer: str) -> str:
        path = tmp_path / "answer.py"
        path.write_text(answer, "utf-8")
        return complaint(path, importlib.import_module(f"snippets.practice.{stem}").cases())

    return judged


@pytest.fixture
def refuse(judge) -> Callable[[str, list[Edit]], str]:
    """Return what the check of an exercise says of its solution with some places changed."""

    def refused(stem: str, edits: list[Edit]) -> str:
        answer = read(stem).solution
        for old, new in edits:
            assert answer.count(old) == 1, f"{old!r} stands {answer.count(old)} times in {stem}"
            answer = answer.replace(old, new)
        return judge(stem, answer)

    return refused
