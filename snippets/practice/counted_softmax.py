"""Softmax that reads each score once

This is the second kernel of the ledger, with its traffic counted. `s.load(i, j)` reads one number
of S from HBM, `p.store(i, j, x)` writes one number of P; both have `rows` rows of `columns`
numbers. Write the softmax of each row of S to the same row of P. The ledger allows one load for
each score and one store for each weight, and no more; what you keep in Python variables is on the
chip and costs nothing.

Hint: Softmax needs each score twice: for the largest, and for the weights. Where can a row be
between the two?

Hint: Load a row into a list. Then take its largest, the exponentials of score less largest, and
their sum, all from that list.

Hint: Store a weight when it is final. A weight that is stored first and divided later is read
again.

Check it: `python -m snippets.practice.counted_softmax answer.py`
"""

import math


def softmax_rows(s: "Matrix", p: "Matrix", rows: int, columns: int) -> None:
    """Write the softmax of each row of S to P."""
    # solution
    for i in range(rows):
        row = [s.load(i, j) for j in range(columns)]
        largest = max(row)
        weights = [math.exp(score - largest) for score in row]
        total = math.fsum(weights)
        for j in range(columns):
            p.store(i, j, weights[j] / total)
    # end


# check
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from snippets.practice.grading import Case, main, show


class Matrix:
    """A matrix in HBM that counts what is read and written."""

    def __init__(self, numbers: list[list[float]]) -> None:
        self.numbers, self.loads, self.stores = numbers, 0, 0

    def load(self, i: int, j: int) -> float:
        """Return one number; there is no row or column below 0."""
        self.loads += 1
        return self.numbers[_index(i)][_index(j)]

    def store(self, i: int, j: int, number: float) -> None:
        """Write one number."""
        self.stores += 1
        self.numbers[_index(i)][_index(j)] = number


def _index(i: int) -> int:
    if i < 0:
        raise IndexError(f"rows and columns count from 0, got {i}")
    return i


def by_decimals(row: list[float]) -> list[float]:
    """Softmax of one row with 28 digits, and no largest score taken off."""
    weights = [Decimal(score).exp() for score in row]
    return [float(weight / sum(weights)) for weight in weights]


def launched(answer: Any, numbers: list[list[float]]) -> tuple[Matrix, Matrix]:
    """Run the answer on a copy of S and a P of zeros."""
    s, p = Matrix([[*row] for row in numbers]), Matrix([[0.0] * len(row) for row in numbers])
    answer.softmax_rows(s, p, len(numbers), len(numbers[0]))
    return s, p


def weights(numbers: list[list[float]], answer: Any) -> object:
    """Return P."""
    return launched(answer, numbers)[1].numbers


def traffic(numbers: list[list[float]], answer: Any) -> object:
    """Return the loads and stores of S, then those of P."""
    s, p = launched(answer, numbers)
    return [s.loads, s.stores, p.loads, p.stores]


def cases() -> Iterator[Case]:
    """The weights, then the traffic, for one matrix after another."""
    high = "Take the largest score off first: then no exponential is above 1."
    once = "Keep the row in a list: every further load of it is a pass over HBM."
    matrices = [
        ([[0.0, 2.0]], "Each weight is exp(score) over the sum of its row."),
        ([[0.0, 2.0], [3.0, 1.0]], "Each row has its own largest score and its own sum."),
        ([[1000.0, 1001.0, 999.0]], high),
        ([[-1000.0, -1001.0], [5.0, 5.0]], high),
        ([[7.0]], "A row of one score has the weight 1."),
        ([[-math.inf, 10.0, -math.inf], [1.0, 2.0, 4.0]], "A masked score, -inf, weighs nothing."),
        ([[float(3 * i + j % 5) for j in range(6)] for i in range(4)], ""),
    ]
    for numbers, why in matrices:
        expected, size = [by_decimals(row) for row in numbers], len(numbers) * len(numbers[0])
        yield Case(f"P for S = {show(numbers)}", partial(weights, numbers), expected, why)
        shown = f"[loads of S, stores to S, loads of P, stores to P] for S = {show(numbers)}"
        yield Case(shown, partial(traffic, numbers), [size, 0, 0, size], once)


if __name__ == "__main__":
    main(cases())
