"""Banks of shared memory."""

from collections.abc import Callable
from math import gcd
from typing import Any

import pytest

from snippets import banks
from snippets.banks import padded, plain, swizzled, turns


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    banks.main()
    return capsys.readouterr().out.splitlines()


def served(words: Any) -> int:
    """Turns by a walk: in each turn every bank serves one word to all that want it."""
    waiting, count = set(words), 0
    while waiting:
        by_bank = {word % 32: word for word in sorted(waiting)}
        waiting -= set(by_bank.values())
        count += 1
    return count


@pytest.mark.parametrize("stride", [*range(1, 34), 64, 96, 100])
def test_a_stride_takes_as_many_turns_as_it_shares_factors_with_32(stride: int) -> None:
    assert turns(i * stride for i in range(32)) == gcd(stride, 32)


@pytest.mark.parametrize(
    "words",
    [
        [0],
        [0] * 32,
        [0, 32, 64, 64],
        [5, 37, 6, 38, 7],
        list(range(64)),
        [3 * i * i for i in range(32)],
    ],
)
def test_agrees_with_a_walk_that_serves_one_word_a_bank_and_turn(words: Any) -> None:
    assert turns(words) == served(words)


def test_threads_that_want_the_same_word_do_not_wait() -> None:
    assert turns([7] * 32) == 1


@pytest.mark.parametrize("index", range(32))
@pytest.mark.parametrize(("layout", "of_a_column"), [(plain, 32), (padded, 1), (swizzled, 1)])
def test_every_row_takes_one_turn_and_a_column_what_the_layout_gives(
    layout: Callable[[int, int], int], of_a_column: int, index: int
) -> None:
    assert turns(layout(index, i) for i in range(32)) == 1
    assert turns(layout(i, index) for i in range(32)) == of_a_column


@pytest.mark.parametrize(("layout", "words"), [(plain, 1024), (padded, 1055), (swizzled, 1024)])
def test_every_element_has_its_own_word(layout: Callable[[int, int], int], words: Any) -> None:
    found = {layout(row, column) for row in range(32) for column in range(32)}
    assert len(found) == 1024
    assert max(found) == words - 1


def test_prints_turns_for_strides_and_layouts(capsys: pytest.CaptureFixture[str]) -> None:
    out = [line.split() for line in lines(capsys)]
    assert ["32", "32"] in out
    assert ["33", "1"] in out
    assert out[-3:] == [
        ["plain", "1", "32", "1024"],
        ["padded", "1", "1", "1055"],
        ["swizzled", "1", "1", "1024"],
    ]


def test_prints_lines_of_at_most_72_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(line) for line in lines(capsys)) <= 72


@pytest.mark.parametrize("bad", [-1, True, 1.0])
def test_refuses_a_word_that_is_no_address(bad: Any) -> None:
    with pytest.raises(ValueError, match="a word must be an integer of at least 0, got"):
        turns([0, bad])


def test_refuses_an_access_without_threads() -> None:
    with pytest.raises(ValueError, match="an access needs at least one thread"):
        turns([])
