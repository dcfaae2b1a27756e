"""What the machine alone allows each step of the ladder."""

from typing import Any

import pytest

from snippets import ladder_model
from snippets.ladder_model import flop_per_byte, last_end, longest_first, registers


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    ladder_model.main()
    return capsys.readouterr().out.splitlines()


def end_by_the_clock(lengths: list[int], places: int) -> int:
    """The same by stepping through time, clock by clock."""
    left = [0] * places
    waiting, now = list(lengths), 0
    while waiting or any(left):
        for place in range(places):
            if left[place] == 0 and waiting:
                left[place] = waiting.pop(0)
        left = [max(0, clocks - 1) for clocks in left]
        now += 1
    return now


@pytest.mark.parametrize("lengths", [[1], [3, 1, 2], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [2] * 7])
@pytest.mark.parametrize("places", [1, 2, 3])
def test_the_last_end_agrees_with_a_simulation_clock_by_clock(
    lengths: list[int], places: int
) -> None:
    assert last_end(lengths, places) == end_by_the_clock(lengths, places)


def test_more_places_than_tiles_take_as_long_as_the_longest() -> None:
    assert last_end([4, 9, 2], 100) == 9


@pytest.mark.parametrize(
    ("together", "order"),
    [
        (1, [2, 1, 2, 1, 2, 1]),
        (2, [2, 2, 1, 1, 2, 1]),
        (3, [2, 2, 2, 1, 1, 1]),
        (9, [2, 2, 2, 1, 1, 1]),
    ],
)
def test_the_longest_tiles_of_heads_that_go_together_come_first(
    together: int, order: list[int]
) -> None:
    assert longest_first(3, 2, together) == order


@pytest.mark.parametrize("together", [1, 4, 7])
def test_every_tile_of_every_head_is_there_once(together: int) -> None:
    assert sorted(longest_first(7, 5, together)) == sorted(list(range(1, 6)) * 7)


def test_registers_hold_each_number_of_a_tile_once() -> None:
    numbers = 64 * 128 + 64 * 128 / 2 + 64 * 64  # two weights share a register
    assert registers(64, 128, 64) == numbers / 128


@pytest.mark.parametrize(("keys", "d"), [(1, 1), (128, 64), (64, 128)])
def test_only_the_rows_decide_how_often_a_byte_is_used(keys: int, d: int) -> None:
    assert flop_per_byte(192, keys, d) == 192


def test_prints_that_128_by_128_does_not_fit_one_warpgroup(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [line.split() for line in lines(capsys)]
    found = {tuple(row[:3]): row[3] for row in rows if len(row) == 4 and row[3].isdigit()}
    assert found == {
        ("64", "128", "64"): "128",
        ("64", "128", "128"): "160",
        ("128", "64", "128"): "224",
        ("128", "128", "128"): "320",
    }


def test_prints_the_three_orders_over_an_even_share(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in lines(capsys)[-3:]]
    assert [row[0] for row in rows] == ["1024", "4096", "16384"]
    numbered = last_end(list(range(1, 9)) * 512, 264) / (512 * 36 / 264)
    grouped = last_end([n for _ in range(16) for n in range(8, 0, -1) for _ in range(32)], 264)
    assert rows[0][1] == f"{numbered:.2f}"
    assert rows[0][3] == f"{grouped / (512 * 36 / 264):.2f}"
    assert all(float(row[3]) <= float(row[2]) <= float(row[1]) for row in rows)


def test_prints_lines_of_at_most_72_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(line) for line in lines(capsys)) <= 72


@pytest.mark.parametrize("bad", [0, -1, True, 2.5])
def test_refuses_sizes_that_are_not_positive_integers(bad: Any) -> None:
    with pytest.raises(ValueError, match="places must be an integer of at least 1, got"):
        last_end([1], bad)
    with pytest.raises(ValueError, match="together must be an integer of at least 1, got"):
        longest_first(1, 1, bad)
    with pytest.raises(ValueError, match="queries must be an integer of at least 1, got"):
        registers(bad, 1, 1)
    with pytest.raises(ValueError, match="d must be an integer of at least 1, got"):
        flop_per_byte(1, 1, bad)
