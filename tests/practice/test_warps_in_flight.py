"""Little's law in whole warps: the solution by fractions, and answers that must be refused."""

import math
from fractions import Fraction

import pytest

from snippets.hardware import fact
from snippets.practice.warps_in_flight import warps_needed

QUOTIENT = "-(-rate * latency_ns // (one_each * 10**9))"


def by_fractions(rate: int, latency_ns: int, sms: int, load: int) -> int:
    return math.ceil(Fraction(rate * latency_ns, sms * 32 * load * 10**9))


@pytest.mark.parametrize("device", ["A100-40", "A100-80", "H100", "H200", "B200"])
@pytest.mark.parametrize("load", [1, 2, 4, 8, 16])
def test_the_solution_is_the_exact_quotient_rounded_up(device: str, load: int) -> None:
    rate, sms = int(fact(device, "hbm_rate").value), int(fact(device, "sms").value)
    assert warps_needed(rate, 700, sms, load) == by_fractions(rate, 700, sms, load)


def test_an_h200_has_warps_enough_for_wide_loads_only() -> None:
    rate, sms = int(fact("H200", "hbm_rate").value), int(fact("H200", "sms").value)
    slots = fact("H200", "warp_slots").value
    enough = [load for load in (4, 8, 16) if warps_needed(rate, 700, sms, load) <= slots]
    assert enough == [16]


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        pytest.param(
            [(QUOTIENT, "rate * latency_ns // (one_each * 10**9)")],
            ["rate=32_000_000_001", "gave      25\nexpected  26", "round up"],
            id="rounds-down",
        ),
        pytest.param(
            [(QUOTIENT, "rate * latency_ns // (one_each * 10**9) + 1")],
            ["rate=32_000_000_000", "gave      26\nexpected  25", "just enough"],
            id="always-adds-one",
        ),
        pytest.param(
            [("sms * 32 * load", "32 * load")],
            ["sms=5", "gave      25\nexpected  5", "The warps of all SMs"],
            id="one-sm-for-all",
        ),
        pytest.param(
            [("sms * 32 * load", "sms * load")],
            ["gave      800\nexpected  25", "32 x 4 bytes"],
            id="threads-for-warps",
        ),
        pytest.param(
            [("sms * 32 * load", "sms * 32 * 4")],
            ["load=16", "gave      25\nexpected  7", "Wider loads"],
            id="any-load-is-4-bytes",
        ),
        pytest.param(
            [
                ("def warps_needed", "import math\n\n\ndef warps_needed"),
                (QUOTIENT, "math.ceil(rate * latency_ns * 1e-9 / one_each)"),
            ],
            ["rate=1_382_400_000_000", "gave      55\nexpected  54", "Floats"],
            id="a-float-a-little-above",
        ),
    ],
)
def test_a_wrong_answer_is_told_what_came_and_what_was_expected(refuse, edits, says) -> None:
    found = refuse("warps_in_flight", edits)
    assert [part for part in says if part not in found] == []


def test_another_way_to_the_right_answer_is_accepted(judge) -> None:
    answer = """
import math

def warps_needed(rate, latency_ns, sms, load):
    return math.ceil(rate * latency_ns / 1e9 / (sms * 32 * load))
"""
    assert judge("warps_in_flight", answer) == ""
