"""Merged parts: the solution against torch, and answers that must be refused."""

import pytest
import torch

from snippets.practice.partial_merge import merge


@pytest.mark.parametrize("scale", [1, 1000])
@pytest.mark.parametrize("cut", [1, 20, 39])
def test_the_solution_agrees_with_torch_wherever_the_row_is_cut(scale: int, cut: int) -> None:
    generator = torch.Generator().manual_seed(cut)
    scores = scale * torch.randn(40, dtype=torch.float64, generator=generator)
    values = torch.randn(40, 3, dtype=torch.float64, generator=generator)
    parts = [
        ((s.softmax(0) @ v).tolist(), s.logsumexp(0).item())
        for s, v in ((scores[:cut], values[:cut]), (scores[cut:], values[cut:]))
    ]
    out, lse = merge(*parts[0], *parts[1])
    assert out == pytest.approx((scores.softmax(0) @ values).tolist(), rel=1e-11, abs=1e-13)
    assert lse == pytest.approx(scores.logsumexp(0).item(), rel=1e-14)


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        pytest.param(
            [
                (
                    "[(x * a + y * b) / (a + b) for x, y in pairs]",
                    "[(x + y) / 2 for x, y in pairs]",
                ),
            ],
            [
                "out_a=[1.0, 1.0], lse_a=1.098612289, out_b=[3.0, 1.0], lse_b=0.0",
                "gave      ([2.0, 1.0], 1.386294361)\nexpected  ([1.5, 1.0], 1.386294361)",
                "three times as much",
            ],
            id="the-mean-of-both",
        ),
        pytest.param(
            [
                (
                    "math.exp(lse_a - larger), math.exp(lse_b - larger)",
                    "math.exp(lse_a), math.exp(lse_b)",
                ),
                ("larger + math.log(a + b)", "math.log(a + b)"),
            ],
            ["lse_a=10000.0", "raised    OverflowError in line", "larger logsumexp"],
            id="measured-from-0",
        ),
        pytest.param(
            [
                ("    if larger == -math.inf:\n        return out_a, larger\n", ""),
            ],
            [
                "lse_a=-inf",
                "gave      ([nan, nan], nan)\nexpected  ([0.0, 0.0], -inf)",
                "Nothing is live",
            ],
            id="nothing-live-forgotten",
        ),
        pytest.param(
            [
                ("math.exp(lse_a - larger), math.exp(lse_b - larger)", "lse_a, lse_b"),
            ],
            ["gave      ([1.0, 1.0], 1.192660116)\nexpected  ([1.5, 1.0], 1.386294361)"],
            id="the-logsumexps-as-weights",
        ),
        pytest.param(
            [
                (" / (a + b) for", " for"),
            ],
            ["gave      ([1.0, 2.0], 1.693147181)\nexpected  ([0.5, 1.0], 1.693147181)"],
            id="not-divided",
        ),
        pytest.param(
            [
                ("larger + math.log(a + b)", "larger"),
            ],
            ["gave      ([0.5, 1.0], 1.0)\nexpected  ([0.5, 1.0], 1.693147181)"],
            id="the-larger-logsumexp-alone",
        ),
    ],
)
def test_a_wrong_answer_is_told_what_came_and_what_was_expected(refuse, edits, says) -> None:
    found = refuse("partial_merge", edits)
    assert [part for part in says if part not in found] == []


def test_a_weight_by_a_sigmoid_is_accepted(judge) -> None:
    answer = """
from math import exp, inf, log1p

def merge(out_a, lse_a, out_b, lse_b):
    if lse_b > lse_a:
        return merge(out_b, lse_b, out_a, lse_a)
    if lse_b == -inf:
        return out_a, lse_a
    b = exp(lse_b - lse_a)
    return [x + (y - x) * b / (1 + b) for x, y in zip(out_a, out_b)], lse_a + log1p(b)
"""
    assert judge("partial_merge", answer) == ""
