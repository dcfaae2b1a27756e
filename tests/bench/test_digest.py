"""The digest follows code and nothing else, alike on every supported Python."""

import hashlib
from pathlib import Path

import pytest

from kernels.bench.digest import code_of, source_digest
from sitebuild import labs

SOURCE = '''"""A module.

Two paragraphs.
"""

import os  # why not


# a comment between
def first(x: int) -> str:  # umlauts before: äöü
    """Say one thing."""
    text = f"# {x!r:>{len('ab')}} {'#'}"  # trailing
    return text + """kept

    # not a comment
    """


class Second:
    """Only a docstring."""

    def third(self) -> None:
        \'\'\'Another.\'\'\'; os.getpid()
'''
PINNED = "1da4a3164c0193025018d94286da0c6fd3635af0974267c55d5a144e61b00c26"


def test_is_the_same_on_every_python() -> None:
    assert hashlib.sha256(code_of(SOURCE).encode()).hexdigest() == PINNED


def test_keeps_only_code() -> None:
    assert code_of(SOURCE).splitlines() == [
        "import os",
        "def first(x: int) -> str:",
        """    text = f"# {x!r:>{len('ab')}} {'#'}\"""",
        '    return text + """kept',
        "",
        "    # not a comment",
        '    """',
        "class Second:",
        "    def third(self) -> None:",
        "        ; os.getpid()",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A module.", "Another module."),
        ("Two paragraphs.\n", "Two paragraphs.\n\nThree.\n"),
        ("  # why not", ""),
        ("# a comment between\n", "# one\n# two\n\n"),
        ("äöü", "ß 東京"),
        ("Say one thing.", "Say\n\n    two things."),
        ("  # trailing", "      # moved"),
        ("Another.", "A third."),
    ],
)
def test_prose_keeps_the_code(old: str, new: str) -> None:
    assert old in SOURCE
    assert code_of(SOURCE.replace(old, new)) == code_of(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import os", "import sys"),
        ("len('ab')", "len('abc')"),
        ("{'#'}", "{'##'}"),
        ("kept", "kept "),
        ("kept\n\n", "kept\n"),
        ("# not a comment", "# not a remark"),
        ("os.getpid()", "os.getppid()"),
    ],
)
def test_code_changes_the_code(old: str, new: str) -> None:
    assert old in SOURCE
    assert code_of(SOURCE.replace(old, new)) != code_of(SOURCE)


def test_the_digest_covers_what_the_module_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "part.py").write_text("x = 1\n")
    (folder / "whole.py").write_text("from kernels.part import x\n")
    monkeypatch.setattr(labs, "ROOT", tmp_path)
    before = source_digest("kernels.whole")
    (folder / "other.py").write_text("y = 2\n")
    (folder / "part.py").write_text('"""Prose."""\nx = 1  # more\n')
    assert source_digest("kernels.whole") == before
    (folder / "part.py").write_text("x = 2\n")
    assert source_digest("kernels.whole") != before
