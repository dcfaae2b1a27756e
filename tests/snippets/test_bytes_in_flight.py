"""Little's law: bytes under way, and the rate that they sustain."""

import random

import pytest

from snippets.bytes_in_flight import LATENCY_S, bytes_needed, main, sustained_rate
from snippets.hardware import DEVICES, fact


def served_bytes(slots: int, size: int, latency: int, rate: int, ticks: int) -> int:
    """Bytes that arrive when `slots` loads of `size` bytes are always under way.

    Each load answers `latency` ticks after its issue, or later when the memory, which delivers
    at most `rate` bytes a tick, still owes earlier ones.
    """
    due, backlog, arrived = [0] * (2 * ticks + latency + 1), 0, 0
    due[latency] = slots * size
    for tick in range(ticks):
        backlog += due[tick]
        delivered = min(rate, backlog)
        backlog -= delivered
        arrived += delivered
        due[tick + latency] += delivered  # each byte that arrives lets another be asked for
    return arrived


def test_an_h200_needs_3_4_megabytes_and_25_kibibytes_an_sm() -> None:
    needed = bytes_needed(fact("H200", "hbm_rate").value)
    assert f"{needed / 1e6:.1f}" == "3.4"
    assert round(needed / fact("H200", "sms").value / 1024) == 25


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_needed_sustains_the_full_rate_and_half_of_it_half(device: str) -> None:
    rate = fact(device, "hbm_rate").value
    assert sustained_rate(bytes_needed(rate), rate) == pytest.approx(rate)
    assert sustained_rate(bytes_needed(rate) / 2, rate) == pytest.approx(rate / 2)


@pytest.mark.parametrize("seed", range(20))
def test_more_in_flight_never_passes_the_rate_of_the_device(seed: int) -> None:
    draw = random.Random(seed)
    rate, latency = draw.uniform(1e9, 1e13), draw.uniform(1e-8, 1e-5)
    in_flight = bytes_needed(rate, latency) * draw.uniform(1, 100)
    assert sustained_rate(in_flight, rate, latency) == pytest.approx(rate)


@pytest.mark.parametrize(("slots", "size"), [(1, 1), (3, 2), (5, 4), (10, 4), (20, 4), (64, 4)])
def test_the_law_is_what_a_simulated_memory_delivers(slots: int, size: int) -> None:
    latency, rate, ticks = 10, 4, 20_000
    simulated = served_bytes(slots, size, latency, rate, ticks) / ticks
    assert sustained_rate(slots * size, rate, latency) == pytest.approx(simulated, rel=0.002)


def test_needed_bytes_scale_with_rate_and_with_latency() -> None:
    assert bytes_needed(2e12, 500e-9) == pytest.approx(1e6)
    assert bytes_needed(4e12, 500e-9) == pytest.approx(2e6)
    assert bytes_needed(2e12, 250e-9) == pytest.approx(5e5)


def test_the_exercise_has_the_solution_of_the_page() -> None:
    assert f"{bytes_needed(2e12, 500e-9) / 100 / 1024:.1f}" == "9.8"
    assert sustained_rate(5e5, 2e12, 500e-9) == pytest.approx(1e12)


@pytest.mark.parametrize("bad", [0, -1.0, float("nan")])
def test_a_rate_or_latency_that_is_not_positive_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=f"rate must be a finite number above 0, got {bad}"):
        bytes_needed(bad)
    with pytest.raises(ValueError, match=f"latency_s must be a finite number above 0, got {bad}"):
        bytes_needed(1e12, bad)
    with pytest.raises(ValueError, match=f"in_flight must be a finite number above 0, got {bad}"):
        sustained_rate(bad, 1e12)


def test_prints_the_curve_up_to_the_full_rate(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert "(assumed)" in out
    assert f"{LATENCY_S * 1e9:.0f} ns" in out
    assert ["8", "1.54", "32%"] in rows
    assert ["16", "3.09", "64%"] in rows
    assert ["32", "4.80", "100%"] in rows
    assert max(map(len, out.splitlines())) <= 72
