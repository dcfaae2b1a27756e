"""A tile that is masked throughout

This is the online update for `scores` with their `values`, and the end of the loop. Both are
right as long as every tile has a live score. A mask sets scores to -inf; when it covers a whole
tile before anything live was seen, -inf less -inf is NaN, and NaN stays. When it covers the whole
row, the end divides by zero. Mend both functions: a masked tile, wherever it stands, must leave
the state (`m`, `l`, `acc`) as it was, and a row without a live score must give the result 0 with
a logsumexp of -inf.

Hint: In which state, and with which tile, is `largest` still -inf? What may change then?

Hint: Setting `largest` to 0 there avoids the NaN and plants another fault: when all live scores
are near -9,000, every weight measured from 0 is 0.

Hint: `update` can return the state it was given. `finish` can tell an empty row by its `m`.

Check it: `python -m snippets.practice.masked_tile answer.py`
"""

import math


def update(
    m: float, l: float, acc: float, scores: list[float], values: list[float]
) -> tuple[float, float, float]:
    """Fold one tile into (m, l, acc); a masked score is -inf."""
    largest = max(m, *scores)
    # solution
    if largest == -math.inf:
        return m, l, acc
    # instead
    # end
    shrink = math.exp(m - largest)
    weights = [math.exp(score - largest) for score in scores]
    pairs = zip(weights, values, strict=True)
    l = l * shrink + math.fsum(weights)
    acc = acc * shrink + math.fsum(weight * value for weight, value in pairs)
    return largest, l, acc


def finish(m: float, l: float, acc: float) -> tuple[float, float]:
    """Return the weighted sum of the row and its logsumexp."""
    # solution
    if m == -math.inf:
        return 0.0, -math.inf
    # instead
    # end
    return acc / l, m + math.log(l)


# check
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any

from snippets.practice.grading import Case, call, main, show

NONE = -math.inf
Tiles = list[list[float]]


def by_decimals(tiles: Tiles) -> tuple[float, float]:
    """Weighted sum and logsumexp with 28 digits; the values are 1, 2, 3 and so on."""
    numbered = enumerate(chain.from_iterable(tiles), start=1)
    row = [(Decimal(score), i) for i, score in numbered if score > NONE]
    if not row:
        return 0.0, NONE
    total = sum(score.exp() for score, _ in row)
    return float(sum(score.exp() * i for score, i in row) / total), float(Decimal(total).ln())


def attended(tiles: Tiles, answer: Any) -> object:
    """Fold the tiles into the state, and finish."""
    state, first = (NONE, 0.0, 0.0), 1.0
    for tile in tiles:
        state = answer.update(*state, tile, [first + i for i in range(len(tile))])
        first += len(tile)
    return answer.finish(*state)


def cases() -> Iterator[Case]:
    """Masked tiles everywhere, live scores that are far below 0, and rows with nothing live."""
    gone, live, low = (
        [NONE, NONE],
        [[1.0, 3.0], [2.0, 0.5]],
        [[-9000.0, -9001.0], [-9002.5, -8999.0]],
    )
    first = "A tile that is masked throughout must leave the state as it was."
    far = "Measured from 0, exp(-9000) is 0. A masked tile must not touch the largest score."
    rows: list[tuple[Tiles, str]] = [
        (live, "No score is masked here: this must still come out as before."),
        ([*live, gone], first),
        ([live[0], gone, live[1]], first + " What was summed before it still counts."),
        ([gone, *live], first),
        ([gone, gone, *live], first),
        ([[NONE, 3.0], [2.0, NONE]], "A tile that is masked in part has live scores to count."),
        ([gone, *low], far),
        ([low[0], gone, low[1]], far),
        ([gone, [NONE, -1e6]], far),
        ([[NONE] * 4, [NONE, NONE, 10.0, NONE], [NONE] * 4], "One live score has all the weight."),
        ([gone, gone], "A row without a live score gives 0, with a logsumexp of -inf."),
        ([], "A row without scores gives 0, with a logsumexp of -inf."),
    ]
    for tiles, why in rows:
        shown = f"(result, logsumexp) of the tiles of scores\n{show(tiles)}, values 1, 2, 3 ..."
        yield Case(shown, partial(attended, tiles), by_decimals(tiles), why)
    state = (NONE, 0.0, 0.0)
    yield call("update(m, l, acc, scores, values)", (*state, gone, [1.0, 2.0]), state, first)
    yield call("finish(m, l, acc)", state, (0.0, NONE), "Nothing was live: 0, and -inf.")


if __name__ == "__main__":
    main(cases())
