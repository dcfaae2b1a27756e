"""Softmax in one pass over HBM: the solution against torch, and answers that must be refused."""

import pytest
import torch

from snippets.practice.counted_softmax import Matrix, softmax_rows


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 7), (8, 33)])
def test_the_solution_agrees_with_torch_and_touches_each_number_once(rows, columns) -> None:
    generator = torch.Generator().manual_seed(rows)
    scores = 50 * torch.randn(rows, columns, dtype=torch.float64, generator=generator)
    s, p = Matrix(scores.tolist()), Matrix([[0.0] * columns for _ in range(rows)])
    softmax_rows(s, p, rows, columns)
    expected = scores.softmax(1)
    torch.testing.assert_close(torch.tensor(p.numbers, dtype=torch.float64), expected)
    assert (s.loads, s.stores, p.loads, p.stores) == (rows * columns, 0, 0, rows * columns)


def test_there_is_no_row_below_the_first() -> None:
    with pytest.raises(IndexError, match="rows and columns count from 0, got -1"):
        Matrix([[1.0]]).load(-1, 0)
    with pytest.raises(IndexError, match="rows and columns count from 0, got -1"):
        Matrix([[1.0]]).store(0, -1, 2.0)


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        pytest.param(
            [
                (
                    "        largest = max(row)",
                    "        largest = max(s.load(i, j) for j in range(columns))",
                ),
            ],
            [
                "[loads of S, stores to S",
                "gave      [4, 0, 0, 2]\nexpected  [2, 0, 0, 2]",
                "a pass over HBM",
            ],
            id="three-passes",
        ),
        pytest.param(
            [
                ("math.exp(score - largest)", "math.exp(score)"),
            ],
            [
                "S = [[1000.0, 1001.0, 999.0]]",
                "raised    OverflowError in line 9 of your answer",
                "largest score off first",
            ],
            id="no-largest-taken-off",
        ),
        pytest.param(
            [
                ("    for i in range(rows):\n", "    total = 0.0\n    for i in range(rows):\n"),
                ("total = math.fsum(weights)", "total += math.fsum(weights)"),
            ],
            [
                "S = [[0.0, 2.0], [3.0, 1.0]]",
                "gave      [[0.119202922, 0.880797078], [0.440398539,",
                "expected  [[0.119202922, 0.880797078], [0.880797078, 0.119202922]]",
                "its own sum",
            ],
            id="one-sum-for-all-rows",
        ),
        pytest.param(
            [
                (
                    "            p.store(i, j, weights[j] / total)",
                    "            p.store(i, j, weights[j])\n"
                    "        for j in range(columns):\n"
                    "            p.store(i, j, p.load(i, j) / total)",
                ),
            ],
            ["gave      [2, 0, 2, 4]\nexpected  [2, 0, 0, 2]"],
            id="weights-stored-before-they-are-final",
        ),
        pytest.param(
            [
                ("weights[j] / total", "weights[j]"),
            ],
            ["gave      [[0.1353352832, 1.0]]\nexpected  [[0.119202922, 0.880797078]]"],
            id="not-divided",
        ),
    ],
)
def test_a_wrong_answer_is_told_what_came_and_what_was_expected(refuse, edits, says) -> None:
    found = refuse("counted_softmax", edits)
    assert [part for part in says if part not in found] == []


def test_a_row_kept_in_a_dict_is_accepted(judge) -> None:
    answer = """
from math import exp

def softmax_rows(s, p, rows, columns):
    for i in range(rows):
        row = {j: s.load(i, j) for j in reversed(range(columns))}
        most = max(row.values())
        total = sum(exp(x - most) for x in row.values())
        for j, x in row.items():
            p.store(i, j, exp(x - most) / total)
"""
    assert judge("counted_softmax", answer) == ""
