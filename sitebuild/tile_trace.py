"""The trace of tiled attention that the player steps through: the lab's own steps, and the bytes.

Nothing is computed twice: scores and states are those that `walk` yields, and the factor by which
`update` shrinks the sums is heard from `update` itself, through the exponential that it is given.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from snippets.batch_softmax import Rows
from snippets.flash_attention import Step, walk
from snippets.naive_attention import ledger
from snippets.online_softmax import State, empty, finish, update

ITEMSIZE = 2  # bf16
LSE_SIZE = 4  # fp32


class Row(NamedTuple):
    """One query in one step."""

    query: int
    scores: list[float]
    before: State
    factor: float | None  # None where a row without any live score so far has nothing to shrink
    after: State
    done: tuple[tuple[float, ...], float] | None  # output and LSE, after the last keys


class Frame(NamedTuple):
    """One step with the bytes that it and those before it moved."""

    queries: range
    keys: range
    rows: list[Row]
    moved: int


def frames(
    q: Rows, k: Rows, v: Rows, query_tile: int, key_tile: int, causal: bool = False
) -> Iterator[Frame]:
    """Yield a frame for each step of the lab's `walk`, which takes the same arguments."""
    moved, before = 0, [empty(len(v[0]))]
    for step in walk(q, k, v, query_tile, key_tile, causal):
        first, last = step.keys.start == 0, step.keys.stop == len(k)
        if first:
            before = [empty(len(v[0]))] * len(step.queries)
            moved += len(step.queries) * len(q[0]) * ITEMSIZE
        moved += len(step.keys) * (len(k[0]) + len(v[0])) * ITEMSIZE
        if last:
            moved += len(step.queries) * (len(v[0]) * ITEMSIZE + LSE_SIZE)
        yield Frame(step.queries, step.keys, _rows(step, before, v, last), moved)
        before = step.states


def naive_kernels(q: Rows, k: Rows, v: Rows) -> list[tuple[str, int]]:
    """Return name and bytes of each kernel of attention that writes all its scores."""
    # the lab has one d for all; here the values have fewer columns than the keys
    of_keys, of_values = (ledger(len(q), len(k), len(x[0]), ITEMSIZE) for x in (k, v))
    steps = [of_keys[0], of_keys[1], of_values[2]]
    return [(step.kernel, step.read + step.written) for step in steps]


def _rows(step: Step, before: list[State], v: Rows, last: bool) -> list[Row]:
    values = [v[j] for j in step.keys]
    rows = []
    for query, scores, old, new in zip(step.queries, step.scores, before, step.states, strict=True):
        again, factor = _listen(old, scores, values)
        if again != new:
            raise ValueError(f"query {query}: the lab's step is not what its update returns")
        rows.append(Row(query, scores, old, factor, new, finish(new) if last else None))
    return rows


def _listen(state: State, scores: list[float], values: Rows) -> tuple[State, float | None]:
    """Return what `update` returns, and the first exponential that it took: the factor."""
    heard: list[float] = []

    def exp(x: float) -> float:
        heard.append(math.exp(x))
        return heard[-1]

    return update(state, scores, values, exp), heard[0] if heard else None
