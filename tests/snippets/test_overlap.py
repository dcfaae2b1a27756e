"""The timeline of products and exponentials."""

from itertools import pairwise
from typing import Any

import pytest

from snippets import overlap
from snippets.overlap import clocks, timeline

NAN = float("nan")


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    overlap.main()
    return capsys.readouterr().out.splitlines()


def total(tiles: int, product: float, softmax: float, ahead: bool) -> float:
    return max(task.end for task in timeline(tiles, product, softmax, ahead))


def clock_by_clock(tiles: int, product: float, softmax: float, ahead: bool) -> int:
    """Total clocks by stepping through time, with a queue of issues for each unit."""
    queue = {"tensor": [("S", 0)], "exp": [("exp", tile) for tile in range(tiles)]}
    for tile in range(tiles):
        following = [("S", tile + 1)][: tiles - tile - 1]
        queue["tensor"] += [*following, ("PV", tile)] if ahead else [("PV", tile), *following]
    lengths = {"S": product, "PV": product, "exp": softmax}
    needs = {"S": None, "exp": "S", "PV": "exp"}
    finished: set[tuple[str, int]] = set()
    running: dict[str, tuple[tuple[str, int], float]] = {}
    now = 0
    while queue["tensor"] or queue["exp"] or running:
        for unit in list(running):
            task, end = running[unit]
            if end == now:
                finished.add(task)
                del running[unit]
        for unit in queue:
            if unit not in running and queue[unit]:
                kind, tile = queue[unit][0]
                if needs[kind] is None or (needs[kind], tile) in finished:
                    running[unit] = (queue[unit].pop(0), now + lengths[kind])
        now += 1
    return now - 1


CASES = [(1, 3, 5), (2, 4, 4), (5, 3, 7), (6, 7, 3), (4, 2, 4), (3, 5, 1)]


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("tiles", "product", "softmax"), CASES)
def test_agrees_with_a_simulation_clock_by_clock(
    tiles: int, product: float, softmax: float, ahead: bool
) -> None:
    assert total(tiles, product, softmax, ahead) == clock_by_clock(tiles, product, softmax, ahead)


@pytest.mark.parametrize(("tiles", "product", "softmax"), CASES)
def test_in_turn_takes_the_sum_of_all_tasks(tiles: int, product: float, softmax: float) -> None:
    assert total(tiles, product, softmax, False) == tiles * (2 * product + softmax)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("tiles", "product", "softmax"), CASES)
def test_no_unit_does_two_tasks_at_once(
    tiles: int, product: float, softmax: float, ahead: bool
) -> None:
    tasks = timeline(tiles, product, softmax, ahead)
    tensor = sorted((t.start, t.end) for t in tasks if t.kind != "exp")
    exp = sorted((t.start, t.end) for t in tasks if t.kind == "exp")
    assert all(a[1] <= b[0] for unit in (tensor, exp) for a, b in pairwise(unit))


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("tiles", "product", "softmax"), CASES)
def test_no_task_starts_before_what_it_needs(
    tiles: int, product: float, softmax: float, ahead: bool
) -> None:
    at = {(t.kind, t.tile): t for t in timeline(tiles, product, softmax, ahead)}
    assert len(at) == 3 * tiles
    assert all(at["S", j].end <= at["exp", j].start for j in range(tiles))
    assert all(at["exp", j].end <= at["PV", j].start for j in range(tiles))


@pytest.mark.parametrize(("product", "softmax"), [(512, 1024), (1024, 1024), (10, 100)])
def test_ahead_each_further_tile_costs_the_slower_unit_alone(
    product: float, softmax: float
) -> None:
    grown = total(100, product, softmax, True) - total(99, product, softmax, True)
    assert grown == max(2 * product, softmax)


@pytest.mark.parametrize(
    ("d", "product", "softmax"), [(64, 512, 1024), (128, 1024, 1024), (256, 2048, 1024)]
)
def test_clocks_of_a_tile_on_hopper(d: Any, product: float, softmax: float) -> None:
    assert clocks("H200", d) == (product, softmax)


def test_a_tile_need_not_be_square() -> None:
    assert clocks("H200", 64, 64, 32) == (2 * 64 * 32 * 64 / 4096, 64 * 32 / 16)


def test_prints_both_orders_and_their_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in lines(capsys)[2:]]
    assert rows[0] == ["64", "512", "1024", "65536", "50%", "33792", "97%", "1.94"]
    assert [row[-1] for row in rows] == ["1.94", "1.50", "1.25"]


def test_prints_lines_of_at_most_72_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(line) for line in lines(capsys)) <= 72


@pytest.mark.parametrize("bad", [0, -1, True, 2.5])
def test_refuses_sizes_that_are_not_positive_integers(bad: Any) -> None:
    with pytest.raises(ValueError, match="tiles must be an integer of at least 1, got"):
        timeline(bad, 1, 1, True)
    with pytest.raises(ValueError, match="d must be an integer of at least 1, got"):
        clocks("H200", bad)


@pytest.mark.parametrize(("product", "softmax"), [(0, 1), (1, 0), (-1, 1), (1, NAN)])
def test_refuses_clocks_that_are_not_above_zero(product: float, softmax: float) -> None:
    with pytest.raises(ValueError, match="must be a finite number above 0, got"):
        timeline(1, product, softmax, False)


def test_refuses_an_unknown_device() -> None:
    with pytest.raises(ValueError, match="unknown device 'H300'"):
        clocks("H300", 64)
