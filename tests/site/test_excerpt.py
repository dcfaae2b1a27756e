"""Answers to questions come from the output of a lab, or the build stops."""

import pytest

from sitebuild import excerpt as module
from sitebuild.excerpt import excerpt

OUTPUT = "  n   sum\n  1     1\n  2     3\n\n 10    55\n"


@pytest.fixture(autouse=True)
def lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "run", lambda _: OUTPUT)


def test_lines_come_in_the_order_they_were_asked_for_with_their_spaces() -> None:
    assert excerpt("snippets.sums", "n sum", "2 ") == "  n   sum\n  2     3"
    assert excerpt("snippets.sums", "2 ", "n ") == "  2     3\n  n   sum"


@pytest.mark.parametrize(
    ("start", "count"), [("3 ", 0), ("1", 2), ("sum", 0), ("2     3", 0), ("", 5)]
)
def test_a_start_that_does_not_begin_one_line_is_refused(start: str, count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} lines of snippets.sums begin with '{start}'"):
        excerpt("snippets.sums", start)
