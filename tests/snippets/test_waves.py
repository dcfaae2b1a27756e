"""Waves of programs and their tails."""

import heapq
from typing import Any

import pytest

from snippets import waves as lab
from snippets.waves import attention_programs, efficiency, waves


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    lab.main()
    return capsys.readouterr().out.splitlines()


def simulated(programs: int, places: int) -> tuple[int, float]:
    """Finish time and busy share when each free place takes the next program of length 1."""
    free = [0] * places
    busy = 0
    for _ in range(programs):
        start = heapq.heappop(free)
        busy += 1
        heapq.heappush(free, start + 1)
    return max(free), busy / (max(free) * places)


SIZES = [(1, 1), (1, 132), (32, 132), (131, 132), (132, 132), (133, 132), (264, 132), (1000, 7)]


@pytest.mark.parametrize(("programs", "places"), SIZES)
def test_agrees_with_a_simulation_of_the_scheduler(programs: int, places: int) -> None:
    finish, share = simulated(programs, places)
    assert waves(programs, places) == finish
    assert efficiency(programs, places) == pytest.approx(share)


def test_one_head_is_32_programs_and_a_quarter_of_the_device() -> None:
    assert attention_programs(1, 4096) == 32
    assert efficiency(32, 132) == pytest.approx(32 / 132)


@pytest.mark.parametrize(
    ("heads", "queries", "tile"), [(1, 1, 128), (3, 129, 128), (2, 128, 128), (5, 1000, 64)]
)
def test_each_head_and_ragged_tile_has_its_own_program(heads: int, queries: int, tile: int) -> None:
    counted = [(h, first) for h in range(heads) for first in range(0, queries, tile)]
    assert attention_programs(heads, queries, tile) == len(counted)


@pytest.mark.parametrize("full", [1, 2, 7])
def test_a_full_wave_wastes_nothing_and_one_program_more_costs_a_wave(full: int) -> None:
    assert efficiency(full * 132, 132) == 1.0
    assert waves(full * 132 + 1, 132) == full + 1


def test_prints_programs_waves_and_efficiency_of_the_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [line.split() for line in lines(capsys)[2:]]
    assert rows[0] == ["1", "128", "32", "1", "24%"]
    assert ["5", "128", "160", "2", "61%"] in rows
    assert rows[-1] == ["64", "128", "2048", "16", "97%"]


def test_prints_lines_of_at_most_72_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(line) for line in lines(capsys)) <= 72


@pytest.mark.parametrize("bad", [0, -1, True, 2.0])
def test_refuses_counts_that_are_not_positive_integers(bad: Any) -> None:
    with pytest.raises(ValueError, match="programs must be an integer of at least 1, got"):
        efficiency(bad, 132)
    with pytest.raises(ValueError, match="places must be an integer of at least 1, got"):
        waves(1, bad)
    with pytest.raises(ValueError, match="tile must be an integer of at least 1, got"):
        attention_programs(1, 4096, bad)
