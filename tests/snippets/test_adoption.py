"""Amdahl's law on a step, and the months until a kernel has paid for itself."""

import random
from math import inf, nan

import pytest

from snippets.adoption import (
    LIBRARY,
    OWN,
    SHARE,
    main,
    months_to_break_even,
    share_afterwards,
    speedup_of_step,
)


def step_times(share: float, speedup: float) -> tuple[float, float, float]:
    """Milliseconds of a step of 100 ms before, of it after, and of its part after."""
    part, rest = 100 * share, 100 - 100 * share
    return 100.0, rest + part / speedup, part / speedup


def simulated_months(gain: float, gpus: int, build: float, upkeep: float, limit: int) -> float:
    """Run the balance in hundredths of a month until it is no longer negative."""
    freed = gpus - gpus / gain
    tick = next((t for t in range(limit) if t / 100 * (freed - upkeep) >= build), None)
    return inf if tick is None else tick / 100


@pytest.mark.parametrize("seed", range(30))
def test_speedup_of_the_step_is_the_ratio_of_its_times(seed: int) -> None:
    draw = random.Random(seed)
    share, speedup = draw.uniform(0, 1), draw.uniform(0.5, 20)
    before, after, part = step_times(share, speedup)
    assert speedup_of_step(share, speedup) == pytest.approx(before / after)
    assert share_afterwards(share, speedup) == pytest.approx(part / after)


def test_the_example_of_the_glossary() -> None:
    assert f"{speedup_of_step(0.3, 2):.2f}" == "1.18"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_no_speedup_passes_the_limit_of_the_rest(share: float) -> None:
    assert speedup_of_step(share, 1e12) <= 1 / (1 - share)
    assert speedup_of_step(share, inf) == pytest.approx(1 / (1 - share))


def test_a_part_of_everything_passes_its_speedup_on() -> None:
    assert speedup_of_step(1.0, 3.0) == pytest.approx(3.0)
    assert speedup_of_step(0.0, 3.0) == 1.0


def test_two_speedups_in_a_row_are_one_of_their_product() -> None:
    after_library = share_afterwards(SHARE, LIBRARY)
    in_a_row = speedup_of_step(SHARE, LIBRARY) * speedup_of_step(after_library, OWN)
    assert in_a_row == pytest.approx(speedup_of_step(SHARE, LIBRARY * OWN))


@pytest.mark.parametrize(
    ("gain", "gpus", "build", "upkeep"),
    [(1.5, 8, 1.0, 0.0), (1.017, 512, 30.0, 2.5), (1.017, 64, 30.0, 2.5), (2.0, 10, 7.0, 4.0)],
)
def test_break_even_is_where_a_simulated_balance_turns(
    gain: float, gpus: int, build: float, upkeep: float
) -> None:
    simulated = simulated_months(gain, gpus, build, upkeep, limit=5000)
    assert months_to_break_even(gain, gpus, build, upkeep) == pytest.approx(simulated, abs=0.011)


def test_upkeep_as_large_as_the_saving_never_pays() -> None:
    assert months_to_break_even(2.0, 10, 1.0, 5.0) == inf
    assert months_to_break_even(1.0, 10, 1.0, 0.0) == inf
    assert months_to_break_even(0.9, 10, 1.0, 0.0) == inf


def test_work_that_cost_nothing_has_paid_at_once() -> None:
    assert months_to_break_even(1.5, 8, 0.0, 0.0) == 0.0


def test_the_exercise_has_the_solution_of_the_page() -> None:
    assert f"{speedup_of_step(0.25, 1.3):.3f}" == "1.061"
    assert f"{months_to_break_even(speedup_of_step(0.25, 1.3), 256, 30, 2.5):.1f}" == "2.4"
    assert months_to_break_even(speedup_of_step(0.25, 1.3), 40, 30, 2.5) == inf


@pytest.mark.parametrize("bad", [-0.1, 1.1, nan])
def test_a_share_outside_0_to_1_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=f"share must lie between 0 and 1, got {bad}"):
        share_afterwards(bad, 2.0)


@pytest.mark.parametrize("bad", [0, -2.0, nan])
def test_a_speedup_that_is_not_positive_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=f"speedup must be above 0, got {bad}"):
        speedup_of_step(0.5, bad)
    with pytest.raises(ValueError, match=f"gain must be above 0, got {bad}"):
        months_to_break_even(bad, 1, 1, 1)


@pytest.mark.parametrize("bad", [-1, inf, nan])
def test_costs_that_are_negative_or_endless_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=f"gpus must be at least 0 and finite, got {bad}"):
        months_to_break_even(2.0, bad, 1, 1)
    with pytest.raises(ValueError, match=f"build must be at least 0 and finite, got {bad}"):
        months_to_break_even(2.0, 1, bad, 1)
    with pytest.raises(ValueError, match=f"upkeep must be at least 0 and finite, got {bad}"):
        months_to_break_even(2.0, 1, 1, bad)


def test_prints_the_step_and_the_months(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "separate kernels 40.0 60.0 100.0 0.67" in lines
    assert "the library 6.7 60.0 66.7 1.00" in lines
    assert "your own kernel 5.6 60.0 65.6 1.02" in lines
    assert "attention in no time 0.0 60.0 60.0 1.11" in lines
    assert "your kernel: 7.2 times the separate kernels; your step: 1.7% faster" in out
    assert "library 0.4 < 0.1 < 0.1 < 0.1" in lines
    assert "own never never 5.0 0.5" in lines
    assert max(map(len, out.splitlines())) <= 72
