"""Masked tiles: the solution against torch, and repairs that must be refused."""

import math

import pytest
import torch

from snippets.practice.masked_tile import finish, update

INF = math.inf


def test_a_row_walked_from_right_to_left_keeps_its_weight() -> None:
    # flash-attention issue 2082: causal, 88 queries on 448 keys; query 2 sees 363 of them
    generator = torch.Generator().manual_seed(2)
    scores = -9000 + torch.randn(448, dtype=torch.float64, generator=generator)
    scores[363:] = -INF
    state = (-INF, 0.0, 0.0)
    for first in (384, 256, 128, 0):
        tile = scores[first : first + 128].tolist()
        state = update(*state, tile, [float(first + i) for i in range(len(tile))])
    out, lse = finish(*state)
    keys = torch.arange(448, dtype=torch.float64)
    assert out == pytest.approx((scores.softmax(0) @ keys).item(), rel=1e-12)
    assert lse == pytest.approx(scores.logsumexp(0).item(), rel=1e-14)


def test_one_live_score_far_inside_a_masked_row_has_all_the_weight() -> None:
    # flash-attention issue 1930: which tile holds the live score must not matter
    row = [-INF] * 1000
    row[500] = 10.0
    state = (-INF, 0.0, 0.0)
    for first in range(0, 1000, 64):
        tile = row[first : first + 64]
        state = update(*state, tile, [float(first + i) for i in range(len(tile))])
    assert finish(*state) == (500.0, 10.0)


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        pytest.param(
            [
                (
                    "    if largest == -math.inf:\n        return m, l, acc\n",
                    "    if largest == -math.inf:\n        largest = 0.0\n",
                ),
            ],
            [
                "[[-inf, -inf], [-9000.0, -9001.0], [-9002.5, -8999.0]]",
                "raised    ZeroDivisionError in line",
                "expected  (5.084064704, -8998.572505)",
                "must not touch the largest score",
            ],
            id="the-maximum-set-to-0",
        ),
        pytest.param(
            [
                (
                    "    if largest == -math.inf:\n        return m, l, acc\n",
                    "    largest = max(largest, 0.0)\n",
                ),
            ],
            [
                "[[-inf, -inf], [-9000.0, -9001.0], [-9002.5, -8999.0]]",
                "raised    ZeroDivisionError",
            ],
            id="the-maximum-never-below-0",
        ),
        pytest.param(
            [
                (
                    "    if largest == -math.inf:\n        return m, l, acc\n",
                    "    largest = max(largest, -1e5)\n",
                ),
            ],
            [
                "[[-inf, -inf], [-inf, -1000000.0]]",
                "raised    ZeroDivisionError",
                "expected  (4.0, -1000000.0)",
            ],
            id="a-large-number-for-minus-infinity",
        ),
        pytest.param(
            [
                (
                    "    if largest == -math.inf:\n        return m, l, acc\n",
                    "    if max(scores) == -math.inf:\n        return -math.inf, 0.0, 0.0\n",
                ),
            ],
            [
                "[[1.0, 3.0], [2.0, 0.5], [-inf, -inf]]",
                "gave      (0.0, -inf)\nexpected  (2.250245521, 3.460773489)",
                "leave the state",
            ],
            id="back-to-the-start",
        ),
        pytest.param(
            [
                (
                    "    if largest == -math.inf:\n        return m, l, acc\n",
                    "    if -math.inf in scores:\n        return m, l, acc\n",
                ),
            ],
            [
                "[[-inf, 3.0], [2.0, -inf]]",
                "gave      (0.0, -inf)\nexpected  (2.268941421, 3.313261688)",
                "in part",
            ],
            id="any-mask-skips-the-tile",
        ),
        pytest.param(
            [
                ("    if m == -math.inf:\n        return 0.0, -math.inf\n", ""),
            ],
            [
                "[[-inf, -inf], [-inf, -inf]]",
                "raised    ZeroDivisionError in line 21 of your answer",
                "expected  (0.0, -inf)",
            ],
            id="the-end-not-mended",
        ),
        pytest.param(
            [
                ("return 0.0, -math.inf", "return 0.0, 0.0"),
            ],
            ["gave      (0.0, 0.0)\nexpected  (0.0, -inf)", "logsumexp of -inf"],
            id="the-wrong-logsumexp",
        ),
        pytest.param(
            [
                ("return 0.0, -math.inf", "return math.nan, -math.inf"),
            ],
            ["gave      (nan, -inf)\nexpected  (0.0, -inf)"],
            id="nan-for-an-empty-row",
        ),
    ],
)
def test_a_wrong_answer_is_told_what_came_and_what_was_expected(refuse, edits, says) -> None:
    found = refuse("masked_tile", edits)
    assert [part for part in says if part not in found] == []


def test_masked_scores_left_out_of_the_tile_are_accepted(judge) -> None:
    answer = """
from math import exp, inf, log

def update(m, l, acc, scores, values):
    for s, v in zip(scores, values):
        if s > -inf:
            new = max(m, s)
            l = l * exp(m - new) + exp(s - new)
            acc = acc * exp(m - new) + exp(s - new) * v
            m = new
    return m, l, acc

def finish(m, l, acc):
    return (acc / l, m + log(l)) if l else (0, -inf)
"""
    assert judge("masked_tile", answer) == ""
