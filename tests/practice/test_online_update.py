"""The online update: the solution against torch, and answers that must be refused."""

import math

import pytest
import torch

from snippets.practice.online_update import update


@pytest.mark.parametrize("tile", [1, 5, 32, 100])
def test_the_solution_agrees_with_torch_over_tiles(tile: int) -> None:
    generator = torch.Generator().manual_seed(tile)
    scores = 20 * torch.randn(100, dtype=torch.float64, generator=generator)
    values = torch.randn(100, dtype=torch.float64, generator=generator)
    state = (-math.inf, 0.0, 0.0)
    for part, weight in zip(scores.split(tile), values.split(tile), strict=True):
        state = update(*state, part.tolist(), weight.tolist())
    m, l, acc = state  # noqa: E741
    assert m == scores.max().item()
    assert m + math.log(l) == pytest.approx(scores.logsumexp(0).item(), rel=1e-13)
    assert acc / l == pytest.approx((scores.softmax(0) @ values).item(), rel=1e-12)


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        pytest.param(
            [
                ("shrink = math.exp(m - largest)", "shrink = 1.0"),
            ],
            [
                "m=1.0, l=1.367879441, acc=4.0, scores=[0.0, 3.0]",
                "gave      (3.0, 2.41766651, 12.0)\nexpected  (3.0, 1.23490942, 8.541341133)",
                "both old sums must shrink",
            ],
            id="nothing-is-rescaled",
        ),
        pytest.param(
            [
                ("acc = acc * shrink", "acc = acc"),
            ],
            ["gave      (3.0, 1.23490942, 12.0)\nexpected  (3.0, 1.23490942, 8.541341133)"],
            id="only-l-is-rescaled",
        ),
        pytest.param(
            [
                ("l = l * shrink", "l = l"),
            ],
            ["gave      (3.0, 2.41766651, 8.541341133)\nexpected  (3.0, 1.23490942, 8.541341133)"],
            id="only-acc-is-rescaled",
        ),
        pytest.param(
            [
                ("math.exp(m - largest)", "math.exp(largest - m)"),
            ],
            [
                "m=-inf, l=0.0, acc=0.0",
                "gave      (1.0, nan, nan)\nexpected  (1.0, 1.367879441, 4.0)",
            ],
            id="grows-instead-of-shrinking",
        ),
        pytest.param(
            [
                ("max(m, *scores)", "max(scores)"),
            ],
            [
                "scores=[-1.0, 0.5]",
                "gave      (0.5, ",
                "expected  (1.0, 2.109745384, 7.909854525)",
                "No larger score came",
            ],
            id="the-maximum-of-the-tile-alone",
        ),
        pytest.param(
            [
                ("max(m, *scores)", "0.0"),
            ],
            ["gave      (0.0, 3.718281828, 10.87312731)\nexpected  (1.0, 1.367879441, 4.0)"],
            id="no-maximum-at-all",
        ),
        pytest.param(
            [
                ("return largest, l, acc", "return largest, l, acc / l"),
            ],
            ["gave      (1.0, 1.367879441, 2.924234315)\nexpected  (1.0, 1.367879441, 4.0)"],
            id="divided-in-each-step",
        ),
    ],
)
def test_a_wrong_answer_is_told_what_came_and_what_was_expected(refuse, edits, says) -> None:
    found = refuse("online_update", edits)
    assert [part for part in says if part not in found] == []


def test_one_score_at_a_time_is_accepted(judge) -> None:
    answer = """
from math import exp

def update(m, l, acc, scores, values):
    for s, v in zip(scores, values):
        if s > m:
            l, acc, m = l * exp(m - s), acc * exp(m - s), s
        l += exp(s - m)
        acc += exp(s - m) * v
    return [m, l, acc]
"""
    assert judge("online_update", answer) == ""
