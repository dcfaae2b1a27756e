"""The online update

A row of scores arrives in tiles of `scores` and `values`, one value a score, and no tile is kept.
The state is the largest score so far `m`, the sum `l` of exp(score - m), and `acc`, the sum of
exp(score - m) times the value. It starts as (-inf, 0, 0), and after the last tile the result is
acc / l. Fold one tile into the state, and return the new one.

Hint: Which of the old three numbers were measured from the old largest score? What must they be
multiplied by to be measured from the new one?

Hint: Take the new largest score first, of the old `m` and the tile. Then shrink `l` and `acc`,
and only then add what the tile brings.

Hint: The factor is exp(old m - new m), at most 1. From the start it is exp(-inf), which Python
gives as 0.

Check it: `python -m snippets.practice.online_update answer.py`
"""

import math


def update(
    m: float, l: float, acc: float, scores: list[float], values: list[float]
) -> tuple[float, float, float]:
    """Return (m, l, acc) with one tile folded in."""
    # solution
    largest = max(m, *scores)
    shrink = math.exp(m - largest)
    weights = [math.exp(score - largest) for score in scores]
    pairs = zip(weights, values, strict=True)
    l = l * shrink + math.fsum(weights)
    acc = acc * shrink + math.fsum(weight * value for weight, value in pairs)
    return largest, l, acc
    # end


# check
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from snippets.practice.grading import Case, call, main, show

SIGNATURE = "update(m, l, acc, scores, values)"
TEN = [3.0, 1.0, 2.5, 0.2, 4.1, -1.0, 2.2, 0.7, 3.3, 1.9]


def state(scores: list[float], values: list[float]) -> tuple[float, float, float]:
    """The state of a whole row, by its definition and with 28 digits."""
    weights = [(Decimal(score) - Decimal(max(scores))).exp() for score in scores]
    weighted = (w * Decimal(v) for w, v in zip(weights, values, strict=True))
    return max(scores), float(sum(weights)), float(sum(weighted))


def folded(scores: list[float], values: list[float], tile: int, answer: Any) -> object:
    """Fold the row into the state, `tile` scores at a time."""
    now = (-math.inf, 0.0, 0.0)
    for i in range(0, len(scores), tile):
        now = answer.update(*now, scores[i : i + tile], values[i : i + tile])
    return now


def cases() -> Iterator[Case]:
    """One tile, a second that rescales, a second that does not, and rows in tiles of all sizes."""
    tens = [10.0 * (i + 1) for i in range(10)]
    first = state([1.0, 0.0], [4.0, 0.0])
    start = "The start is m = -inf with sums of 0: nothing of it may stay."
    yield call(SIGNATURE, (-math.inf, 0.0, 0.0, [1.0, 0.0], [4.0, 0.0]), first, start)
    after = "A larger score came: both old sums must shrink by exp(old m - new m)."
    expected = state([1.0, 0.0, 0.0, 3.0], [4.0, 0.0, 0.0, 8.0])
    yield call(SIGNATURE, (*first, [0.0, 3.0], [0.0, 8.0]), expected, after)
    after = "No larger score came: m and the old sums stay, and the tile is measured from m."
    expected = state([1.0, 0.0, -1.0, 0.5], [4.0, 0.0, 2.0, 6.0])
    yield call(SIGNATURE, (*first, [-1.0, 0.5], [2.0, 6.0]), expected, after)
    rows = [
        ("the ten scores of the lesson", TEN, tens),
        ("ten scores, the largest first", sorted(TEN, reverse=True), tens),
        ("ten scores, the largest last", sorted(TEN), tens),
        ("ten equal scores", [2.0] * 10, tens),
        ("scores near 10,000", [score + 10_000 for score in TEN], tens),
        ("scores near -9,000", [score - 9_000 for score in TEN], tens),
    ]
    for name, scores, values in rows:
        for tile in (1, 2, 3, 4, 10, 11):
            shown = f"{name}, in tiles of {tile}: {show(scores)}\nvalues {show(values)}"
            run = partial(folded, scores, values, tile)
            yield Case(shown, run, state(scores, values), "The tiles must not change the state.")


if __name__ == "__main__":
    main(cases())
