"""What the check says of an answer: the input, what came and what was expected."""

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sitebuild.exercises import read
from sitebuild.labs import ROOT
from snippets.practice.grading import Case, call, complaint, grade, same, show

DOUBLE = [call("double(x)", (x,), 2 * x, f"It is {x} + {x}.") for x in (1, 3)]


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    return tmp_path / "answer.py"


def test_a_right_answer_has_no_complaint_and_is_told_how_much_was_checked(
    answer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer.write_text("def double(x): return x + x\n")
    assert complaint(answer, DOUBLE) == ""
    grade(iter(DOUBLE), str(answer))
    assert capsys.readouterr().out == "Right: all 2 checks pass.\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "def double(x): return x * x\n",
            "Check 1 of 2:\n\ndouble(x=1)\ngave      1\nexpected  2\n\nIt is 1 + 1.",
        ),
        (
            "def double(x):\n    return {1: 2}[x]\n",
            "Check 2 of 2:\n\ndouble(x=3)\nraised    KeyError in line 2 of your answer: 3\n"
            "expected  6\n\nIt is 3 + 3.",
        ),
        (
            "def double(x):\n    ...\n",
            "Check 1 of 2:\n\ndouble(x=1)\ngave      None\nexpected  2\n\n"
            "Write what is missing in place of the dots, and return the result.",
        ),
        (
            "def twice(x): return x + x\n",
            "The answer has no double; keep the names that it began with.",
        ),
        (
            "def double(x)\n    return x + x\n",
            "The answer cannot be read: SyntaxError in line 1: expected ':'",
        ),
        (
            "import math\nmath.sqrt(-1)\n",
            "The answer cannot be read: ValueError in line 2 of your answer: ",
        ),
        ("import sys\nsys.exit()\n", "The answer cannot be read: SystemExit in line 2 of your"),
        (
            "def double(x): exit(3)\n",
            "Check 1 of 2:\n\ndouble(x=1)\nraised    SystemExit in line 1 of your answer: 3",
        ),
        (
            "def double(x): return double(x)\n",
            "Check 1 of 2:\n\ndouble(x=1)\nraised    RecursionError in line 1 of your answer: ",
        ),
        (
            "def double(x): return x.missing\n",
            "Check 1 of 2:\n\ndouble(x=1)\nraised    AttributeError in line 1 of your answer: ",
        ),
    ],
    ids=[
        "wrong value",
        "raises later",
        "not written",
        "other name",
        "syntax",
        "raises when read",
        "ends when read",
        "ends the program",
        "endless recursion",
        "attribute",
    ],
)
def test_a_complaint_names_the_first_thing_that_is_wrong(
    answer: Path, text: str, expected: str
) -> None:
    answer.write_text(text)
    assert complaint(answer, DOUBLE).startswith(expected)


def test_a_wrong_answer_leaves_with_the_complaint(answer: Path) -> None:
    answer.write_text("def double(x): return 0\n")
    with pytest.raises(SystemExit) as left:
        grade(DOUBLE, str(answer))
    assert left.value.code == complaint(answer, DOUBLE)


def test_an_answer_may_change_what_it_was_given(answer: Path) -> None:
    given = [3, 1, 2]
    cases = [call("largest(numbers)", (given,), 3)] * 2
    answer.write_text("def largest(numbers):\n    numbers.sort()\n    return numbers.pop()\n")
    assert complaint(answer, cases) == ""
    assert given == [3, 1, 2]


def test_an_answer_may_have_data_classes(answer: Path) -> None:
    answer.write_text(
        "from dataclasses import dataclass\n\n@dataclass\nclass Pair:\n    x: 'int'\n\n"
        "def double(x): return Pair(x).x * 2\n"
    )
    assert complaint(answer, DOUBLE) == ""


def test_a_difference_in_the_middle_of_a_long_list_is_shown(answer: Path) -> None:
    answer.write_text("def count(): return [0, 1, 2, 3, 0, 5, 6, 7, 8, 9]\n")
    found = complaint(answer, [call("count()", (), [*range(10)])])
    assert "gave      [0, 1, 2, 3, 0, 5" in found
    assert "expected  [0, 1, 2, 3, 4, 5" in found


def test_a_text_is_told_from_a_number(answer: Path) -> None:
    answer.write_text("def one(): return '1'\n")
    assert "gave      '1'\nexpected  1" in complaint(answer, [call("one()", (), 1)])


def test_a_new_answer_in_the_same_second_is_not_taken_for_the_old_one(answer: Path) -> None:
    answer.write_text("def double(x): return x * 3\n")
    first = complaint(answer, DOUBLE)
    answer.write_text("def double(x): return x * 2\n")
    assert first != ""
    assert complaint(answer, DOUBLE) == ""
    assert [path.name for path in answer.parent.iterdir()] == ["answer.py"]


@pytest.mark.parametrize(
    ("got", "expected", "equal"),
    [
        (1, 1, True),
        (1.0, 1, True),
        (1, 1.0, True),
        ([1, 2], (1, 2), True),
        ([1, [2.0]], (1, (2.0 + 1e-12,)), True),
        (1.0 + 1e-8, 1.0, False),
        (1e-13, 0.0, True),
        (1e-11, 0.0, False),
        (math.nan, 1.0, False),
        (math.nan, math.inf, False),
        (-math.inf, -math.inf, True),
        (1e300, math.inf, False),
        ([1], [1, 2], False),
        (1, [1], False),
        (None, 0, False),
        ("1", 1.0, False),
        (25.5, 25, False),
    ],
)
def test_values_are_equal_up_to_rounding_only(got: object, expected: object, equal: bool) -> None:
    assert same(got, expected) is equal


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1.0"),
        (-math.inf, "-inf"),
        (1 / 3, "0.3333333333"),
        (1e-30, "1e-30"),
        (9_999, "9999"),
        (32_000_000_000, "32_000_000_000"),
        (True, "True"),
        ((1,), "(1,)"),
        ([0.5, (1, "x")], "[0.5, (1, 'x')]"),
        ([*range(9)], "[0, 1, 2, ..., 8 (9 in all)]"),
        ({"x": 1}, "{'x': 1}"),
    ],
)
def test_a_value_is_shown_as_it_would_be_written_and_long_lists_are_cut(
    value: object, shown: str
) -> None:
    assert show(value) == shown


def test_a_complaint_of_a_huge_value_stays_short(answer: Path) -> None:
    answer.write_text("def double(x): return 'x' * 10**6\n")
    assert len(complaint(answer, DOUBLE)) < 600


def test_cases_are_made_once(answer: Path) -> None:
    made: list[int] = []

    def cases() -> Iterator[Case]:
        made.append(1)
        yield from DOUBLE

    answer.write_text("def double(x): return 2 * x\n")
    grade(cases(), str(answer))
    assert made == [1]


def checked(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snippets.practice.online_update", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_a_file_can_be_checked_from_the_command_line(answer: Path) -> None:
    parts = read("online_update")
    answer.write_text(parts.solution)
    right = checked(str(answer))
    answer.write_text(parts.skeleton)
    wrong = checked(str(answer))
    assert (right.returncode, wrong.returncode) == (0, 1)
    assert right.stdout.startswith("Right: all ")
    assert wrong.stderr.startswith("Check 1 of ")


def test_without_a_file_the_command_line_says_what_to_write() -> None:
    done = checked()
    assert done.returncode == 1
    expected = "name the file with your answer: python -m snippets.practice.online_update answer.py"
    assert done.stderr.strip() == expected
