"""Softmax-weighted sums one tile at a time, equal to the whole-row result to ten decimals.

What to notice: a larger maximum shrinks the earlier sums; a tile masked throughout does nothing.

Run it: `python -m snippets.online_softmax`
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from snippets.batch_softmax import Exp, Rows, batch, check
from snippets.naive_attention import check_sizes


# --8<-- [start:state]
class State(NamedTuple):
    """What is kept of the scores seen so far, whatever their number."""

    m: float  # their maximum
    l: float  # noqa: E741, the papers' name: the sum of exp(score - m)
    acc: tuple[float, ...]  # the sum of exp(score - m) * value, one entry a column of values


def empty(d: int) -> State:
    """Return the state before the first score, for values with `d` columns."""
    check_sizes(0, d=d)
    return State(-math.inf, 0.0, (0.0,) * d)


def update(state: State, scores: Sequence[float], values: Rows, exp: Exp = math.exp) -> State:
    """Fold one tile into the state: n scores, -inf where masked, and values (n, d)."""
    check(scores, values)
    m = max([state.m, *scores])
    if m == -math.inf:
        return state  # all masked so far, and exp(-inf - -inf) would be NaN
    rescale = exp(state.m - m)
    total, acc = state.l * rescale, [a * rescale for a in state.acc]
    for score, value in zip(scores, values, strict=True):
        p = exp(score - m)
        total, acc = total + p, [a + p * v for a, v in zip(acc, value, strict=True)]
    return State(m, total, tuple(acc))


def finish(state: State) -> tuple[tuple[float, ...], float]:
    """Return the weighted sum (d) and the LSE: zeros and -inf when no score was live."""
    if state.m == -math.inf:
        return state.acc, -math.inf
    return tuple(a / state.l for a in state.acc), state.m + math.log(state.l)


# --8<-- [end:state]
# --8<-- [start:merge]
def merge(a: State, b: State) -> State:
    """Join the states of two parts of one row."""
    if len(a.acc) != len(b.acc):
        raise ValueError(f"both parts need as many columns, got {len(a.acc)} and {len(b.acc)}")
    m = max(a.m, b.m)
    of_a, of_b = (0.0 if s.m == -math.inf else math.exp(s.m - m) for s in (a, b))
    acc = (x * of_a + y * of_b for x, y in zip(a.acc, b.acc, strict=True))
    return State(m, a.l * of_a + b.l * of_b, tuple(acc))


# --8<-- [end:merge]
def online(scores: Sequence[float], values: Rows, tile: int, exp: Exp = math.exp) -> State:
    """Return the state after the whole row, `tile` scores at a time."""
    check(scores, values, tile=tile)
    state = empty(len(values[0]) if values else 0)
    for i in range(0, len(scores), tile):
        state = update(state, scores[i : i + tile], values[i : i + tile], exp)
    return state


def main() -> None:
    ten = [3.0, 1.0, 2.5, 0.2, 4.1, -1.0, 2.2, 0.7, 3.3, 1.9]
    six, masked = [3.1, -1.0, 2.2, 0.5, 4.0, -2.0], [-math.inf] * 4
    print("row                     tile          batch         online           LSE")
    rows = [("ten scores", 10.0, ten, 4), ("six scores", 1.0, six, 2)]
    rows += [("masked tile, then ten", 10.0, masked + ten, 4), ("four masked", 10.0, masked, 2)]
    for name, step, scores, tile in rows:
        values = [[step * (i + 1 - scores.count(-math.inf))] for i in range(len(scores))]
        (out,), lse = finish(online(scores, values, tile))
        print(f"{name:23} {tile:4} {batch(scores, values)[0]:14.10f} {out:14.10f} {lse:13.10f}")
    tens = [[10.0 * (i + 1)] for i in range(10)]
    (out,), _ = finish(merge(online(ten[:4], tens[:4], 4), online(ten[4:], tens[4:], 4)))
    print(f"ten scores, first four merged with last six {out:14.10f}")


if __name__ == "__main__":
    main()
