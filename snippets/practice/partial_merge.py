"""Two partial results of one row

Two programs have each taken a part of the keys of one query. Each stored its finished output,
`out_a` or `out_b`, a list of d numbers, and the logsumexp of its scores, `lse_a` or `lse_b`.
Return the output and the logsumexp of the whole row. A part whose keys were all masked has an
output of zeros and a logsumexp of -inf; both parts may be so.

Hint: A part's logsumexp says how much weight it had before it divided: exp(lse). The whole output
is the mean of the two with these weights.

Hint: exp(10000) overflows. Measure both weights from the larger logsumexp, as online softmax does
with scores.

Hint: The logsumexp of the whole is that larger one plus the log of the sum of both weights. If
even the larger one is -inf, there is nothing to merge.

Check it: `python -m snippets.practice.partial_merge answer.py`
"""

import math


def merge(
    out_a: list[float], lse_a: float, out_b: list[float], lse_b: float
) -> tuple[list[float], float]:
    """Return output and logsumexp of a row from those of its two parts."""
    # solution
    larger = max(lse_a, lse_b)
    if larger == -math.inf:
        return out_a, larger
    a, b = math.exp(lse_a - larger), math.exp(lse_b - larger)
    pairs = zip(out_a, out_b, strict=True)
    out = [(x * a + y * b) / (a + b) for x, y in pairs]
    return out, larger + math.log(a + b)
    # end


# check
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from snippets.practice.grading import Case, call, main, show

SIGNATURE = "merge(out_a, lse_a, out_b, lse_b)"
NONE = -math.inf
Part = tuple[list[float], float]


def attend(scores: list[float], first: int = 0) -> Part:
    """Output and logsumexp of scores with 28 digits; the key j has the values j and 1."""
    row = [(Decimal(s).exp(), j) for j, s in enumerate(scores, start=first) if s > NONE]
    if not row:
        return [0.0, 0.0], NONE
    total = Decimal(sum(weight for weight, _ in row))
    return [float(sum(weight * j for weight, j in row) / total), 1.0], float(total.ln())


def split(scores: list[float], parts: int, answer: Any) -> object:
    """Attend to the parts apart, and merge them one after another."""
    size = -(-len(scores) // parts)
    out, lse = [0.0, 0.0], NONE
    for i in range(0, len(scores), size):
        out, lse = answer.merge(out, lse, *attend(scores[i : i + size], i))
    return out, lse


def cases() -> Iterator[Case]:
    """Equal parts, unequal ones, extremes, parts without keys, and rows in several parts."""
    low, high = attend([-10_000.0, -10_001.0]), attend([10_000.0, 9_999.0], 2)
    pairs = [
        ([1.0], [1.0], "Two parts of equal weight: the mean of both."),
        ([0.0, 0.0, 0.0], [0.0], "Three keys weigh three times as much as one."),
        ([3.0, 1.0], [2.5, 0.2, 4.1], "Each output counts with exp(its logsumexp)."),
        ([10_000.0], [10_001.0], "exp(10000) overflows: measure from the larger logsumexp."),
        ([-10_000.0], [-10_001.0], "exp(-10000) is 0: measure from the larger logsumexp."),
        ([NONE, NONE], [2.0, 1.0], "A part without live keys has no weight."),
        ([2.0, 1.0], [NONE, NONE], "A part without live keys has no weight."),
        ([NONE], [NONE], "Nothing is live: zeros, and a logsumexp of -inf."),
    ]
    for a, b, why in pairs:
        parts = (*attend(a), *attend(b, len(a)))
        yield call(SIGNATURE, parts, attend(a + b), why)
    yield call(SIGNATURE, (*low, *high), high, "The first part is too light to be seen.")
    row = [3.0, 1.0, 2.5, 0.2, NONE, NONE, 2.2, 0.7, 3.3, 1.9, NONE, NONE]
    for parts_of_row in (1, 2, 3, 6, 12):
        shown = f"{show(row)}, merged from {parts_of_row} parts, values j and 1"
        run = partial(split, row, parts_of_row)
        yield Case(shown, run, attend(row), "The number of parts must not change the result.")


if __name__ == "__main__":
    main(cases())
